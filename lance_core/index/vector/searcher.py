"""An open segment of a vector index: it probes the nearest partitions and estimates distances from their codes.

::

    opened.search(q, k=10, min_probes=20)   ->  ids, distances, nearest first      (approximate)

Partitions are read when they are first probed and kept in the cache the process shares.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrays import Floats, Ids
from lance_core.errors import CorruptFileError, InputError
from lance_core.file.open_file import OpenFile
from lance_core.format.index_details import IvfModel, Metric
from lance_core.format.schema import Schema
from lance_core.index.base import IndexFolder, metadata_of, number_of
from lance_core.index.vector import graph
from lance_core.index.vector.clustering import unit
from lance_core.index.vector.distances import distances, parse_metric, smallest
from lance_core.index.vector.model import open_quantizer
from lance_core.index.vector.parameters import KINDS
from lance_core.index.vector.quantizer import Quantizer
from lance_core.index.vector.quantizers.flat import Flat
from lance_core.index.vector.quantizers.product import tensor_floats
from lance_core.index.vector.quantizers.scalar import Scalar
from lance_core.index.vector.segment import HNSW_KEY, INDEX, INDEX_KEY, IVF_KEY, ROW_ID, STORAGE, STORAGE_KEY, Codes
from lance_core.index.vector.verify.graph_check import MEASURED, Ends, require_sound
from lance_core.index.vector.verify.rows import require_agreement
from lance_core.io.cache import shared_cache
from lance_core.wire.index import decode_ivf

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


@dataclass(frozen=True, eq=False)
class Partition:
    """Rows of one partition: ids, and columns as they are in the file."""

    ids: Ids
    columns: Mapping[str, npt.NDArray[Any]]
    graph: graph.Graph | None = None

    @property
    def size(self) -> int:
        """Bytes held."""
        graph_size = 0 if self.graph is None else self.graph.size
        return self.ids.nbytes + sum(values.nbytes for values in self.columns.values()) + graph_size + 512


class OpenVectorIndex:
    """One segment, opened. Safe to share between threads."""

    streams: ClassVar[bool] = False

    def __init__(self, folder: IndexFolder) -> None:
        self._folder = folder
        self._index = folder.open(INDEX)
        self._storage = folder.open(STORAGE)
        told = _object(metadata_of(self._index, INDEX_KEY), self._index.path)
        self.kind = str(told.get("type"))
        if self.kind not in KINDS:
            raise CorruptFileError(
                f"{self._index.path} declares the index type {self.kind!r}; expected one of {', '.join(KINDS)}"
            )
        self.metric: Metric = _metric(told.get("distance_type"), self._index.path)
        self._nodes = _ivf(self._index)
        self._rows = _ivf(self._storage)
        if self._nodes.centroids is None:
            raise CorruptFileError(f"{self._index.path} has no centroids")
        self.centroids = tensor_floats(self._nodes.centroids, self._index.path)
        self.loss = self._nodes.loss
        self.lengths = _lengths(self._rows, len(self.centroids), self._storage)
        self.element = np.dtype(self._nodes.centroids.data_type)
        self._schema = _schema(self._storage)
        self.quantizer: Quantizer = self._open_quantizer()
        self._hnsw = self._graph_metadata() if KINDS[self.kind][1] else None
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
        """The nearest `k` rows that are allowed, not nearer than `low` and nearer than `high`.

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
            if part.graph is None or (kept is not None and kept.sum() <= max(k, len(kept) // 10)):
                values = self.quantizer.score(self.metric, query, self.centroids[number], part.columns)
                yield (part.ids, values) if kept is None else (part.ids[kept], values[kept])
            else:
                access = self.quantizer.access(self.metric, query, self.centroids[number], part.columns)
                places, far = part.graph.walk(access, k=k, ef=ef, kept=kept)
                yield part.ids[places], _AS_DISTANCE[self.metric](far)

    def _partitions(self, numbers: Sequence[int]) -> list[Partition]:
        cache, key = shared_cache(), (*self._folder.key, "partition")
        found: dict[int, Partition] = {}
        for number in numbers:
            part = cache.get((*key, number))
            if part is not None:
                found[number] = part
        missing = sorted(set(numbers) - found.keys())
        if missing:
            for number, part in zip(missing, self._read(missing), strict=True):
                held = replace(part, columns=self.quantizer.hold(part.columns))
                cache.put((*key, number), held, held.size)
                found[number] = held
        return [found[number] for number in numbers]

    def _read(self, numbers: Sequence[int]) -> list[Partition]:
        spans = [(self._rows.offsets[number], self._rows.offsets[number] + int(self.lengths[number])) for number in numbers]
        columns = _read_columns(self._storage, self._schema, spans)
        graphs = [None] * len(numbers) if self._hnsw is None else self._read_graphs(numbers)
        cuts = np.cumsum(self.lengths[np.asarray(numbers)])[:-1]
        pieces = {name: np.split(values, cuts) for name, values in columns.items()}
        ids = pieces.pop(ROW_ID)
        return [
            Partition(ids[at], {name: values[at] for name, values in pieces.items()}, graphs[at])
            for at in range(len(numbers))
        ]

    def _read_graphs(self, numbers: Sequence[int]) -> list[graph.Graph | None]:
        assert self._hnsw is not None
        out: list[graph.Graph | None] = []
        for number in numbers:
            start, length = self._nodes.offsets[number], self._nodes.lengths[number]
            out.append(
                graph.read(self._index, start, start + length, self._hnsw[number], num_rows=int(self.lengths[number]))
            )
        return out

    def verify_rows(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Every given vector occurs once, with its codes. Raises CorruptFileError.

        The first time graphs are checked, too, before there is any batch in memory that is not there already.
        """
        if self._hnsw is not None and not self._graphs_are_sound:
            self._check_graphs()
            self._graphs_are_sound = True
        require_agreement(self.metric, self.quantizer, self.centroids, self.codes(), batches)

    def _check_graphs(self) -> None:
        for number in self._full.tolist():
            (part,) = self._read([number])
            assert part.graph is not None
            columns = {name: self.quantizer.restore(name, values) for name, values in part.columns.items()}
            ends = Ends(self.quantizer, self.metric, columns, self.centroids.shape[1])
            require_sound(part.graph, ends, measured=MEASURED * len(part.ids) / self.num_rows)

    def codes(self) -> Iterator[Codes]:
        """All rows, a stretch at a time, their codes row by row: to be merged, moved or compared."""
        for stretch in self._stretches():
            numbers, starts, ends = (np.array(item) for item in zip(*stretch, strict=True))
            offsets = np.array(self._rows.offsets)[numbers]
            spans = [*zip((offsets + starts).tolist(), (offsets + ends).tolist(), strict=True)]
            columns = _read_columns(self._storage, self._schema, spans)
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
        return isinstance(self.quantizer, (Flat, Scalar))

    def _open_quantizer(self) -> Quantizer:
        where = self._storage.path
        listed = _list(metadata_of(self._storage, STORAGE_KEY), where)
        if len(listed) != 1 or not isinstance(listed[0], str):
            raise CorruptFileError(f"{where}: storage metadata lists {len(listed)} entries, expected one string")
        told = _object(listed[0].encode(), where)
        buffer = self._storage.global_buffer(2) if self._storage.num_global_buffers > 2 else None
        return open_quantizer(told, buffer, self.metric, self.element, where=where)

    def _graph_metadata(self) -> list[dict[str, Any]]:
        where = self._index.path
        listed = _list(metadata_of(self._index, HNSW_KEY), where)
        if len(listed) != len(self.centroids) or not all(isinstance(item, str) for item in listed):
            raise CorruptFileError(f"{where} lists {len(listed)} graphs for {len(self.centroids)} partitions")
        _lengths(self._nodes, len(self.centroids), self._index)
        return [_object(item.encode(), where) if item else {} for item in listed]


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


def _masks(parts: Sequence[Partition], allow: Allow | None) -> Sequence[npt.NDArray[np.bool_] | None]:
    """Which rows of each partition are allowed (None: all): asked once for all partitions."""
    if allow is None or not parts:
        return [None] * len(parts)
    kept = allow(np.concatenate([part.ids for part in parts]))
    if kept.all():
        return [None] * len(parts)
    return np.split(kept, np.cumsum([len(part.ids) for part in parts])[:-1])


def _ivf(opened: OpenFile) -> IvfModel:
    number = number_of(opened, IVF_KEY, 1)
    if number >= opened.num_global_buffers:
        raise CorruptFileError(f"{opened.path} has no global buffer {number}, which should hold its partitions")
    return decode_ivf(opened.global_buffer(number))


def _lengths(ivf: IvfModel, num: int, opened: OpenFile) -> npt.NDArray[np.int64]:
    lengths, offsets = np.array(ivf.lengths, np.int64), np.array(ivf.offsets, np.int64)
    total = opened.num_rows
    if len(lengths) != num or (lengths < 0).any() or (offsets < 0).any() or (offsets + lengths > total).any():
        raise CorruptFileError(f"{opened.path}: {len(lengths)} partitions of {num} do not match its {total} rows")
    return lengths


def _schema(opened: OpenFile) -> Schema:
    schema = opened.schema
    names = [item.name for item in schema.top_level]
    if ROW_ID not in names:
        raise CorruptFileError(f"{opened.path} has no column {ROW_ID}: {', '.join(names)}")
    return schema


def _read_columns(opened: OpenFile, schema: Schema, spans: Sequence[tuple[int, int]]) -> dict[str, npt.NDArray[Any]]:
    """The columns over some ranges of rows, in the order of the ranges (sorted): lists as [n, width]."""
    total = sum(end - start for start, end in spans)
    ranges = [span for span in spans if span[1] > span[0]]
    batches = [*opened.read(schema, ranges=ranges, batch_size=max(1, total))]
    columns: dict[str, npt.NDArray[Any]] = {}
    for at, item in enumerate(batches[0].schema if batches else ()):
        arrays = [_numpy(batch.column(at)) for batch in batches]
        columns[item.name] = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
    return columns


def _numpy(column: Any) -> npt.NDArray[Any]:
    if not hasattr(column.type, "list_size"):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    return np.asarray(column.flatten().to_numpy(zero_copy_only=False)).reshape(len(column), column.type.list_size)


def _metric(name: object, where: str) -> Metric:
    try:
        return parse_metric(name)
    except InputError as error:
        raise CorruptFileError(f"{where}: {error}") from error


def _object(data: bytes, where: str) -> dict[str, Any]:
    found = _json(data, where)
    if not isinstance(found, dict):
        raise CorruptFileError(f"{where}: metadata is not a JSON object")
    return found


def _list(data: bytes, where: str) -> list[Any]:
    found = _json(data, where)
    if not isinstance(found, list):
        raise CorruptFileError(f"{where}: metadata is not a JSON list")
    return found


def _json(data: bytes, where: str) -> Any:
    try:
        return json.loads(data)
    except ValueError as error:
        raise CorruptFileError(f"{where}: metadata is not JSON: {error}") from error
