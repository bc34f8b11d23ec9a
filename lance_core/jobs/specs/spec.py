"""The specs of jobs: frozen dataclasses, JSON in and out, standard library only (a DAG file may import this).

::

    {"spec": 1, "kind": "append", "uri": "s3://lake/flights", "identity": "5d2c...",
     "source": {"format": "csv", "paths": ["flights.csv"], "options": {"header": "true", "inferSchema": "true"}}}

`spec` is the version of this model; a job that meets a newer one says so instead of guessing. Unknown keys are refused.

Frozen dataclasses to and from plain JSON data, checked on the way in.

A field is written only when it differs from its default. On the way in every key must be a field and every value must
have the field's declared type; the error names the path of the value::

    {"uri": 3}            -> InputError: spec.uri: expected text, got 3 (int)
    {"urii": "x"}         -> InputError: spec: unknown key 'urii'; did you mean 'uri'?

Standard library only.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, TypeVar

from lance_core import typed
from lance_core.errors import InputError
from lance_core.jobs.specs.gates import GateSpec, refuse_drift
from lance_core.jobs.specs.identity import DEFAULT_ON_CLEAR, identity_after_clear
from lance_core.jobs.specs.secret import HIDDEN, Secret, as_secret, reveal_all
from lance_core.typed import hints_of as hints_of
from lance_core.typed import shown

SPEC_VERSION = 1

OptionValue = str | int | float | bool | Secret
Drift = Literal["fail", "fill_missing", "drop_extra", "fill_and_drop", "add_extra", "fill_and_add"]
"""What to do when the source's columns are not the table's: refuse, fill absent nullable columns with nulls, drop columns
the table does not have, or both; or add those columns to the table in the version that brings their rows, with or without
filling absent ones. A column whose type cannot become the table's is refused under every policy."""

_CALLABLE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")

S = TypeVar("S", bound="JobSpec")


@dataclass(frozen=True, kw_only=True)
class SourceSpec:
    """Where a write's rows come from: exactly one of

    - `format` with `paths` and `options`: what `spark.read.format(...)` takes, with Spark's option names and defaults (also
      when the job runs locally); `schema` is a Spark DDL text such as `"id BIGINT, name STRING"`;
    - `sql`, a query over `views`, each view a source of its own; `engine` "spark": it is Spark's SQL, and no other engine
      may run it;
    - `callable`, `"module:function"`, called with the Spark session (or without, locally) and `kwargs`; returns a DataFrame
      (locally: an Arrow table, record batch reader, dataset, or batches).
    """

    format: str | None = None
    paths: tuple[str, ...] = ()
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    schema: str | None = None
    sql: str | None = None
    views: Mapping[str, SourceSpec] = field(default_factory=dict)
    engine: Literal["spark"] | None = None
    callable: str | None = None
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = [name for name in ("format", "sql", "callable") if getattr(self, name)]
        if len(given) != 1:
            raise InputError(f"a source needs exactly one of format, sql, callable; got {given or 'none'}")
        if self.callable and not _CALLABLE.fullmatch(self.callable):
            raise InputError(f"source.callable: expected 'module:function', got {self.callable!r}")
        misplaced = {"format": ("views", "kwargs", "engine"), "sql": ("paths", "options", "schema", "kwargs"),
                     "callable": ("paths", "options", "schema", "views", "engine")}[given[0]]  # fmt: skip
        for name in misplaced:
            if getattr(self, name):
                raise InputError(f"source.{name} cannot be combined with source.{given[0]}")

    def describe(self) -> str:
        """One short line for logs; no option values."""
        if self.format:
            shown = ", ".join(self.paths[:3]) + (f" and {len(self.paths) - 3} more" if len(self.paths) > 3 else "")
            return f"{self.format} {shown}".strip()
        return f"callable {self.callable}" if self.callable else f"sql over {', '.join(self.views) or 'the catalog'}"


@dataclass(frozen=True, kw_only=True)
class TableRead:
    """How a job that runs elsewhere reads a Lance table: at which version (None: the newest) of which branch, and with which
    options of its store."""

    version: int | None = None
    branch: str | None = None
    storage_options: Mapping[str, Secret] = field(default_factory=dict)

    def __post_init__(self) -> None:
        hidden = {name: as_secret(value, where=f"storage_options.{name}") for name, value in self.storage_options.items()}
        object.__setattr__(self, "storage_options", hidden)


