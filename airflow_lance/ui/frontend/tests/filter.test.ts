import { describe, expect, test } from "vitest";

import { parseFilter, type Searchable } from "../src/lib/filter";

const KNOWN = { words: ["conn", "tag"], numbers: ["health", "size", "age", "deleted"] };
const ROW: Searchable = {
  text: "lake/Orders s3://bucket/orders.lance",
  words: { conn: ["aws_lake"], tag: ["prod", "v2"] },
  numbers: { health: 58, size: 12e9, age: 7200, deleted: null },
};

const matches = (text: string): boolean => parseFilter(text, KNOWN).matches(ROW);

describe("what holds", () => {
  test.each([
    "", "orders", "ORDERS lake", "health<60", "health < 60", "health<=58 health>=58", "health=58", "conn:aws", "tag:prod tag:v2",
    "size>10GB", "size > 10 gb", "size<13,000,000,000", "age>1h", '"lake/orders"', "s3://bucket",
  ])("%s", (text) => expect(matches(text)).toBe(true));
});

describe("what does not hold", () => {
  test.each(["payments", "health<58", "health>60 orders", "conn:gcs", "tag:dev", "deleted<5", "deleted>0", "size>1TB"])("%s", (text) =>
    expect(matches(text)).toBe(false),
  );
});

test("what cannot be understood is named and hides nothing", () => {
  const filter = parseFilter("orders helth<60 health<many", KNOWN);
  expect(filter.unclear).toEqual(["helth<60", "health<many"]);
  expect(filter.matches(ROW)).toBe(true);
});

test("no text makes it fail", () => {
  for (const text of ['"', "<", ":", "a:", ":b", "health<", '"" ""', "((((", "health<1e", "\\", "size>>1"]) {
    expect(() => parseFilter(text, KNOWN).matches(ROW)).not.toThrow();
  }
});
