import { apiPath } from "../../api/client";
import type { HistoryAnswer } from "../../api/more-types";
import { useResource } from "../../api/use-resource";
import { bytes, duration, gbHours, whole } from "../../lib/format";
import { replaceQuery, type Route } from "../../lib/router";
import { useMe } from "../../me";
import { Figures } from "../../ui/figures";
import { Loading, Problem } from "../../ui/states";
import { HistoryList } from "./history-list";
import { NoPolicy } from "./no-policy";
import { offBy, totalsOf } from "./predicted";

const SPANS = ["1", "7", "30"] as const;

export function HistoryPage({ route }: { route: Route }) {
  const me = useMe();
  const days = SPANS.find((span) => span === route.query["days"]) ?? "7";
  const history = useResource<HistoryAnswer>(me.policy === null ? null : apiPath(["plan", "history"], { days, limit: 500 }));
  if (me.policy === null) return <NoPolicy />;
  return (
    <>
      <div className="head">
        <div className="title">
          <h1>Upkeep that was done</h1>
        </div>
        <div className="chips" role="group" aria-label="Time">
          {SPANS.map((span) => (
            <button key={span} type="button" className="chip" aria-pressed={span === days} onClick={() => replaceQuery(route, { days: span })}>
              {span === "1" ? "1 day" : `${span} days`}
            </button>
          ))}
        </div>
      </div>
      {history.data ? <Loaded answer={history.data} /> : history.failure ? <Problem failure={history.failure} retry={history.reload} /> : <Loading what="the history" />}
    </>
  );
}

function Loaded({ answer }: { answer: HistoryAnswer }) {
  const totals = totalsOf(answer.rows);
  return (
    <>
      <Figures
        items={[
          { name: "Steps done", value: whole(totals.done), note: totals.failed ? <span className="bad">{totals.failed} failed</span> : "none failed" },
          { name: "Read and written", value: bytes(totals.bytes), note: `predicted ${bytes(totals.predictedBytes)}` },
          { name: "Prediction off by", value: offBy(totals.predictedBytes, totals.bytes) ?? "–", note: "bytes of all steps together" },
          { name: "Time", value: duration(totals.seconds), note: gbHours(totals.gbHours) },
        ]}
      />
      <section className="section" aria-label="Steps">
        <HistoryList answer={answer} withTable />
        {answer.more ? <p className="empty">Older steps are in the table _maintenance.</p> : null}
      </section>
    </>
  );
}
