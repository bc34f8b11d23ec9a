import { linePoints } from "../lib/scale";

const WIDTH = 92;
const HEIGHT = 22;

export function Sparkline({ values, label }: { values: readonly number[]; label: string }) {
  if (values.length === 0 || values.every((value) => value === 0)) return <span className="faint">–</span>;
  return (
    <svg className="spark" width={WIDTH} height={HEIGHT} role="img" aria-label={label}>
      <polyline points={linePoints(values, WIDTH, HEIGHT)} />
    </svg>
  );
}
