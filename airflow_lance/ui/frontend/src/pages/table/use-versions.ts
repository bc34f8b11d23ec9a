import { useCallback, useEffect, useState } from "react";

import { apiPath, get, type Failure } from "../../api/client";
import type { Version, VersionsAnswer } from "../../api/types";

const PAGE = 60;

export interface Versions {
  readonly list: readonly Version[];
  readonly answer: VersionsAnswer | null;
  readonly failure: Failure | null;
  readonly loading: boolean;
  readonly more: () => void;
  readonly reload: () => void;
}

/** The newest versions, and older ones page by page. */
export function useVersions(id: string): Versions {
  const [list, setList] = useState<readonly Version[]>([]);
  const [answer, setAnswer] = useState<VersionsAnswer | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [loading, setLoading] = useState(true);
  const load = useCallback(
    (before: number | undefined, old: readonly Version[], signal?: AbortSignal) => {
      setLoading(true);
      setFailure(null);
      get<VersionsAnswer>(apiPath(["tables", id, "versions"], { limit: PAGE, before }), signal).then(
        (found) => {
          setAnswer((first) => (before === undefined || first === null ? found : { ...first, more: found.more }));
          setList([...old, ...found.versions]);
          setLoading(false);
        },
        (error: Failure) => {
          if (signal?.aborted) return;
          setFailure(error);
          setLoading(false);
        },
      );
    },
    [id],
  );
  useEffect(() => {
    const stop = new AbortController();
    load(undefined, [], stop.signal);
    return () => stop.abort();
  }, [load]);
  const more = useCallback(() => load(list.at(-1)?.version, list), [load, list]);
  const reload = useCallback(() => load(undefined, []), [load]);
  return { list, answer, failure, loading, more, reload };
}
