import { apiPath } from "../../api/client";
import type { Change, DiffAnswer } from "../../api/more-types";
import { useResource } from "../../api/use-resource";
import { ago, bytes, count, exact, plural, signed, whole } from "../../lib/format";
import { DataTable } from "../../ui/data-table";
import { Figures } from "../../ui/figures";
import { Section } from "../../ui/section";
import { Empty, Loading, Problem } from "../../ui/states";
import { ChangeList } from "./change-list";
import type { TabProps } from "./tab-props";

export function DiffTab({ answer, route }: TabProps) {
  const [, , from = "", to = ""] = route.parts;
  const diff = useResource<DiffAnswer>(apiPath(["tables", answer.table.id, "diff"], { from, to }));
  if (diff.data === null) return diff.failure ? <Problem failure={diff.failure} retry={diff.reload} /> : <Loading what="the difference" />;
  return <Diff diff={diff.data} />;
}

function Diff({ diff }: { diff: DiffAnswer }) {
  const { from, to, fragments } = diff;
  const change = (name: string, before: number | null, after: number | null, text: (value: number | null) => string, step: string) => ({
    name,
    value: text(after),
    note: `${text(before)} before, ${step}`,
  });
  return (
    <>
      <h2 className="diff-title">
        Version {from.version} <span className="soft">→</span> {to.version}{" "}
        <span className="soft" title={exact(to.timestamp)}>
          {ago(to.timestamp, diff.made_at)}
        </span>
      </h2>
      <Figures
        items={[
          change("Rows", from.rows, to.rows, count, signed((to.rows ?? 0) - (from.rows ?? 0))),
          change("Fragments", from.fragments, to.fragments, count, `${signed(fragments.added)} added, ${whole(fragments.removed)} removed`),
          change("Size", from.bytes, to.bytes, bytes, `${bytes(fragments.bytes_added)} new`),
          { name: "Rows added", value: whole(fragments.rows_added), note: `${whole(fragments.rows_removed)} removed` },
          { name: "Rows deleted in place", value: whole(fragments.rows_deleted), note: `${plural(fragments.changed, "fragment")} changed` },
        ]}
      />
      <div className="sections">
        <Part id="diff-schema" title="Schema" changes={diff.schema} none="The columns are the same." />
        <Part id="diff-indices" title="Indices" changes={diff.indices} none="The indices are the same." />
        <Part id="diff-config" title="Settings" changes={diff.config} none="The settings are the same." />
        <Section id="diff-fragments" title="Fragments" note={fragments.items.length >= 200 ? "the first 200" : null} flush>
          {fragments.items.length ? (
            <DataTable
              label="Fragments that differ"
              rows={fragments.items}
              keyOf={(row) => `${row.id} ${row.change}`}
              columns={[
                { name: "id", head: "Fragment", cell: (row) => row.id, by: (row) => row.id },
                { name: "change", head: "Change", cell: (row) => row.change, by: (row) => row.change },
                { name: "before", head: "Rows before", cell: (row) => count(row.rows_before), number: true },
                { name: "after", head: "Rows after", cell: (row) => count(row.rows_after), number: true },
                { name: "size", head: "Size before", cell: (row) => bytes(row.bytes_before), number: true },
                { name: "size-after", head: "Size after", cell: (row) => bytes(row.bytes_after), number: true },
              ]}
            />
          ) : (
            <Empty>The fragments are the same.</Empty>
          )}
        </Section>
      </div>
    </>
  );
}

function Part({ id, title, changes, none }: { id: string; title: string; changes: readonly Change[]; none: string }) {
  return (
    <Section id={id} title={title} width="third">
      {changes.length ? <ChangeList changes={changes} /> : <p className="soft">{none}</p>}
    </Section>
  );
}
