import { expect, test } from "vitest";

import { bucketed, linePoints, logHeight, shares } from "../src/lib/scale";
import { sortRows } from "../src/lib/sort";
import { chosenTheme } from "../src/lib/theme";

test("bars: nothing is flat, the largest is full, what is there can be seen", () => {
  expect([logHeight(0, 10, 80), logHeight(10, 10, 80), logHeight(1, 1e300, 80)]).toEqual([0, 80, 2]);
});

test("shares add up to 100 and none vanishes", () => {
  const widths = shares([1e12, 1, 0, 5e11]);
  expect(widths.reduce((sum, width) => sum + width, 0)).toBeCloseTo(100);
  expect(widths[1]).toBeGreaterThan(0.9);
  expect(widths[2]).toBe(0);
  expect(shares([0, 0])).toEqual([0, 0]);
});

test("buckets keep the sum", () => {
  const values = Array.from({ length: 1003 }, (_, at) => at);
  const sums = bucketed(values, 100);
  expect(sums.length).toBeLessThanOrEqual(100);
  expect(sums.reduce((sum, value) => sum + value, 0)).toBe(1003 * 501);
});

test("a line stays in its box", () => {
  for (const values of [[], [5], [3, 3, 3], [1, 100, -4]]) {
    for (const point of linePoints(values, 90, 20).split(" ").filter(Boolean)) {
      const [x = -1, y = -1] = point.split(",").map(Number);
      expect(x >= 0 && x <= 90 && y >= 0 && y <= 20).toBe(true);
    }
  }
});

test("sorting: rows without a value last, numbers in names by value, equal rows in their order", () => {
  const rows = [{ k: "t10" }, { k: null }, { k: "t2" }];
  expect(sortRows(rows, (row) => row.k, "ascending").map((row) => row.k)).toEqual(["t2", "t10", null]);
  expect(sortRows(rows, (row) => row.k, "descending").map((row) => row.k)).toEqual(["t10", "t2", null]);
  expect(sortRows([{ n: 1, at: 0 }, { n: 1, at: 1 }], (row) => row.n, "descending").map((row) => row.at)).toEqual([0, 1]);
});

test("what Airflow shows wins over its switch, that over the system", () => {
  expect(chosenTheme(["dark"], "light", false)).toBe("dark");
  expect(chosenTheme(["other", "light"], null, true)).toBe("light");
  expect([chosenTheme([], "dark", false), chosenTheme([], null, true), chosenTheme([], "system", false)]).toEqual(["dark", "dark", "light"]);
});
