"""Specs of jobs on indices: build one, and extend existing ones to rows that were added later. Standard library only.

::

    {"spec": 1, "kind": "build_index", "uri": "/t.lance", "column": "carrier", "index_type": "BITMAP", "name": "carrier_idx"}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from lance_core.errors import InputError
from lance_core.jobs.specs.spec import JobSpec


@dataclass(frozen=True, kw_only=True)
class _IndexSpec(JobSpec):
    properties: Mapping[str, str] = field(default_factory=dict)
    progress_seconds: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.progress_seconds <= 0:
            raise InputError(f"{self.kind}: progress_seconds must be more than 0, got {self.progress_seconds}")


@dataclass(frozen=True, kw_only=True)
class BuildIndexSpec(_IndexSpec):
    """Build an index on a column; with `replace` it replaces an index of that name (`{column}_idx` by default).

    - `index_type`: "BTREE", "BITMAP", "ZONEMAP", ...; `parameters`: what that kind takes;
    - `rows_per_segment`: one segment, and one task, for fragments that hold about so many rows; None makes one segment of
      all. A search asks every segment, so few are better; `optimize_indices` joins them.
    """

    kind: ClassVar[str] = "build_index"

    column: str
    index_type: str
    name: str | None = None
    replace: bool = True
    parameters: Mapping[str, Any] = field(default_factory=dict)
    rows_per_segment: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.column.strip() or not self.index_type.strip():
            raise InputError("build_index: column and index_type are required")
        if self.rows_per_segment is not None and self.rows_per_segment < 1:
            raise InputError(f"build_index: rows_per_segment must be at least 1, got {self.rows_per_segment}")


@dataclass(frozen=True, kw_only=True)
class OptimizeIndicesSpec(_IndexSpec):
    """Cover what no segment covers yet, an index per task.

    - `index_names`: these only; none means all;
    - `num_indices_to_merge`: how many of an index's youngest segments go into the new one (None: all, 0: a further segment);
    - `retrain`: build everything again;
    - `strategy`: "all" follows `num_indices_to_merge`; "tiered" merges the youngest segments of an index when `tier_fanout`
      of about one size have gathered, so that an index that grows by small steps is not rewritten at every one.
    """

    kind: ClassVar[str] = "optimize_indices"

    index_names: tuple[str, ...] = ()
    num_indices_to_merge: int | None = None
    retrain: bool = False
    strategy: Literal["all", "tiered"] = "all"
    tier_fanout: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_indices_to_merge is not None and self.num_indices_to_merge < 0:
            raise InputError(f"optimize_indices: num_indices_to_merge must not be negative, got {self.num_indices_to_merge}")
        if self.strategy not in ("all", "tiered"):
            raise InputError(f"optimize_indices: unknown strategy {self.strategy!r}", cure='Use "all" or "tiered".')
        if self.strategy == "tiered" and (self.retrain or self.num_indices_to_merge is not None):
            raise InputError(
                'optimize_indices: strategy="tiered" cannot be combined with retrain or num_indices_to_merge',
                cure="Leave one of them out.",
            )
        if self.tier_fanout < 2:
            raise InputError(f"optimize_indices: tier_fanout must be at least 2, got {self.tier_fanout}")
