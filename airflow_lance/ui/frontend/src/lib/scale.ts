/** Geometry of the small charts. */

/** Height of a bar on a logarithmic scale; what is above 0 stays visible. */
export function logHeight(value: number, most: number, height: number, least = 2): number {
  if (value <= 0 || most <= 0) return 0;
  const share = Math.log1p(value) / Math.log1p(most);
  return Math.max(least, Math.min(1, share) * height);
}

/** The points of a polyline through counts, in a box whose bottom is 0. */
export function linePoints(values: readonly number[], width: number, height: number, pad = 2): string {
  if (values.length === 0) return "";
  const low = Math.min(0, ...values);
  const high = Math.max(...values);
  const step = values.length > 1 ? (width - 2 * pad) / (values.length - 1) : 0;
  return values
    .map((value, at) => {
      const share = high === low ? 0.5 : (value - low) / (high - low);
      return `${round(pad + at * step)},${round(height - pad - share * (height - 2 * pad))}`;
    })
    .join(" ");
}

/** Widths in percent of the parts of a whole, each at least `least` wide so that none vanishes; they add up to 100. */
export function shares(values: readonly number[], least = 1): number[] {
  const total = values.reduce((sum, value) => sum + Math.max(0, value), 0);
  if (total <= 0) return values.map(() => 0);
  const raised = values.map((value) => (value <= 0 ? 0 : Math.max(least, (100 * value) / total)));
  const sum = raised.reduce((all, value) => all + value, 0);
  return raised.map((value) => (100 * value) / sum);
}

/** Sums of neighbours, so that at most `most` bars are drawn; the newest values keep their own bars' order. */
export function bucketed(values: readonly number[], most: number): number[] {
  if (values.length <= most) return [...values];
  const size = Math.ceil(values.length / most);
  const out: number[] = [];
  for (let at = 0; at < values.length; at += size) {
    out.push(values.slice(at, at + size).reduce((sum, value) => sum + value, 0));
  }
  return out;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
