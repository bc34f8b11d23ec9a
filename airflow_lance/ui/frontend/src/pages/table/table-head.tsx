import { Badge } from "../../ui/badge";
import { Button } from "../../ui/button";
import { CopyText } from "../../ui/copy";
import { Health } from "../../ui/health";
import { wordsOf } from "../../actions/words";
import type { FieldSpec } from "../../actions/use-action";
import { ago, exact } from "../../lib/format";
import { useRefusal } from "../../me";
import type { TableRow } from "../../api/types";
import { healthText } from "./health-parts";
import type { TabProps } from "./tab-props";

const BUTTONS = ["compact", "optimize_indices", "cleanup", "gc"] as const;

const said = (table: TableRow): readonly FieldSpec[] => [
  { name: "description", label: "Description", kind: "area", value: table.description ?? "", hint: "what a row of the table is", clears: true },
  { name: "owner", label: "Owner", kind: "text", value: table.owner ?? "", hint: "who answers questions", clears: true },
  { name: "fresh_within", label: "Rows shall change within", kind: "text", value: table.fresh_within ?? "", hint: "for example 26h or 2days", clears: true },
];

const FIELDS: Readonly<Record<string, readonly FieldSpec[]>> = {
  cleanup: [
    { name: "older_than_days", label: "Remove versions older than (days)", kind: "number", hint: "as the table or the policy says" },
    { name: "retain_versions", label: "Keep at least this many of the newest", kind: "number", hint: "as the table or the policy says" },
  ],
};

export function TableHead({ answer, ask, reload }: TabProps) {
  const refused = useRefusal();
  const { table } = answer;
  const without = (action: string): string | null => {
    if (!answer.actions.includes(action)) return "This table does not allow it.";
    if (action === "optimize_indices" && answer.indices.length === 0) return "The table has no index.";
    return null;
  };
  return (
    <div className="head">
      <div className="title">
        <h1>{table.name}</h1>
        {table.description ? <p className="said wrap">{table.description}</p> : null}
        <div className="meta">
          <CopyText text={table.uri} />
          {table.owner ? (
            <span>
              owner <b className="wrap">{table.owner}</b>
            </span>
          ) : null}
          <Fresh table={table} />
          <span>
            version <b>{table.version}</b>
          </span>
          <span title={exact(table.written_at)}>written {ago(table.written_at, answer.made_at)}</span>
          {answer.file_version ? <span>file format {answer.file_version}</span> : null}
          {answer.stable_row_ids ? <span>stable row ids</span> : null}
          {answer.branch ? <Badge>branch {answer.branch}</Badge> : null}
          <span title={exact(answer.made_at)}>{table.conn_id ? `connection ${table.conn_id}` : "no connection"}</span>
        </div>
      </div>
      <div className="actions">
        {table.health ? (
          <span title={healthText(table.health)}>
            <Health health={table.health} large />
          </span>
        ) : null}
        <Button name="describe" refused={refused ?? without("describe")} onClick={() => ask({ action: "describe", table, fields: said(table), onEnd: reload })}>
          {wordsOf("describe").button}
        </Button>
        {BUTTONS.map((action) => (
          <Button
            key={action}
            name={action}
            refused={refused ?? without(action)}
            onClick={() => ask({ action, table, fields: FIELDS[action] ?? [], onEnd: reload })}
          >
            {wordsOf(action).button}
          </Button>
        ))}
        <Button name="refresh" onClick={reload}>
          Refresh
        </Button>
      </div>
    </div>
  );
}

/** How the table's own rule for its freshness compares with its history. */
function Fresh({ table }: { table: TableRow }) {
  if (table.freshness === "late") {
    return (
      <Badge tone="bad" title={table.late ?? undefined}>
        late: shall change within {table.fresh_within}
      </Badge>
    );
  }
  if (table.freshness === "fresh") return <Badge tone="good" title={`Rows have changed within ${table.fresh_within}.`}>fresh</Badge>;
  if (!table.fresh_within) return null;
  return (
    <Badge title={table.freshness === null ? "This is no duration." : "Too many versions since then changed no row."}>
      fresh within {table.fresh_within}: not checked
    </Badge>
  );
}
