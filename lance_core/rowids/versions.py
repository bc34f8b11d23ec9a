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