@dataclass(frozen=True, kw_only=True)
class JobSpec:
    """The fields of every job: the table, its store, and the identity.

    `identity` is a uuid (see `jobs.specs.identity`); empty means a random one per run, so a retry is then new work.
    `storage_options` values may be references (`jobs.specs.secret`); their repr hides literals.

    `asked` says who asks: dag_id, run_id, task_id, map_index, try_number, host, log_url, and `clear`, a text that changes
    with each time that a person clears the task and is empty before. `on_clear` says what then becomes of committed work:
    it is published "again", or the task is to "fail", or to "skip" it. None: "again" for overwrite, replace_where and merge,
    which give the same rows, else "fail". `replaces`: the staged attempt in whose place the work is staged, and the commit
    that does so; only a commit sets it.
    """

    kind: ClassVar[str]

    uri: str
    storage_options: Mapping[str, Secret] = field(default_factory=dict)
    identity: str = ""
    asked: Mapping[str, Any] = field(default_factory=dict)
    on_clear: Literal["again", "fail", "skip"] | None = None
    replaces: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.uri.strip():
            raise InputError(f"{self.kind}: uri is empty")
        hidden = {name: as_secret(value, where=f"storage_options.{name}") for name, value in self.storage_options.items()}
        object.__setattr__(self, "storage_options", hidden)

    @property
    def cleared(self) -> str:
        """Which clear of a person this run follows, "" for none."""
        return str(self.asked.get("clear") or "")

    @property
    def clear_policy(self) -> str:
        """What a clear means for work that was committed."""
        return self.on_clear or DEFAULT_ON_CLEAR.get(self.kind, "fail")

    @property
    def effective_identity(self) -> str:
        """The identity that the work is committed under: another one for each clear where it is published again."""
        return identity_after_clear(self.identity, clear=self.cleared, on_clear=self.clear_policy)

    def resolved_options(self) -> dict[str, str]:
        """Storage options with references looked up here and now; for the store only."""
        return reveal_all(self.storage_options)

    def with_identity(self: S, identity: str) -> S:
        """The same work under another identity."""
        return replace(self, identity=identity)

    def to_plain(self, *, redact: bool = False) -> dict[str, Any]:
        """JSON data with `spec` and `kind`; `redact` hides literal secrets (for records, logs and UIs)."""
        return {"spec": SPEC_VERSION, "kind": self.kind, **to_plain(self, redact=redact)}

    def to_json(self, *, redact: bool = False) -> str:
        """The spec as one line of JSON."""
        return json.dumps(self.to_plain(redact=redact), separators=(",", ":"))


