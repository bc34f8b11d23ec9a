"""The graph of one partition (HNSW): built over its rows, laid out as rows of a file, walked towards a query.

::

    __vector_id   0 1 2 ... n-1   then the nodes of level 1, then of level 2, ...     cut by level_offsets
    __neighbors   up to 2 m on level 0, m above, nearest first; numbers of rows of the partition
    _distance     how far each is

(Spec: FORMAT E.5.)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrays import Floats
from lance_core.arrow_numpy import arrow_of, no_rows, numpy_of
from lance_core.cached import cached_property
from lance_core.errors import CorruptFileError
from lance_core.file.open_file import OpenFile
from lance_core.format.index_details import Metric
from lance_core.index.vector.parameters import VectorParameters
from lance_core.io.pool import in_work_pool, work_pool
from lance_core.kernels.graph import build_graph, connect_graph, search_graph

SCHEMA = pa.schema(
    [
        pa.field("__vector_id", pa.uint32()),
        pa.field("__neighbors", pa.list_(pa.field("item", pa.uint32()))),
        pa.field("_distance", pa.list_(pa.field("item", pa.float32()))),
    ]
)
_NO_FLOATS, _NO_BYTES = np.empty(0, np.float32), np.empty(0, np.uint8)


@dataclass(frozen=True, eq=False)
class Access:
    """How a walk measures rows: see `search_graph` for the modes. `width` is numbers (or bytes of code) a row."""

    mode: int
    query: Floats
    width: int
    rows: Floats = field(default_factory=lambda: _NO_FLOATS)
    codes: npt.NDArray[np.uint8] = field(default_factory=lambda: _NO_BYTES)
    low: float = 0.0
    scale: float = 1.0


@dataclass(frozen=True, eq=False)
class Graph:
    """`ids[r]` is the node of row r of the table, `offsets` cut its neighbours; `level_offsets` cut rows into levels."""

    ids: npt.NDArray[np.uint32]
    offsets: npt.NDArray[np.int64]
    neighbours: npt.NDArray[np.uint32]
    apart: Floats
    level_offsets: tuple[int, ...]
    entry: int
    parameters: Mapping[str, int]

    @property
    def num_nodes(self) -> int:
        """Rows of the table."""
        return len(self.ids)

    @property
    def size(self) -> int:
        """Bytes held."""
        return self.ids.nbytes + self.offsets.nbytes + self.neighbours.nbytes + self.apart.nbytes + self._places.nbytes

    @cached_property
    def num_levels(self) -> int:
        """Levels that have nodes."""
        return max(1, sum(1 for low, high in zip(self.level_offsets, self.level_offsets[1:], strict=False) if high > low))

    @cached_property
    def _places(self) -> npt.NDArray[np.int32]:
        num = self.level_offsets[1]
        places = np.full((self.num_levels - 1, num), -1, np.int32)
        for level in range(1, self.num_levels):
            low, high = self.level_offsets[level], self.level_offsets[level + 1]
            places[level - 1, self.ids[low:high]] = np.arange(low, high, dtype=np.int32)
        return places.reshape(-1)

    def metadata(self) -> str:
        """What the file's metadata says of the graph."""
        told = {"entry_point": self.entry, "params": dict(self.parameters), "level_offsets": list(self.level_offsets)}
        return json.dumps(told, separators=(",", ":"))

    def batch(self) -> pa.RecordBatch:
        """The table as rows of the index file."""
        cuts = arrow_of(self.offsets.astype(np.int32))
        return pa.RecordBatch.from_arrays(
            [
                arrow_of(self.ids),
                pa.ListArray.from_arrays(
                    cast("Any", cuts), arrow_of(self.neighbours), type=cast("Any", SCHEMA.field(1).type)
                ),
                _lists(cuts, self.apart, SCHEMA.field(2).type),
            ],
            schema=SCHEMA,
        )

    def walk(
        self, access: Access, *, k: int, ef: int | None, kept: npt.NDArray[np.bool_] | None
    ) -> tuple[npt.NDArray[np.int32], Floats]:
        """(rows of the partition, their distance as `access` measures it), nearest first; only those `kept`."""
        num = self.level_offsets[1]
        wide = max(k, ef or k + k // 2)
        mask = _NO_BYTES
        if kept is not None:
            mask = kept.view(np.uint8)
            wide = int(wide * len(kept) / max(1, int(kept.sum()))) + k
        wide = min(wide, num)
        out, far = np.empty(wide, np.int32), np.empty(wide, np.float32)
        found = search_graph(
            access.query, access.rows, access.codes, num, access.width, access.mode, access.low, access.scale,
            self.offsets, self.neighbours, self._places, self.num_levels, self.entry, wide, mask, out, far,
        )  # fmt: skip
        if found < 0:
            raise CorruptFileError("a graph does not match the rows of its partition")
        return out[:found], far[:found]


def build(rows: Floats | None, metric: Metric, parameters: VectorParameters, *, seed: int) -> Graph:
    """The graph over a partition's rows (None: there are none). Cosine rows have length one, so L2 orders them."""
    told = {
        "max_level": parameters.max_level,
        "m": parameters.m,
        "ef_construction": parameters.ef_construction,
        "prefetch_distance": 2,
    }
    num = 0 if rows is None else len(rows)
    levels = _levels(num, parameters, seed)
    slots = np.concatenate(([0], np.cumsum(levels + 1))).astype(np.int64)
    cap = 2 * parameters.m
    counts = np.zeros(int(slots[-1]), np.int32)
    neighbours, apart = np.zeros(len(counts) * cap, np.int32), np.zeros(len(counts) * cap, np.float32)
    entry = 0
    if rows is not None and num:
        flat = np.ascontiguousarray(rows, np.float32).reshape(-1)
        entry = build_graph(
            flat, rows.shape[1], int(metric == "dot"), levels, slots[:-1].copy(), parameters.m,
            parameters.ef_construction, counts, neighbours, apart,
        )  # fmt: skip
        connect_graph(
            flat, rows.shape[1], int(metric == "dot"), slots[:-1].copy(), parameters.m, entry, counts, neighbours, apart
        )
    order = [np.flatnonzero(levels >= level) for level in range(parameters.max_level)]
    level_offsets = tuple(np.concatenate(([0], np.cumsum([len(nodes) for nodes in order]))).tolist())
    rows_of = [slots[nodes] + level for level, nodes in enumerate(order)]
    chosen = np.concatenate(rows_of).astype(np.int64)
    used = counts[chosen]
    cells = np.repeat(chosen * cap, used) + _within(used)
    far = apart[cells] + (1 if metric == "dot" else 0)
    if metric == "cosine":
        far = far * np.float32(0.5)
    return Graph(
        ids=np.concatenate(order).astype(np.uint32),
        offsets=np.concatenate(([0], np.cumsum(used))).astype(np.int64),
        neighbours=neighbours[cells].astype(np.uint32),
        apart=far.astype(np.float32),
        level_offsets=level_offsets,
        entry=entry,
        parameters=told,
    )


def _levels(num: int, parameters: VectorParameters, seed: int) -> npt.NDArray[np.int64]:
    """The top level of each node: one node in m rises a level."""
    uniform = 1.0 - np.random.default_rng(seed).random(num)
    drawn = np.floor(-np.log(uniform) / np.log(max(2, parameters.m)))
    levels: npt.NDArray[np.int64] = np.minimum(drawn, parameters.max_level - 1).astype(np.int64)
    return levels


def _within(counts: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """0, 1, ... for each count, one after the other."""
    starts = np.cumsum(counts) - counts
    within: npt.NDArray[np.int64] = np.arange(int(counts.sum()), dtype=np.int64) - np.repeat(starts, counts)
    return within


def build_all(one: Callable[[int], Graph], numbers: Iterable[int]) -> list[Graph]:
    """`one` for each partition, on all cores."""
    if in_work_pool():
        return [one(number) for number in numbers]
    return [*work_pool().map(one, numbers)]


_MAX_LEVELS = 64
"""One node in m rises a level (m is 2 or more): the 64th has nodes of more rows than there are."""


def read(
    opened: OpenFile, start: int, end: int, told: Mapping[str, Any], *, num_rows: int, has_lengths: bool = True
) -> Graph:
    """The graph in rows `start` to `end` of an index file. Raises CorruptFileError when its numbers do not fit.

    `has_lengths`: edges say how long they are, which a search does not ask.
    """
    where = opened.path
    level_offsets, entry = told.get("level_offsets"), told.get("entry_point")
    if not isinstance(level_offsets, list) or not isinstance(entry, int) or not 0 <= entry < max(1, num_rows):
        raise CorruptFileError(f"{where}: the graph has no level_offsets or no valid entry point: {str(told)[:200]}")
    cuts = tuple(level_offsets)
    if not all(isinstance(cut, int) for cut in cuts) or list(cuts) != sorted(cuts) or len(cuts) < 2:
        raise CorruptFileError(f"{where}: level offsets {cuts[:20]} are not ascending")
    uncounted = end - start - cuts[-1]
    if 0 < uncounted <= len(cuts) - 2:
        # Releases up to 9 did not count the entry point, which is on every level, above level 0 (0.12: those there are).
        cuts = tuple(cut + min(uncounted, max(0, level - 1)) for level, cut in enumerate(cuts))
    if cuts[0] != 0 or cuts[1] != num_rows or cuts[-1] != end - start:
        raise CorruptFileError(f"{where}: level offsets {cuts[:20]} do not match {num_rows} rows and {end - start} nodes")
    names = SCHEMA.names if has_lengths else SCHEMA.names[:2]
    missing = set(names) - {item.name for item in opened.schema.top_level} if end > start else None
    if missing:
        raise CorruptFileError(f"{where}: the graph has no columns {', '.join(sorted(missing))}")
    levels = sum(high > low for low, high in pairwise(cuts))
    if levels > _MAX_LEVELS:
        # A search notes where each row is on each level, however little the file says about it.
        raise CorruptFileError(f"{where}: {levels} levels have nodes, a graph has at most {_MAX_LEVELS}")
    batches = [*opened.read(ranges=[(start, end)], batch_size=max(1, end - start))] if end > start else []
    table = pa.Table.from_batches(batches).combine_chunks() if batches else no_rows(SCHEMA).combine_chunks()
    ids, neighbours = (_chunk(table.column(name)) for name in SCHEMA.names[:2])
    offsets = numpy_of(neighbours.offsets).astype(np.int64)
    flat = numpy_of(neighbours.values)[offsets[0] : offsets[-1]] if len(offsets) else np.empty(0, np.uint32)
    found = Graph(
        ids=np.ascontiguousarray(numpy_of(ids)),
        offsets=offsets - (offsets[0] if len(offsets) else 0),
        neighbours=np.ascontiguousarray(flat),
        apart=_lengths(table.column(SCHEMA.names[2])) if has_lengths else np.empty(0, np.float32),
        level_offsets=cuts,
        entry=entry,
        parameters={},
    )
    _check(found, num_rows, where)
    return found


def _lengths(column: Any) -> Floats:
    return np.ascontiguousarray(numpy_of(_chunk(column).flatten()))


def _chunk(column: Any) -> Any:
    array = column.combine_chunks()
    return array.chunk(0) if isinstance(array, pa.ChunkedArray) and array.num_chunks else array


def _check(found: Graph, num_rows: int, where: str) -> None:
    first = found.ids[:num_rows]
    if len(first) != num_rows or (num_rows and (first != np.arange(num_rows)).any()):
        raise CorruptFileError(f"{where}: the nodes of level 0 are not the partition's rows in order")
    for what, values in (("node", found.ids), ("neighbour", found.neighbours)):
        if len(values) and int(values.max()) >= num_rows:
            raise CorruptFileError(f"{where}: {what} {int(values.max())} in a partition of {num_rows} rows")


def _lists(cuts: Any, values: npt.NDArray[Any], type_: pa.DataType) -> pa.Array[Any]:
    return pa.ListArray.from_arrays(cuts, arrow_of(values), type=cast("Any", type_))
