"""What an index answered, and the plan of a scan that knows of it."""

from __future__ import annotations

from dataclasses import dataclass

from lance_core.dataset.scan.plan import ScanPlan


@dataclass(frozen=True)
class Use:
    """One test that an index answered: for the plan's explanation."""

    index: str
    title: str
    columns: tuple[str, ...]
    is_exact: bool
    fragments: frozenset[int]


@dataclass(frozen=True)
class Served:
    """A plan whose tasks know which rows to look at, and what made them so."""

    plan: ScanPlan
    uses: tuple[Use, ...] = ()