@dataclass(frozen=True, kw_only=True)
class WriteSpec(JobSpec):
    """What append and overwrite share.

    - `max_rows_per_file`, `max_bytes_per_file`: a data file is closed at the first bound it reaches; None leaves the
      library's default.
    - `num_partitions` with `partitioning`: "coalesce" (never shuffles, never raises the number) or "repartition" (shuffles);
      None keeps the partitions of the source. Each partition writes at least one file when it has rows.
    - `data_storage_version`: for a table that does not exist yet, or an overwrite; None is the table's own or the default.
    - `progress_seconds`: how often the driver logs rows, fragments and bytes, and a task reports how far it is. A task that
      ends sooner counts as begun in the log.
    - `table_reads`: how the Lance tables among the source's views are read, by their names there, where whoever starts the
      job has decided it. No part of the work: a retry may read newer versions.
    """

    source: SourceSpec
    max_rows_per_file: int | None = None
    max_bytes_per_file: int | None = None
    data_storage_version: str | None = None
    enable_stable_row_ids: bool = False
    num_partitions: int | None = None
    partitioning: Literal["coalesce", "repartition"] = "coalesce"
    schema_drift: Drift = "fail"
    properties: Mapping[str, str] = field(default_factory=dict)
    progress_seconds: float = 10.0
    table_reads: Mapping[str, TableRead] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("max_rows_per_file", "max_bytes_per_file", "num_partitions"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{self.kind}: {name} must be at least 1, got {value}")
        if self.progress_seconds <= 0:
            raise InputError(f"{self.kind}: progress_seconds must be more than 0, got {self.progress_seconds}")


@dataclass(frozen=True, kw_only=True)
class AppendSpec(WriteSpec):
    """Add rows. `create`: a table that does not exist is created by the first append that is committed."""

    kind: ClassVar[str] = "append"

    create: bool = True


@dataclass(frozen=True, kw_only=True)
class OverwriteSpec(WriteSpec):
    """Replace all rows and the schema. `if_moved`: what the commit does when the table got newer versions in the
    meantime. `allow_empty`: a source without rows empties a table that exists; else it is refused."""

    kind: ClassVar[str] = "overwrite"

    if_moved: Literal["fail", "overwrite"] = "fail"
    allow_empty: bool = False


@dataclass(frozen=True, kw_only=True)
class CommitSpec(JobSpec):
    """Publish staged transactions: those of `identities`, or all that wait when it is empty.

    `gates` are checked before anything is published; all must pass. `re_execute`: deletes, updates, replacements and
    compactions that another writer made invalid are staged again, in this process, and then published. `partial`: members
    that cannot be committed are named in the result, and the others are committed.

    `digests`: the SHA-256 of each identity's spec, as the reference of its staging task carries it. Anyone who may write to
    the table may change the record of a spec, so a record is run only when its digest is this one. Without a digest only
    work without a callable, query, path or reference is staged again.

    `references`: what the staging tasks returned, as plain values. The commit of a single one needs fewer requests with it.
    """

    kind: ClassVar[str] = "commit"

    identities: tuple[str, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict)
    max_attempts: int | None = None
    gates: tuple[GateSpec, ...] = ()
    re_execute: bool = True
    partial: bool = False
    references: tuple[Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_drift(self.gates, self.kind)

    @classmethod
    def of(cls, references: Iterable[Any], **fields: Any) -> CommitSpec:
        """A commit of what staging jobs returned in this process (`StagedTransaction`), whose digests it trusts."""
        found = list(references)
        return cls(
            identities=tuple(item.identity for item in found),
            digests={item.identity: item.digest for item in found if item.digest},
            references=(found[0].to_dict(),) if len(found) == 1 else (),
            **fields,
        )


def read_spec(cls: type[S], data: Mapping[str, Any]) -> S:
    """A spec of a known class from its JSON data, `spec` and `kind` included. InputError names what is wrong."""
    version, kind = data.get("spec", SPEC_VERSION), data.get("kind", cls.kind)
    if version != SPEC_VERSION:
        raise InputError(
            f"job spec version {version!r} is unknown (this library writes {SPEC_VERSION})",
            cure="Install the same airflow-provider-lance where the DAG is parsed and where the job runs.",
        )
    if kind != cls.kind:
        raise InputError(f"expected a spec of kind {cls.kind!r}, got {kind!r}")
    return from_plain(cls, {name: value for name, value in data.items() if name not in ("spec", "kind")})


T = TypeVar("T")

_SENSITIVE = ("password", "secret", "token", "credential", "access_key", "account_key", "sas")


def to_plain(value: object, *, redact: bool = False) -> Any:
    """JSON data of a dataclass (or a container of them). With `redact`, literal secrets and sensitive options are hidden."""
    if isinstance(value, Secret):
        return HIDDEN if redact and value.is_literal else value.to_json()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            item.name: to_plain(getattr(value, item.name), redact=redact)
            for item in dataclasses.fields(value)
            if not _is_default(item, getattr(value, item.name))
        }
    if isinstance(value, Mapping):
        return {
            str(name): HIDDEN if redact and _is_sensitive(str(name), item) else to_plain(item, redact=redact)
            for name, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [to_plain(item, redact=redact) for item in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    raise InputError(
        f"a job spec may only contain plain data, got {type(value).__name__}",
        cure="Use strings, numbers, lists and objects.",
    )


def from_plain(cls: type[T], data: object, *, where: str = "spec") -> T:
    """A dataclass from JSON data. InputError that names the place for anything unknown, missing or of another type."""
    try:
        return typed.from_plain(cls, data, _RULES, where=where)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(str(error)) from None


def _is_default(item: dataclasses.Field[Any], value: object) -> bool:
    if item.default is not dataclasses.MISSING:
        return bool(value == item.default)
    return item.default_factory is not dataclasses.MISSING and bool(value == item.default_factory())


def _is_sensitive(name: str, value: object) -> bool:
    return isinstance(value, str) and any(word in name.lower() for word in _SENSITIVE)


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"{where}: expected a string, got {shown(value)}")
    return value


def _integer(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{where}: expected an integer, got {shown(value)}")
    return value


def _number(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"{where}: expected a number, got {shown(value)}")
    return float(value)


def _flag(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"{where}: expected true or false, got {shown(value)}")
    return value


_RULES = typed.Rules(
    {
        str: _text,
        int: _integer,
        float: _number,
        bool: _flag,
        Secret: lambda value, where: as_secret(value, where=where),
    },
    is_closed=True,
)
