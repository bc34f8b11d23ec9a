/** What the buttons say before anything happens. */

export interface Words {
  readonly button: string;
  readonly title: string;
  readonly effect: string;
  readonly confirm: string;
  readonly danger?: boolean;
}

const WORDS: Readonly<Record<string, Words>> = {
  compact: {
    button: "Compact",
    title: "Compact the table",
    effect: "Size tiers that are full are merged into larger fragments, and deleted rows are removed from them. Readers and writers go on; if a writer is faster, its commit wins.",
    confirm: "Compact",
  },
  merge_columns: {
    button: "Merge column files",
    title: "Merge small column files",
    effect: "Small data files of fragments whose columns are spread over many are merged into one per fragment. No row moves, and indices stay as they are.",
    confirm: "Merge",
  },
  optimize_indices: {
    button: "Optimise indices",
    title: "Optimise the indices",
    effect: "Every index is extended to the rows that it does not cover yet.",
    confirm: "Optimise",
  },
  cleanup: {
    button: "Clean up",
    title: "Clean up old versions",
    effect: "Old versions are removed, and with them the files that only they need. Tagged versions stay. A removed version cannot be restored.",
    confirm: "Clean up",
    danger: true,
  },
  gc: {
    button: "Collect garbage",
    title: "Collect the files of dead attempts",
    effect: "Files of attempts that died before their commit are removed. Staged work that still waits is left alone.",
    confirm: "Collect",
  },
  tag: { button: "Tag", title: "Tag a version", effect: "A tagged version is kept by every cleanup.", confirm: "Tag" },
  restore: {
    button: "Restore",
    title: "Restore a version",
    effect: "A new version with the content of the old one is committed. The versions between stay in the history.",
    confirm: "Restore",
    danger: true,
  },
  abort: {
    button: "Abort",
    title: "Abort staged work",
    effect: "The staged work is given up: it is never committed, and its files are removed. A task that still runs fails at its next step.",
    confirm: "Abort the work",
    danger: true,
  },
  settle: {
    button: "Settle",
    title: "Settle a commit in doubt",
    effect: "You say that the rows of this work are in the table. It is recorded as committed and never committed again. Look at the rows first; if they are missing, abort the work instead.",
    confirm: "It is committed",
  },
  describe: {
    button: "Describe",
    title: "Say what it is",
    effect: "The words are kept in the table's own metadata, in a new version without new rows; other tools see them as comment and owner. An empty field takes away what was said.",
    confirm: "Say so",
  },
  run_plan: {
    button: "Run plan",
    title: "Run the plan",
    effect: "The maintenance DAG looks at all tables, plans anew and does what the policy and the budget allow now.",
    confirm: "Run",
  },
};

export function wordsOf(action: string): Words {
  const name = action.replaceAll("_", " ");
  return WORDS[action] ?? { button: name, title: name, effect: "A DAG run does this.", confirm: "Run" };
}

/** The short name of a step of the plan: "optimize_indices" → "optimise indices". */
export function stepText(action: string): string {
  return action === "gc" ? "collect garbage" : action.replaceAll("_", " ").replace("optimize", "optimise");
}
