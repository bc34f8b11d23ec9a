import { useCallback, useEffect, useState } from "react";

import { get, type Failure } from "./client";

export interface Resource<T> {
  readonly data: T | null;
  readonly failure: Failure | null;
  readonly loading: boolean;
  readonly reload: () => void;
}

interface State<T> {
  readonly path: string | null;
  readonly data: T | null;
  readonly failure: Failure | null;
}

/** Load an address and keep what was there while it is loaded again; nothing is loaded for null. */
export function useResource<T>(path: string | null): Resource<T> {
  const [state, setState] = useState<State<T>>({ path: null, data: null, failure: null });
  const [round, setRound] = useState(0);
  const [loading, setLoading] = useState(path !== null);
  useEffect(() => {
    if (path === null) return undefined;
    const stop = new AbortController();
    setLoading(true);
    get<T>(path, stop.signal).then(
      (data) => {
        setState({ path, data, failure: null });
        setLoading(false);
      },
      (failure: Failure) => {
        if (stop.signal.aborted) return;
        setState((old) => ({ path, data: old.path === path ? old.data : null, failure }));
        setLoading(false);
      },
    );
    return () => stop.abort();
  }, [path, round]);
  const reload = useCallback(() => setRound((old) => old + 1), []);
  const current = state.path === path;
  return { data: current ? state.data : null, failure: current ? state.failure : null, loading: loading || !current, reload };
}
