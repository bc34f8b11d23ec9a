/** What a version did, in the few groups that have a colour. */

export interface Group {
  readonly name: string;
  readonly fill: string;
  readonly kinds: readonly string[];
}

export const GROUPS: readonly Group[] = [
  { name: "new rows", fill: "fill-1", kinds: ["append"] },
  { name: "changed rows", fill: "fill-2", kinds: ["merge", "update", "refresh", "overwrite", "restore"] },
  { name: "removed rows", fill: "fill-bad", kinds: ["delete"] },
  { name: "upkeep", fill: "fill-3", kinds: ["compact", "index"] },
  { name: "schema and settings", fill: "fill-5", kinds: ["columns", "config", "other"] },
];

export function fillOf(kind: string): string {
  return GROUPS.find((group) => group.kinds.includes(kind))?.fill ?? "fill-5";
}

/** The groups that occur, for a legend. */
export function groupsOf(kinds: readonly string[]): readonly Group[] {
  return GROUPS.filter((group) => kinds.some((kind) => fillOf(kind) === group.fill));
}

const WORDS: Readonly<Record<string, string>> = {
  Clone: "clone",
  CreateIndex: "build index",
  DataReplacement: "replace column files",
  Merge: "add columns",
  Project: "drop or alter columns",
  ReserveFragments: "reserve fragments",
  Rewrite: "compact",
  UpdateConfig: "set config",
};

const UPDATES: Readonly<Record<string, string>> = { compact: "merge column files", merge: "merge", refresh: "refresh columns" };

/** What a version is called by who wrote it: the words of the operators, where the format has its own. */
export function versionText(version: { readonly version: number; readonly operation: string | null; readonly kind: string }): string {
  const { operation, kind } = version;
  if (operation === "Overwrite" && version.version === 1) return "create";
  if (operation === "Update") return UPDATES[kind] ?? "update";
  return WORDS[operation ?? ""] ?? operationText(operation);
}

/** An operation's name in words: "CreateIndex" → "create index". */
export function operationText(operation: string | null): string {
  return (operation ?? "unknown").replace(/([a-z])([A-Z])/g, "$1 $2").replaceAll("_", " ").toLowerCase();
}
