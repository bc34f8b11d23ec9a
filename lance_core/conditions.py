"""The state of a table at a moment, and conditions on it: the predicates of sensors, triggers and `lance wait`.

::

    facts = table_facts("/t.lance")                      # lance_core.dataset.maintain.table_facts
    condition = VersionAtLeast(3)
    condition.is_met(facts), condition.explain(facts)    -> True, "version 4, waiting for at least 3"
    condition_from_dict(condition.to_dict())             -> VersionAtLeast(version=3)

Standard library only: a DAG file, a trigger and a browser of XComs load this without Arrow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar

from lance_core.errors import InputError


@dataclass(frozen=True, slots=True)
class TableFacts:
    """A table at one version. When there is no table yet, `exists` is False and everything is zero.

    `timestamp` is seconds since the epoch (UTC) of the version's commit. `num_rows` does not count deleted rows,
    `physical_rows` does. `num_small_fragments` counts fragments of fewer rows than `small_fragment_rows`. `bytes` sums the
    data files whose size is recorded. `matching_rows` has the rows per predicate that was requested, `index_coverage` the
    share (0 to 1) of fragments each index covers, `num_staged` the staged transactions that wait (None: not looked up).
    `table_id` tells a table from one that is made later at the same uri; empty when nobody knows. `value_counts` has the
    rows per value, as text, of the column that was requested.
    """

    uri: str
    exists: bool = True
    version: int = 0
    timestamp: float = 0.0
    num_rows: int = 0
    physical_rows: int = 0
    num_fragments: int = 0
    num_small_fragments: int = 0
    small_fragment_rows: int = 1024
    num_data_files: int = 0
    bytes: int = 0
    tags: Mapping[str, int] = field(default_factory=dict)
    index_coverage: Mapping[str, float] = field(default_factory=dict)
    matching_rows: Mapping[str, int] = field(default_factory=dict)
    num_staged: int | None = None
    table_id: str = ""
    value_counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def num_deleted_rows(self) -> int:
        """Rows that deletion files hide."""
        return self.physical_rows - self.num_rows

    @property
    def deleted_ratio(self) -> float:
        """Deleted rows as a share of the physical rows, 0 for an empty table."""
        return self.num_deleted_rows / self.physical_rows if self.physical_rows else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as plain values that JSON can hold."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> TableFacts:
        """The inverse of `to_dict`; unknown keys are ignored."""
        found: TableFacts = _build(cls, plain)
        return found


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition. Subclasses decide when it is met and describe its state."""

    kind: ClassVar[str] = ""

    def is_met(self, facts: TableFacts) -> bool:
        """Whether the facts satisfy the condition. NotImplementedError in the base class."""
        raise NotImplementedError

    def explain(self, facts: TableFacts) -> str:
        """Return one line: what is and what is waited for. NotImplementedError in the base class."""
        raise NotImplementedError

    @property
    def predicates(self) -> tuple[str, ...]:
        """Filters whose matching rows `table_facts` must count for this condition."""
        return ()

    @property
    def needs_staged(self) -> bool:
        """Whether `table_facts` must look up the staged transactions."""
        return False

    @property
    def counted(self) -> tuple[str, str | None] | None:
        """A column whose values `table_facts` must count, and how times in it become text (None: in ISO form)."""
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold; `condition_from_dict` reads them."""
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True, slots=True)
class VersionAtLeast(Condition):
    """The table has reached a version."""

    version: int
    kind: ClassVar[str] = "version_at_least"

    def is_met(self, facts: TableFacts) -> bool:
        """Whether the table exists and has reached the version."""
        return facts.exists and facts.version >= self.version

    def explain(self, facts: TableFacts) -> str:
        """Return the version, and the one that is waited for."""
        return f"{_state(facts)}, waiting for at least {self.version}"


@dataclass(frozen=True, slots=True)
class VersionChangedSince(Condition):
    """The table has moved on from a version; 0 means: until there is a table at all."""

    version: int
    kind: ClassVar[str] = "version_changed_since"

    def is_met(self, facts: TableFacts) -> bool:
        """Whether the table exists at another version."""
        return facts.exists and facts.version != self.version

    def explain(self, facts: TableFacts) -> str:
        """Return the version, and the one it must leave."""
        return f"{_state(facts)}, waiting for a version other than {self.version}"


@dataclass(frozen=True, slots=True)
class RowsAtLeast(Condition):
    """So many rows, all of them or those that match a predicate."""

    rows: int
    predicate: str | None = None
    kind: ClassVar[str] = "rows_at_least"

    @property
    def predicates(self) -> tuple[str, ...]:
        """The filter, if there is one."""
        return () if self.predicate is None else (self.predicate,)

    def is_met(self, facts: TableFacts) -> bool:
        """Whether the table exists and has so many rows."""
        return facts.exists and self._rows(facts) >= self.rows

    def explain(self, facts: TableFacts) -> str:
        """Return the number of rows, and the one that is waited for."""
        which = "" if self.predicate is None else f" where {self.predicate}"
        return f"{self._rows(facts)} rows{which}, waiting for at least {self.rows}"

    def _rows(self, facts: TableFacts) -> int:
        return facts.num_rows if self.predicate is None else facts.matching_rows.get(self.predicate, 0)


@dataclass(frozen=True, slots=True)
class NeedsMaintenance(Condition):
    """The fragments are out of shape: any of the bounds that are given is exceeded."""

    max_fragments: int | None = None
    max_small_fragments: int | None = None
    max_deleted_ratio: float | None = None
    kind: ClassVar[str] = "needs_maintenance"

    def is_met(self, facts: TableFacts) -> bool:
        """Whether the table exists and exceeds one of the bounds."""
        return facts.exists and any(found > bound for _, found, bound in self._bounds(facts))

    def explain(self, facts: TableFacts) -> str:
        """Return each figure with its bound."""
        parts = [f"{name} {found:g} (bound {bound:g})" for name, found, bound in self._bounds(facts)]
        return f"{', '.join(parts) or 'no bounds'}, waiting for one to be exceeded"

    def _bounds(self, facts: TableFacts) -> list[tuple[str, float, float]]:
        found = (
            ("fragments", facts.num_fragments, self.max_fragments),
            ("small fragments", facts.num_small_fragments, self.max_small_fragments),
            ("deleted ratio", facts.deleted_ratio, self.max_deleted_ratio),
        )
        return [(name, value, bound) for name, value, bound in found if bound is not None]


@dataclass(frozen=True, slots=True)
class IndexCovers(Condition):
    """An index exists and covers at least a share of the fragments."""

    index: str
    ratio: float = 1.0
    kind: ClassVar[str] = "index_covers"

    def is_met(self, facts: TableFacts) -> bool:
        """Whether the table exists and the index covers the share."""
        return facts.exists and facts.index_coverage.get(self.index, -1.0) >= self.ratio

    def explain(self, facts: TableFacts) -> str:
        """Return the share that the index covers, and the one that is waited for."""
        found = facts.index_coverage.get(self.index)
        state = f"no index {self.index}" if found is None else f"index {self.index} covers {found:.0%}"
        return f"{state}, waiting for {self.ratio:.0%}"


@dataclass(frozen=True, slots=True)
class TagReached(Condition):
    """A tag exists, and points at a version no older than `version` when one is given."""

    tag: str
    version: int | None = None
    kind: ClassVar[str] = "tag_reached"

    def is_met(self, facts: TableFacts) -> bool:
        """Whether the tag exists at the version or a later one."""
        found = facts.tags.get(self.tag)
        return found is not None and (self.version is None or found >= self.version)

    def explain(self, facts: TableFacts) -> str:
        """Return where the tag points, and the version that is waited for."""
        found = facts.tags.get(self.tag)
        state = f"no tag {self.tag}" if found is None else f"tag {self.tag} at version {found}"
        return f"{state}, waiting for {'it' if self.version is None else f'at least {self.version}'}"


@dataclass(frozen=True, slots=True)
class StagedAtMost(Condition):
    """No more than so many staged transactions wait for their commit."""

    at_most: int = 0
    kind: ClassVar[str] = "nothing_staged"

    @property
    def needs_staged(self) -> bool:
        """Always: this condition counts them."""
        return True

    def is_met(self, facts: TableFacts) -> bool:
        """Whether the staged transactions were counted and are few enough."""
        return facts.num_staged is not None and facts.num_staged <= self.at_most

    def explain(self, facts: TableFacts) -> str:
        """Return the number of staged transactions, and the one that is waited for."""
        return f"{facts.num_staged} staged transactions, waiting for at most {self.at_most}"


@dataclass(frozen=True, slots=True)
class PartitionsPresent(Condition):
    """Each key is a value of a column in at least so many rows. `key_format` is how dates and times there become keys."""

    column: str
    keys: tuple[str, ...] = ()
    key_format: str | None = None
    rows: int = 1
    kind: ClassVar[str] = "partitions_present"

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", tuple(self.keys))

    @property
    def counted(self) -> tuple[str, str | None]:
        """The partition column, and how times in it become keys."""
        return self.column, self.key_format

    def missing(self, facts: TableFacts) -> list[str]:
        """The keys that the table has too few rows of, in the requested order."""
        return [key for key in self.keys if facts.value_counts.get(key, 0) < self.rows]

    def is_met(self, facts: TableFacts) -> bool:
        """Whether the table exists and misses no key."""
        return facts.exists and not self.missing(facts)

    def explain(self, facts: TableFacts) -> str:
        """Return how many partitions are missing, and the first five."""
        missing = self.missing(facts)
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        state = f"{len(missing)} of {len(self.keys)} partitions of {self.column} are missing"
        return f"{state}: {shown}" if missing else f"all {len(self.keys)} partitions of {self.column} exist"


def _state(facts: TableFacts) -> str:
    return f"version {facts.version}" if facts.exists else "no table yet"


CONDITIONS: Mapping[str, type[Condition]] = {
    condition.kind: condition
    for condition in (
        VersionAtLeast,
        VersionChangedSince,
        RowsAtLeast,
        NeedsMaintenance,
        IndexCovers,
        TagReached,
        StagedAtMost,
        PartitionsPresent,
    )
}
"""Every condition by the `kind` that its JSON carries."""


def condition_from_dict(plain: Mapping[str, Any]) -> Condition:
    """The inverse of `Condition.to_dict`. Raises InputError for an unknown kind or wrong fields."""
    kind = CONDITIONS.get(str(plain.get("kind")))
    if kind is None:
        raise InputError(f"unknown condition {plain.get('kind')!r}", cure=f"Known: {', '.join(CONDITIONS)}.")
    found: Condition = _build(kind, {name: value for name, value in plain.items() if name != "kind"})
    return found


def _build(kind: type[Any], plain: Mapping[str, Any]) -> Any:
    names = {item.name for item in fields(kind)}
    try:
        return kind(**{name: value for name, value in plain.items() if name in names})
    except TypeError as error:
        raise InputError(f"{sorted(plain)} are not the fields of {kind.__name__}") from error
