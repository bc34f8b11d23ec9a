import { useEffect, useState } from "react";

import { apiPath, get } from "../api/client";
import type { RunAnswer } from "../api/more-types";
import { PlaceLink } from "../ui/links";
import { Badge, type Tone } from "../ui/badge";

const PAUSE_MS = 2000;
const TONES: Readonly<Record<string, Tone>> = { success: "good", failed: "bad" };

/** A DAG run that a button has started, followed until it ends. */
export function RunNote({ title, run, onEnd }: { title: string; run: RunAnswer; onEnd?: (() => void) | undefined }) {
  const [state, setState] = useState(run.state ?? "queued");
  const over = state === "success" || state === "failed";
  useEffect(() => {
    if (over) {
      onEnd?.();
      return undefined;
    }
    const look = (): void => {
      get<RunAnswer>(apiPath(["actions", run.run_id], { dag_id: run.dag_id })).then((answer) => setState(answer.state ?? "queued"), () => undefined);
    };
    const timer = window.setInterval(look, PAUSE_MS);
    return () => window.clearInterval(timer);
  }, [over, run.dag_id, run.run_id, onEnd]);
  return (
    <span className="stack tight" data-run={run.run_id}>
      <span>
        {title} <Badge tone={TONES[state] ?? "plain"}>{state}</Badge>
      </span>
      <PlaceLink place={{ dag_id: run.dag_id, run_id: run.run_id, link: run.link }} />
    </span>
  );
}
