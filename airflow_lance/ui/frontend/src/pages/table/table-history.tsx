import { apiPath } from "../../api/client";
import type { HistoryAnswer } from "../../api/more-types";
import { useResource } from "../../api/use-resource";
import { Section } from "../../ui/section";
import { Loading, Problem } from "../../ui/states";
import { HistoryList } from "../plan/history-list";
import type { TabProps } from "./tab-props";

export function TableHistory({ answer }: TabProps) {
  const history = useResource<HistoryAnswer>(apiPath(["plan", "history"], { table: answer.table.id, days: 30, limit: 200 }));
  return (
    <div className="sections">
      <Section id="upkeep" title="Upkeep" note="30 days, from the policy's own records" flush>
        {history.data ? (
          <HistoryList answer={history.data} withTable={false} />
        ) : (
          <div className="body">{history.failure ? <Problem failure={history.failure} retry={history.reload} /> : <Loading what="the history" />}</div>
        )}
      </Section>
    </div>
  );
}
