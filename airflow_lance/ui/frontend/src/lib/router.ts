/**
 * Addresses of the pages, after the "#":
 *
 *   #/    #/table/<id>    #/table/<id>/<part>    #/table/<id>/diff/<from>/<to>    #/plan    #/plan/history
 */

import { useSyncExternalStore } from "react";

import { navPath, rootPath } from "./host";

export interface Route {
  readonly page: string;
  readonly parts: readonly string[];
  readonly query: Readonly<Record<string, string>>;
}

type Query = Readonly<Record<string, string | undefined>>;

const CHANGED = "lance:route";

export function parseRoute(hash: string): Route {
  const text = hash.replace(/^#\/?/, "");
  const [path = "", search = ""] = splitOnce(text, "?");
  const [page = "", ...parts] = path.split("/").map(decoded);
  return { page: page || "tables", parts: parts.filter(Boolean), query: Object.fromEntries(new URLSearchParams(search)) };
}

export function hashOf(page: string, parts: readonly string[] = [], query: Query = {}): string {
  const kept = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const search = kept.length ? `?${new URLSearchParams(kept).toString()}` : "";
  const path = page === "tables" ? "" : [page, ...parts].map(encodeURIComponent).join("/");
  return `#/${path}${search}`;
}

/** A whole address: the base of Airflow's page makes a lone "#..." point at its root. */
export function hrefOf(page: string, parts: readonly string[] = [], query: Query = {}): string {
  return `${navPath(window.location.pathname, rootPath())}${hashOf(page, parts, query)}`;
}

export function useRoute(): Route {
  const hash = useSyncExternalStore(listen, () => window.location.hash);
  return parseRoute(hash);
}

/** Change the query of the page in place: the back button leaves the page, not the last letter of a search. */
export function replaceQuery(route: Route, query: Query): void {
  window.history.replaceState(window.history.state, "", hrefOf(route.page, route.parts, { ...route.query, ...query }));
  window.dispatchEvent(new Event(CHANGED));
}

function listen(changed: () => void): () => void {
  const names = ["hashchange", "popstate", CHANGED];
  names.forEach((name) => window.addEventListener(name, changed));
  return () => names.forEach((name) => window.removeEventListener(name, changed));
}

function splitOnce(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a lonely percent sign
  }
}
