/**
 * Where the pages stand: inside Airflow's own page (its router owns the address) or alone below `<root>/lance/`.
 * In both, `document.baseURI` is Airflow's root.
 */

/** What Airflow tells a page: nothing in its menu; dag, run and task on their pages. */
export interface AppProps {
  readonly dagId?: string;
  readonly runId?: string;
  readonly taskId?: string;
  readonly mapIndex?: string;
}

export function rootPath(): string {
  return new URL(document.baseURI).pathname.replace(/[^/]*$/, "");
}

/** The path of the page with the tables: the one we are on when we stand alone, else Airflow's menu entry. */
export function navPath(here: string, root: string): string {
  return here.startsWith(`${root}lance/`) ? here : `${root}plugin/lance`;
}

export function standsAlone(): boolean {
  return window.location.pathname.startsWith(`${rootPath()}lance/`);
}

/** Address of a page of Airflow; only addresses of this origin are links. */
export function airflowHref(link: string): string | null {
  try {
    const address = new URL(link, document.baseURI);
    return address.origin === window.location.origin ? address.href : null;
  } catch {
    return null;
  }
}

/** Go there without loading Airflow's page anew: its router listens to the history of the window. */
export function goInAirflow(href: string): void {
  window.history.pushState(null, "", href);
  window.dispatchEvent(new PopStateEvent("popstate", { state: null }));
}
