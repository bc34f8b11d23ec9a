import { Component, type ReactNode } from "react";

import { apiPath } from "./api/client";
import type { Me } from "./api/types";
import { useResource } from "./api/use-resource";
import type { AppProps } from "./lib/host";
import { hrefOf, useRoute, type Route } from "./lib/router";
import { useTheme } from "./lib/theme";
import { MeProvider } from "./me";
import { HistoryPage } from "./pages/plan/history-page";
import { PlanPage } from "./pages/plan/plan-page";
import { TablePage } from "./pages/table/table-page";
import { TablesPage } from "./pages/tables/tables-page";
import { TaskPage } from "./pages/task/task-page";
import { PageLink } from "./ui/links";
import { Loading, Problem } from "./ui/states";
import { Toasts } from "./ui/toasts";

export function App(props: AppProps) {
  const theme = useTheme();
  const me = useResource<Me>(apiPath(["me"]));
  return (
    <div className="lance-ui" data-theme={theme}>
      <Guard>
        <div className="shell">
          {me.data ? (
            <MeProvider value={me.data}>
              <Toasts>{props.dagId ? <TaskPage {...props} dagId={props.dagId} /> : <Pages me={me.data} />}</Toasts>
            </MeProvider>
          ) : me.failure ? (
            <Problem failure={me.failure} retry={me.reload} />
          ) : (
            <Loading what="the page" />
          )}
        </div>
      </Guard>
    </div>
  );
}

function Pages({ me }: { me: Me }) {
  const route = useRoute();
  return (
    <>
      <nav className="topbar" aria-label="Lance">
        <div className="tabs">
          <PageLink href={hrefOf("tables")} current={route.page === "tables" || route.page === "table"}>
            Tables
          </PageLink>
          <PageLink href={hrefOf("plan")} current={route.page === "plan" && route.parts[0] !== "history"}>
            Plan
          </PageLink>
          <PageLink href={hrefOf("plan", ["history"])} current={route.page === "plan" && route.parts[0] === "history"}>
            History
          </PageLink>
        </div>
        <span className="end small faint">{me.policy ? `Policy: ${me.policy.name}` : "No policy"}</span>
      </nav>
      <main>
        <Page key={`${route.page}/${route.parts[0] ?? ""}`} route={route} />
      </main>
    </>
  );
}

function Page({ route }: { route: Route }) {
  const id = route.parts[0];
  if (route.page === "table" && id !== undefined) return <TablePage id={id} route={route} />;
  if (route.page === "plan") return id === "history" ? <HistoryPage route={route} /> : <PlanPage />;
  return <TablesPage route={route} />;
}

/** A fault in our own code takes down our part of the page only, and says so. */
class Guard extends Component<{ children: ReactNode }, { fault: Error | null }> {
  override state: { fault: Error | null } = { fault: null };

  static getDerivedStateFromError(fault: Error): { fault: Error } {
    return { fault };
  }

  override render(): ReactNode {
    if (this.state.fault === null) return this.props.children;
    const failure = { status: 0, code: "fault", message: "The page failed.", cure: `Reload it. (${this.state.fault.message})` };
    return <Problem failure={failure} />;
  }
}
