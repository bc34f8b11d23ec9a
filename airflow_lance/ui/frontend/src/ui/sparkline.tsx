import { linePoints } from "../lib/scale";
import { whole } from "../lib/format";

const WIDTH = 92;
const HEIGHT = 22;

interface SparklineProps {
  readonly values: readonly number[];
  readonly label: string;
  /** What a value is counted in; the largest stands beside the line, which has no axis. */
  readonly unit: string;
}

export function Sparkline({ values, label, unit }: SparklineProps) {
  const most = Math.max(0, ...values);
  if (most === 0) return <span className="faint">–</span>;
  const text = `${label}, at most ${whole(most)} ${unit}`;
  return (
    <span className="nowrap" title={text}>
      <svg className="spark" width={WIDTH} height={HEIGHT} role="img" aria-label={text}>
        <polyline points={linePoints(values, WIDTH, HEIGHT)} />
      </svg>
      <span className="small faint"> {whole(most)}</span>
    </span>
  );
}
