"""Specs of jobs that change existing rows or fragments: delete, update, replace_where,
add_columns, compact, merge_column_files. Standard library only.

::

    {"spec": 1, "kind": "delete", "uri": "/t.lance", "identity": "5d2c...", "predicate": "user_id = 17"}

They stage a transaction like an append does; the commit publishes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from lance_core.errors import InputError
from lance_core.jobs.specs.spec import JobSpec, SourceSpec, WriteSpec

ROWS_PER_TASK = 4 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class EditSpec(JobSpec):
    """What jobs share that look at the table's own rows, a few neighbouring fragments per task.

    `rows_per_task`: a task takes fragments until they hold that many rows; `properties`: text kept in the transaction.
    """

    rows_per_task: int = ROWS_PER_TASK
    properties: Mapping[str, str] = field(default_factory=dict)
    progress_seconds: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rows_per_task < 1:
            raise InputError(f"{self.kind}: rows_per_task must be at least 1, got {self.rows_per_task}")
        if self.progress_seconds <= 0:
            raise InputError(f"{self.kind}: progress_seconds must be more than 0, got {self.progress_seconds}")


@dataclass(frozen=True, kw_only=True)
class DeleteSpec(EditSpec):
    """Delete the rows a filter selects (null does not)."""

    kind: ClassVar[str] = "delete"

    predicate: str

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.predicate.strip():
            raise InputError("delete: predicate is empty", cure='Pass "true" to delete all rows.')


@dataclass(frozen=True, kw_only=True)
class UpdateSpec(EditSpec):
    """Give columns new values, SQL over the old ones, in the rows a filter selects; all rows without one."""

    kind: ClassVar[str] = "update"

    updates: Mapping[str, str]
    where: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.updates:
            raise InputError("update: updates is empty", cure='Pass {"column": "SQL expression"}.')


IfExists = Literal["fail", "skip", "fill"]
"""What adding a column means that the table has."""


@dataclass(frozen=True, kw_only=True)
class AddColumnsSpec(EditSpec):
    """Add columns, computed fragment by fragment; a finished fragment is not computed again by a retry. One of

    - `columns`: name -> SQL over the table's columns: Lance's own, or with `engine="spark"` Spark's, evaluated by it on the
      columns `reads` (None: those whose names stand in the SQL); one value for each row;
    - `function`: "module:function", called with record batches of the columns `reads` (all when None) and `kwargs`;
      returns a batch of the new columns, as many rows. It sees deleted rows as well. An attribute `output_schema` (Arrow)
      of the function, or else what it gives for no rows, says the new columns;
    - `source`, joined where its column `source_on` (`on` when None) equals the table's column `on`; rows without a partner
      get nulls, keys of the source must be unique. A task holds the source in memory.

    Rows that come while the job runs are filled in when it is committed. `batch_size`: rows of one batch.

    `if_exists`: a column that the table has already is an error ("fail"), stays as it is ("skip"), or is computed for the
    living rows in which it is null ("fill"). Which rows a function answered null for is not kept: "fill" tries them again.
    Where the columns are declared as the job computes them, "fill" refreshes them.

    `maintained`: the columns are declared and refreshed, by the job itself; a later run refreshes them. The SQL is Lance's
    own; a function returns one column, and `reads` names what it reads.
    """

    kind: ClassVar[str] = "add_columns"

    columns: Mapping[str, str] = field(default_factory=dict)
    function: str | None = None
    reads: tuple[str, ...] | None = None
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    source: SourceSpec | None = None
    on: str | None = None
    source_on: str | None = None
    batch_size: int | None = None
    engine: Literal["lance", "spark"] = "lance"
    if_exists: IfExists = "fail"
    maintained: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        given = [name for name in ("columns", "function", "source") if getattr(self, name)]
        if len(given) != 1:
            raise InputError(f"add_columns: exactly one of columns, function, source is required; got {given or 'none'}")
        if self.function is not None and ":" not in self.function:
            raise InputError(f"add_columns: function: expected 'module:function', got {self.function!r}")
        misplaced = {"columns": ("reads", "kwargs", "on", "source_on"), "function": ("on", "source_on"),
                     "source": ("reads", "kwargs")}[given[0]]  # fmt: skip
        if self.engine == "spark" and not self.columns:
            raise InputError(f'add_columns: engine="spark" cannot be combined with {given[0]}')
        for name in misplaced:
            if getattr(self, name) and not (name == "reads" and self.engine == "spark"):
                raise InputError(f"add_columns: {name} cannot be combined with {given[0]}")
        if self.source is not None and not self.on:
            raise InputError("add_columns: on must name at least one key column", cure='Pass on="id".')
        if self.batch_size is not None and self.batch_size < 1:
            raise InputError(f"add_columns: batch_size must be at least 1, got {self.batch_size}")
        if self.maintained:
            self._check_maintained()

    @property
    def clear_policy(self) -> str:
        """A refresh is done once more where a person clears it."""
        return super().clear_policy if self.on_clear or not self.maintained else "again"

    def _check_maintained(self) -> None:
        others = {"source": self.source is not None, 'engine="spark"': self.engine == "spark",
                  "if_exists": self.if_exists != "fail", "properties": bool(self.properties)}  # fmt: skip
        for name, is_given in others.items():
            if is_given:
                raise InputError(f"add_columns: maintained cannot be combined with {name}")
        if self.function is not None and not self.reads:
            raise InputError("add_columns: a function that is maintained needs reads: the columns that it reads")


@dataclass(frozen=True, kw_only=True)
class ReplaceWhereSpec(WriteSpec):
    """Replace the rows a filter selects by the source's, all of which must satisfy it. `create`: as for an append.
    `allow_empty`: a source without rows removes them; else it is refused."""

    kind: ClassVar[str] = "replace_where"

    predicate: str
    create: bool = True
    rows_per_task: int = ROWS_PER_TASK
    allow_empty: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.predicate.strip():
            raise InputError("replace_where: predicate is empty", cure='Pass "true" to replace all rows.')
        if self.rows_per_task < 1:
            raise InputError(f"replace_where: rows_per_task must be at least 1, got {self.rows_per_task}")


@dataclass(frozen=True, kw_only=True)
class CompactSpec(JobSpec):
    """Rewrite small or much deleted fragments into fewer, a group of neighbours per task.

    - `target_rows_per_fragment`, `max_bytes_per_file`: the size of the new files;
    - `materialize_deletions_threshold`: rewrite a fragment for its deletions alone above that share; None never does;
    - `max_source_fragments`, `max_source_rows`, `max_source_bytes`: what one run takes on at most;
    - `max_bytes_per_group`, `max_rows_per_group`: a group of fragments, which is one task, is cut where it would read more;
    - `groups_per_commit`: that many groups are rewritten at a time and committed when they are done, so that a kill keeps
      what is finished. The job then publishes. None stages all groups as one transaction;
    - `strategy`: "adjacent" merges every fragment below the target with its neighbours, as the official library plans;
      "tiered" rewrites a size tier when `tier_fanout` fragments of it have gathered, for tables that grow by small appends,
      the smallest tiers first, until `enough_fragments` or fewer are left;
    - `max_files_per_fragment`: rewrite a fragment whose columns are spread over more data files, whatever its size;
    - `groups`: the fragment ids to rewrite, instead of what planning finds; `part_of`: the identity of the job it is for;
    - `dry_run`: only report what would be done.
    """

    kind: ClassVar[str] = "compact"

    target_rows_per_fragment: int = 1024 * 1024
    max_bytes_per_file: int | None = None
    materialize_deletions_threshold: float | None = 0.1
    max_source_fragments: int | None = None
    max_source_rows: int | None = None
    max_source_bytes: int | None = None
    batch_size: int | None = None
    max_bytes_per_group: int | None = None
    max_rows_per_group: int | None = None
    groups_per_commit: int | None = None
    strategy: Literal["adjacent", "tiered"] = "adjacent"
    tier_fanout: int = 8
    enough_fragments: int = 0
    max_files_per_fragment: int | None = None
    groups: tuple[tuple[int, ...], ...] = ()
    part_of: str = ""
    dry_run: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    progress_seconds: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes = (
            "target_rows_per_fragment", "max_bytes_per_file", "max_source_fragments", "max_source_rows", "max_source_bytes",
            "batch_size", "max_bytes_per_group", "max_rows_per_group", "groups_per_commit", "max_files_per_fragment",
        )  # fmt: skip
        for name in sizes:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"compact: {name} must be at least 1, got {value}")
        share = self.materialize_deletions_threshold
        if share is not None and not 0 <= share <= 1:
            raise InputError(f"compact: materialize_deletions_threshold must be between 0 and 1, got {share}")
        if self.strategy not in ("adjacent", "tiered"):
            raise InputError(f"compact: unknown strategy {self.strategy!r}", cure='Use "adjacent" or "tiered".')
        if self.tier_fanout < 2:
            raise InputError(f"compact: tier_fanout must be at least 2, got {self.tier_fanout}")


@dataclass(frozen=True, kw_only=True)
class MergeColumnFilesSpec(EditSpec):
    """Merge small data files of fragments that have more than `max_files_per_fragment`, as adding columns many times leaves
    them: the smallest become one, until `enough_files` are left (None: as many as a fragment may have). No row moves.

    `dry_run`: only report what would be done.
    """

    kind: ClassVar[str] = "merge_column_files"

    max_files_per_fragment: int = 16
    enough_files: int | None = None
    dry_run: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("max_files_per_fragment", "enough_files"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"merge_column_files: {name} must be at least 1, got {value}")
