/** Columns of a schema, found by words of their names, types and metadata. */

import type { Field } from "../api/types";

/** Fields in which every word occurs, with the fields that they are inside of. */
export function matchingFields(fields: readonly Field[], query: string): readonly Field[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return fields;
  const parents = new Map(fields.map((field) => [field.id, field.parent]));
  const kept = new Set<number>();
  for (const field of fields) {
    const text = `${field.path} ${field.type} ${Object.entries(field.metadata).flat().join(" ")}`.toLowerCase();
    if (!words.every((word) => text.includes(word))) continue;
    for (let at: number | undefined = field.id; at !== undefined && at >= 0 && !kept.has(at); at = parents.get(at)) kept.add(at);
  }
  return fields.filter((field) => kept.has(field.id));
}
