/** Numbers, sizes and times for people. Pure: the current time is an argument. */

const UNITS = ["B", "KB", "MB", "GB", "TB", "PB", "EB"] as const;
const NONE = "–";

/** A number of bytes with three figures: 999 → "999 B", 8_400_000_000_000 → "8.4 TB". */
export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  let size = Math.abs(value);
  let unit = 0;
  while (size >= 999.5 && unit < UNITS.length - 1) {
    size /= 1000;
    unit += 1;
  }
  const text = unit === 0 || size >= 99.95 ? size.toFixed(0) : trimmed(size.toFixed(1));
  return `${value < 0 ? "−" : ""}${text} ${UNITS[unit]}`;
}

/** A large count in short form: 120_400_000 → "120.4 M". Below 100,000 every digit is shown. */
export function count(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  const size = Math.abs(value);
  for (const [limit, unit] of [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e5, "k"]] as const) {
    if (size >= limit) return `${trimmed((value / (unit === "k" ? 1e3 : limit)).toFixed(1))} ${unit}`;
  }
  return whole(value);
}

/** Every digit, in groups: 48211 → "48,211". */
export function whole(value: number): string {
  return Math.round(value).toLocaleString("en-US").replace("-", "−");
}

/** A change with its sign: 27004 → "+27,004". */
export function signed(value: number): string {
  return value > 0 ? `+${whole(value)}` : whole(value);
}

/** A share from 0 to 1 in percent; a share that is neither 0 nor 1 is never rounded to 0 % or 100 %. */
export function percent(share: number | null | undefined): string {
  if (share === null || share === undefined || !Number.isFinite(share)) return NONE;
  const value = share * 100;
  if (value > 0 && value < 0.1) return "< 0.1 %";
  if (value > 99.9 && value < 100) return "> 99.9 %";
  const text = value >= 10 && value < 99 ? value.toFixed(0) : trimmed(value.toFixed(1));
  return `${text} %`;
}

const SPANS = [[86_400, "d"], [3_600, "h"], [60, "min"], [1, "s"]] as const;

/** A duration in its largest fitting unit: 5400 → "1.5 h", 40 → "40 s". */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return NONE;
  const span = Math.abs(seconds);
  if (span < 1) return span === 0 ? "0 s" : "< 1 s";
  for (const [limit, unit] of SPANS) {
    if (span >= limit) {
      const value = seconds / limit;
      return `${Math.abs(value) < 10 && unit !== "s" ? trimmed(value.toFixed(1)) : Math.round(value)} ${unit}`;
    }
  }
  return NONE;
}

/** How long ago a moment (seconds since the epoch) was: "2 min ago"; "never" for none. */
export function ago(moment: number | null | undefined, now: number): string {
  if (!moment) return "never";
  const past = now - moment;
  if (past < 0) return `in ${duration(-past)}`;
  return past < 5 ? "just now" : `${duration(past)} ago`;
}

/** The moment itself, in the reader's time zone, for tooltips. */
export function exact(moment: number | null | undefined): string {
  return moment ? new Date(moment * 1000).toLocaleString(undefined, { timeZoneName: "short" }) : "";
}

/** GB-hours: what is little is never shown as nothing. */
export function gbHours(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  if (value > 0 && value < 0.01) return "< 0.01 GB-h";
  return `${value === 0 ? "0" : trimmed(value.toFixed(value < 1 ? 2 : 1))} GB-h`;
}

/** One of two words by number: plural(1, "table") → "1 table". */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${whole(value)} ${value === 1 ? one : many}`;
}

function trimmed(text: string): string {
  return text.endsWith(".0") ? text.slice(0, -2) : text;
}
