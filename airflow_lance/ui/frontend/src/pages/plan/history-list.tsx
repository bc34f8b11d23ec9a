import type { HistoryAnswer, HistoryRow } from "../../api/more-types";
import { stepText } from "../../actions/words";
import { ago, bytes, duration, exact, gbHours, whole } from "../../lib/format";
import { hrefOf } from "../../lib/router";
import { Badge, type Tone } from "../../ui/badge";
import { DataTable, type Column } from "../../ui/data-table";
import { PageLink, PlaceLink } from "../../ui/links";
import { Empty } from "../../ui/states";
import { offBy } from "./predicted";

const TONES: Readonly<Record<string, Tone>> = { done: "good", failed: "bad", skipped: "plain", nothing: "plain" };

export function HistoryList({ answer, withTable }: { answer: HistoryAnswer; withTable: boolean }) {
  if (answer.rows.length === 0) return <Empty>No upkeep was recorded in this time.</Empty>;
  const columns = all(answer.made_at).filter((column) => withTable || column.name !== "table");
  return <DataTable label="Upkeep that was done" columns={columns} rows={answer.rows} keyOf={(row) => `${row.at} ${row.uri} ${row.action}`} />;
}

function all(now: number): readonly Column<HistoryRow>[] {
  return [
    { name: "at", head: "When", cell: (row) => <span className="nowrap" title={exact(row.at)}>{ago(row.at, now)}</span>, by: (row) => row.at, first: "descending" },
    { name: "table", head: "Table", cell: (row) => (row.table ? <PageLink href={hrefOf("table", [row.table])}>{row.name}</PageLink> : row.name), by: (row) => row.name },
    { name: "step", head: "Step", cell: (row) => <span className="nowrap">{stepText(row.action)}</span>, by: (row) => row.action },
    { name: "outcome", head: "Outcome", cell: (row) => <Badge tone={TONES[row.outcome] ?? "plain"}>{row.outcome}</Badge>, by: (row) => row.outcome },
    { name: "reason", head: "Why", cell: (row) => <span className={row.error ? "prose bad" : "prose soft"}>{row.error ?? row.reason}</span> },
    { name: "fragments", head: "Fragments", cell: fragments, number: true },
    { name: "bytes", head: "Bytes, predicted → real", cell: (row) => <Pair predicted={row.predicted_bytes} real={row.bytes} text={bytes} done={row.outcome === "done"} />, by: (row) => row.bytes, number: true },
    { name: "seconds", head: "Time, predicted → real", cell: (row) => <Pair predicted={row.predicted_seconds} real={row.seconds} text={duration} done={row.outcome === "done"} />, by: (row) => row.seconds, number: true },
    { name: "cost", head: "Price", cell: (row) => (row.gb_hours ? gbHours(row.gb_hours) : "–"), by: (row) => row.gb_hours, number: true },
    { name: "run", head: "Run", cell: (row) => <PlaceLink place={row.run} short /> },
  ];
}

function fragments(row: HistoryRow) {
  if (row.outcome !== "done" || row.fragments_before === null || row.fragments_after === null) return "–";
  return `${whole(row.fragments_before)} → ${whole(row.fragments_after)}`;
}

function Pair({ predicted, real, text, done }: { predicted: number | null; real: number | null; text: (value: number | null) => string; done: boolean }) {
  if (!done) return <span className="faint">–</span>;
  const off = offBy(predicted, real);
  return (
    <span title={off === null ? undefined : `off by ${off}`}>
      <span className="soft">{text(predicted)} →</span> {text(real)}
    </span>
  );
}
