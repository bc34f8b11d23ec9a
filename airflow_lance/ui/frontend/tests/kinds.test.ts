import { expect, test } from "vitest";

import { argumentsOf } from "../src/actions/use-action";
import { fillOf, groupsOf, operationText, versionText } from "../src/lib/kinds";

const KINDS = ["append", "merge", "update", "refresh", "delete", "overwrite", "compact", "index", "columns", "config", "restore", "other"];

test("every kind of version has a colour and stands in one group", () => {
  expect(groupsOf(KINDS).flatMap((group) => group.kinds).sort()).toEqual([...KINDS].sort());
  expect(fillOf("a kind of tomorrow")).toBe("fill-5");
});

test("names in words", () => expect([operationText("CreateIndex"), operationText(null)]).toEqual(["create index", "unknown"]));

test("fields of a dialog: what is empty is left out, numbers are numbers", () => {
  const fields = [
    { name: "days", label: "", kind: "number" as const },
    { name: "keep", label: "", kind: "number" as const },
    { name: "name", label: "", kind: "text" as const },
  ];
  expect(argumentsOf(fields, { days: "7", keep: " ", name: " prod " })).toEqual({ days: 7, name: "prod" });
});

test.each([
  [1, "Overwrite", "overwrite", "create"],
  [7, "Overwrite", "overwrite", "overwrite"],
  [2, "Merge", "columns", "add columns"],
  [2, "Update", "merge", "merge"],
  [2, "Update", "update", "update"],
  [2, "Update", "compact", "merge column files"],
  [2, "Update", "refresh", "refresh columns"],
  [2, "CreateIndex", "index", "build index"],
  [2, "Rewrite", "compact", "compact"],
  [2, "Append", "append", "append"],
  [2, "UpdateMemWalState", "other", "update mem wal state"],
  [2, null, "other", "unknown"],
])("version %i by %s is called by the operator", (version, operation, kind, words) => {
  expect(versionText({ version, operation, kind })).toBe(words);
});
