"""Specs of what changes a table's definition, reads from it or checks it, at once and in one process. Stdlib only.

::

    {"spec": 1, "kind": "alter_columns", "uri": "/t.lance", "alterations": [{"path": "dep", "name": "departure"}]}

None of these stages anything. Doing any of them twice is the same as once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from lance_core.durations import parse_duration
from lance_core.errors import InputError
from lance_core.jobs.specs.gates import GateSpec, refuse_drift
from lance_core.jobs.specs.spec import JobSpec, SourceSpec

_ALTERATION_KEYS = frozenset({"path", "name", "nullable", "data_type"})

ExportFormat = Literal["parquet", "csv", "json", "arrow"]


@dataclass(frozen=True, kw_only=True)
class DropColumnsSpec(JobSpec):
    """Drop columns, or fields of structs by dotted path; one that is absent already does not matter."""

    kind: ClassVar[str] = "drop_columns"

    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.columns:
            raise InputError("drop_columns: columns is empty")


@dataclass(frozen=True, kw_only=True)
class AlterColumnsSpec(JobSpec):
    """Rename columns, change their type (a Spark DDL type) or whether they may be null."""

    kind: ClassVar[str] = "alter_columns"

    alterations: tuple[Mapping[str, Any], ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.alterations:
            raise InputError("alter_columns: alterations is empty")
        for number, item in enumerate(self.alterations):
            unknown = {*item} - _ALTERATION_KEYS
            if unknown or "path" not in item or len(item) < 2:
                raise InputError(
                    f"alter_columns: alterations[{number}]: expected `path` and some of name, nullable, data_type; "
                    f"got {', '.join(sorted(item)) or 'nothing'}"
                )


@dataclass(frozen=True, kw_only=True)
class DropIndexSpec(JobSpec):
    """Remove an index by name; one that is absent already does not matter."""

    kind: ClassVar[str] = "drop_index"

    name: str


@dataclass(frozen=True, kw_only=True)
class TableConfigSpec(JobSpec):
    """Set keys of the table's configuration; a null removes a key."""

    kind: ClassVar[str] = "table_config"

    values: Mapping[str, str | None]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.values:
            raise InputError("table_config: values is empty")


_SAID_OF_COLUMNS = frozenset({"description", "owner"})


@dataclass(frozen=True, kw_only=True)
class DescribeSpec(JobSpec):
    """Say what a table and its columns are, and whose; kept in the table's own metadata. None leaves what is said, "" takes
    it away. `columns`: dotted path -> a description, or {"description", "owner"}. `fresh_within`, such as "26h": rows of the
    table shall have changed within that time."""

    kind: ClassVar[str] = "describe"

    description: str | None = None
    owner: str | None = None
    fresh_within: str | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.columns and self.description is self.owner is self.fresh_within is None:
            raise InputError("describe: nothing is said", cure="Pass some of description, owner, fresh_within and columns.")
        if self.fresh_within:
            parse_duration(self.fresh_within, of="fresh_within")
        for path, words in self.columns.items():
            texts = {"description": words} if isinstance(words, str) else words
            is_known = isinstance(texts, Mapping) and texts and {*texts} <= _SAID_OF_COLUMNS
            if not is_known or not all(isinstance(text, str) for text in texts.values()):
                raise InputError(
                    f"describe: columns[{path!r}]: expected a text, or a mapping with description and owner; got {words!r}"
                )


@dataclass(frozen=True, kw_only=True)
class CreateTableSpec(JobSpec):
    """Create an empty table of a schema, a Spark DDL text. `if_exists`: "skip" it, or "fail"."""

    kind: ClassVar[str] = "create_table"

    schema: str
    if_exists: Literal["skip", "fail"] = "skip"
    data_storage_version: str | None = None
    enable_stable_row_ids: bool = False


@dataclass(frozen=True, kw_only=True)
class DropTableSpec(JobSpec):
    """Remove a table with all its versions; one that is absent already does not matter unless `if_missing="fail"`."""

    kind: ClassVar[str] = "drop_table"

    if_missing: Literal["skip", "fail"] = "skip"


@dataclass(frozen=True, kw_only=True)
class CloneSpec(JobSpec):
    """Clone a version (a number or a tag; None: the newest) to another uri: "shallow" refers to this table's files."""

    kind: ClassVar[str] = "clone"

    target: str
    version: int | str | None = None
    depth: Literal["shallow", "deep"] = "shallow"


RESULT_BYTES = 48 << 10
"""What the rows of a task's result take at most, as JSON: results are kept in Airflow's metadata database."""


@dataclass(frozen=True, kw_only=True)
class QuerySpec(JobSpec):
    """Read rows: by filter, by words (`full_text`), by vector (`nearest`: {"column", "q", "k", ...}).

    With `target` they become a file of `format`, or, when that is "lance", a table that is overwritten; without it they are
    the result: more than `max_rows` are refused, rows beyond `max_bytes` of JSON are left out, and so are columns of vectors
    that `columns` does not name. The result says what was left out (`left_out`).
    """

    kind: ClassVar[str] = "query"

    columns: tuple[str, ...] = ()
    filter: str | None = None
    limit: int | None = None
    full_text: str | None = None
    nearest: Mapping[str, Any] = field(default_factory=dict)
    version: int | str | None = None
    target: str | None = None
    format: Literal["parquet", "csv", "json", "arrow", "lance"] = "parquet"
    max_rows: int = 1000
    max_bytes: int = RESULT_BYTES

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nearest and not {"column", "q"} <= {*self.nearest}:
            raise InputError("query: nearest needs a column and q, the vector")
        if self.nearest and self.full_text:
            raise InputError("query: full_text cannot be combined with nearest")
        for name in ("limit", "max_rows", "max_bytes"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"query: {name} must be at least 1, got {value}")


@dataclass(frozen=True, kw_only=True)
class SqlSpec(JobSpec):
    """A SELECT over several tables, by DuckDB. `tables`: name in the query -> a source, such as a Lance table.

    With `target` the rows become a file of `format`; without it they are the result: more than `max_rows` are refused,
    rows beyond `max_bytes` of JSON are left out, and the result says how many (`left_out`). `uri` is that of one of the
    tables.
    """

    kind: ClassVar[str] = "sql"

    sql: str
    tables: Mapping[str, SourceSpec]
    target: str | None = None
    format: ExportFormat = "parquet"
    max_rows: int = 1000
    max_bytes: int = RESULT_BYTES

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.sql.strip():
            raise InputError("sql: the query is empty")
        for name in ("max_rows", "max_bytes"):
            if getattr(self, name) < 1:
                raise InputError(f"sql: {name} must be at least 1, got {getattr(self, name)}")


@dataclass(frozen=True, kw_only=True)
class CheckSpec(JobSpec):
    """Check an existing version (a number or a tag; None: the newest) by gates. Nothing is changed."""

    kind: ClassVar[str] = "check"

    gates: tuple[GateSpec, ...]
    version: int | str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.gates:
            raise InputError("check: gates is empty")
        refuse_drift(self.gates, self.kind)
