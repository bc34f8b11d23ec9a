"""An open segment of a vector index: it probes the nearest partitions and estimates distances from their codes.

::

    opened.search(q, k=10, min_probes=20)   ->  ids, distances, nearest first      (approximate)

Partitions are read when they are first probed and kept in the cache the process shares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrays import Floats, Ids
from lance_core.errors import InputError, LanceError, UnsupportedFeatureError
from lance_core.format.index_details import Metric
from lance_core.index.base import IndexFolder
from lance_core.index.vector.clustering import unit
from lance_core.index.vector.distances import distances, smallest
from lance_core.index.vector.files import PartitionFiles, TodaysFiles, VectorPartition
from lance_core.index.vector.old_file import open_old_files
from lance_core.index.vector.quantizer import Quantizer
from lance_core.index.vector.quantizers.flat import FlatQuantizer
from lance_core.index.vector.quantizers.scalar import ScalarQuantizer
from lance_core.index.vector.segment import ROW_ID, Codes
from lance_core.index.vector.verify.graph_check import MEASURED, Ends, require_sound
from lance_core.index.vector.verify.rows import require_agreement
from lance_core.io.cache import shared_cache

DEFAULT_PROBES = 20
STRETCH_BYTES = 32 << 20
"""What `codes` reads at once, unless one partition is larger."""
Allow = Callable[[Ids], npt.NDArray[np.bool_]]
"""Which of some row ids may be in the answer."""
_AS_DISTANCE: Mapping[Metric, Callable[[Floats], Floats]] = {
    "l2": lambda far: far,
    "cosine": lambda far: far * np.float32(0.5),
    "dot": lambda far: far + 1,
    "hamming": lambda far: far,
}
_NOTHING: tuple[Ids, Floats] = (np.empty(0, np.uint64), np.empty(0, np.float32))


class OpenVectorIndex:
    """One segment, opened. Safe to share between threads."""

    streams: ClassVar[bool] = False

    def __init__(self, folder: IndexFolder) -> None:
        self._folder = folder
        self._files = _open(folder)
        self.kind, self.metric = self._files.kind, self._files.metric
        self.centroids, self.lengths = self._files.centroids, self._files.lengths
        self.loss, self.element = self._files.loss, self._files.element
        self.quantizer: Quantizer = self._files.quantizer
        self._distances_to = np.einsum("ij,ij->i", self.centroids, self.centroids)
        self._full = np.flatnonzero(self.lengths)
        self._graphs_are_sound = False

    @property
    def num_rows(self) -> int:
        """Rows in the segment."""
        return int(self.lengths.sum())

    @property
    def num_partitions(self) -> int:
        """Partitions, empty ones too."""
        return len(self.centroids)

    def statistics(self) -> dict[str, Any]:
        """Figures for `index_statistics`."""
        return {
            "index_type": self.kind,
            "metric_type": self.metric,
            "num_partitions": self.num_partitions,
            "partitions": [{"size": size} for size in self.lengths.tolist()],
        }

    def prewarm(self) -> None:
        """Read every partition, so that they are in the cache."""
        for first in range(0, len(self._full), 64):
            self._partitions(self._full[first : first + 64].tolist())

    def search(
        self,
        q: Floats,
        *,
        k: int,
        min_probes: int | None = None,
        max_probes: int | None = None,
        ef: int | None = None,
        low: float | None = None,
        high: float | None = None,
        allow: Allow | None = None,
    ) -> tuple[Ids, Floats]:
        """(ids [k], distances [k]) nearest to `q` [dim]: of allowed rows, not nearer than `low` and nearer than `high`.

        More partitions than `min_probes` are probed while rows are missing.
        """
        if len(q) != self.centroids.shape[1]:
            raise InputError(f"the query vector has dimension {len(q)}, the index {self.centroids.shape[1]}")
        query = unit(q[None, :])[0] if self.metric == "cosine" else q
        if self.metric == "hamming":
            query = q.astype(np.uint8)
        order = self._ranked(query)
        most = min(len(order), max_probes or len(order))
        done, probes = 0, min(most, min_probes or DEFAULT_PROBES)
        ids, values = [], []
        found = 0
        while done < probes:
            for here, found_values in self._look_into(order[done:probes], query, k, ef, allow):
                inside = _between(found_values, low, high)
                ids.append(here if inside is None else here[inside])
                values.append(found_values if inside is None else found_values[inside])
                found += len(ids[-1])
            done = probes
            if found < k:
                probes = min(most, probes * 2)
        return smallest(np.concatenate(ids), np.concatenate(values), k) if ids else _NOTHING

    def _ranked(self, query: Floats) -> npt.NDArray[np.int64]:
        """Partitions with rows, nearest centroid first."""
        if self.metric == "hamming":
            scores = distances("hamming", query, self.centroids.astype(np.uint8))
        else:
            scores = -(self.centroids @ query)
            if self.metric != "dot":
                scores = self._distances_to + 2 * scores
        return self._full[np.argsort(scores[self._full], kind="stable")]

    def _look_into(
        self, numbers: npt.NDArray[np.int64], query: Floats, k: int, ef: int | None, allow: Allow | None
    ) -> Iterator[tuple[Ids, Floats]]:
        parts = self._partitions(numbers.tolist())
        masks = _masks(parts, allow)
        for number, part, kept in zip(numbers.tolist(), parts, masks, strict=True):
            if kept is not None and not kept.any():
                continue
            few = kept is not None and kept.sum() <= max(k, len(kept) // 10)
            if part.graph is None or few or self.metric == "hamming":  # a walk measures numbers, not bits
                values = self.quantizer.score(self.metric, query, self.centroids[number], part.columns)
                yield (part.ids, values) if kept is None else (part.ids[kept], values[kept])
            else:
                access = self.quantizer.access(self.metric, query, self.centroids[number], part.columns)
                places, far = part.graph.walk(access, k=k, ef=ef, kept=kept)
                yield part.ids[places], _AS_DISTANCE[self.metric](far)

    def _partitions(self, numbers: Sequence[int]) -> list[VectorPartition]:
        cache, key = shared_cache(), (*self._folder.key, "partition")
        found: dict[int, VectorPartition] = {}
        for number in numbers:
            part = cache.get((*key, number))
            if part is not None:
                found[number] = part
        missing = sorted(set(numbers) - found.keys())
        if missing:
            for number, part in zip(missing, self._files.read(missing), strict=True):
                held = replace(part, columns=self.quantizer.hold(part.columns))
                cache.put((*key, number), held, held.size)
                found[number] = held
        return [found[number] for number in numbers]

    def verify_rows(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Every given vector occurs once, with its codes. Raises CorruptFileError.

        The first time graphs are checked, too, before there is any batch in memory that is not there already. Raises
        UnsupportedFeatureError for codes of old releases that can only be searched.
        """
        if not self._files.are_codes_known:
            raise UnsupportedFeatureError(
                f"index {self._folder.path}: codes of an old Lance release cannot be compared", cure="Rebuild the index."
            )
        if self._files.has_graphs and not self._graphs_are_sound:
            self._check_graphs()
            self._graphs_are_sound = True
        require_agreement(self.metric, self.quantizer, self.centroids, self.codes(), batches)

    def _check_graphs(self) -> None:
        for number in self._full.tolist():
            (part,) = self._files.read([number])
            assert part.graph is not None
            columns = {name: self.quantizer.restore(name, values) for name, values in part.columns.items()}
            ends = Ends(self.quantizer, self.metric, columns, self.centroids.shape[1])
            share = MEASURED * len(part.ids) / self.num_rows if self._files.has_lengths_of_edges else 0
            require_sound(part.graph, ends, measured=share)

    def codes(self) -> Iterator[Codes]:
        """All rows, a stretch at a time, their codes row by row: to be merged, moved or compared."""
        for stretch in self._stretches():
            numbers, starts, ends = (np.array(item) for item in zip(*stretch, strict=True))
            columns = self._files.columns(stretch)
            ids = columns.pop(ROW_ID)
            cuts = np.cumsum(ends - starts)[:-1]
            for name, values in columns.items():
                if not self._is_by_row:
                    pieces = [self.quantizer.restore(name, piece) for piece in np.split(values, cuts)]
                    columns[name] = np.concatenate(pieces) if len(pieces) > 1 else pieces[0]
            yield Codes(ids, np.repeat(numbers, ends - starts).astype(np.uint32), columns)

    def _stretches(self) -> Iterator[list[tuple[int, int, int]]]:
        """(partition, first row, end) that are read at once; only rows that are one by one are read a part of at a time."""
        row = 8 + sum(_bytes_of(item.type) for item in self.quantizer.fields())
        most = max(1, STRETCH_BYTES // row)
        stretch: list[tuple[int, int, int]] = []
        count = 0
        for number in self._full.tolist():
            length = int(self.lengths[number])
            step = min(length, most) if self._is_by_row else length
            for first in range(0, length, step):
                end = min(first + step, length)
                if stretch and count + end - first > most:
                    yield stretch
                    stretch, count = [], 0
                stretch.append((number, first, end))
                count += end - first
        if stretch:
            yield stretch

    @property
    def _is_by_row(self) -> bool:
        """Whether a partition's codes are row by row."""
        return isinstance(self.quantizer, (FlatQuantizer, ScalarQuantizer))


def _open(folder: IndexFolder) -> PartitionFiles:
    """The files, in the layout that they have: nothing more is read of those of today's."""
    try:
        return TodaysFiles(folder)
    except LanceError:
        found = open_old_files(folder)
        if found is None:
            raise
        return found


def _bytes_of(kind: Any) -> int:
    return int(kind.list_size * kind.value_type.bit_width if hasattr(kind, "list_size") else kind.bit_width) // 8


def _between(values: Floats, low: float | None, high: float | None) -> npt.NDArray[np.bool_] | None:
    if low is None and high is None:
        return None
    kept = np.ones(len(values), np.bool_)
    if low is not None:
        kept &= values >= low
    if high is not None:
        kept &= values < high
    return kept


def _masks(parts: Sequence[VectorPartition], allow: Allow | None) -> Sequence[npt.NDArray[np.bool_] | None]:
    """Which rows of each partition are allowed (None: all): asked once for all partitions."""
    if allow is None or not parts:
        return [None] * len(parts)
    kept = allow(np.concatenate([part.ids for part in parts]))
    if kept.all():
        return [None] * len(parts)
    return np.split(kept, np.cumsum([len(part.ids) for part in parts])[:-1])
