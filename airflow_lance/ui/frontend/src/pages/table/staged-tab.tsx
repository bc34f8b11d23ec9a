import type { Claim } from "../../api/types";
import { duration, exact, plural } from "../../lib/format";
import { useRefusal } from "../../me";
import { Badge } from "../../ui/badge";
import { Button } from "../../ui/button";
import { DataTable } from "../../ui/data-table";
import { Section } from "../../ui/section";
import { Empty } from "../../ui/states";
import { StagedList } from "./staged-list";
import type { TabProps } from "./tab-props";

export function StagedTab(props: TabProps) {
  const { answer } = props;
  return (
    <div className="sections">
      <Section id="staged" title="Staged work" note="written and not yet committed" flush>
        {answer.staged.length ? <StagedList {...props} /> : <Empty>Nothing is staged.</Empty>}
      </Section>
      <Section id="claims" title="Commits under way" note="commits that hold staged work" width="half" flush>
        {answer.claims.length ? <Claims claims={answer.claims} /> : <Empty>No commit holds anything.</Empty>}
      </Section>
      <Section id="doubt" title="In doubt" note="commits whose end nobody saw" width="half">
        {answer.in_doubt.length ? <InDoubt {...props} /> : <Empty>Of every commit it is known whether it succeeded.</Empty>}
      </Section>
    </div>
  );
}

function Claims({ claims }: { claims: readonly Claim[] }) {
  return (
    <DataTable
      label="Commits under way"
      rows={claims}
      keyOf={(row) => row.commit}
      columns={[
        { name: "commit", head: "Commit", cell: (row) => <code title={row.commit}>{row.commit.slice(0, 12)}</code> },
        { name: "holds", head: "Holds", cell: (row) => <span title={row.identities.join("\n")}>{plural(row.identities.length, "identity", "identities")}</span> },
        { name: "age", head: "How long", cell: (row) => <span title={exact(row.since)}>{duration(row.age)}</span>, number: true },
        { name: "alive", head: "", cell: (row) => (row.alive ? <Badge>alive</Badge> : <Badge tone="warn">abandoned</Badge>) },
      ]}
    />
  );
}

function InDoubt({ answer, ask, reload }: TabProps) {
  const refused = useRefusal();
  return (
    <ul className="stack">
      {answer.in_doubt.map(({ identity, version }) => (
        <li key={identity} className="flow">
          <code>{identity}</code>
          <Button
            name="settle"
            kind="quiet"
            refused={refused}
            onClick={() => ask({ action: "settle", table: answer.table, subject: <code>{identity}</code>, arguments: { identity, version }, onEnd: reload })}
          >
            Settle
          </Button>
        </li>
      ))}
    </ul>
  );
}
