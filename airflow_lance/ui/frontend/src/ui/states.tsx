import type { ReactNode } from "react";

import type { Failure } from "../api/client";
import { Button } from "./button";

export function Loading({ what }: { what: string }) {
  return (
    <div className="stack" role="status" aria-label={`Loading ${what}`}>
      {[92, 78, 85, 60].map((width) => (
        <div key={width} className="skeleton" style={{ width: `${width}%` }} />
      ))}
    </div>
  );
}

export function Empty({ children }: { children: ReactNode }) {
  return <p className="empty">{children}</p>;
}

/** What went wrong, why, and what helps. */
export function Problem({ failure, retry }: { failure: Failure; retry?: () => void }) {
  return (
    <div className="notice bad" role="alert">
      <strong>{failure.message}</strong>

      {failure.cure ? <span>{failure.cure}</span> : null}
      {retry ? (
        <span>
          <Button onClick={retry} name="retry">
            Try again
          </Button>
        </span>
      ) : null}
    </div>
  );
}
