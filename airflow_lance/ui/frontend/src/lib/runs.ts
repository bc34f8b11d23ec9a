/** Pieces of work by the run that they belong to, in the order in which they come: the newest first. */

import type { Work } from "../api/more-types";
import { plural } from "./format";

export const OPEN_RUNS = 3;
const WORDS: Readonly<Record<string, string>> = { expired: "died" };

export interface Run {
  readonly name: string;
  readonly work: readonly Work[];
}

export function runsOf(work: readonly Work[]): readonly Run[] {
  const groups = new Map<string, Work[]>();
  for (const item of work) {
    const name = item.run?.run_id ?? "another run";
    const group = groups.get(name);
    if (group) group.push(item);
    else groups.set(name, [item]);
  }
  return [...groups].map(([name, items]) => ({ name, work: items }));
}

/** "3 pieces of work, 2 committed, 1 staged". */
export function summaryOf(work: readonly Work[]): string {
  const counts = new Map<string, number>();
  for (const item of work) counts.set(item.state, (counts.get(item.state) ?? 0) + 1);
  return [plural(work.length, "piece of work", "pieces of work"), ...[...counts].map(([state, count]) => `${count} ${WORDS[state] ?? state}`)].join(", ");
}
