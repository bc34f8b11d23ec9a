import type { TableRow } from "../../api/types";
import { allBytes } from "./columns";
import type { Searchable } from "../../lib/filter";

export const KNOWN = {
  words: ["conn", "state", "next", "why", "owner", "column"],
  numbers: ["health", "size", "rows", "fragments", "versions", "unindexed", "staged", "dead", "written", "upkeep"],
};

/** What the filter box looks at. Ages are in seconds. */
export function searchable(row: TableRow, now: number): Searchable {
  return {
    text: `${row.name} ${row.uri} ${row.conn_id ?? ""} ${row.description ?? ""}`,
    words: {
      conn: [row.conn_id ?? ""],
      state: [row.state, row.error?.code ?? "", row.freshness ?? ""],
      owner: [row.owner ?? ""],
      column: row.columns ?? [],
      next: row.next ? [row.next.action] : [],
      why: row.health?.parts.flatMap((part) => [part.code, part.label]) ?? [],
    },
    numbers: {
      health: row.health?.score ?? null,
      size: allBytes(row),
      rows: row.num_rows,
      fragments: row.num_fragments,
      versions: row.num_versions,
      unindexed: row.unindexed_share,
      staged: row.num_staged,
      dead: row.num_dead_attempts,
      written: row.written_at === null ? null : now - row.written_at,
      upkeep: row.upkeep_at === null ? null : now - row.upkeep_at,
    },
  };
}

/** Ready filters: a name and what it writes into the box. */
export const READY: readonly (readonly [string, string])[] = [
  ["Needs attention", "health<80"],
  ["Late", "state:late"],
  ["Errors", "state:error"],
  ["Staged work", "staged>0"],
  ["Unindexed rows", "unindexed>10%"],
  ["Upkeep is due", "next:"],
];
