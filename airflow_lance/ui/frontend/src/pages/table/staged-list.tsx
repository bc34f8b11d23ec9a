import type { Staged } from "../../api/types";
import { bytes, count, duration, exact } from "../../lib/format";
import { wordsOf } from "../../actions/words";
import { useRefusal } from "../../me";
import { Badge, type Tone } from "../../ui/badge";
import { Button } from "../../ui/button";
import { DataTable, type Column } from "../../ui/data-table";
import { PlaceLink } from "../../ui/links";
import type { TabProps } from "./tab-props";

const STATES: Readonly<Record<string, readonly [Tone, string]>> = {
  running: ["plain", "running"],
  finished: ["plain", "waits for its commit"],
  expired: ["warn", "died"],
};

export function StagedList({ answer, ask, reload }: TabProps) {
  const refused = useRefusal();
  const act = (row: Staged, action: string): void => {
    const attempt = action === "abort" ? { attempt: row.attempt } : {};
    ask({
      action,
      table: answer.table,
      subject: (
        <>
          {row.kind} <code>{row.identity}</code> {row.writer?.task_id ? `of ${row.writer.dag_id} · ${row.writer.task_id}` : ""}
        </>
      ),
      arguments: { identity: row.identity, ...attempt },
      onEnd: reload,
    });
  };
  const columns: readonly Column<Staged>[] = [
    { name: "kind", head: "Work", cell: work },
    { name: "state", head: "State", cell: state },
    { name: "writer", head: "Who", cell: (row) => <PlaceLink place={row.writer} /> },
    { name: "age", head: "How long", cell: (row) => <span title={exact(row.started)}>{duration(row.age)}</span>, by: (row) => row.age, number: true },
    { name: "rows", head: "Rows", cell: (row) => count(row.rows), by: (row) => row.rows, number: true },
    { name: "bytes", head: "Size", cell: (row) => bytes(row.bytes), by: (row) => row.bytes, number: true },
    { name: "read", head: "Planned on", cell: (row) => (row.read_version === null ? "–" : `version ${row.read_version}`) },
    {
      name: "actions",
      head: "",
      cell: (row) => (
        <span className="row-actions">
          {row.actions.map((action) => (
            <Button key={action} kind="quiet" danger={action === "abort"} name={action} refused={refused} onClick={() => act(row, action)}>
              {wordsOf(action).button}
            </Button>
          ))}
        </span>
      ),
    },
  ];
  return <DataTable label="Staged work" columns={columns} rows={answer.staged} keyOf={(row) => `${row.identity} ${row.attempt}`} />;
}

function work(row: Staged) {
  return (
    <span title={row.identity}>
      {row.kind} <code className="faint">{row.identity.slice(0, 8)}</code>
    </span>
  );
}

function state(row: Staged) {
  const [tone, words] = STATES[row.state] ?? ["plain", row.state];
  return <Badge tone={tone}>{words}</Badge>;
}
