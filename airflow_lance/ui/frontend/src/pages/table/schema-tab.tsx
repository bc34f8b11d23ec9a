import { Fragment, useDeferredValue, useMemo, useState } from "react";

import type { FieldSpec } from "../../actions/use-action";
import { apiPath } from "../../api/client";
import type { Change, SchemaAnswer } from "../../api/more-types";
import type { Field } from "../../api/types";
import { useResource } from "../../api/use-resource";
import { matchingFields } from "../../lib/fields";
import { ago, exact, plural } from "../../lib/format";
import { operationText, versionText } from "../../lib/kinds";
import { useRefusal, useRows } from "../../me";
import { Button } from "../../ui/button";
import { Section } from "../../ui/section";
import { Empty, Loading, Problem } from "../../ui/states";
import { ChangeList } from "./change-list";
import { ColumnStatistics } from "./column-statistics";
import type { TabProps } from "./tab-props";

export function SchemaTab(props: TabProps) {
  const { answer } = props;
  const history = useResource<SchemaAnswer>(apiPath(["tables", answer.table.id, "schema"]));
  return (
    <div className="sections">
      <Section id="schema" title="Schema" note={plural(answer.schema.filter((field) => field.parent < 0).length, "column")} width="two-thirds" flush>
        <Columns {...props} />
      </Section>
      <Section id="evolution" title="Evolution" note={history.data && !history.data.complete ? "older versions were not looked at" : null} width="third">
        {history.data ? <Evolution answer={history.data} /> : history.failure ? <Problem failure={history.failure} retry={history.reload} /> : <Loading what="the evolution" />}
      </Section>
      <Config config={answer.config} />
    </div>
  );
}

const MANY = 12;

function Columns(props: TabProps) {
  const fields = props.answer.schema;
  const [query, setQuery] = useState("");
  const late = useDeferredValue(query);
  const found = useMemo(() => matchingFields(fields, late), [fields, late]);
  if (fields.length <= MANY) return <ColumnTable {...props} fields={fields} />;
  return (
    <>
      <div className="toolbar body">
        <input
          type="search"
          className="search"
          aria-label="Filter the columns"
          placeholder="Filter: words of name, type, description"
          value={query}
          onChange={(event) => setQuery(event.target.value)}
        />
        <span className="small soft" role="status">
          {found.length === fields.length ? plural(fields.length, "field") : `${found.length} of ${plural(fields.length, "field")}`}
        </span>
      </div>
      {found.length ? <ColumnTable {...props} fields={found} /> : <Empty>No column fits the filter.</Empty>}
    </>
  );
}

/** Where catalogs keep the words about a column; what else its metadata has is shown as it is. */
const SAID: ReadonlySet<string> = new Set(["comment", "owner"]);

const saidOf = (field: Field): readonly FieldSpec[] => [
  { name: "description", label: "Description", kind: "area", value: field.metadata["comment"] ?? "", hint: "what the column is", clears: true },
  { name: "owner", label: "Owner", kind: "text", value: field.metadata["owner"] ?? "", hint: "who answers questions", clears: true },
];

function ColumnTable({ answer, ask, reload, fields }: TabProps & { readonly fields: readonly Field[] }) {
  const refused = useRefusal() ?? (answer.actions.includes("describe") ? null : "This table does not allow it.");
  const rows = useRows(answer.table.conn_id);
  const [open, setOpen] = useState<string | null>(null);
  const depth = new Map<number, number>();
  for (const field of fields) depth.set(field.id, field.parent < 0 ? 0 : (depth.get(field.parent) ?? 0) + 1);
  return (
    <div className="scroll">
      <table className="data" aria-label="Columns">
        <thead>
          <tr>
            <th scope="col">Column</th>
            <th scope="col">Type</th>
            <th scope="col">Null</th>
            <th scope="col" className="n">
              Id
            </th>
            <th scope="col">Description</th>
            <th scope="col">
              <span className="hidden-visually">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {fields.map((field) => (
            <Fragment key={field.id}>
            <tr>
              <td style={{ paddingLeft: `${14 + 18 * (depth.get(field.id) ?? 0)}px` }} className="wrap">
                <span className="strong">{field.name}</span>
              </td>
              <td>
                <code>{field.type}</code>
              </td>
              <td>{field.nullable ? <span className="faint">yes</span> : "no"}</td>
              <td className="n faint">{field.id}</td>
              <td className="wrap words">
                {field.metadata["comment"]}
                {field.metadata["owner"] ? <span className="line2 block">owner {field.metadata["owner"]}</span> : null}
                <span className="line2 block">{Object.entries(field.metadata).filter(([key]) => !SAID.has(key)).map(([key, value]) => `${key}=${value}`).join(", ")}</span>
              </td>
              <td>
                <span className="row-actions">
                  <Button name="statistics" kind="quiet" refused={rows} onClick={() => setOpen(open === field.path ? null : field.path)}>
                    Statistics
                  </Button>
                  <Button
                    name="describe-column"
                    kind="quiet"
                    refused={refused}
                    onClick={() => ask({ action: "describe", table: answer.table, arguments: { column: field.path }, subject: `Column ${field.path}`, fields: saidOf(field), onEnd: reload })}
                  >
                    Describe
                  </Button>
                </span>
              </td>
            </tr>
            {open === field.path ? (
              <tr>
                <td colSpan={6}>
                  <ColumnStatistics id={answer.table.id} path={field.path} />
                </td>
              </tr>
            ) : null}
            </Fragment>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Evolution({ answer }: { answer: SchemaAnswer }) {
  if (answer.evolution.length === 0) return <Empty>The columns have not changed.</Empty>;
  return (
    <ol className="stack">
      {answer.evolution.map((step) => (
        <li key={step.version} className="stack tight">
          <span>
            <b>Version {step.version}</b>{" "}
            <span className="soft" title={`${operationText(step.operation)}, ${exact(step.timestamp)}`}>
              {versionText(step)}, {ago(step.timestamp, answer.made_at)}
            </span>
          </span>
          <ChangeList changes={step.changes as readonly Change[]} />
        </li>
      ))}
    </ol>
  );
}

const SHOWN_ABOVE: ReadonlySet<string> = new Set(["comment", "owner", "fresh_within"]);

function Config({ config }: { config: Readonly<Record<string, string>> }) {
  const entries = Object.entries(config).filter(([key]) => !SHOWN_ABOVE.has(key));
  if (entries.length === 0) return null;
  return (
    <Section id="config" title="Settings of the table">
      <dl className="facts">
        {entries.map(([key, value]) => (
          <div key={key} className="fact">
            <dt>{key}</dt>
            <dd className="mono">{value}</dd>
          </div>
        ))}
      </dl>
    </Section>
  );
}
