import type { ReactNode } from "react";

export interface Figure {
  readonly name: string;
  readonly value: ReactNode;
  readonly note?: ReactNode;
}

/** The few numbers that matter most, in one strip. */
export function Figures({ items }: { items: readonly Figure[] }) {
  return (
    <dl className="strip">
      {items.map((item) => (
        <div key={item.name}>
          <dt>{item.name}</dt>
          <dd className="figure">{item.value}</dd>
          {item.note ? <dd className="note">{item.note}</dd> : null}
        </div>
      ))}
    </dl>
  );
}
