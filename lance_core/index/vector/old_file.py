"""Vector indices in the layouts of old releases: read and searched, never written.

::

    0.8 to 0.29, IVF_PQ: one file
    index.idx    partition 0: codes uint8[n, sub-vectors] row by row, then row ids uint64[n]
                 partition 1 ...
                 u32 length, message lance.index.pb.Index: metric, centroids, where partitions begin, codebook
                              u64 position of that length, u16 0, u16 1, "LANC"

    0.10 to 0.13, IVF_HNSW_SQ: index.idx and auxiliary.idx with today's columns, in files of version 0.1
                 the IVF messages are at positions that the metadata names, and graphs and bounds in keys of other names
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_core.errors import CorruptFileError
from lance_core.fetch import ByteRange
from lance_core.file.open_file import OpenFile
from lance_core.format.index_details import IvfPartitions, OldVectorIndex
from lance_core.index.base import IndexFolder, metadata_of
from lance_core.index.vector import graph
from lance_core.index.vector.files import PartitionFiles, Stretch, TodaysFiles, VectorPartition, json_list, json_object
from lance_core.index.vector.quantizer import Quantizer
from lance_core.index.vector.quantizers import product, scalar
from lance_core.index.vector.segment import INDEX, IVF_KEY, ROW_ID
from lance_core.io.store import Store
from lance_core.wire.index import decode_ivf, decode_old_vector_index

_FOOTER = struct.Struct("<QHH4s")
_SIZE = struct.Struct("<I")
_VERSION = (0, 1)
GRAPHS_KEY, _BOUNDS_KEY = "lance:ivf:partition", "lance:sq"


@dataclass(frozen=True)
class OldMessage:
    """What the file says of itself, and where it was read."""

    told: OldVectorIndex
    store: Store
    path: str
    end: int


def old_message(folder: IndexFolder) -> OldMessage | None:
    """The message at the end of an index file of the first layout; None for a file of another layout or kind."""
    store, path, size = folder.source(INDEX)
    size = store.size(path) if size is None else size
    start = max(0, size - _FOOTER.size)
    tail = bytes(store.get_ranges(path, [ByteRange(start, size)])[0])
    if len(tail) < _FOOTER.size:
        return None
    position, major, minor, _ = _FOOTER.unpack(tail)
    if (major, minor) != _VERSION or position + _SIZE.size > size:
        return None
    data = bytes(store.get_ranges(path, [ByteRange(position, start)])[0])
    (length,) = _SIZE.unpack_from(data)
    told = decode_old_vector_index(data[_SIZE.size : _SIZE.size + length])
    return None if told is None else OldMessage(told, store, path, position)


def open_old_files(folder: IndexFolder) -> PartitionFiles | None:
    """The files, if they are of an old layout. Raises CorruptFileError."""
    found = old_message(folder)
    if found is not None:
        return OldFile(found)
    return LegacyFiles(folder) if GRAPHS_KEY in folder.open(INDEX).schema.metadata else None


class LegacyFiles(TodaysFiles):
    """`PartitionFiles` in files of version 0.1; those of release 0.10 do not say how long edges are."""

    @property
    def _has_edge_lengths(self) -> bool:
        return any(item.name == graph.SCHEMA.names[2] for item in self._index.schema.top_level)

    def _ivf(self, folder: IndexFolder, opened: OpenFile) -> IvfPartitions:
        name = opened.path.rsplit("/", 1)[1]
        store, path, size = folder.source(name)
        size = store.size(path) if size is None else size
        position = json_object(metadata_of(opened, IVF_KEY), path).get("pb_position")
        if not isinstance(position, int) or not 0 <= position <= size - _SIZE.size:
            raise CorruptFileError(f"{path}: partitions at {position!r} of {size} bytes")
        data = bytes(store.get_ranges(path, [ByteRange(position, size)])[0])
        (length,) = _SIZE.unpack_from(data)
        return decode_ivf(data[_SIZE.size : _SIZE.size + length])

    def _open_quantizer(self) -> Quantizer:
        told = json_object(metadata_of(self._storage, _BOUNDS_KEY), self._storage.path)
        return scalar.from_storage(told, where=self._storage.path)

    def _listed_graphs(self) -> list[Any]:
        listed = json_list(metadata_of(self._index, GRAPHS_KEY), self._index.path)
        return [json.dumps(item) if item else "" for item in listed]


class OldFile:
    """`PartitionFiles` of the first layout."""

    has_graphs = has_lengths_of_edges = False
    loss: float | None = None

    def __init__(self, found: OldMessage) -> None:
        told, self._store, self._path = found.told, found.store, found.path
        quantizer = told.details.quantizer
        if told.ivf.centroids is None or told.codebook is None or quantizer is None:
            raise CorruptFileError(f"{found.path} has no centroids or no codebook")
        self.kind, self.metric = "IVF_PQ", told.details.metric
        self.centroids = product.tensor_floats(told.ivf.centroids, found.path)
        self.element = np.dtype(told.ivf.centroids.data_type)
        self._offsets, self.lengths = np.array(told.ivf.offsets, np.int64), np.array(told.ivf.lengths, np.int64)
        numbers = {
            "nbits": quantizer.num_bits,
            "num_sub_vectors": quantizer.num_sub_vectors,
            "dimension": self.centroids.shape[1],
        }
        self.quantizer: Quantizer = product.of_codebook(numbers, told.codebook, self.metric, where=found.path)
        self._width = quantizer.num_bits * quantizer.num_sub_vectors // 8
        ends = self._offsets + self.lengths * (self._width + 8)
        if len(self.lengths) != len(self.centroids) or (self._offsets < 0).any() or (ends > found.end).any():
            raise CorruptFileError(f"{found.path}: {len(self.lengths)} partitions do not fit its {found.end} bytes")

    @property
    def are_codes_known(self) -> bool:
        """Releases differ in the codes that they chose for dot."""
        return self.metric != "dot"

    def read(self, numbers: Sequence[int]) -> list[VectorPartition]:
        """Whole partitions."""
        spans = [self._span(number) for number in numbers]
        found = []
        for number, data in zip(numbers, self._store.get_ranges(self._path, spans), strict=True):
            count = int(self.lengths[number])
            codes = np.frombuffer(data, np.uint8, count * self._width).reshape(count, self._width)
            ids = np.frombuffer(bytes(data)[count * self._width :], "<u8")
            found.append(VectorPartition(ids.astype(np.uint64), {product.COLUMN: codes}))
        return found

    def columns(self, stretches: Sequence[Stretch]) -> dict[str, npt.NDArray[Any]]:
        """The columns of rows of some partitions."""
        parts = self.read([number for number, _, _ in stretches])
        cut = [(part.ids[a:b], part.columns[product.COLUMN][a:b]) for part, (_, a, b) in zip(parts, stretches, strict=True)]
        ids, codes = zip(*cut, strict=True)
        return {ROW_ID: np.concatenate(ids), product.COLUMN: np.concatenate(codes)}

    def _span(self, number: int) -> ByteRange:
        start = int(self._offsets[number])
        return ByteRange(start, start + int(self.lengths[number]) * (self._width + 8))
