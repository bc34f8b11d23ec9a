import { apiPath } from "../../api/client";
import type { Use, UsesAnswer } from "../../api/more-types";
import { useResource } from "../../api/use-resource";
import { ago, exact } from "../../lib/format";
import { Badge, type Tone } from "../../ui/badge";
import { DataTable } from "../../ui/data-table";
import { PlaceLink } from "../../ui/links";
import { Section } from "../../ui/section";
import { Empty, Loading, Problem } from "../../ui/states";

const TONES: Readonly<Record<Use["does"], Tone>> = { writes: "good", reads: "plain", waits: "plain", "scheduled by": "plain" };

/** Which DAGs write the table, read it, wait for it. */
export function UsedBy({ id }: { id: string }) {
  const uses = useResource<UsesAnswer>(apiPath(["tables", id, "dags"]));
  const note = uses.data && !uses.data.complete ? "older runs were not looked at" : "tasks of the newest runs, assets, writers of the newest versions";
  return (
    <Section id="used-by" title="Used by" note={note} flush>
      {uses.data ? <Uses answer={uses.data} /> : uses.failure ? <Problem failure={uses.failure} retry={uses.reload} /> : <Loading what="the DAGs" />}
    </Section>
  );
}

function Uses({ answer }: { answer: UsesAnswer }) {
  if (answer.dags.length === 0) return <Empty>No DAG that Airflow remembers has used the table.</Empty>;
  return (
    <DataTable
      label="Used by"
      rows={answer.dags}
      keyOf={(row) => `${row.dag_id} ${row.task_id} ${row.does}`}
      columns={[
        { name: "place", head: "DAG and task", cell: (row) => <PlaceLink place={row} short />, by: (row) => `${row.dag_id} ${row.task_id}` },
        { name: "does", head: "Does", cell: (row) => <Badge tone={TONES[row.does]}>{row.does}</Badge>, by: (row) => row.does },
        { name: "operator", head: "Operator", cell: (row) => (row.operator ? <code className="wrap">{row.operator}</code> : <span className="faint">–</span>) },
        {
          name: "at",
          head: "Last run",
          cell: (row) => (row.at ? <span title={exact(row.at)} className="nowrap">{ago(row.at, answer.made_at)}</span> : <span className="faint">–</span>),
          by: (row) => row.at,
          number: true,
        },
      ]}
    />
  );
}
