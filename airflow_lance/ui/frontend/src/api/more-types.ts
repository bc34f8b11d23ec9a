/** Answers of the parts that are loaded when somebody looks at them. */

import type { Budget, Field, Made, Place } from "./types";

export interface Change {
  readonly path?: string;
  readonly name?: string;
  readonly key?: string;
  readonly change: string;
  readonly before: string | null;
  readonly after: string | null;
}

interface Side {
  readonly version: number;
  readonly timestamp: number | null;
  readonly rows: number | null;
  readonly fragments: number | null;
  readonly bytes: number | null;
}

export interface DiffAnswer extends Made {
  readonly from: Side;
  readonly to: Side;
  readonly fragments: {
    readonly added: number;
    readonly removed: number;
    readonly changed: number;
    readonly rows_added: number;
    readonly rows_removed: number;
    readonly rows_deleted: number;
    readonly bytes_added: number;
    readonly bytes_removed: number;
    readonly items: readonly {
      readonly id: number;
      readonly change: string;
      readonly rows_before: number | null;
      readonly rows_after: number | null;
      readonly bytes_before: number | null;
      readonly bytes_after: number | null;
    }[];
  };
  readonly schema: readonly Change[];
  readonly indices: readonly Change[];
  readonly config: readonly Change[];
}

export interface SchemaAnswer extends Made {
  readonly columns: readonly Field[];
  readonly evolution: readonly {
    readonly version: number;
    readonly timestamp: number | null;
    readonly operation: string | null;
    readonly kind: string;
    readonly changes: readonly Change[];
  }[];
  readonly complete: boolean;
}

export interface StorageAnswer extends Made {
  readonly kinds: readonly { readonly kind: string; readonly label: string; readonly files: number; readonly bytes: number }[];
  readonly total_bytes: number;
  readonly collectable_bytes: number | null;
  readonly num_files: number;
  readonly truncated: boolean;
}

export interface Finding {
  readonly code: string;
  readonly severity: "error" | "warning" | "note";
  readonly title: string;
  readonly size: number;
  readonly unit: string;
  readonly cost: string;
  readonly cure: string;
  readonly action: string | null;
}

export interface DoctorAnswer extends Made {
  readonly findings: readonly Finding[];
}

export type Cell =
  | null
  | boolean
  | number
  | string
  | { readonly kind: "text"; readonly value: string; readonly length: number }
  | { readonly kind: "vector"; readonly length: number; readonly head: readonly number[] }
  | { readonly kind: "binary"; readonly length: number; readonly hex: string }
  | { readonly kind: "json"; readonly value: string; readonly truncated: boolean };

export interface RowsAnswer extends Made {
  readonly version: number;
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly rows: readonly (readonly Cell[])[];
  readonly truncated: boolean;
  readonly seconds: number;
  readonly text_columns: readonly string[];
  readonly vector_columns: readonly { readonly name: string; readonly dimension: number }[];
}

export interface Step {
  readonly table: string | null;
  readonly name: string;
  readonly uri: string;
  readonly action: string;
  readonly reason: string;
}

export interface PlannedStep extends Step {
  readonly urgency: number;
  readonly gain: number;
  readonly bytes_read: number;
  readonly bytes_written: number;
  readonly seconds: number;
  readonly gb_hours: number;
}

export interface PlanAnswer extends Made {
  readonly policy: { readonly name: string; readonly base_uri: string } | null;
  readonly error: { readonly message: string; readonly cure?: string } | null;
  readonly steps: readonly PlannedStep[];
  readonly skipped: readonly Step[];
  readonly alarms: readonly Step[];
  readonly cost: { readonly bytes_read: number; readonly bytes_written: number; readonly seconds: number; readonly gb_hours: number } | null;
  readonly budget: Budget | null;
  readonly plan_dag: Place | null;
  readonly pending?: number;
}

export interface HistoryRow extends Step {
  readonly at: number;
  readonly outcome: string;
  readonly run: Place | null;
  readonly version_before: number | null;
  readonly version_after: number | null;
  readonly fragments_before: number | null;
  readonly fragments_after: number | null;
  readonly predicted_bytes: number | null;
  readonly bytes: number | null;
  readonly predicted_seconds: number | null;
  readonly seconds: number | null;
  readonly gb_hours: number | null;
  readonly error: string | null;
}

export interface HistoryAnswer extends Made {
  readonly rows: readonly HistoryRow[];
  readonly more: boolean;
}

export interface Work {
  readonly table: string | null;
  readonly name: string;
  readonly uri: string;
  readonly identity: string;
  readonly kind: string | null;
  readonly state: string;
  readonly rows: number | null;
  readonly bytes: number | null;
  readonly fragments: number | null;
  readonly read_version: number | null;
  readonly version: number | null;
  readonly committed_at: number | null;
  readonly started: number | null;
  readonly attempts: readonly {
    readonly attempt: string;
    readonly state: string;
    readonly try_number: number | null;
    readonly host: string | null;
    readonly started: number | null;
  }[];
  /** The branch of the table, null for its main line. */
  readonly branch: string | null;
  /** Whether the table, or the branch, is no longer there. */
  readonly gone: boolean;
  readonly run: Place | null;
  readonly writer: Place | null;
  readonly commit: Place | null;
  readonly gates: readonly { readonly name: string; readonly passed: boolean; readonly message: string | null }[] | null;
}

export interface WorkAnswer extends Made {
  readonly pending: number;
  readonly retry_after: number | null;
  readonly work: readonly Work[];
}

/** What a task does with a table, and when it did so most recently. */
export interface Use extends Place {
  readonly does: "writes" | "reads" | "waits" | "scheduled by";
  readonly operator: string | null;
  readonly at: number | null;
}

export interface UsesAnswer extends Made {
  readonly dags: readonly Use[];
  readonly complete: boolean;
}

export interface ColumnAnswer extends Made {
  readonly path: string;
  readonly rows: number;
  readonly total_rows: number;
  readonly complete: boolean;
  readonly nulls: number;
  readonly nan: number;
  readonly min: Cell;
  readonly max: Cell;
  readonly mean: Cell;
  readonly distinct: number | null;
  readonly top: readonly { readonly value: Cell; readonly count: number }[];
  readonly lengths: readonly [number, number] | null;
  readonly bytes: number | null;
}

export interface RunAnswer {
  readonly dag_id: string;
  readonly run_id: string;
  readonly link: string | null;
  readonly state?: string;
}

/** A row for which a function failed: where it was, what was raised there, how often it was tried, when last, and for whom. */
export interface FailedRow {
  readonly column: string;
  readonly fragment: number;
  readonly offset: number;
  readonly error: string;
  readonly status: number | null;
  readonly place: string | null;
  readonly tries: number;
  readonly when: number | null;
  readonly writer: Place | null;
}

export interface FailedAnswer extends Made {
  readonly columns: readonly { readonly name: string; readonly failed: number }[];
  readonly rows: readonly FailedRow[];
  readonly left_out: number;
}
