import { useEffect } from "react";

import { useResource, type Resource } from "./use-resource";

/** An answer that may still miss tables, and says when it is worth to ask again. */
export interface Unfinished {
  readonly pending?: number | undefined;
  readonly retry_after?: number | null;
}

export const PAUSE_SECONDS = 2;

/** Seconds until an answer is asked for again; null when it is whole. */
export function pauseOf(answer: Unfinished | null): number | null {
  return answer !== null && (answer.pending ?? 0) > 0 ? (answer.retry_after ?? PAUSE_SECONDS) : null;
}

/** Load an address, and load it again as long as tables are still being looked at. */
export function usePolled<T extends Unfinished>(path: string | null): Resource<T> {
  const resource = useResource<T>(path);
  const { data, reload } = resource;
  const pause = pauseOf(data);
  useEffect(() => {
    if (pause === null) return undefined;
    const timer = window.setTimeout(reload, pause * 1000);
    return () => window.clearTimeout(timer);
  }, [pause, reload, data]);
  return resource;
}
