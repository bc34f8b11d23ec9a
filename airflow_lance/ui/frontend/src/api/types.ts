/** What the server answers. Times are seconds since the epoch, sizes are bytes, shares are between 0 and 1; unknown is null. */

export interface Made {
  readonly made_at: number;
}

export interface Trouble {
  readonly code: string;
  readonly message: string;
  readonly cure: string;
}

/** A page of Airflow; `link` is null when the user may not see it. */
export interface Place {
  readonly dag_id: string | null;
  readonly run_id?: string | null;
  readonly task_id?: string | null;
  readonly map_index?: number | null;
  readonly try_number?: number | null;
  readonly host?: string | null;
  readonly link: string | null;
  readonly hidden?: boolean;
}

export interface Me extends Made {
  readonly user: string;
  readonly version: string;
  readonly rights: {
    readonly rows: boolean;
    readonly rows_reason: string | null;
    readonly rows_connections?: readonly (string | null)[];
    readonly actions: boolean;
    readonly actions_reason: string | null;
    readonly run_plan: boolean;
    readonly plan_reason: string | null;
  };
  readonly actions_dag: string | null;
  readonly plan_dag: string | null;
  readonly policy: { readonly name: string; readonly base_uri: string } | null;
}

export interface Spending {
  readonly spent: number;
  readonly limit: number | null;
}

export interface Budget {
  readonly gb_hours: Spending;
  readonly bytes: Spending;
  readonly seconds: Spending;
  readonly quiet_hours: readonly number[] | null;
  readonly is_quiet: boolean;
}

export interface HealthPart {
  readonly code: string;
  readonly label: string;
  readonly points: number;
  readonly value: number;
  readonly unit: string;
}

/** `unchecked` says why the files were not compared with the manifest: then the score is about the layout only. */
export interface HealthScore {
  readonly score: number;
  readonly parts: readonly HealthPart[];
  readonly unchecked: string | null;
}

export interface TableRow {
  readonly id: string;
  readonly name: string;
  readonly uri: string;
  readonly conn_id: string | null;
  readonly state: "ok" | "pending" | "error";
  readonly error: Trouble | null;
  readonly health: HealthScore | null;
  /** What people say of the table, kept in its own metadata. */
  readonly description: string | null;
  readonly owner: string | null;
  readonly fresh_within: string | null;
  readonly freshness: "fresh" | "late" | "unchecked" | null;
  /** Why the table is late, in a sentence. */
  readonly late: string | null;
  readonly columns: readonly string[] | null;
  readonly version: number | null;
  readonly num_versions: number | null;
  readonly num_rows: number | null;
  readonly num_deleted_rows: number | null;
  readonly num_bytes: number | null;
  readonly manifest_bytes: number | null;
  readonly num_fragments: number | null;
  readonly num_small_fragments: number | null;
  readonly unindexed_rows: number | null;
  readonly unindexed_share: number | null;
  readonly num_indices: number | null;
  readonly num_staged: number | null;
  readonly num_dead_attempts: number | null;
  readonly written_at: number | null;
  readonly upkeep_at: number | null;
  readonly writes: readonly number[] | null;
  readonly next: { readonly action: string; readonly reason: string; readonly gb_hours: number } | null;
  readonly in_policy: boolean | null;
  readonly paused: boolean | null;
}

export interface Source {
  readonly conn_id: string | null;
  readonly base_uri: string;
  readonly tables: number;
  readonly error: Trouble | null;
}

export interface TablesAnswer extends Made {
  readonly seconds: number;
  readonly pending: number;
  readonly retry_after: number | null;
  readonly summary: {
    readonly tables: number;
    readonly attention: number;
    readonly errors: number;
    readonly unchecked: number;
    readonly late: number;
    readonly num_bytes: number;
    readonly manifest_bytes: number;
    readonly num_rows: number;
    readonly dead_bytes: number | null;
    readonly service_levels: { readonly kept: number; readonly days: number } | null;
    readonly rewrite_factor: number | null;
    readonly budget: Budget | null;
  };
  readonly sources: readonly Source[];
  readonly tables: readonly TableRow[];
}

