import { bytes, percent, whole } from "../../lib/format";
import { DataTable } from "../../ui/data-table";
import { Section } from "../../ui/section";
import { Empty } from "../../ui/states";
import { DeletionsChart, SizesChart, TiersChart } from "./fragment-charts";
import type { TabProps } from "./tab-props";

export function FragmentsTab({ answer }: TabProps) {
  const { fragments, table } = answer;
  const files = `${whole(fragments.num_data_files)} data files, ${fragments.files_per_fragment.toFixed(1)} for each fragment`;
  return (
    <div className="sections">
      <Section id="tiers" title="Fragments by tier" note="a tier is merged when it is full" width="third">
        <TiersChart tiers={fragments.tiers} />
      </Section>
      <Section id="sizes" title="Fragments by size" note={`${whole(table.num_fragments ?? 0)} in all`} width="third">
        <SizesChart sizes={fragments.sizes} />
      </Section>
      <Section id="deletions" title="Fragments by deleted rows" note={`${whole(table.num_deleted_rows ?? 0)} rows deleted in place`} width="third">
        <DeletionsChart deletions={fragments.deletions} />
      </Section>
      <Section id="most-deleted" title="Most deleted rows" note={files} flush>
        {fragments.most_deleted.length ? (
          <DataTable
            label="Fragments with most deleted rows"
            rows={fragments.most_deleted}
            keyOf={(row) => String(row.id)}
            sorted={{ column: "deleted", direction: "descending" }}
            columns={[
              { name: "id", head: "Fragment", cell: (row) => row.id, by: (row) => row.id },
              { name: "rows", head: "Rows in the file", cell: (row) => whole(row.physical_rows), by: (row) => row.physical_rows, number: true },
              { name: "deleted", head: "Deleted", cell: (row) => whole(row.deleted_rows), by: (row) => row.deleted_rows, number: true },
              { name: "share", head: "Share", cell: (row) => <Share share={row.share} />, by: (row) => row.share, number: true },
              { name: "bytes", head: "Size", cell: (row) => bytes(row.bytes), by: (row) => row.bytes, number: true },
            ]}
          />
        ) : (
          <Empty>No fragment has deleted rows.</Empty>
        )}
      </Section>
    </div>
  );
}

function Share({ share }: { share: number }) {
  return (
    <span className="share">
      <span className="bar">
        <i className={share >= 0.5 ? "fill-bad" : "fill-warn"} style={{ width: `${share * 100}%` }} />
      </span>
      {percent(share)}
    </span>
  );
}
