import { apiPath } from "../../api/client";
import type { FailedAnswer, FailedRow } from "../../api/more-types";
import { useResource } from "../../api/use-resource";
import { ago, count, exact, plural } from "../../lib/format";
import { DataTable, type Column } from "../../ui/data-table";
import { PlaceLink } from "../../ui/links";
import { Section } from "../../ui/section";
import { Empty, Loading, Problem } from "../../ui/states";
import type { TabProps } from "./tab-props";

/** Rows of declared columns for which functions failed. What a function was given, and what it said, is noted nowhere. */
export function FailedTab({ answer }: TabProps) {
  const failed = useResource<FailedAnswer>(apiPath(["tables", answer.table.id, "failed"]));
  return (
    <div className="sections">
      <Section id="failed" title="Failed rows" note="null, and tried again by each refresh" flush>
        {failed.data ? <Failed answer={failed.data} /> : failed.failure ? <Problem failure={failed.failure} retry={failed.reload} /> : <Loading what="the failed rows" />}
      </Section>
    </div>
  );
}

function Failed({ answer }: { answer: FailedAnswer }) {
  if (answer.columns.length === 0) return <Empty>No column of the table is declared.</Empty>;
  if (answer.rows.length === 0) return <Empty>No function failed for a row.</Empty>;
  return (
    <>
      <DataTable
        label="Failed rows"
        rows={answer.rows}
        columns={columns(answer.made_at)}
        keyOf={(row) => `${row.column} ${row.fragment} ${row.offset}`}
      />
      {answer.left_out ? <p className="soft">and {plural(answer.left_out, "row")} more</p> : null}
    </>
  );
}

function columns(now: number): readonly Column<FailedRow>[] {
  return [
    { name: "column", head: "Column", cell: (row) => <span className="strong wrap">{row.column}</span>, by: (row) => row.column },
    { name: "fragment", head: "Fragment", cell: (row) => count(row.fragment), by: (row) => row.fragment, number: true },
    { name: "offset", head: "Row", cell: (row) => count(row.offset), by: (row) => row.offset, number: true, title: "its place in the fragment when it was tried" },
    { name: "error", head: "Error", cell: (row) => <code title={row.place ?? undefined}>{row.error}</code>, by: (row) => row.error },
    { name: "status", head: "Status", cell: (row) => row.status ?? "–", by: (row) => row.status, number: true },
    { name: "tries", head: "Tries", cell: (row) => count(row.tries), by: (row) => row.tries, number: true },
    { name: "when", head: "Tried", cell: (row) => <span title={exact(row.when)}>{ago(row.when, now)}</span>, by: (row) => row.when },
    { name: "writer", head: "Task", cell: (row) => <PlaceLink place={row.writer} /> },
  ];
}
