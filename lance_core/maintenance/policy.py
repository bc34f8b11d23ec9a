"""What a deployment wants of its tables: service levels, budgets, and which tables they are for.

::

    Policy(
        base_uri="s3://lake/lance",
        tables=(TableRule(match="*"), TableRule(match="finance/*", levels={"max_deleted_share": 0.02})),
        budget=Budget(bytes_per_day=500 * 10**9, quiet_hours=(28800, 64800), max_concurrent=2),
    )

Standard library only, so that a DAG file can build or load one. Rules are read from the first to the last; each rule that
matches a table overrides what the rules before it said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any

from lance_core.errors import InputError
from lance_core.maintenance.quantities import parse_duration, parse_hours, parse_size

STEPS = ("compact", "merge_columns", "refresh_columns", "optimize_indices", "cleanup", "gc")
EVIDENCE_TABLE = "_maintenance"


@dataclass(frozen=True, kw_only=True)
class ServiceLevels:
    """What a table may look like before maintenance is due.

    - `max_fragments_per_gb`: fragments for each GB of data; a table may always have `min_fragments`;
    - `max_deleted_share`, `max_unindexed_share`: deleted rows, and rows that an index does not cover, as shares of all;
    - `max_versions`, `keep_versions`, `keep_seconds`: cleanup is due above `max_versions`, and keeps the newest versions
      and those that are younger;
    - `max_dead_bytes`: cleanup is also due when data files that the newest version does not refer to hold more bytes; None
      does not look, because it takes a listing of all data files;
    - `max_seconds_since_upkeep`: a table that was not maintained for longer is an alarm;
    - `max_files_per_fragment`: of a fragment whose columns are spread over more data files the small files are merged;
    - `max_stale_share`: declared columns are refreshed when no refresh has seen more of a column's rows, as a share, as they
      are now; `max_stale_age`: and when there are any, and the last whole refresh was longer ago. Without both none is due;
    - `max_refresh_rows`: rows that one such refresh gives to functions at most;
    - `target_rows_per_fragment`, `tier_fanout`: of compactions; a tier of index segments is merged when `tier_fanout` of
      its kind have gathered, too.
    """

    max_fragments_per_gb: float = 32.0
    min_fragments: int = 32
    max_deleted_share: float = 0.1
    max_unindexed_share: float = 0.1
    max_versions: int = 200
    keep_versions: int = 20
    keep_seconds: float = 7 * 86400.0
    max_dead_bytes: int | None = None
    max_seconds_since_upkeep: float = 2 * 86400.0
    max_files_per_fragment: int = 16
    max_stale_share: float | None = None
    max_stale_age: float | None = None
    max_refresh_rows: int | None = None
    target_rows_per_fragment: int = 1024 * 1024
    tier_fanout: int = 8

    def __post_init__(self) -> None:
        for name in ("max_deleted_share", "max_unindexed_share", "max_stale_share"):
            if getattr(self, name) is not None and not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} must be between 0 and 1, got {getattr(self, name)}")
        for name in (
            "max_versions",
            "keep_versions",
            "max_files_per_fragment",
            "target_rows_per_fragment",
            "max_refresh_rows",
        ):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.tier_fanout < 2:
            raise InputError(f"tier_fanout must be at least 2, got {self.tier_fanout}")

    def allowed_fragments(self, num_bytes: int) -> float:
        """How many fragments a table of that size may have."""
        return max(float(self.min_fragments), self.max_fragments_per_gb * num_bytes / 1e9)


_TYPES: Mapping[str, tuple[type, ...]] = MappingProxyType(
    {"int": (int,), "float": (int, float), "bool": (bool,), "str": (str,)}
)
_READERS: Mapping[str, Callable[[object], Any]] = MappingProxyType(
    {
        "keep_seconds": parse_duration,
        "max_seconds_since_upkeep": parse_duration,
        "max_stale_age": parse_duration,
        "bytes_per_day": parse_size,
        "max_dead_bytes": parse_size,
        "seconds_per_day": parse_duration,
        "backoff_seconds": parse_duration,
        "quiet_hours": lambda value: tuple(value) if isinstance(value, list | tuple) else parse_hours(value),
    }
)


def read_fields(cls: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of one of the policy's classes from plain data. InputError for unknown names and wrong types."""
    known = {item.name: str(item.type) for item in fields(cls)}
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise InputError(f"unknown key {unknown[0]!r}", cure=f"Known keys: {', '.join(sorted(known))}.")
    return {name: _read(name, known[name], value) for name, value in given.items()}


