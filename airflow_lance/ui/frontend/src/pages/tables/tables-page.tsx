import { useDeferredValue, useMemo, useState } from "react";

import { useAction } from "../../actions/use-action";
import { apiPath } from "../../api/client";
import type { Source, TablesAnswer } from "../../api/types";
import { usePolled } from "../../api/use-polled";
import { parseFilter } from "../../lib/filter";
import { plural } from "../../lib/format";
import { replaceQuery, type Route } from "../../lib/router";
import { useTitle } from "../../lib/title";
import type { Direction } from "../../lib/sort";
import { useMe } from "../../me";
import { Button } from "../../ui/button";
import { DataTable } from "../../ui/data-table";
import { Empty, Loading, Problem } from "../../ui/states";
import { errorOf, tableColumns } from "./columns";
import { KNOWN, READY, searchable } from "./search";
import { Summary } from "./summary";

export function TablesPage({ route }: { route: Route }) {
  const [fresh, setFresh] = useState(false);
  const tables = usePolled<TablesAnswer>(apiPath(["tables"], { refresh: fresh || undefined }));
  const { data, reload } = tables;
  if (data === null) return tables.failure ? <Problem failure={tables.failure} retry={reload} /> : <Loading what="the tables" />;
  const refresh = (): void => (fresh ? reload() : setFresh(true));
  return <Loaded answer={data} route={route} refresh={refresh} loading={tables.loading} />;
}

interface LoadedProps {
  readonly answer: TablesAnswer;
  readonly route: Route;
  readonly refresh: () => void;
  readonly loading: boolean;
}

function Loaded({ answer, route, refresh, loading }: LoadedProps) {
  const me = useMe();
  useTitle("Tables");
  const { ask, dialog } = useAction();
  const query = route.query["q"] ?? "";
  const late = useDeferredValue(query);
  const now = answer.made_at;
  const filter = useMemo(() => parseFilter(late, KNOWN), [late]);
  const rows = useMemo(() => answer.tables.filter((row) => filter.matches(searchable(row, now))), [answer, filter, now]);
  const columns = useMemo(() => tableColumns(now), [now]);
  const [column = "health", direction = "ascending"] = (route.query["sort"] ?? "").split(".").filter(Boolean);
  const sorted = { column, direction: direction as Direction };
  const refused = me.policy === null ? "There is no policy, therefore no plan." : me.rights.run_plan ? null : (me.rights.plan_reason ?? "You may not run the plan.");
  return (
    <>
      <div className="head">
        <div className="title">
          <h1>Lance tables</h1>
        </div>
        <div className="actions">
          <Button onClick={refresh} name="refresh">
            {loading ? "Refreshing …" : "Refresh"}
          </Button>
          <Button kind="primary" name="run_plan" refused={refused} onClick={() => ask({ action: "run_plan", table: null })}>
            Run plan
          </Button>
        </div>
      </div>
      <Summary summary={answer.summary} pending={answer.pending} />
      {answer.sources.filter((source) => source.error).map((source) => <BrokenSource key={`${source.conn_id}${source.base_uri}`} source={source} />)}
      <div className="toolbar">
        <input
          type="search"
          className="search"
          aria-label="Filter the tables"
          placeholder="Filter: name, conn:aws, health < 60, size > 10 GB, written > 7 d"
          value={query}
          onChange={(event) => replaceQuery(route, { q: event.target.value })}
        />
        <div className="chips" role="group" aria-label="Ready filters">
          {READY.map(([name, text]) => (
            <button key={name} type="button" className="chip" aria-pressed={query === text} onClick={() => replaceQuery(route, { q: query === text ? "" : text })}>
              {name}
            </button>
          ))}
        </div>
        <span className="small soft" role="status">
          {rows.length === answer.tables.length ? plural(rows.length, "table") : `${rows.length} of ${plural(answer.tables.length, "table")}`}
          {answer.pending > 0 ? `, ${answer.pending} still being looked at` : ""}
        </span>
      </div>
      {filter.unclear.length ? <p className="small warn">Not understood and left out: {filter.unclear.join(", ")}</p> : null}
      <section className="section" aria-label="Tables">
        {rows.length ? (
          <DataTable
            label="Tables"
            columns={columns}
            rows={rows}
            keyOf={(row) => row.id}
            sorted={sorted}
            onSort={(name, next) => replaceQuery(route, { sort: `${name}.${next}` })}
            sticky
            instead={errorOf}
          />
        ) : (
          <Empty>{answer.tables.length ? "No table fits the filter." : nothing(answer)}</Empty>
        )}
      </section>
      {dialog}
    </>
  );
}

function nothing(answer: TablesAnswer): string {
  const names = answer.sources.flatMap((source) => (source.conn_id ? [source.conn_id] : []));
  if (names.length) return `There is no table below the base uri of ${names.join(", ")}.`;
  return "No connection of type lance was found in Airflow's database or the environment of the API server. Add one, or name those of a secrets backend in [lance] pages_connections.";
}

function BrokenSource({ source }: { source: Source }) {
  return (
    <div className="notice bad source" role="alert">
      <span>
        <strong>{source.conn_id ?? "Policy"}</strong> <span className="soft mono">{source.base_uri}</span>
      </span>
      <span>
        {source.error?.message} <span className="soft">{source.error?.cure}</span>
      </span>
    </div>
  );
}