export interface Field {
  readonly id: number;
  readonly parent: number;
  readonly name: string;
  readonly path: string;
  readonly type: string;
  readonly nullable: boolean;
  readonly metadata: Readonly<Record<string, string>>;
}

export interface SizeClass {
  readonly label: string;
  readonly min: number;
  readonly max: number | null;
  readonly fragments: number;
  readonly bytes: number;
  readonly small: boolean;
}

export interface Fragments {
  readonly tiers: readonly { readonly tier: number; readonly label: string; readonly fragments: number; readonly rows: number; readonly bytes: number }[];
  readonly sizes: readonly SizeClass[];
  readonly deletions: readonly { readonly label: string; readonly fragments: number; readonly deleted_rows: number }[];
  readonly most_deleted: readonly {
    readonly id: number;
    readonly physical_rows: number;
    readonly deleted_rows: number;
    readonly share: number;
    readonly bytes: number;
  }[];
  readonly num_data_files: number;
  readonly files_per_fragment: number;
}

export interface Index {
  readonly name: string;
  readonly type: string;
  readonly columns: readonly string[];
  readonly segments: number;
  readonly coverage: number;
  readonly unindexed_rows: number;
  readonly num_bytes: number | null;
  readonly dataset_version: number | null;
  readonly created_at: number | null;
  readonly sealed: boolean | null;
  readonly stale_versions: number | null;
}

export interface Staged {
  readonly identity: string;
  readonly attempt: string | null;
  readonly state: string;
  readonly kind: string;
  readonly read_version: number | null;
  readonly started: number | null;
  readonly lease_until: number | null;
  readonly age: number | null;
  readonly rows: number | null;
  readonly bytes: number | null;
  readonly writer: Place | null;
  readonly actions: readonly string[];
}

export interface Claim {
  readonly commit: string;
  readonly identities: readonly string[];
  readonly since: number | null;
  readonly age: number | null;
  readonly alive: boolean;
}

/** A commit whose end nobody saw, and the version with which its rows came. */
export interface Doubt {
  readonly identity: string;
  readonly version: number | null;
}

/** A column that is computed from others: how many rows no refresh has seen as they are now, and who refreshed it last. */
export interface DeclaredColumn {
  readonly name: string;
  readonly kind: string;
  readonly function: string;
  readonly stale_rows: number;
  readonly stale_share: number;
  readonly failed_rows: number;
  readonly refreshed_at: number | null;
  readonly refreshed_by: Place | null;
}

export interface TableAnswer extends Made {
  readonly table: TableRow;
  readonly file_version: string | null;
  readonly stable_row_ids: boolean | null;
  readonly branch: string | null;
  readonly table_id: string | null;
  readonly config: Readonly<Record<string, string>>;
  readonly schema: readonly Field[];
  readonly fragments: Fragments;
  readonly indices: readonly Index[];
  readonly declared: readonly DeclaredColumn[];
  readonly tags: readonly { readonly name: string; readonly version: number; readonly branch: string | null }[];
  readonly branches: readonly {
    readonly name: string;
    readonly parent_branch: string | null;
    readonly parent_version: number;
    readonly created_at: number | null;
  }[];
  readonly staged: readonly Staged[];
  readonly claims: readonly Claim[];
  readonly in_doubt: readonly Doubt[];
  readonly actions: readonly string[];
}

export interface Writer extends Place {
  readonly identity: string;
  readonly operation: string | null;
  readonly rows: number | null;
}

export interface Version {
  readonly version: number;
  readonly timestamp: number | null;
  readonly operation: string | null;
  readonly kind: string;
  readonly rows: number | null;
  readonly rows_changed: number | null;
  readonly bytes_added: number | null;
  readonly fragments_added: number | null;
  readonly read_version: number | null;
  readonly rebased: number | null;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly writers: readonly Writer[];
  readonly properties: Readonly<Record<string, string>>;
}

export interface Conflict {
  readonly operation: string;
  readonly writer: Place | null;
  readonly other_operation: string;
  readonly other_writer: Place | null;
  readonly count: number;
}

export interface VersionsAnswer extends Made {
  readonly newest: number;
  readonly more: boolean;
  readonly versions: readonly Version[];
  readonly conflicts: { readonly judged: number; readonly rebased: number; readonly between: readonly Conflict[] } | null;
}
