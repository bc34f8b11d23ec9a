"""Compare a vector index with its vectors: every row occurs once, with the codes of its vector, in a near partition.

::

    row 7 is in partition 2 with the codes [3, 250, 17]       coded again: [3, 250, 18], which is as near: they agree
    rows 0 to 9999 are passed over, then 10000 to 19999       each time the whole index is read, some partitions at a time

Held at once are the given vectors, ids and notes of them, and one stretch of the index.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrays import Floats
from lance_core.format.index_details import Metric
from lance_core.index.scalar.verify import require
from lance_core.index.vector.clustering import owners_of
from lance_core.index.vector.quantizer import Quantizer
from lance_core.index.vector.quantizers.rabit import RabitQuantizer
from lance_core.index.vector.segment import Codes
from lance_core.index.vector.verify.code_error import Reference, code_error, reference_of
from lance_core.index.vector.verify.reference_vectors import Places, ReferenceVectors
from lance_core.io.pool import in_work_pool, work_pool

Bits = npt.NDArray[np.bool_]
_FAR_SHARE, _ALL_FAR_SHARE = 0.05, 0.002
"""So many rows of a partition, and of all, may be nearer to another centroid. (Of the official library's none are.)"""
_EXACT_CENTROIDS = 1_000_000
"""With so many numbers of centroids the official library looks for the nearest one along a graph, and often misses it."""
_ASTRAY = 100
_LENGTHS = 10
"""A centroid is a mean of rows: of one so many times as long as any of them, single precision loses what is left of a row.
(With dot a mean has length one, with cosine rows have.)"""
_MISPLACED = "too many rows of a partition are nearer to another centroid"
_STEP_BYTES = 4 << 20
"""Vectors compared in one step, as float32."""
_AHEAD = 32
_HALF_MOST = 6e4
_NEAR_WORK = 4e11
"""Multiplications spent on finding the nearest centroids; where all rows would take more, some of each partition do."""


def require_agreement(
    metric: Metric, quantizer: Quantizer, centroids: Floats, parts: Iterable[Codes], batches: Iterable[pa.RecordBatch]
) -> None:
    """Raises CorruptFileError unless the codes of the given vectors (value, id) are in the partitions, each once."""
    handed = ReferenceVectors(batches, metric)
    if handed.num_rows:
        _Comparison(metric, quantizer, centroids, handed).run(parts)


@dataclass(eq=False)
class _Comparison:
    metric: Metric
    quantizer: Quantizer
    centroids: Floats
    handed: ReferenceVectors
    near: _Near = field(init=False)
    rotated: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.rotated = (
            self.quantizer.rotate(self.centroids) if isinstance(self.quantizer, RabitQuantizer) else self.centroids
        )
        self.near = _Near(self.metric, self.centroids, self.handed.num_rows)

    def run(self, parts: Iterable[Codes]) -> None:
        """Compare all of it."""
        for seen in _in_turn(self._steps(parts)):
            self.near.note(seen)
        self.handed.require_all_seen()
        self.near.require_few_far()
        self.near.require_plausible()

    def _steps(self, parts: Iterable[Codes]) -> Iterator[Callable[[], _Seen]]:
        step = max(1, _STEP_BYTES // (4 * self.centroids.shape[1]))
        for part in parts:
            known, places = self.handed.find(part.ids)
            rows = np.flatnonzero(known)
            sound = self.handed.is_sound(places)
            if not sound.all():
                rows, places = rows[sound], places[sound]
            for first in range(0, len(rows), step):
                yield partial(self._step, part, rows[first : first + step], places[first : first + step])

    def _step(self, part: Codes, rows: Places, places: Places) -> _Seen:
        mine = slice(int(rows[0]), int(rows[-1]) + 1) if len(rows) == rows[-1] + 1 - rows[0] else rows
        owners = part.owners[mine]
        columns = {name: values[mine] for name, values in part.columns.items()}
        with np.errstate(all="ignore"):
            reference = reference_of(self.metric, self.handed.vectors(places), owners, self.centroids, self.rotated)
            require(
                (code_error(self.quantizer, columns, reference) <= 1).all(), "the codes of a row do not match its vector"
            )
            return self.near.look(reference)


@dataclass(frozen=True, eq=False)
class _Seen:
    """The partitions of some rows, which of these rows are far from its centroid, and the square of the longest row."""

    owners: npt.NDArray[np.uint32]
    far: Bits
    longest: float


class _Near:
    """Are rows nearest to the centroid of their partition? Where others do not find that one, is it anywhere near?"""

    def __init__(self, metric: Metric, centroids: Floats, num_rows: int) -> None:
        self._metric = metric
        # The official library leaves what is no number where a partition is empty.
        good = np.flatnonzero(np.isfinite(centroids).all(axis=1))
        self._shift = np.zeros(centroids.shape[1], np.float32)
        if metric in ("l2", "cosine") and len(good):
            # Distances stay, and where all rows are far from zero they are not drowned by the rounding of their squares.
            self._shift = np.median(centroids[good], axis=0)
        self._centroids = centroids - self._shift
        self._others = self._centroids[good]
        self._is_exact = centroids.size < _EXACT_CENTROIDS
        self._is_checked = metric != "hamming" and len(good) > 0
        self._stride = max(1, int(num_rows * centroids.size / _NEAR_WORK))
        self._checked, self._far = np.zeros(len(centroids), np.int64), np.zeros(len(centroids), np.int64)
        self._lengths = (centroids.astype(np.float64) ** 2).sum(axis=1)
        self._longest = float(metric in ("dot", "cosine"))

    def look(self, reference: Reference) -> _Seen:
        """What there is to note of some rows."""
        if self._metric == "hamming":
            return _Seen(reference.owners[:0], np.zeros(0, np.bool_), 0.0)
        rows = reference.rows
        if self._metric == "cosine":  # releases of old subtracted centroids from rows as they are given
            rows = reference.given.astype(np.float32, copy=False)
        longest = float(np.einsum("ij,ij->i", rows, rows).max())
        if not self._is_checked:
            return _Seen(reference.owners, np.zeros(len(reference.owners), np.bool_), longest)
        return _Seen(*self._far_of(reference), longest)

    def _far_of(self, reference: Reference) -> tuple[npt.NDArray[np.uint32], Bits]:
        """(partitions of some of the rows, which of these rows are nearer to another centroid)."""
        rows, owners = reference.rows[:: self._stride], reference.owners[:: self._stride]
        is_spherical = self._metric == "dot"
        if not is_spherical:
            rows = rows - self._shift
        _, best = owners_of(rows, self._others, is_spherical=is_spherical)
        mine = self._centroids[owners]
        own = -np.einsum("ij,ij->i", rows, mine) if is_spherical else ((rows - mine) ** 2).sum(axis=1)
        squares = np.einsum("ij,ij->i", rows, rows)
        # Non-finite centroids compare as False: their rows are far.
        if self._is_exact:
            # Where rows are almost their centroid the rest is noise, hence the share of their own length.
            allowed = best + 1e-3 * np.abs(best) + 1e-4 * (squares + np.einsum("ij,ij->i", mine, mine).clip(max=squares))
            # Whoever takes squares of whole rows and centroids, as we do, rounds as they do.
            given = reference.rows[:: self._stride]
            allowed += 4e-6 * np.einsum("ij,ij->i", given, given)
            if not (is_spherical or reference.is_half):
                require((own <= allowed + 4 * (best + squares)).all(), _MISPLACED)
        elif is_spherical:
            allowed = np.full(len(rows), np.finfo(np.float32).max)
        else:
            allowed = _ASTRAY * (best + squares) + np.float32(1e-30)
        near = own <= allowed
        if is_spherical:
            # Others compare 1 less the product, in halves where the column is: then what is too large is all the same.
            near |= own <= best + 1e-6
            near |= (best < -_HALF_MOST) & reference.is_half
        return owners, ~near

    def note(self, seen: _Seen) -> None:
        """Count what `look` found."""
        self._longest = max(self._longest, seen.longest)
        if len(seen.owners):
            self._checked += np.bincount(seen.owners, minlength=len(self._checked))
            self._far += np.bincount(seen.owners[seen.far], minlength=len(self._far))

    def require_plausible(self) -> None:
        """Raises CorruptFileError when the centroid of some rows is no mean of any; one that is no number is none."""
        good = self._lengths[self._checked > 0] <= _LENGTHS**2 * self._longest
        require(good.all(), "a centroid is far longer than all rows, or is no number")

    def require_few_far(self) -> None:
        """Raises CorruptFileError when rows of a partition are not where its centroid is."""
        # Shares alone: then one of several parts has too many when the whole has.
        good = (self._far <= _FAR_SHARE * self._checked).all() and self._far.sum() <= _ALL_FAR_SHARE * self._checked.sum()
        require(good, _MISPLACED)


def _in_turn(steps: Iterator[Callable[[], _Seen]]) -> Iterator[_Seen]:
    """The results of the steps, worked on by all cores, a few ahead."""
    if in_work_pool():
        for step in steps:
            yield step()
        return
    pool, ahead = work_pool(), deque[Future[_Seen]]()
    try:
        for step in steps:
            ahead.append(pool.submit(step))
            if len(ahead) > _AHEAD:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        for item in ahead:
            item.cancel()
