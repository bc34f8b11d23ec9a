import type { useAction } from "../../actions/use-action";
import type { TableAnswer } from "../../api/types";
import type { Route } from "../../lib/router";

/** What every part of a table's page gets. */
export interface TabProps {
  readonly answer: TableAnswer;
  readonly route: Route;
  readonly ask: ReturnType<typeof useAction>["ask"];
  readonly reload: () => void;
}
