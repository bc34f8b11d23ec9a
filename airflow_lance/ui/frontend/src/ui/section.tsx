import type { ReactNode } from "react";

export interface SectionProps {
  readonly id: string;
  readonly title: string;
  readonly note?: ReactNode;
  readonly end?: ReactNode;
  readonly width?: "full" | "half" | "third" | "two-thirds";
  /** Tables reach the edges of the section. */
  readonly flush?: boolean;
  readonly children: ReactNode;
}

export function Section({ id, title, note, end, width = "full", flush = false, children }: SectionProps) {
  return (
    <section id={id} className={`section ${width}`} aria-labelledby={`${id}-title`}>
      <header>
        <h2 id={`${id}-title`}>{title}</h2>
        {note ? <span className="note">{note}</span> : null}
        {end ? <span className="end flow">{end}</span> : null}
      </header>
      <div className={flush ? "flush" : "body"}>{children}</div>
    </section>
  );
}
