"""Specs of declared columns: declare one, take declarations back, refresh. Standard library only.

::

    {"spec": 1, "kind": "declare_column", "uri": "/t.lance", "column": "words", "sql": "length(text)"}
    {"spec": 1, "kind": "refresh_columns", "uri": "/t.lance", "columns": ["words"], "max_rows": 100000}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from lance_core.computed.policies import check_batches, check_cache, check_policy
from lance_core.errors import InputError
from lance_core.jobs.specs.gates import GateSpec
from lance_core.jobs.specs.spec import JobSpec

MAX_CANARY_ROWS = 50_000
DEFAULT_CANARY_ROWS = 1_000


def check_canary(rows: int | None, fragments: int | None, *, has_gates: bool) -> None:
    """InputError for a canary that no gate looks at, and for numbers that cannot be."""
    if rows is None and fragments is None:
        return
    if rows is not None and fragments is not None:
        raise InputError("refresh_columns: canary and canary_fragments cannot be combined", cure="Pass one of them.")
    if not has_gates:
        raise InputError(
            "refresh_columns: a canary needs gates, which say what its values must be like",
            cure='Pass them, as gates=[{"max_null_rates": {"vector": 0.01}}].',
        )
    if rows is not None and not 1 <= rows <= MAX_CANARY_ROWS:
        raise InputError(f"refresh_columns: canary must be between 1 and {MAX_CANARY_ROWS:,} rows, got {rows}")
    if fragments is not None and fragments < 1:
        raise InputError(f"refresh_columns: canary_fragments must be at least 1, got {fragments}")


@dataclass(frozen=True, kw_only=True)
class DeclareColumnSpec(JobSpec):
    """Declare how a column is computed: by `sql`, or by `function` ("module:function" or "module:Class") from `inputs`.

    `data_type` is a Spark DDL type, such as "float"; with `list_size` the column is a vector of so many values of it.
    `version`, `arguments`, `model` and `revision` are the definition, with what computes it. `on_error` says what
    becomes of rows for which the function fails. `cache_bytes`: of its values, kept for equal inputs, none where it is
    not `deterministic`. `batch_size`, `batch_bytes`, `batch_tokens`: rows of one call, bytes of their inputs, tokens as the
    function counts them. `trust_existing`: the values that are there are taken over.
    `confirm`: a definition that takes the place of another one, which makes the column's rows stale, is refused
    without it. `unless`: nothing is done where that column is declared with `version`, as one is that was switched to it.
    """

    kind: ClassVar[str] = "declare_column"

    column: str
    sql: str | None = None
    function: str | None = None
    inputs: tuple[str, ...] = ()
    data_type: str | None = None
    list_size: int | None = None
    version: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    model: str = ""
    revision: str = ""
    where: str | None = None
    on_error: str | Mapping[str, str] = "fail"
    error_retries: int = 3
    batch_size: int | None = None
    batch_bytes: int | None = None
    batch_tokens: int | None = None
    deterministic: bool = True
    cache_bytes: int = 0
    trust_existing: bool = False
    confirm: bool = False
    unless: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.sql is None) == (self.function is None):
            raise InputError("declare_column: exactly one of sql and function is required")
        if self.function is not None and not self.inputs:
            raise InputError("declare_column: a function needs inputs: the columns that it reads")
        if self.list_size is not None and (self.list_size < 1 or self.data_type is None):
            raise InputError(f"declare_column: list_size must be at least 1, with a data_type, got {self.list_size}")
        check_policy(self.on_error, self.error_retries)
        check_batches(self.batch_size, self.batch_bytes, self.batch_tokens, is_sql=self.sql is not None)
        check_cache(self.deterministic, self.cache_bytes, is_sql=self.sql is not None)


@dataclass(frozen=True, kw_only=True)
class UndeclareColumnsSpec(JobSpec):
    """Take declarations back; the columns keep their values. One that is not declared does not matter."""

    kind: ClassVar[str] = "undeclare_columns"

    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.columns:
            raise InputError("undeclare_columns: columns is empty")


@dataclass(frozen=True, kw_only=True)
class RefreshColumnsSpec(JobSpec):
    """Compute the rows of declared columns that are not fresh, and publish them, some fragments in a version.

    - `columns`: declared ones, all where it is empty; `functions`: those ("module:name") that may run;
    - `commit_every`: fragments that are published in one version;
    - `deep`: read every fragment; `retry_failed`: whether rows that failed before are tried;
    - `max_rows`, `max_seconds`, `max_spent`: end when the first of them is used up, what is done is kept;
    - `concurrency`, `calls_per_second`: calls of a function at once, and in a second, for each task;
    - `rows_per_task`: on Spark, a task takes fragments of about so many rows; a class is made once for each Python worker;
    - `canary`: rows of each column that are computed first (`canary_fragments`: those of so many fragments), which `gates`
      must pass before anything is published; with gates alone 1,000 rows;
    - `dry_run`: only count.
    """

    kind: ClassVar[str] = "refresh_columns"

    columns: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    commit_every: int = 16
    deep: bool = False
    retry_failed: bool = True
    max_rows: int | None = None
    max_seconds: float | None = None
    max_spent: Mapping[str, float] = field(default_factory=dict)
    concurrency: int = 1
    calls_per_second: float | None = None
    rows_per_task: int = 1 << 20
    canary: int | None = None
    canary_fragments: int | None = None
    gates: tuple[GateSpec, ...] = ()
    dry_run: bool = False
    progress_seconds: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("commit_every", "rows_per_task", "max_rows"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"refresh_columns: {name} must be at least 1, got {value}")
        check_canary(self.canary, self.canary_fragments, has_gates=bool(self.gates))
