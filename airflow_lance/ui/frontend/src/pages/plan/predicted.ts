import type { HistoryRow } from "../../api/more-types";
import { percent } from "../../lib/format";

/** How far a prediction was from what was real: "+4 %". */
export function offBy(predicted: number | null, real: number | null): string | null {
  if (!predicted || real === null) return null;
  const share = (real - predicted) / predicted;
  return `${share >= 0 ? "+" : "−"}${percent(Math.abs(share))}`;
}

export interface Totals {
  readonly done: number;
  readonly failed: number;
  readonly gbHours: number;
  readonly predictedBytes: number;
  readonly bytes: number;
  readonly seconds: number;
}

/** What the steps of a time cost together. Only steps that were done count as predicted and real. */
export function totalsOf(rows: readonly HistoryRow[]): Totals {
  const done = rows.filter((row) => row.outcome === "done");
  const sum = (of: (row: HistoryRow) => number | null): number => done.reduce((all, row) => all + (of(row) ?? 0), 0);
  return {
    done: done.length,
    failed: rows.filter((row) => row.outcome === "failed").length,
    gbHours: sum((row) => row.gb_hours),
    predictedBytes: sum((row) => row.predicted_bytes),
    bytes: sum((row) => row.bytes),
    seconds: sum((row) => row.seconds),
  };
}
