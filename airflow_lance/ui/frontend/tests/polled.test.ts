import { expect, test } from "vitest";

import { PAUSE_SECONDS, pauseOf } from "../src/api/use-polled";

test("an answer is asked for again while tables are being looked at", () => {
  expect(pauseOf(null)).toBeNull();
  expect(pauseOf({ pending: 0, retry_after: 5 })).toBeNull();
  expect(pauseOf({ pending: 3, retry_after: 5 })).toBe(5);
  expect(pauseOf({ pending: 3, retry_after: null })).toBe(PAUSE_SECONDS);
  expect(pauseOf({ pending: 1 })).toBe(PAUSE_SECONDS);
});
