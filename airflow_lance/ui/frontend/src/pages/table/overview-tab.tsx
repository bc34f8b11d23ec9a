import { hrefOf } from "../../lib/router";
import { bytes, count, duration, percent, plural, whole } from "../../lib/format";
import { Figures, type Figure } from "../../ui/figures";
import { PageLink } from "../../ui/links";
import { Section } from "../../ui/section";
import { DeclaredColumns } from "./declared-columns";
import { SizesChart } from "./fragment-charts";
import { HealthParts } from "./health-parts";
import { IndexCoverage } from "./index-coverage";
import { StagedList } from "./staged-list";
import type { TabProps } from "./tab-props";
import { Timeline } from "./timeline";
import { UsedBy } from "./used-by";
import { useVersions } from "./use-versions";
import { VersionList } from "./version-list";

export function OverviewTab(props: TabProps) {
  const { answer } = props;
  const { table } = answer;
  const versions = useVersions(table.id);
  const more = (tab: string, words: string) => <PageLink href={hrefOf("table", [table.id, tab])}>{words}</PageLink>;
  return (
    <>
      <Figures items={figures(props)} />
      <div className="sections">
        <Section id="timeline" title="Versions" note="rows that each one changed, on a logarithmic scale" end={more("versions", "All versions")} flush>
          <div className="body">
            <Timeline versions={versions.list} state={versions} />
          </div>
          <VersionList {...props} versions={versions.list.slice(0, 6)} />
        </Section>
        <Section id="why" title={table.health?.unchecked ? `Why layout ${table.health.score}` : `Why ${table.health?.score ?? "–"}`} note="points that each part takes away" end={more("doctor", "Ask the doctor")} width="third">
          <HealthParts health={table.health} />
          {table.next ? (
            <p className="next-step">
              <b>Next upkeep:</b> {table.next.reason}
            </p>
          ) : null}
        </Section>
        <Section id="sizes" title="Fragments by size" end={more("fragments", "Tiers and deletions")} width="third">
          <SizesChart sizes={answer.fragments.sizes} />
        </Section>
        <Section id="coverage" title="Index coverage" end={more("indices", "Segments")} width="third">
          <IndexCoverage indices={answer.indices} />
        </Section>
        <DeclaredColumns table={answer.table.id} columns={answer.declared} now={answer.made_at} />
        <UsedBy id={table.id} />
        {answer.staged.length ? (
          <Section id="staged" title="Staged work" note={plural(answer.staged.length, "attempt")} end={more("staged", "Commits under way")} flush>
            <StagedList {...props} />
          </Section>
        ) : null}
      </div>
    </>
  );
}

function figures({ answer }: TabProps): Figure[] {
  const { table } = answer;
  const physical = (table.num_rows ?? 0) + (table.num_deleted_rows ?? 0);
  const small = table.num_small_fragments ?? 0;
  const oldest = Math.max(0, ...answer.staged.map((item) => item.age ?? 0));
  return [
    {
      name: "Rows",
      value: count(table.num_rows),
      note: table.num_deleted_rows ? `${percent(table.num_deleted_rows / physical)} deleted in place` : "none deleted in place",
    },
    {
      name: "Size",
      value: bytes((table.num_bytes ?? 0) + (table.manifest_bytes ?? 0)),
      note: `${plural(table.num_versions ?? 0, "version")}, ${bytes(table.manifest_bytes)} of it manifests`,
    },
    {
      name: "Fragments",
      value: whole(table.num_fragments ?? 0),
      note: small ? <span className="warn">{whole(small)} small</span> : "none small",
    },
    {
      name: "Unindexed rows",
      value: answer.indices.length ? count(table.unindexed_rows) : "–",
      note: answer.indices.length ? `searches scan ${percent(table.unindexed_share)} of the table` : "no index",
    },
    {
      name: "Staged work",
      value: whole(answer.staged.length),
      note: answer.staged.length ? `oldest ${duration(oldest)}` : "nothing waits",
    },
  ];
}
