import type { Version } from "../../api/types";
import { ago, signed } from "../../lib/format";
import { fillOf, groupsOf, versionText } from "../../lib/kinds";
import { logHeight } from "../../lib/scale";
import { Empty, Loading, Problem } from "../../ui/states";
import { Legend } from "../../ui/stacked-bar";
import type { Versions } from "./use-versions";

const MOST = 60;
const LABELS = 10;

/** A bar for each of the newest versions, oldest first. */
export function Timeline({ versions, state }: { versions: readonly Version[]; state: Versions }) {
  if (state.failure) return <Problem failure={state.failure} retry={state.reload} />;
  if (versions.length === 0) return state.loading ? <Loading what="the versions" /> : <Empty>The history says nothing.</Empty>;
  const shown = versions.slice(0, MOST).toReversed();
  const most = Math.max(0, ...shown.map(amount));
  const every = Math.max(1, Math.ceil(shown.length / LABELS));
  const label = `Rows changed by versions ${shown[0]?.version} to ${shown.at(-1)?.version}`;
  return (
    <div className="stack">
      <div className="timeline" role="img" aria-label={label}>
        {shown.map((version, at) => (
          <div key={version.version} className="step" title={barText(version, state.answer?.made_at ?? 0)}>
            <i className={fillOf(version.kind)} style={{ height: `${Math.max(4, logHeight(amount(version), most, 100))}%` }} />
            {(shown.length - 1 - at) % every === 0 ? <span>{version.version}</span> : null}
          </div>
        ))}
      </div>
      <Legend items={groupsOf(shown.map((version) => version.kind))} />
    </div>
  );
}

function amount(version: Version): number {
  return Math.abs(version.rows_changed ?? 0);
}

function barText(version: Version, now: number): string {
  const rows = version.rows_changed === null ? "" : `, ${signed(version.rows_changed)} rows`;
  return `Version ${version.version}: ${versionText(version)}${rows}, ${ago(version.timestamp, now)}`;
}
