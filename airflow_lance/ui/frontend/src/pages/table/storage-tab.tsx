import { apiPath } from "../../api/client";
import type { StorageAnswer } from "../../api/more-types";
import { useResource } from "../../api/use-resource";
import { bytes, percent, plural, whole } from "../../lib/format";
import { DataTable } from "../../ui/data-table";
import { Section } from "../../ui/section";
import { StackedBar } from "../../ui/stacked-bar";
import { Loading, Problem } from "../../ui/states";
import type { TabProps } from "./tab-props";

/** What can go has the colour of a warning, what is of no use that of a fault. */
const FILLS: Readonly<Record<string, string>> = {
  live: "fill-2", index: "fill-3", older: "fill-1", staged: "fill-4", metadata: "fill-5", dead: "fill-warn", stranded: "fill-bad",
};

export function StorageTab({ answer }: TabProps) {
  const storage = useResource<StorageAnswer>(apiPath(["tables", answer.table.id, "storage"]));
  return (
    <div className="sections">
      <Section id="storage" title="Storage" note={storage.data ? note(storage.data) : "every file of the table is listed; this may take a while"}>
        {storage.data ? <Kinds answer={storage.data} /> : storage.failure ? <Problem failure={storage.failure} retry={storage.reload} /> : <Loading what="the files" />}
      </Section>
    </div>
  );
}

function note(answer: StorageAnswer): string {
  const words = `${bytes(answer.total_bytes)} in ${plural(answer.num_files, "file")}`;
  return answer.truncated ? `${words}, of which only the first were listed` : words;
}

function Kinds({ answer }: { answer: StorageAnswer }) {
  const kinds = answer.kinds.filter((kind) => kind.files > 0);
  const parts = kinds.map((kind) => ({
    name: kind.label,
    value: kind.bytes,
    text: percent(kind.bytes / Math.max(1, answer.total_bytes)),
    fill: FILLS[kind.kind] ?? "fill-5",
  }));
  return (
    <div className="stack">
      <StackedBar parts={parts} label={`Storage by kind: ${parts.map((part) => `${part.name} ${part.text}`).join(", ")}`} />
      {answer.collectable_bytes ? (
        <p>
          <b>{bytes(answer.collectable_bytes)}</b> can be freed now by a cleanup and a garbage collection.
        </p>
      ) : null}
      <DataTable
        label="Storage by kind"
        rows={kinds}
        keyOf={(row) => row.kind}
        columns={[
          { name: "kind", head: "Kind", cell: (row) => <><i className={`dot ${FILLS[row.kind] ?? "fill-5"}`} />{row.label}</> },
          { name: "files", head: "Files", cell: (row) => whole(row.files), by: (row) => row.files, number: true },
          { name: "bytes", head: "Size", cell: (row) => bytes(row.bytes), by: (row) => row.bytes, number: true },
          { name: "share", head: "Share", cell: (row) => percent(row.bytes / Math.max(1, answer.total_bytes)), number: true },
        ]}
      />
    </div>
  );
}
