"""The files of a segment of a vector index: what they say of it, and the rows of its partitions.

::

    files = TodaysFiles(folder)           index.idx and auxiliary.idx      (layout: `segment.py`)
    files.read([3, 7])                    two partitions, their columns as they are in the file
    files.columns([(3, 0, 100)])          rows 0 to 100 of partition 3
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Floats, Ids
from lance_core.arrow_numpy import numpy_of
from lance_core.errors import CorruptFileError, InputError
from lance_core.file.open_file import OpenFile
from lance_core.format.index_details import IvfPartitions, Metric
from lance_core.format.schema import Schema
from lance_core.index.base import IndexFolder, metadata_of, number_of
from lance_core.index.vector import graph
from lance_core.index.vector.distances import parse_metric
from lance_core.index.vector.model import open_quantizer
from lance_core.index.vector.parameters import KINDS
from lance_core.index.vector.quantizer import Quantizer
from lance_core.index.vector.quantizers.product import tensor_floats
from lance_core.index.vector.quantizers.rabit import RabitQuantizer
from lance_core.index.vector.segment import HNSW_KEY, INDEX, INDEX_KEY, IVF_KEY, ROW_ID, STORAGE, STORAGE_KEY
from lance_core.wire.index import decode_ivf

Stretch = tuple[int, int, int]
"""(partition, first row, end)."""


@dataclass(frozen=True, eq=False)
class VectorPartition:
    """Rows of one partition: ids, and columns as they are in the file."""

    ids: Ids
    columns: Mapping[str, npt.NDArray[Any]]
    graph: graph.Graph | None = None

    @property
    def size(self) -> int:
        """Bytes held."""
        graph_size = 0 if self.graph is None else self.graph.size
        return self.ids.nbytes + sum(values.nbytes for values in self.columns.values()) + graph_size + 512


class PartitionFiles(Protocol):
    """What every layout of the files answers."""

    kind: str
    metric: Metric
    centroids: Floats
    lengths: npt.NDArray[np.int64]
    loss: float | None
    element: np.dtype[Any]
    quantizer: Quantizer

    @property
    def has_graphs(self) -> bool:
        """Whether each partition has a graph."""

    @property
    def are_codes_known(self) -> bool:
        """Whether it is known which codes a vector should have, so that they can be compared."""

    @property
    def has_lengths_of_edges(self) -> bool:
        """Whether the edges of graphs say how long they are, measured as today."""

    def read(self, numbers: Sequence[int]) -> list[VectorPartition]:
        """Whole partitions, in ascending order."""

    def columns(self, stretches: Sequence[Stretch]) -> dict[str, npt.NDArray[Any]]:
        """The columns of some partitions, in that order: ids uint64[n], and codes [n, width] as they are in the file."""


class TodaysFiles:
    """index.idx and auxiliary.idx as releases since 0.17 write them."""

    def __init__(self, folder: IndexFolder) -> None:
        self._index = folder.open(INDEX)
        self._storage = folder.open(STORAGE)
        told = json_object(metadata_of(self._index, INDEX_KEY), self._index.path)
        self.kind = str(told.get("type"))
        if self.kind not in KINDS:
            raise CorruptFileError(
                f"{self._index.path} declares the index type {self.kind!r}; expected one of {', '.join(KINDS)}"
            )
        self.metric: Metric = metric_of(told.get("distance_type"), self._index.path)
        self._nodes = self._ivf(folder, self._index)
        self._rows = self._ivf(folder, self._storage)
        if self._nodes.centroids is None:
            raise CorruptFileError(f"{self._index.path} has no centroids")
        self.centroids = tensor_floats(self._nodes.centroids, self._index.path)
        self.loss = self._nodes.loss
        self.lengths = _lengths(self._rows, len(self.centroids), self._storage)
        self.element = np.dtype(self._nodes.centroids.data_type)
        self._schema = _schema(self._storage)
        self._has_inline_codebook = False
        self.quantizer: Quantizer = self._open_quantizer()
        _require_columns(self._storage, [item.name for item in self.quantizer.fields()])
        self._hnsw = self._graph_metadata() if KINDS[self.kind][1] else None

    @property
    def has_graphs(self) -> bool:
        """Whether the index is one of the HNSW kinds."""
        return self._hnsw is not None

    @property
    def are_codes_known(self) -> bool:
        """All but RaBitQ's of releases up to 7.1."""
        return not (isinstance(self.quantizer, RabitQuantizer) and self.quantizer.is_residual)

    @property
    def has_lengths_of_edges(self) -> bool:
        """Releases up to 0.29, which kept codebooks in the metadata, measured edges between product codes in another way."""
        return self._has_edge_lengths and not self._has_inline_codebook

    def read(self, numbers: Sequence[int]) -> list[VectorPartition]:
        """Whole partitions, in ascending order."""
        columns = self.columns([(number, 0, int(self.lengths[number])) for number in numbers])
        graphs = [None] * len(numbers) if self._hnsw is None else self._read_graphs(numbers)
        cuts = np.cumsum(self.lengths[np.asarray(numbers)])[:-1]
        pieces = {name: np.split(values, cuts) for name, values in columns.items()}
        ids = pieces.pop(ROW_ID)
        return [
            VectorPartition(ids[at], {name: values[at] for name, values in pieces.items()}, graphs[at])
            for at in range(len(numbers))
        ]

    def columns(self, stretches: Sequence[Stretch]) -> dict[str, npt.NDArray[Any]]:
        """The columns of rows of some partitions."""
        offsets = self._rows.offsets
        spans = [(offsets[number] + start, offsets[number] + end) for number, start, end in stretches]
        return _read_columns(self._storage, self._schema, spans)

    @property
    def _has_edge_lengths(self) -> bool:
        return True

    def _read_graphs(self, numbers: Sequence[int]) -> list[graph.Graph | None]:
        assert self._hnsw is not None
        out: list[graph.Graph | None] = []
        for number in numbers:
            start, length = self._nodes.offsets[number], self._nodes.lengths[number]
            rows, told = int(self.lengths[number]), self._hnsw[number]
            lengths = self._has_edge_lengths
            out.append(graph.read(self._index, start, start + length, told, num_rows=rows, has_lengths=lengths))
        return out

    def _ivf(self, _folder: IndexFolder, opened: OpenFile) -> IvfPartitions:
        number = number_of(opened, IVF_KEY, 1)
        if number >= opened.num_global_buffers:
            raise CorruptFileError(f"{opened.path} has no global buffer {number}, which should hold its partitions")
        return decode_ivf(opened.global_buffer(number))

    def _open_quantizer(self) -> Quantizer:
        where = self._storage.path
        listed = json_list(metadata_of(self._storage, STORAGE_KEY), where)
        if len(listed) != 1 or not isinstance(listed[0], str):
            raise CorruptFileError(f"{where}: storage metadata lists {len(listed)} entries, expected one string")
        told = json_object(listed[0].encode(), where)
        self._has_inline_codebook = bool(told.get("codebook_tensor"))
        buffer = self._storage.global_buffer(2) if self._storage.num_global_buffers > 2 else None
        return open_quantizer(told, buffer, self.metric, self.element, where=where)

    def _graph_metadata(self) -> list[dict[str, Any]]:
        where = self._index.path
        listed = self._listed_graphs()
        if len(listed) != len(self.centroids) or not all(isinstance(item, str) for item in listed):
            raise CorruptFileError(f"{where} lists {len(listed)} graphs for {len(self.centroids)} partitions")
        _lengths(self._nodes, len(self.centroids), self._index)
        return [json_object(item.encode(), where) if item else {} for item in listed]

    def _listed_graphs(self) -> list[Any]:
        return json_list(metadata_of(self._index, HNSW_KEY), self._index.path)


