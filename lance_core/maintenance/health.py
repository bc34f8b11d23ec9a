"""How far a table is from what its service levels ask for, as a score of 100 with its parts.

::

    health_of(observation, levels) -> Health(58, (Part("fragments", "small fragments", -24.0, 1722, "fragments"), ...))

A part begins to cost points when a table has come `BEGINS_AT` of the way to a level, and costs its most at `WORST_AT` times
the level. Nothing is taken off for what the service levels allow. A table with a missing file has no points left. Where
the files were not compared with listings the score is about the layout only: `is_checked` is False, and it shall not be
shown as health.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lance_core.maintenance.observe import Observation
from lance_core.maintenance.policy import ServiceLevels

ALL_POINTS = 100.0
BEGINS_AT = 0.8
WORST_AT = 3.0
FRAGMENT_POINTS = 35.0
DELETED_POINTS = 25.0
UNINDEXED_POINTS = 25.0
VERSION_POINTS = 10.0
ATTEMPT_POINTS = 5.0


@dataclass(frozen=True, slots=True)
class ScorePart:
    """What one subject takes off. `value` in `unit` is what was measured."""

    code: str
    label: str
    points: float
    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class Health:
    """A score from 0 to 100, and what it is made of, the largest part first. `unchecked` says why the files were not
    compared with listings, and then the score is about the layout only."""

    score: int
    parts: tuple[ScorePart, ...]
    unchecked: str = ""

    @property
    def is_checked(self) -> bool:
        """Whether the files of the version were found to be there or not."""
        return not self.unchecked


def health_of(seen: Observation, levels: ServiceLevels) -> Health:
    """Return the score of a table that could be observed."""
    parts = sorted((part for part in _parts(seen, levels) if part.points < 0), key=lambda part: part.points)
    unchecked = "the files were not compared with listings" if seen.files is None else seen.files.unchecked
    return Health(max(0, round(100 + sum(part.points for part in parts))), tuple(parts), unchecked)


def _parts(seen: Observation, levels: ServiceLevels) -> Iterator[ScorePart]:
    crowded = seen.num_fragments / max(levels.allowed_fragments(seen.num_bytes), 1.0)
    deleted = seen.deleted_share / max(levels.max_deleted_share, 1e-9)
    unindexed = seen.unindexed_share / max(levels.max_unindexed_share, 1e-9)
    versions = seen.num_versions / levels.max_versions
    yield ScorePart("fragments", "small fragments", _points(crowded, FRAGMENT_POINTS), seen.num_small_fragments, "fragments")
    yield ScorePart("deleted-rows", "deleted rows", _points(deleted, DELETED_POINTS), seen.deleted_share, "share")
    yield ScorePart("unindexed-rows", "unindexed rows", _points(unindexed, UNINDEXED_POINTS), seen.unindexed_share, "share")
    yield ScorePart("versions", "old versions", _points(versions, VERSION_POINTS), seen.num_versions, "versions")
    if seen.files is not None and seen.files.is_damaged:
        damaged = seen.files.num_missing + seen.files.num_wrong_size
        yield ScorePart("damaged-files", "missing or damaged files", -ALL_POINTS, damaged, "files")
    if seen.num_dead_attempts:
        yield ScorePart("dead-attempts", "dead attempts", -ATTEMPT_POINTS, seen.num_dead_attempts, "attempts")


def _points(times: float, most: float) -> float:
    """Points of a subject that is at `times` its level: 0 or less.

    >>> [_points(times, 35) for times in (0.5, 0.8, 3, 9)]
    [0.0, 0.0, -35.0, -35.0]
    """
    share = min(max((times - BEGINS_AT) / (WORST_AT - BEGINS_AT), 0.0), 1.0)
    return -round(most * share, 1) if share else 0.0
