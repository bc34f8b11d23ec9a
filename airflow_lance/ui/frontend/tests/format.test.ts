import { describe, expect, test } from "vitest";

import { ago, bytes, count, duration, gbHours, percent, plural, signed, whole } from "../src/lib/format";

describe("bytes", () => {
  test.each([
    [0, "0 B"], [999, "999 B"], [1000, "1 KB"], [1536, "1.5 KB"], [999_499, "999 KB"], [999_600, "1 MB"],
    [8.4e12, "8.4 TB"], [412e9, "412 GB"], [-2e6, "−2 MB"], [null, "–"], [Number.NaN, "–"],
  ])("%s is %s", (value, text) => expect(bytes(value)).toBe(text));

  test("never shows a thousand of a unit that has a larger one", () => {
    for (let power = 0; power < 17; power += 0.01) expect(bytes(10 ** power)).not.toMatch(/^\d{4}/);
  });
});

describe("count", () => {
  test.each([[48_211, "48,211"], [120_400_000, "120.4 M"], [91.2e9, "91.2 B"], [250_000, "250 k"], [-1_500_000, "−1.5 M"], [null, "–"]])(
    "%s is %s",
    (value, text) => expect(count(value).replace("-", "−")).toBe(text),
  );
});

test("a share that is not whole never looks whole", () => {
  expect([0, 0.0001, 0.018, 0.33, 0.996, 0.9999, 1].map(percent)).toEqual([
    "0 %", "< 0.1 %", "1.8 %", "33 %", "99.6 %", "> 99.9 %", "100 %",
  ]);
});

test("durations and moments", () => {
  expect([0, 0.4, 40, 90, 5400, 36_000, 200_000].map(duration)).toEqual(["0 s", "< 1 s", "40 s", "1.5 min", "1.5 h", "10 h", "2.3 d"]);
  expect([ago(0, 9), ago(98, 100), ago(100, 220), ago(160, 100)]).toEqual(["never", "just now", "2 min ago", "in 1 min"]);
});

test("signs and plurals", () => {
  expect([signed(27_004), signed(-118), signed(0), whole(1e6)]).toEqual(["+27,004", "−118", "0", "1,000,000"]);
  expect([plural(1, "index", "indices"), plural(3, "table")]).toEqual(["1 index", "3 tables"]);
});

test("a price that is little is not nothing", () => {
  expect([0, 0.001, 0.12, 3, 21.04, null].map(gbHours)).toEqual(["0 GB-h", "< 0.01 GB-h", "0.12 GB-h", "3 GB-h", "21 GB-h", "–"]);
});
