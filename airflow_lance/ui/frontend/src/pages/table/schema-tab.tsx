import { useDeferredValue, useMemo, useState } from "react";

import { apiPath } from "../../api/client";
import type { Change, SchemaAnswer } from "../../api/more-types";
import type { Field } from "../../api/types";
import { useResource } from "../../api/use-resource";
import { matchingFields } from "../../lib/fields";
import { ago, exact, plural } from "../../lib/format";
import { operationText } from "../../lib/kinds";
import { Section } from "../../ui/section";
import { Empty, Loading, Problem } from "../../ui/states";
import { ChangeList } from "./change-list";
import type { TabProps } from "./table-page";

export function SchemaTab({ answer }: TabProps) {
  const history = useResource<SchemaAnswer>(apiPath(["tables", answer.table.id, "schema"]));
  return (
    <div className="sections">
      <Section id="schema" title="Schema" note={plural(answer.schema.filter((field) => field.parent < 0).length, "column")} width="two-thirds" flush>
        <Columns fields={answer.schema} />
      </Section>
      <Section id="evolution" title="Evolution" note={history.data && !history.data.complete ? "older versions were not looked at" : null} width="third">
        {history.data ? <Evolution answer={history.data} /> : history.failure ? <Problem failure={history.failure} retry={history.reload} /> : <Loading what="the evolution" />}
      </Section>
      <Config config={answer.config} />
    </div>
  );
}

const MANY = 12;

function Columns({ fields }: { fields: readonly Field[] }) {
  const [query, setQuery] = useState("");
  const late = useDeferredValue(query);
  const found = useMemo(() => matchingFields(fields, late), [fields, late]);
  if (fields.length <= MANY) return <ColumnTable fields={fields} />;
  return (
    <>
      <div className="toolbar body">
        <input
          type="search"
          className="search"
          aria-label="Filter the columns"
          placeholder="Filter: words of name, type, metadata"
          value={query}
          onChange={(event) => setQuery(event.target.value)}
        />
        <span className="small soft" role="status">
          {found.length === fields.length ? plural(fields.length, "field") : `${found.length} of ${plural(fields.length, "field")}`}
        </span>
      </div>
      {found.length ? <ColumnTable fields={found} /> : <Empty>No column fits the filter.</Empty>}
    </>
  );
}

function ColumnTable({ fields }: { fields: readonly Field[] }) {
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
            <th scope="col">Metadata</th>
          </tr>
        </thead>
        <tbody>
          {fields.map((field) => (
            <tr key={field.id}>
              <td style={{ paddingLeft: `${14 + 18 * (depth.get(field.id) ?? 0)}px` }} className="wrap">
                <span className="strong">{field.name}</span>
              </td>
              <td>
                <code>{field.type}</code>
              </td>
              <td>{field.nullable ? <span className="faint">yes</span> : "no"}</td>
              <td className="n faint">{field.id}</td>
              <td className="small soft wrap">{Object.entries(field.metadata).map(([key, value]) => `${key}=${value}`).join(", ")}</td>
            </tr>
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
            <span className="soft" title={exact(step.timestamp)}>
              {operationText(step.operation)}, {ago(step.timestamp, answer.made_at)}
            </span>
          </span>
          <ChangeList changes={step.changes as readonly Change[]} />
        </li>
      ))}
    </ol>
  );
}

function Config({ config }: { config: Readonly<Record<string, string>> }) {
  const entries = Object.entries(config);
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
