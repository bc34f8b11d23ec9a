"""Conditions on staged rows that must hold before readers see them. Standard library only.

::

    {"name": "a month of flights", "min_rows": 20000, "max_null_rates": {"dep_delay": 0.05}, "unique": ["flight", "time"],
     "no_rows": "distance <= 0"}

A gate looks at exactly the files that are staged, after staging and before publication. Several gates all have to pass.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
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
    sql: str | None = None
    callable: str | None = None

    def __post_init__(self) -> None:
        conditions = [item.name for item in fields(self) if item.name != "name"]
        if all(getattr(self, name) in (None, (), {}) for name in conditions):
            raise InputError(f"gate {self.name!r} has no condition", cure=f"Set at least one of: {', '.join(conditions)}.")
        for name, share in self.max_null_rates.items():
            if not 0 <= share <= 1:
                raise InputError(f"gate {self.name!r}: max_null_rates[{name!r}] must be between 0 and 1, got {share}")
        for name in ("min_rows", "max_rows", "max_deleted_rows"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise InputError(f"gate {self.name!r}: {name} must not be negative, got {value}")
        if self.callable and not _CALLABLE.fullmatch(self.callable):
            raise InputError(f"gate {self.name!r}: callable: expected 'module:function', got {self.callable!r}")
