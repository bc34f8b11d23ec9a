import { logHeight } from "../lib/scale";

export interface Bar {
  readonly name: string;
  readonly value: number;
  readonly text: string;
  readonly fill: string;
  readonly title: string;
}

/** Rows of horizontal bars on a logarithmic scale. */
export function BarChart({ bars, label }: { bars: readonly Bar[]; label: string }) {
  const most = Math.max(0, ...bars.map((bar) => bar.value));
  return (
    <div className="bar-chart" role="img" aria-label={label}>
      {bars.map((bar) => (
        <div key={bar.name} className="bar-row" title={bar.title}>
          <span className="soft small">{bar.name}</span>
          <span className="track">
            <i className={bar.fill} style={{ width: `${logHeight(bar.value, most, 100, 1)}%` }} />
          </span>
          <span className="small n">{bar.text}</span>
        </div>
      ))}
    </div>
  );
}
