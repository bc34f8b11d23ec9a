"""Conditions on staged rows that must hold before readers see them. Standard library only.

::

    {"name": "a month of flights", "min_rows": 20000, "max_null_rates": {"dep_delay": 0.05}, "unique": ["flight", "time"],
     "no_rows": "distance <= 0"}

A gate looks at exactly the files that are staged, after staging and before publication. Several gates all have to pass.
Of a refresh of declared columns it looks at the canary: the rows that are computed first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields

from lance_core.errors import InputError

_CALLABLE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


@dataclass(frozen=True, kw_only=True)
class GateSpec:
    """One gate; all of its conditions must hold for the rows that the commit adds, taken together.

    - `min_rows`, `max_rows`: how many rows are added; `max_deleted_rows`: how many are deleted or moved;
    - `max_null_rates`: column -> the largest share of nulls, 0.0 for none at all;
    - `unique`: columns that together tell every added row from every other (rows with a null among them do not count);
    - `no_rows`: a filter that must select no added row;
    - `norms`: column of vectors -> the least and the greatest length that one may have (`[0.9, 1.1]`);
    - `max_drift`: column -> how far its values may be from the former ones of the same rows, from 0.0, distributed alike,
      to 1.0; for the canary of a refresh alone;
    - `sql`: a query over `staged`, the added rows, that must return no row; needs DuckDB;
    - `callable`: "module:function", called with the added rows as a pyarrow.RecordBatchReader; returning False, or a text
      that says why, refuses.
    """

    name: str = ""
    min_rows: int | None = None
    max_rows: int | None = None
    max_deleted_rows: int | None = None
    max_null_rates: Mapping[str, float] = field(default_factory=dict)
    unique: tuple[str, ...] = ()
    no_rows: str | None = None
    norms: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    max_drift: Mapping[str, float] = field(default_factory=dict)
    sql: str | None = None
    callable: str | None = None

    def __post_init__(self) -> None:
        conditions = [item.name for item in fields(self) if item.name != "name"]
        if all(getattr(self, name) in (None, (), {}) for name in conditions):
            raise InputError(f"gate {self.name!r} has no condition", cure=f"Set at least one of: {', '.join(conditions)}.")
        for what, shares in (("max_null_rates", self.max_null_rates), ("max_drift", self.max_drift)):
            for name, share in shares.items():
                if not 0 <= share <= 1:
                    raise InputError(f"gate {self.name!r}: {what}[{name!r}] must be between 0 and 1, got {share}")
        for name, bounds in self.norms.items():
            if len(bounds) != 2 or not 0 <= bounds[0] <= bounds[1]:
                raise InputError(
                    f"gate {self.name!r}: norms[{name!r}] must be the least and the greatest length, got {list(bounds)}"
                )
        for name in ("min_rows", "max_rows", "max_deleted_rows"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise InputError(f"gate {self.name!r}: {name} must not be negative, got {value}")
        if self.callable and not _CALLABLE.fullmatch(self.callable):
            raise InputError(f"gate {self.name!r}: callable: expected 'module:function', got {self.callable!r}")


def refuse_drift(gates: Iterable[GateSpec], kind: str) -> None:
    """InputError for a gate that compares with former values, where there are none."""
    for gate in gates:
        if gate.max_drift:
            raise InputError(
                f"{kind}: gate {gate.name!r}: max_drift compares with the values that a refresh takes the place of",
                cure="Pass it to a refresh of declared columns, or write the comparison as sql or callable.",
            )
