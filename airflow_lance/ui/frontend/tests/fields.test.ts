import { expect, test } from "vitest";

import type { Field } from "../src/api/types";
import { matchingFields } from "../src/lib/fields";

function field(id: number, parent: number, path: string, type: string, metadata: Record<string, string> = {}): Field {
  return { id, parent, path, name: path.split(".").at(-1) ?? path, type, nullable: true, metadata } as Field;
}

const FIELDS = [
  field(0, -1, "id", "int64"),
  field(1, -1, "note", "struct"),
  field(2, 1, "note.tags", "list"),
  field(3, 2, "note.tags.item", "string"),
  field(4, -1, "price", "double", { unit: "EUR" }),
];

const found = (query: string): readonly string[] => matchingFields(FIELDS, query).map((item) => item.path);

test("no word finds everything", () => {
  expect(found("  ")).toHaveLength(FIELDS.length);
});

test("a field is found with what it is inside of, and nothing else", () => {
  expect(found("ITEM")).toEqual(["note", "note.tags", "note.tags.item"]);
});

test("all words must occur, in name, type or metadata", () => {
  expect(found("eur")).toEqual(["price"]);
  expect(found("double eur")).toEqual(["price"]);
  expect(found("int64 eur")).toEqual([]);
});
