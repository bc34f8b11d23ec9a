import type { Index } from "../../api/types";
import { ago, bytes, count, exact, plural } from "../../lib/format";
import { Badge } from "../../ui/badge";
import { DataTable, type Column } from "../../ui/data-table";
import { Section } from "../../ui/section";
import { Empty } from "../../ui/states";
import { Coverage } from "./index-coverage";
import type { TabProps } from "./tab-props";

export function IndicesTab({ answer }: TabProps) {
  return (
    <div className="sections">
      <Section id="indices" title="Indices" note="how many rows each one covers, and how far it lags behind" flush>
        {answer.indices.length ? (
          <DataTable label="Indices" columns={columns(answer.made_at)} rows={answer.indices} keyOf={(index) => index.name} />
        ) : (
          <Empty>The table has no index. A task with LanceBuildIndex makes one.</Empty>
        )}
      </Section>
    </div>
  );
}

function columns(now: number): readonly Column<Index>[] {
  return [
    { name: "name", head: "Index", cell: (row) => <span className="strong wrap">{row.name}</span>, by: (row) => row.name },
    { name: "type", head: "Type", cell: (row) => row.type, by: (row) => row.type },
    { name: "columns", head: "Columns", cell: (row) => <code>{row.columns.join(", ")}</code> },
    { name: "coverage", head: "Coverage", cell: (row) => <Coverage value={row.coverage} />, by: (row) => row.coverage, number: true, first: "ascending" },
    { name: "unindexed", head: "Unindexed rows", cell: (row) => count(row.unindexed_rows), by: (row) => row.unindexed_rows, number: true },
    { name: "segments", head: "Segments", cell: (row) => row.segments, by: (row) => row.segments, number: true },
    { name: "size", head: "Size", cell: (row) => bytes(row.num_bytes), by: (row) => row.num_bytes, number: true },
    { name: "built", head: "Built", cell: (row) => <span title={exact(row.created_at)}>{ago(row.created_at, now)}</span>, by: (row) => row.created_at },
    { name: "behind", head: "Behind", cell: behind, by: (row) => row.stale_versions, number: true },
    { name: "sealed", head: "", cell: sealed },
  ];
}

function behind(row: Index) {
  if (!row.stale_versions) return <span className="faint">up to date</span>;
  return <span title={`built for version ${row.dataset_version}`}>{plural(row.stale_versions, "version")}</span>;
}

function sealed(row: Index) {
  if (row.sealed === false) return <Badge title="Its files have no checksums; damage would go unnoticed.">no checksums</Badge>;
  return row.sealed ? <Badge title="The files have checksums.">sealed</Badge> : null;
}
