export type Direction = "ascending" | "descending";

/** A sorted copy. Rows without a value come last in both directions; equal rows keep their order. */
export function sortRows<Row>(rows: readonly Row[], by: (row: Row) => number | string | null, direction: Direction): Row[] {
  const sign = direction === "ascending" ? 1 : -1;
  return [...rows].sort((left, right) => {
    const a = by(left);
    const b = by(right);
    if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
    if (typeof a === "string" || typeof b === "string") return sign * COLLATOR.compare(String(a), String(b));
    return sign * (a - b);
  });
}

const COLLATOR = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
