import { expect, test } from "vitest";

import { apiPath, failureOf } from "../src/api/client";

test("the server's own words win", () => {
  const said = { error: { code: "timeout", message: "The store did not answer within 10 s.", cure: "Try again." }, detail: "x" };
  expect(failureOf(504, said)).toEqual({ status: 504, code: "timeout", message: "The store did not answer within 10 s.", cure: "Try again." });
});

test.each([undefined, null, "text", [], { error: 7 }, { error: { message: 7 } }, { detail: [1] }])("an answer like %j still says something", (body) => {
  expect(failureOf(403, body).message).toBe("You do not have the right to see this.");
  expect(failureOf(500, body).message).toBe("Airflow answered with status 500.");
});

test("names of tables cannot leave their place in an address", () => {
  expect(apiPath(["tables", "../me?x#y"], { q: "a&b", none: undefined, zero: 0 })).toBe("lance/api/tables/..%2Fme%3Fx%23y?q=a%26b&zero=0");
});
