import { expect, test } from "vitest";

import { navPath } from "../src/lib/host";
import { hashOf, parseRoute } from "../src/lib/router";

test("every name survives the way into an address and back", () => {
  for (const name of ["orders", "a/b", "50%", "<script>alert(1)</script>", "ü ?&=#", "..", '"', "s3://b/t.lance"]) {
    const route = parseRoute(hashOf("table", [name], { q: name }));
    expect([route.page, route.parts, route.query]).toEqual(["table", [name], { q: name }]);
  }
});

test("addresses that nobody made", () => {
  expect([parseRoute("").page, parseRoute("#/").page, parseRoute("#").page]).toEqual(["tables", "tables", "tables"]);
  expect(parseRoute("#/table/50%").parts).toEqual(["50%"]);
  expect(parseRoute("#/plan?x")).toEqual({ page: "plan", parts: [], query: { x: "" } });
  expect(parseRoute("#/table/ab/diff/3/7").parts).toEqual(["ab", "diff", "3", "7"]);
});

test("what is empty is left out", () => expect(hashOf("tables", [], { q: "", sort: undefined })).toBe("#/"));

test("the page of the tables, alone and in Airflow, below any prefix", () => {
  expect(navPath("/lance/", "/")).toBe("/lance/");
  expect(navPath("/air/lance/", "/air/")).toBe("/air/lance/");
  expect(navPath("/air/plugin/lance", "/air/")).toBe("/air/plugin/lance");
  expect(navPath("/dags/lance/tasks/x/plugin/lance-task", "/")).toBe("/plugin/lance");
});