def _lengths(ivf: IvfPartitions, num: int, opened: OpenFile) -> npt.NDArray[np.int64]:
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


def _require_columns(opened: OpenFile, names: Iterable[str]) -> None:
    have = [item.name for item in opened.schema.top_level]
    lacking = [name for name in names if name not in have]
    if lacking:
        raise CorruptFileError(
            f"{opened.path} has the columns {', '.join(have)}, but not {', '.join(lacking)}", cure="Rebuild the index."
        )


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
        return np.asarray(numpy_of(column, may_copy=True))
    return np.asarray(numpy_of(column.flatten(), may_copy=True)).reshape(len(column), column.type.list_size)


def metric_of(name: object, where: str) -> Metric:
    """A metric by its name in a file. Raises CorruptFileError."""
    try:
        return parse_metric(name)
    except InputError as error:
        raise CorruptFileError(f"{where}: {error}") from error


def json_object(data: bytes, where: str) -> dict[str, Any]:
    """A JSON object of a file's metadata. Raises CorruptFileError."""
    found = _json(data, where)
    if not isinstance(found, dict):
        raise CorruptFileError(f"{where}: metadata is not a JSON object")
    return found


def json_list(data: bytes, where: str) -> list[Any]:
    """A JSON list of a file's metadata. Raises CorruptFileError."""
    found = _json(data, where)
    if not isinstance(found, list):
        raise CorruptFileError(f"{where}: metadata is not a JSON list")
    return found


def _json(data: bytes, where: str) -> Any:
    try:
        return json.loads(data)
    except ValueError as error:
        raise CorruptFileError(f"{where}: metadata is not JSON: {error}") from error
