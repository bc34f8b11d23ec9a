import { apiPath } from "../../api/client";
import type { Work, WorkAnswer } from "../../api/more-types";
import type { Place } from "../../api/types";
import { usePolled } from "../../api/use-polled";
import { OPEN_RUNS, runsOf, summaryOf, type Run } from "../../lib/runs";
import { ago, bytes, count, duration, exact, plural } from "../../lib/format";
import { airflowHref, type AppProps } from "../../lib/host";
import { operationText } from "../../lib/kinds";
import { hrefOf } from "../../lib/router";
import { Badge, type Tone } from "../../ui/badge";
import { PageLink, PlaceLink } from "../../ui/links";
import { Empty, Loading, Problem } from "../../ui/states";

const STATES: Readonly<Record<string, readonly [Tone, string]>> = {
  running: ["plain", "writing"],
  staged: ["warn", "staged, waits for its commit"],
  committed: ["good", "committed"],
  done: ["good", "done"],
  read: ["plain", "read"],
  aborted: ["plain", "aborted"],
  expired: ["bad", "died before its commit"],
};

/** Work that takes effect at once: it is in no record of the table. */
const IMMEDIATE: ReadonlySet<string> = new Set(["done", "read"]);

/** What a dag, a run or a task did to Lance tables: what it staged, its gates, the version in which that was committed. */
export function TaskPage(props: AppProps & { readonly dagId: string }) {
  const query = { dag_id: props.dagId, run_id: props.runId, task_id: props.taskId, map_index: mapped(props.mapIndex) };
  const work = usePolled<WorkAnswer>(apiPath(["work"], query));
  const { data, reload } = work;
  if (data === null) return work.failure ? <Problem failure={work.failure} retry={reload} /> : <Loading what="the work" />;
  const where = props.taskId ? "task" : props.runId ? "run" : "DAG";
  return (
    <main>
      <div className="head">
        <div className="title">
          <h2>Lance tables of this {where}</h2>
          <p className="meta">
            {plural(data.work.length, "piece of work", "pieces of work")}
            {data.pending ? `, ${plural(data.pending, "table")} still being looked at` : ""}
          </p>
        </div>
      </div>
      {data.work.length === 0 && data.pending === 0 ? (
        <Empty>This {where} has not written to a Lance table that the pages know.</Empty>
      ) : (
        <Runs groups={runsOf(data.work)} now={data.made_at} named={!props.runId} />
      )}
    </main>
  );
}

/** One run's work under its name; of many runs only the newest are open. */
function Runs({ groups, now, named }: { groups: readonly Run[]; now: number; named: boolean }) {
  if (!named) return <Pieces work={groups.flatMap((group) => group.work)} now={now} />;
  return (
    <div className="stack">
      {groups.map((group, at) => (
        <details key={group.name} className="run" open={at < OPEN_RUNS}>
          <summary>
            <b className="wrap">{group.name}</b> <span className="note">{summaryOf(group.work)}</span>
          </summary>
          <p className="small">
            <RunLink place={group.work[0]?.run ?? null} />
          </p>
          <Pieces work={group.work} now={now} />
        </details>
      ))}
    </div>
  );
}

function RunLink({ place }: { place: Place | null }) {
  const href = place === null || place.link === null ? null : airflowHref(place.link);
  return href === null ? null : <PageLink href={href}>open the run</PageLink>;
}

function Pieces({ work, now }: { work: readonly Work[]; now: number }) {
  return (
    <ul className="stack">
      {work.map((item) => (
        <li key={`${item.uri} ${item.identity}`}>
          <Piece work={item} now={now} />
        </li>
      ))}
    </ul>
  );
}

function mapped(index: string | undefined): string | undefined {
  return index === undefined || index === "-1" ? undefined : index;
}

function Piece({ work, now }: { work: Work; now: number }) {
  const [tone, words] = STATES[work.state] ?? ["plain", work.state];
  return (
    <article className="section piece">
      <header>
        <h2>{work.table && !work.gone ? <PageLink href={hrefOf("table", [work.table])}>{work.name}</PageLink> : work.name}</h2>
        {work.branch ? <Badge>branch {work.branch}</Badge> : null}
        <Badge tone={tone}>{words}</Badge>
        {work.gone ? <Badge tone="warn" title={work.uri}>{work.branch ? "the branch is no longer there" : "the table was dropped"}</Badge> : null}
        <span className="note">
          {[work.kind === null ? null : operationText(work.kind), work.rows === null ? null : `${count(work.rows)} ${work.rows === 1 ? "row" : "rows"}`, work.bytes === null ? null : bytes(work.bytes)].filter(Boolean).join(", ")}
        </span>
      </header>
      <div className="body piece-grid">
        <Fact name={IMMEDIATE.has(work.state) ? "Version" : "Committed in"}>
          {work.version !== null && work.table && !work.gone && !work.branch ? (
            <>
              <PageLink href={hrefOf("table", [work.table, "diff", String(Math.max(1, work.version - 1)), String(work.version)])}>version {work.version}</PageLink>{" "}
              <span className="soft" title={exact(work.committed_at)}>
                {ago(work.committed_at, now)}
              </span>
            </>
          ) : (
            <span className="soft">{work.version !== null ? `version ${work.version}` : IMMEDIATE.has(work.state) ? "none" : "not yet"}</span>
          )}
        </Fact>
        {IMMEDIATE.has(work.state) ? null : (
          <Fact name="Committed by">
            <PlaceLink place={work.commit} short />
          </Fact>
        )}
        <Fact name={IMMEDIATE.has(work.state) ? "Done by" : "Written by"}>
          <PlaceLink place={work.writer} short />
        </Fact>
        {IMMEDIATE.has(work.state) ? null : <Fact name="Planned on">{work.read_version === null ? "–" : `version ${work.read_version}`}</Fact>}
        {work.started && work.committed_at ? <Fact name="Took">{duration(work.committed_at - work.started)}</Fact> : null}
        {IMMEDIATE.has(work.state) ? null : (
          <Fact name="Identity">
            <code>{work.identity}</code>
          </Fact>
        )}
      </div>
      <div className="body piece-lists">
        <Tries work={work} now={now} />
        <Gates gates={work.gates} />
      </div>
    </article>
  );
}

function Fact({ name, children }: { name: string; children: React.ReactNode }) {
  return (
    <div className="stack tight">
      <span className="small soft">{name}</span>
      <span className="wrap">{children}</span>
    </div>
  );
}

function Tries({ work, now }: { work: Work; now: number }) {
  if (work.attempts.length === 0) return null;
  return (
    <div>
      <h3>Attempts</h3>
      <ul>
        {work.attempts.map((attempt) => (
          <li key={attempt.attempt} className="flow tight">
            <Badge tone={attempt.state === "expired" ? "warn" : "plain"}>{attempt.state}</Badge>
            <span>{attempt.try_number === null ? "attempt" : `try ${attempt.try_number}`}</span>
            <span className="soft">
              {attempt.host ?? ""} {attempt.started ? ago(attempt.started, now) : ""}
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}

function Gates({ gates }: { gates: Work["gates"] }) {
  if (gates === null || gates.length === 0) return null;
  return (
    <div>
      <h3>Gates</h3>
      <ul>
        {gates.map((gate) => (
          <li key={gate.name} className="flow tight">
            <Badge tone={gate.passed ? "good" : "bad"}>{gate.passed ? "passed" : "failed"}</Badge>
            <span className="wrap">{gate.name}</span>
            {gate.message ? <span className="bad wrap">{gate.message}</span> : null}
          </li>
        ))}
      </ul>
    </div>
  );
}
