"""Verify a graph: its levels are nested, its entry point is on the top level, and its edges have the stored lengths.

::

    node 7 has the neighbour 3 at 0.25        the codes of rows 7 and 3 are 0.25 apart: good
    level 1 has the nodes 3 7 9               9 is on level 0 too; an edge of level 1 to node 4: damaged

An edge more or less costs a little recall, never a wrong distance; in large graphs some of the edges are measured, evenly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Floats
from lance_core.format.index_details import Metric
from lance_core.index.scalar.verify import require
from lance_core.index.vector.graph import Graph
from lance_core.index.vector.quantizer import Quantizer
from lance_core.index.vector.quantizers.flat import FlatQuantizer
from lance_core.index.vector.quantizers.product import ProductQuantizer
from lance_core.index.vector.quantizers.scalar import ScalarQuantizer

MEASURED = 2e8
"""So many numbers of rows at the ends of edges are checked in one segment."""
_STEP = 1 << 20
_LOST_SHARE, _LOST_ROWS, _FEW_SHARE = 0.01, 8, 0.05
"""So many rows may be out of reach from the entry: a share, or a few. (The official library's threads lose a link now and
then while a graph is small: up to 3 rows of 141 in 120 graphs of its releases.)"""


@dataclass(frozen=True, eq=False)
class Ends:
    """What the rows of a partition are stored as, row by row."""

    quantizer: Quantizer
    metric: Metric
    columns: Mapping[str, npt.NDArray[Any]]
    dimension: int

    def rows(self, which: npt.NDArray[np.uint32]) -> Floats:
        """What some rows stand for, less their centroid where codes leave it out."""
        plain = replace(self.quantizer, is_turned=False) if isinstance(self.quantizer, ProductQuantizer) else self.quantizer
        nothing = np.zeros(self.dimension, np.float32)
        return plain.decode({name: values[which] for name, values in self.columns.items()}, self.metric, nothing)


def require_sound(graph: Graph, ends: Ends, *, measured: float) -> None:
    """Raises CorruptFileError unless levels, entry and about `measured` numbers' worth of edges are what they should be.

    0: edges are not measured.
    """
    if not graph.num_nodes:
        return
    counts = np.diff(graph.offsets)
    sources = np.repeat(np.arange(len(counts)), counts)
    _require_levels(graph, sources)
    _require_reach(graph)
    if ends.metric != "hamming" and measured > 0:
        stride = max(1, int(2 * len(sources) * ends.dimension / max(measured, 1)))
        _require_lengths(graph, ends, sources[::stride], stride)


def _require_levels(graph: Graph, sources: npt.NDArray[np.int64]) -> None:
    """Each level's nodes are there once, are nodes of the level below, and have neighbours of their own level."""
    cuts = graph.level_offsets
    first_edges = np.searchsorted(sources, cuts)
    below = np.ones(cuts[1], np.bool_)
    for level in range(1, graph.num_levels):
        nodes = graph.ids[cuts[level] : cuts[level + 1]]
        here = np.zeros(cuts[1], np.bool_)
        here[nodes] = True
        require(int(here.sum()) == len(nodes) and below[nodes].all(), "a level of a graph has too many nodes")
        edges = graph.neighbours[first_edges[level] : first_edges[level + 1]]
        require(here[edges].all(), "an edge of a graph leads to another level")
        below = here
    require(below[graph.entry], "the entry point of a graph is not on its highest level")


def _require_reach(graph: Graph) -> None:
    num = graph.level_offsets[1]
    seen = np.zeros(num, np.bool_)
    seen[graph.entry] = True
    front = np.array([graph.entry], np.int64)
    while len(front):
        counts = graph.offsets[front + 1] - graph.offsets[front]
        starts = np.repeat(graph.offsets[front] - (np.cumsum(counts) - counts), counts)
        found = graph.neighbours[starts + np.arange(int(counts.sum()))]
        fresh = np.zeros(num, np.bool_)
        fresh[found] = True
        fresh &= ~seen
        seen |= fresh
        front = np.flatnonzero(fresh)
    allowed = max(_LOST_SHARE * num, min(_LOST_ROWS, _FEW_SHARE * num))
    require(num - int(seen.sum()) <= allowed, "some rows of a graph cannot be reached")


def _require_lengths(graph: Graph, ends: Ends, sources: npt.NDArray[np.int64], stride: int) -> None:
    neighbours, apart = graph.neighbours[::stride], graph.apart[::stride]
    require(len(apart) == len(neighbours), "some edges of a graph have no length")
    step = max(1, _STEP // ends.dimension)
    for first in range(0, len(sources), step):
        part = slice(first, first + step)
        with np.errstate(all="ignore"):
            left, right = ends.rows(graph.ids[sources[part]]), ends.rows(neighbours[part])
            good = _are_apart(left, right, apart[part], ends)
        require(good.all(), "an edge of a graph has a wrong length")


def _are_apart(left: Floats, right: Floats, told: Floats, ends: Ends) -> npt.NDArray[np.bool_]:
    squares = np.einsum("ij,ij->i", left, left) + np.einsum("ij,ij->i", right, right)
    if ends.metric == "dot":
        product = np.einsum("ij,ij->i", left, right)
        allowed = 1e-5 + 1e-4 * squares
        good = np.abs(told - (1 - product)) <= allowed
        if isinstance(ends.quantizer, ScalarQuantizer):
            # The official library takes a byte for the lower end of what it covers, here.
            half = np.float32(ends.quantizer.step / 2)
            lower = product - half * (left.sum(axis=1) + right.sum(axis=1)) + ends.dimension * half * half
            # It sums over the bytes, so that what rounds is as large as the bounds.
            largest = max(abs(ends.quantizer.start), abs(ends.quantizer.end))
            good |= np.abs(told - (1 - lower)) <= allowed + 2e-6 * ends.dimension * largest**2
    else:
        far = ((left - right) ** 2).sum(axis=1)
        allowed = 1e-3 * far + 1e-5 * squares + 1e-30
        good = np.abs(told - far) <= allowed
        if isinstance(ends.quantizer, ScalarQuantizer):
            # Releases up to 0.27 measured the vectors themselves, each number of which is within a step of its byte.
            slack = ends.quantizer.step * ends.dimension**0.5
            good |= np.abs(np.sqrt(np.maximum(told, 0)) - np.sqrt(far)) <= 1.001 * slack
        if ends.metric == "cosine":
            good |= np.abs(2 * told - far) <= allowed
        if ends.metric == "cosine" and isinstance(ends.quantizer, FlatQuantizer):
            # What could not be scaled to length one, being so short.
            good |= np.abs(squares - 2) > 1e-3
    # What single precision cannot tell is not judged.
    return np.asarray(good | ~np.isfinite(squares), np.bool_)
