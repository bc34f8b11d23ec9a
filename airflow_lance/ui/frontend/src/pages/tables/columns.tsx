import { stepText } from "../../actions/words";
import type { TableRow } from "../../api/types";
import { ago, bytes, count, exact, gbHours, percent, whole } from "../../lib/format";
import { hrefOf } from "../../lib/router";
import { Badge } from "../../ui/badge";
import type { Column } from "../../ui/data-table";
import { Health } from "../../ui/health";
import { PageLink } from "../../ui/links";
import { Sparkline } from "../../ui/sparkline";
import { healthText } from "../table/health-parts";

/** The columns of the list. `now` is the time of the server's facts. */
export function tableColumns(now: number): readonly Column<TableRow>[] {
  return [
    { name: "name", head: "Table", cell: name, by: (row) => row.name },
    { name: "health", head: "Health", cell: health, by: healthKey, first: "ascending" },
    { name: "size", head: "Size", cell: size, by: allBytes, number: true },
    { name: "rows", head: "Rows", cell: (row) => count(row.num_rows), by: (row) => row.num_rows, number: true },
    { name: "fragments", head: "Fragments", cell: fragments, by: (row) => row.num_fragments, number: true },
    { name: "versions", head: "Versions", cell: (row) => count(row.num_versions), by: (row) => row.num_versions, number: true },
    { name: "unindexed", head: "Unindexed", cell: unindexed, by: (row) => row.unindexed_share, number: true },
    { name: "writes", head: "Commits, 24 h", cell: writes, by: (row) => total(row), first: "descending" },
    { name: "written", head: "Last write", cell: (row) => moment(row.written_at, now), by: (row) => row.written_at, number: true },
    { name: "upkeep", head: "Last upkeep", cell: (row) => moment(row.upkeep_at, now), by: (row) => row.upkeep_at, number: true },
    { name: "next", head: "Next upkeep", cell: next, by: (row) => row.next?.gb_hours ?? null, first: "descending" },
  ];
}

/** Errors first, then the worst; what is still being looked at last. */
export function healthKey(row: TableRow): number | null {
  if (row.state === "error") return -1;
  return row.health?.score ?? null;
}

function name(row: TableRow) {
  const at = row.name.lastIndexOf("/");
  return (
    <span className="name-cell" title={[row.uri, row.owner ? `owner ${row.owner}` : null].filter(Boolean).join("\n")}>
      <PageLink href={hrefOf("table", [row.id])}>
        {at > 0 ? <span className="faint">{row.name.slice(0, at + 1)}</span> : null}
        <span className="strong">{row.name.slice(at + 1).replace(/\.lance$/, "")}</span>
      </PageLink>
      {row.freshness === "late" ? <Badge tone="bad" title={row.late ?? undefined}>late</Badge> : null}
      {row.num_staged ? <Badge title={`${row.num_staged} staged`}>{whole(row.num_staged)} staged</Badge> : null}
      {row.num_dead_attempts ? <Badge tone="warn">{whole(row.num_dead_attempts)} dead</Badge> : null}
      {row.description ? <span className="line2 block said-short">{row.description}</span> : null}
    </span>
  );
}

/** Why nothing is known of a table, over the whole row: an error is longer than a column. */
export function errorOf(row: TableRow) {
  if (row.state !== "error") return null;
  return (
    <span className="error-cell">
      <Badge tone="bad">{errorText(row.error?.code)}</Badge> <span className="small">{row.error?.message}</span>{" "}
      <span className="small soft">{row.error?.cure}</span>
    </span>
  );
}

function health(row: TableRow) {
  if (row.health === null) return <span className="small faint">looking …</span>;
  const worst = [...row.health.parts].sort((left, right) => left.points - right.points)[0];
  return (
    <span className="health-cell" title={healthText(row.health)}>
      <Health health={row.health} />
      {worst && row.health.score < 80 ? <span className="small soft">{worst.label}</span> : null}
    </span>
  );
}

const ERRORS: Readonly<Record<string, string>> = {
  damaged: "damaged",
  not_found: "missing",
  invalid: "refused",
  unsupported: "not supported",
  timeout: "no answer",
  busy: "no answer",
  unreachable: "unreachable",
};

/** What is wrong with a table that could not be opened, in one word. */
export function errorText(code: string | undefined): string {
  return ERRORS[code ?? ""] ?? "failed";
}

function fragments(row: TableRow) {
  const small = row.num_small_fragments ?? 0;
  return <span title={small ? `${whole(small)} of them small` : undefined}>{count(row.num_fragments)}</span>;
}

/** Data files of the newest version, and the manifests of all versions. */
export function allBytes(row: TableRow): number | null {
  return row.num_bytes === null ? null : row.num_bytes + (row.manifest_bytes ?? 0);
}

function size(row: TableRow) {
  return <span title={`${bytes(row.num_bytes)} in data files, ${bytes(row.manifest_bytes)} in manifests`}>{bytes(allBytes(row))}</span>;
}

function unindexed(row: TableRow) {
  if (row.num_indices === 0) return <span className="faint">no index</span>;
  return percent(row.unindexed_share);
}

function writes(row: TableRow) {
  return <Sparkline values={row.writes ?? []} label={`${total(row) ?? 0} commits in 24 hours`} unit="an hour" />;
}

function total(row: TableRow): number | null {
  return row.writes?.reduce((sum, value) => sum + value, 0) ?? null;
}

function moment(at: number | null, now: number) {
  if (at === null) return <span className="faint">–</span>;
  return <span title={exact(at)} className="nowrap">{ago(at, now)}</span>;
}

function next(row: TableRow) {
  if (row.paused) return <span className="faint">paused</span>;
  if (row.in_policy === false) return <span className="faint">no rule</span>;
  if (row.next === null) return <span className="faint">–</span>;
  return (
    <span title={row.next.reason} className="wrap-words">
      {stepText(row.next.action)} <span className="soft small">{gbHours(row.next.gb_hours)}</span>
    </span>
  );
}
