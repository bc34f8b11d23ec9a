import { expect, test } from "vitest";

import type { Work } from "../src/api/more-types";
import { runsOf, summaryOf } from "../src/lib/runs";

const work = (identity: string, run: string | null, state: string): Work => ({ identity, state, run: run === null ? null : { dag_id: "shop", run_id: run, link: null } }) as Work;

const WORK = [work("a", "day 2", "committed"), work("b", "day 1", "staged"), work("c", "day 2", "done"), work("d", null, "committed")];

test("work stands with its run, runs in the order of their newest work", () => {
  expect(runsOf(WORK).map((run) => [run.name, run.work.map((item) => item.identity)])).toEqual([
    ["day 2", ["a", "c"]],
    ["day 1", ["b"]],
    ["another run", ["d"]],
  ]);
});

test("a run says how much it did and what became of it", () => {
  expect(summaryOf(WORK)).toBe("4 pieces of work, 2 committed, 1 staged, 1 done");
  expect(summaryOf(WORK.slice(1, 2))).toBe("1 piece of work, 1 staged");
});
