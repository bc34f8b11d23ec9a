/** What the form holds, as text. */
export interface Search {
  readonly filter: string;
  readonly text: string;
  readonly textColumn: string;
  readonly vector: string;
  readonly vectorColumn: string;
  readonly k: string;
}

/** The body of a search; null when nothing was asked. */
export function searchBody(search: Search): Record<string, unknown> | null {
  const filter = search.filter.trim() || null;
  const text = search.text.trim() || null;
  const vector = numbersOf(search.vector);
  if (filter === null && text === null && vector === null) return null;
  return {
    filter,
    text,
    text_column: text === null ? null : search.textColumn,
    vector,
    vector_column: vector === null ? null : search.vectorColumn,
    k: Math.min(200, Math.max(1, Math.round(Number(search.k)) || 20)),
    columns: null,
    version: null,
  };
}

/** Numbers between any marks: "[0.1, 2e-3 4]" → [0.1, 0.002, 4]; null when there is none. */
export function numbersOf(text: string): number[] | null {
  const found = text.match(/[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?/gi);
  return found === null ? null : found.map(Number);
}