def _read(name: str, kind: str, value: Any) -> Any:
    if name in _READERS and value is not None:
        return _READERS[name](value)
    wanted = kind.partition(" |")[0]
    if value is not None and wanted in _TYPES and type(value) not in _TYPES[wanted]:
        raise InputError(f"{name} must be of type {wanted}, got {value!r}")
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(value)
    return value


def _levels(given: Mapping[str, Any]) -> dict[str, Any]:
    return read_fields(ServiceLevels, given)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What maintenance may cost in a day (UTC), and when. None is no bound.

    `quiet_hours`: no step is started in this span of the day. `max_concurrent`: tables worked on at once.
    `backoff_seconds`: a table that a foreground writer committed to more recently waits.
    """

    bytes_per_day: int | None = None
    gb_hours_per_day: float | None = None
    seconds_per_day: float | None = None
    quiet_hours: tuple[int, int] | None = None
    max_concurrent: int = 2
    backoff_seconds: float = 30.0

    def __post_init__(self) -> None:
        if self.max_concurrent < 1:
            raise InputError(f"max_concurrent must be at least 1, got {self.max_concurrent}")


@dataclass(frozen=True, kw_only=True)
class TableRule:
    """Which tables, and what is different for them.

    A table is named by a glob on its uri or on its path below the base uri (`match`), by the connection through which it is
    reached (`conn_id`), by the folder of a directory namespace (`namespace`), or by an asset's uri (`asset`); all that are
    given must match. `steps` restricts what is done, `paused` stops it. `functions`: those ("module:name") of declared
    columns that a refresh may run; others only where the deployment's list of callables holds them.
    """

    match: str | None = None
    conn_id: str | None = None
    namespace: str | None = None
    asset: str | None = None
    levels: Mapping[str, Any] = field(default_factory=dict)
    steps: tuple[str, ...] | None = None
    paused: bool | None = None
    functions: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not any((self.match, self.conn_id, self.namespace, self.asset)):
            raise InputError(
                "a rule selects no tables", cure='Set match, conn_id, namespace or asset; match: "*" selects all tables.'
            )
        unknown = sorted(set(self.steps or ()) - set(STEPS))
        if unknown:
            raise InputError(f"unknown step {unknown[0]!r}", cure=f"Known steps: {', '.join(STEPS)}.")
        replace(ServiceLevels(), **_levels(self.levels))

    def covers(self, table: ManagedTable, base_uri: str) -> bool:
        """Return whether the rule is about a table."""
        below = table.uri[len(base_uri) :].strip("/") if base_uri and table.uri.startswith(base_uri) else table.uri
        tests = (
            self.match is None or fnmatchcase(table.uri, self.match) or fnmatchcase(below, self.match),
            self.conn_id is None or self.conn_id == table.conn_id,
            self.namespace is None or below.startswith(self.namespace.strip("/") + "/"),
            self.asset is None or self.asset.rstrip("/") == table.uri.rstrip("/"),
        )
        return all(tests)


@dataclass(frozen=True, kw_only=True)
class ManagedTable:
    """A table that was found: its uri, and its Airflow connection."""

    uri: str
    conn_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class TablePolicy:
    """The effective rules for one table."""

    levels: ServiceLevels
    steps: tuple[str, ...] = STEPS
    paused: bool = False
    functions: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Service levels and a budget for the tables that the rules name. Evidence goes to `{base_uri}/_maintenance`."""

    base_uri: str
    tables: tuple[TableRule, ...] = (TableRule(match="*"),)
    levels: ServiceLevels = field(default_factory=ServiceLevels)
    budget: Budget = field(default_factory=Budget)

    def __post_init__(self) -> None:
        if not self.base_uri:
            raise InputError(
                "a policy needs a base_uri", cure="Set base_uri to the folder that contains the tables and the evidence."
            )

    @property
    def evidence_uri(self) -> str:
        """The table that holds a row for each step."""
        return f"{self.base_uri.rstrip('/')}/{EVIDENCE_TABLE}"

    def for_table(self, table: ManagedTable) -> TablePolicy | None:
        """Return what applies to a table; None when no rule covers it."""
        rules = [rule for rule in self.tables if rule.covers(table, self.base_uri)]
        if not rules or table.uri.rstrip("/") == self.evidence_uri:
            return None
        found = TablePolicy(levels=self.levels)
        for rule in rules:
            found = TablePolicy(
                levels=replace(found.levels, **_levels(rule.levels)),
                steps=found.steps if rule.steps is None else rule.steps,
                paused=found.paused if rule.paused is None else rule.paused,
                functions=found.functions if rule.functions is None else rule.functions,
            )
        return found
