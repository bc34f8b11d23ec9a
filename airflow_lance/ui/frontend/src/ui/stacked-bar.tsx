import { shares } from "../lib/scale";

export interface Part {
  readonly name: string;
  readonly value: number;
  readonly text: string;
  readonly fill: string;
}

/** The parts of a whole as one bar with its legend. */
export function StackedBar({ parts, label }: { parts: readonly Part[]; label: string }) {
  const widths = shares(parts.map((part) => part.value));
  return (
    <div className="stack">
      <div className="bar thick" role="img" aria-label={label}>
        {parts.map((part, at) => (
          <i key={part.name} className={part.fill} style={{ width: `${widths[at] ?? 0}%` }} title={`${part.name}: ${part.text}`} />
        ))}
      </div>
      <Legend items={parts.map((part) => ({ name: `${part.name} ${part.text}`, fill: part.fill }))} />
    </div>
  );
}

export function Legend({ items }: { items: readonly { readonly name: string; readonly fill: string }[] }) {
  return (
    <ul className="legend">
      {items.map((item) => (
        <li key={item.name}>
          <i className={item.fill} />
          {item.name}
        </li>
      ))}
    </ul>
  );
}
