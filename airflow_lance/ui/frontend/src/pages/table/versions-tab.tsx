import { useState } from "react";

import type { Place, VersionsAnswer } from "../../api/types";
import { hrefOf } from "../../lib/router";
import { operationText } from "../../lib/kinds";
import { Button } from "../../ui/button";
import { DataTable } from "../../ui/data-table";
import { PlaceLink } from "../../ui/links";
import { Section } from "../../ui/section";
import { Empty, Problem } from "../../ui/states";
import type { TabProps } from "./tab-props";
import { References } from "./references";
import { Timeline } from "./timeline";
import { useVersions } from "./use-versions";
import { VersionList } from "./version-list";

export function VersionsTab(props: TabProps) {
  const versions = useVersions(props.answer.table.id);
  return (
    <div className="sections">
      <Section id="versions" title="Versions" note="rows that each one changed, on a logarithmic scale" end={<Compare {...props} />} flush>
        <div className="body">
          <Timeline versions={versions.list} state={versions} />
        </div>
        <VersionList {...props} versions={versions.list} />
        {versions.answer?.more ? (
          <p className="empty">
            <Button onClick={versions.more} name="older">
              {versions.loading ? "Loading …" : "Older versions"}
            </Button>
          </p>
        ) : null}
        {versions.failure && versions.list.length ? <Problem failure={versions.failure} /> : null}
      </Section>
      <Conflicts conflicts={versions.answer?.conflicts ?? null} />
      <References {...props} />
    </div>
  );
}

/** Two versions to compare. */
function Compare({ answer }: TabProps) {
  const newest = answer.table.version ?? 1;
  const [from, setFrom] = useState(String(Math.max(1, newest - 1)));
  const [to, setTo] = useState(String(newest));
  const go = (): void => window.location.assign(hrefOf("table", [answer.table.id, "diff", from, to]));
  return (
    <form
      className="flow compare"
      onSubmit={(event) => {
        event.preventDefault();
        go();
      }}
    >
      <label>
        Compare <input type="number" min={1} max={newest} required value={from} aria-label="From version" onChange={(event) => setFrom(event.target.value)} />
      </label>
      <label>
        with <input type="number" min={1} max={newest} required value={to} aria-label="To version" onChange={(event) => setTo(event.target.value)} />
      </label>
      <button type="submit" className="button" data-action="diff">
        Diff
      </button>
    </form>
  );
}

function Conflicts({ conflicts }: { conflicts: VersionsAnswer["conflicts"] }) {
  if (conflicts === null) return null;
  return (
    <Section id="conflicts" title="Conflicts" note={`${conflicts.rebased} of ${conflicts.judged} commits were rebased`} width="half" flush>
      {conflicts.between.length ? (
        <DataTable
          label="Conflicts"
          rows={conflicts.between}
          keyOf={(row) => JSON.stringify(row)}
          columns={[
            { name: "one", head: "Commit", cell: (row) => <Side operation={row.operation} writer={row.writer} /> },
            { name: "other", head: "Met", cell: (row) => <Side operation={row.other_operation} writer={row.other_writer} /> },
            { name: "count", head: "Times", cell: (row) => row.count, number: true },
          ]}
        />
      ) : (
        <Empty>Writers did not meet.</Empty>
      )}
    </Section>
  );
}

function Side({ operation, writer }: { operation: string; writer: Place | null }) {
  return (
    <span>
      {operationText(operation)}
      {writer ? (
        <span className="line2 block">
          <PlaceLink place={writer} short />
        </span>
      ) : null}
    </span>
  );
}
