"""The version in which each row of a fragment was created or last updated: runs of equal versions.

    VersionRun(10, version=1), VersionRun(5, version=4)       rows 0-9 are of version 1, rows 10-14 of version 4

Like row ids, the runs cover physical rows, deleted ones included. (Spec: table format, "row lineage".)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

UInt64Array = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class VersionRun:
    """`num_rows` neighbouring rows that share a version."""

    num_rows: int
    version: int


@dataclass(frozen=True, slots=True)
class VersionSequence:
    """Runs in row order."""

    runs: tuple[VersionRun, ...]

    def __len__(self) -> int:
        return sum(run.num_rows for run in self.runs)

    def to_array(self) -> UInt64Array:
        """The version of each physical row, uint64."""
        versions = np.array([run.version for run in self.runs], dtype=np.uint64)
        return np.repeat(versions, [run.num_rows for run in self.runs]) if self.runs else np.empty(0, dtype=np.uint64)

    def at(self, rows: npt.NDArray[np.integer]) -> UInt64Array:
        """The versions of some physical rows, all of which the runs cover; memory for these and for the runs."""
        ends = np.cumsum([run.num_rows for run in self.runs], dtype=np.int64)
        versions = np.array([run.version for run in self.runs], dtype=np.uint64)
        found: UInt64Array = versions[np.searchsorted(ends, rows, side="right")]
        return found

    def with_rows(self, rows: Iterable[int], version: int) -> VersionSequence:
        """Other runs: the physical rows given are of `version`, the rest is as it was."""
        changed = np.unique(np.fromiter(rows, dtype=np.int64))
        if not len(changed):
            return self
        ends = np.cumsum([run.num_rows for run in self.runs], dtype=np.int64)
        bounds = np.unique(np.concatenate([[0], ends, changed, changed + 1]))
        starts, lengths = bounds[:-1], np.diff(bounds)
        values = np.where(np.isin(starts, changed), np.uint64(version), self.at(starts))
        first = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
        totals = np.add.reduceat(lengths, first)
        return VersionSequence(tuple(map(VersionRun, totals.tolist(), values[first].tolist())))


def constant_versions(num_rows: int, version: int) -> VersionSequence:
    """All rows of one version."""
    return VersionSequence((VersionRun(num_rows, version),))


def versions_of(values: UInt64Array | Iterable[int]) -> VersionSequence:
    """The runs of a list with one version for each row."""
    array = np.asarray(values, dtype=np.uint64)
    if len(array) == 0:
        return VersionSequence(())
    starts = np.concatenate([[0], np.flatnonzero(array[1:] != array[:-1]) + 1])
    lengths = np.diff(np.concatenate([starts, [len(array)]]))
    return VersionSequence(
        tuple(VersionRun(int(length), int(array[start])) for start, length in zip(starts, lengths, strict=True))
    )
