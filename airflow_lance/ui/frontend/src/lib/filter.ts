/**
 * The filter box of the list of tables.
 *
 *   orders conn:aws health<60 fragments>=1000
 *
 * Words are looked for in the text of a row; `key:value` compares one of its words; `key<number` one of its numbers.
 * All parts must hold. Sizes may have units: size>10GB.
 */

export interface Searchable {
  readonly text: string;
  readonly words: Readonly<Record<string, readonly string[]>>;
  readonly numbers: Readonly<Record<string, number | null>>;
}

export interface Filter {
  readonly matches: (row: Searchable) => boolean;
  /** Parts that could not be understood, for a hint below the box. */
  readonly unclear: readonly string[];
}

type Test = (row: Searchable) => boolean;
type Compare = (left: number, right: number) => boolean;

const COMPARE: Readonly<Record<string, Compare>> = {
  "<": (left, right) => left < right,
  "<=": (left, right) => left <= right,
  ">": (left, right) => left > right,
  ">=": (left, right) => left >= right,
  "=": (left, right) => left === right,
};

const UNITS: Readonly<Record<string, number>> = {
  "": 1, "%": 0.01, k: 1e3, m: 1e6, b: 1, kb: 1e3, mb: 1e6, gb: 1e9, tb: 1e12,
  s: 1, min: 60, h: 3600, d: 86_400,
};

export function parseFilter(text: string, known: { readonly words: readonly string[]; readonly numbers: readonly string[] }): Filter {
  const tests: Test[] = [];
  const unclear: string[] = [];
  for (const part of parts(text)) {
    const test = number(part, known.numbers) ?? word(part, known.words);
    if (test === "unclear") unclear.push(part);
    else tests.push(test);
  }
  return { matches: (row) => tests.every((test) => test(row)), unclear };
}

function parts(text: string): string[] {
  const joined = text.replace(/\s*(<=|>=|<|>|=)\s*/g, "$1").replace(/(\d)\s+(%|[kmgt]?b\b|min\b|[hds]\b)/gi, "$1$2");
  return (joined.match(/[^\s"]*"[^"]*"?|\S+/g) ?? []).map((part) => part.replaceAll('"', ""));
}

function number(part: string, known: readonly string[]): Test | "unclear" | null {
  const found = /^([a-z_]+)(<=|>=|<|>|=)(.*)$/i.exec(part);
  if (found === null) return null;
  const [, key = "", sign = "", value = ""] = found;
  const amount = /^(-?\d+(?:\.\d+)?)([a-z%]*)$/i.exec(value.replaceAll(",", ""));
  const factor = amount ? UNITS[(amount[2] ?? "").toLowerCase()] : undefined;
  const compare = COMPARE[sign];
  const name = key.toLowerCase();
  if (amount === null || factor === undefined || compare === undefined || !known.includes(name)) return "unclear";
  const wanted = Number(amount[1]) * factor;
  return (row) => {
    const here = row.numbers[name];
    return here !== null && here !== undefined && compare(here, wanted);
  };
}

function word(part: string, known: readonly string[]): Test {
  const at = part.indexOf(":");
  const key = part.slice(0, at).toLowerCase();
  const lower = part.toLowerCase();
  if (at < 1 || !known.includes(key)) return (row) => row.text.toLowerCase().includes(lower);
  const wanted = lower.slice(at + 1);
  return (row) => (row.words[key] ?? []).some((one) => one.toLowerCase().includes(wanted));
}
