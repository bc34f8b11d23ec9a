import type { ReactNode } from "react";

export type Tone = "plain" | "good" | "warn" | "bad";

export function Badge({ tone = "plain", title, children }: { tone?: Tone; title?: string | undefined; children: ReactNode }) {
  return (
    <span className={`badge ${tone === "plain" ? "" : tone}`} title={title}>
      {children}
    </span>
  );
}
