"""Write one segment of a vector index: rows arrive in batches and are written grouped by partition.

::

    auxiliary.idx    _rowid and codes, partition after partition; IVF with their offsets and lengths
    index.idx        IVF with the centroids; no rows, or the nodes of each partition's graph

Memory: the codes and ids of the segment (of IVF_FLAT: its vectors), and one batch. (Spec: FORMAT E.5.)
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrays import Floats, Ids
from lance_core.arrow_numpy import arrow_of
from lance_core.format.index import IndexFile
from lance_core.format.index_details import IvfPartitions
from lance_core.index.base import IndexFolder
from lance_core.index.vector import graph
from lance_core.index.vector.model import VectorModel, prepare
from lance_core.index.vector.quantizers.product import float_tensor
from lance_core.wire.index import encode_ivf

INDEX, STORAGE = "index.idx", "auxiliary.idx"
ROW_ID = "_rowid"
IVF_KEY, STORAGE_KEY, INDEX_KEY, FLAT_KEY, HNSW_KEY = (
    "lance:ivf", "storage_metadata", "lance:index", "lance:flat", "lance:hnsw",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Codes:
    """Coded rows: ids, partitions, and columns row by row."""

    ids: Ids
    owners: npt.NDArray[np.uint32]
    columns: dict[str, npt.NDArray[Any]]


@dataclass
class SegmentBuilder:
    """Collects coded rows, then writes them."""

    model: VectorModel
    parts: list[Codes] = field(default_factory=list)

    def add(self, rows: Floats, ids: Ids) -> None:
        """Code rows [n, dim] of the column (float32, or uint8 for hamming) with their ids uint64[n]."""
        ready, kept = prepare(rows, self.model.metric) if rows.dtype != np.uint8 else (rows, None)
        if len(ready) == 0:
            return
        owners = self.model.owners(ready)
        columns = self.model.quantizer.encode(ready, owners, self.model.centroids)
        self.parts.append(Codes(ids if kept is None else ids[kept], owners, columns))

    def add_codes(self, codes: Codes) -> None:
        """Rows that are coded by the same model already."""
        if len(codes.ids):
            self.parts.append(codes)

    def write(self, folder: IndexFolder) -> tuple[IndexFile, ...]:
        """Write both files."""
        grouped = _grouped(self.parts, self.model)
        storage = _write_storage(folder, self.model, grouped)
        return storage, _write_index(folder, self.model, grouped)


@dataclass(frozen=True, eq=False)
class _Grouped:
    """Rows sorted by partition; partition p is rows `offsets[p]` to `offsets[p + 1]`."""

    ids: Ids
    columns: dict[str, npt.NDArray[Any]]
    offsets: npt.NDArray[np.int64]

    def partition(self, number: int) -> tuple[Ids, dict[str, npt.NDArray[Any]]]:
        here = slice(int(self.offsets[number]), int(self.offsets[number + 1]))
        return self.ids[here], {name: values[here] for name, values in self.columns.items()}


def _grouped(parts: Sequence[Codes], model: VectorModel) -> _Grouped:
    num = len(model.centroids)
    if not parts:
        zero = np.zeros((0, model.dimension), np.float32)
        owners = np.zeros(0, np.uint32)
        return _Grouped(
            np.zeros(0, np.uint64), model.quantizer.encode(zero, owners, model.centroids), np.zeros(num + 1, np.int64)
        )
    owners = np.concatenate([part.owners for part in parts])
    ids = np.concatenate([part.ids for part in parts])
    order = np.lexsort((ids, owners))
    columns = {name: np.concatenate([part.columns[name] for part in parts])[order] for name in parts[0].columns}
    offsets = np.concatenate(([0], np.cumsum(np.bincount(owners, minlength=num)))).astype(np.int64)
    return _Grouped(ids[order], columns, offsets)


def _write_storage(folder: IndexFolder, model: VectorModel, grouped: _Grouped) -> IndexFile:
    fields = model.quantizer.fields()
    schema = pa.schema([pa.field(ROW_ID, pa.uint64()), *fields])
    told, buffers = model.quantizer.storage()
    metadata = {
        "distance_type": model.metric.encode(),
        IVF_KEY: b"1",
        STORAGE_KEY: json.dumps([json.dumps(told, separators=(",", ":"))]).encode(),
    }
    ivf = IvfPartitions(offsets=_starts(grouped.offsets), lengths=_lengths(grouped.offsets))
    batches = _storage_batches(model, grouped, schema)
    return folder.write(STORAGE, batches, schema, metadata=metadata, buffers=[encode_ivf(ivf), *buffers])


def _storage_batches(model: VectorModel, grouped: _Grouped, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for number in range(len(model.centroids)):
        ids, columns = grouped.partition(number)
        if len(ids):
            arrays = [_array(model.quantizer.arrange(item.name, columns[item.name]), item.type) for item in [*schema][1:]]
            yield pa.RecordBatch.from_arrays([arrow_of(ids), *arrays], schema=schema)


def _array(values: npt.NDArray[Any], kind: Any) -> Any:
    if not pa.types.is_fixed_size_list(kind):
        return arrow_of(values, kind)
    flat = arrow_of(np.ascontiguousarray(values).reshape(-1), kind.value_type)
    return pa.FixedSizeListArray.from_arrays(flat, type=cast("Any", kind))


def _starts(offsets: npt.NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(offsets[:-1].tolist())


def _lengths(offsets: npt.NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(np.diff(offsets).tolist())


def _write_index(folder: IndexFolder, model: VectorModel, grouped: _Grouped) -> IndexFile:
    kind = json.dumps({"type": model.parameters.kind, "distance_type": model.metric}, separators=(",", ":"))
    metadata = {INDEX_KEY: kind.encode(), IVF_KEY: b"1"}
    num = len(model.centroids)
    data = float_tensor(model.centroids, (num, model.dimension), model.element)
    if not model.parameters.has_graph:
        metadata[FLAT_KEY] = json.dumps([""] * num, separators=(",", ":")).encode()
        schema = pa.schema([pa.field("__flat_marker", pa.uint64(), nullable=False)])
        ivf = IvfPartitions(data, (0,) * num, (0,) * num, model.loss)
        return folder.write(INDEX, (), schema, metadata=metadata, buffers=[encode_ivf(ivf)])
    graphs = _graphs(model, grouped)
    lengths = [item.num_nodes for item in graphs]
    starts = np.concatenate(([0], np.cumsum(lengths)))[:-1].tolist()
    metadata[HNSW_KEY] = json.dumps([item.metadata() for item in graphs], separators=(",", ":")).encode()
    ivf = IvfPartitions(data, tuple(starts), tuple(lengths), model.loss)
    batches = (item.batch() for item in graphs if item.num_nodes)
    return folder.write(INDEX, batches, graph.SCHEMA, metadata=metadata, buffers=[encode_ivf(ivf)])


def _graphs(model: VectorModel, grouped: _Grouped) -> list[graph.Graph]:
    def one(number: int) -> graph.Graph:
        quantizer = model.quantizer
        ids, columns = grouped.partition(number)
        held = quantizer.hold({name: quantizer.arrange(name, values) for name, values in columns.items()})
        rows = quantizer.decode(held, model.metric, model.centroids[number]) if len(ids) else None
        return graph.build(rows, model.metric, model.parameters, seed=model.parameters.seed + number)

    return graph.build_all(one, range(len(model.centroids)))


def build(model: VectorModel, batches: Iterable[tuple[Floats, Ids]], folder: IndexFolder) -> tuple[IndexFile, ...]:
    """Code and write the rows of (vectors [n, dim], ids [n]) batches; return the files written."""
    builder = SegmentBuilder(model)
    for rows, ids in batches:
        builder.add(rows, ids)
    return builder.write(folder)
