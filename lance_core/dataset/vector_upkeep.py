"""Vector segments merged, moved along with their rows, extended over rows that came later: codes are kept, not made anew.

::

    merge_vector_segments(snapshot, [a, b])       one segment with the codes of both: they share a model
    moved_segment(snapshot, index, moves, ...)    after compaction: the same codes under the rows' new addresses
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from lance_core.dataset.snapshot import Snapshot
from lance_core.dataset.vector_build import described, vector_batches, write_segment
from lance_core.dataset.vector_use import open_vector_segment
from lance_core.errors import InputError
from lance_core.format.fragment import Fragment
from lance_core.format.index import IndexMetadata
from lance_core.format.index_details import VectorDetails
from lance_core.index.vector.model import VectorModel
from lance_core.index.vector.opened import OpenVectorIndex
from lance_core.index.vector.parameters import VectorParameters
from lance_core.index.vector.segment import Codes, Ids, SegmentBuilder
from lance_core.wire.index import decode_details

Keep = Callable[[Ids], tuple[Ids, npt.NDArray[np.bool_]]]
"""New ids of rows, and which rows stay."""


def model_of(opened: OpenVectorIndex, index: IndexMetadata) -> VectorModel:
    """The model a segment was built with, from its files."""
    details = decode_details(index.details) if index.details is not None else None
    told = details if isinstance(details, VectorDetails) else None
    hnsw = None if told is None else told.hnsw
    quantizer = None if told is None else told.quantizer
    parameters = VectorParameters(
        kind=opened.kind,
        metric=opened.metric,
        num_partitions=opened.num_partitions,
        num_bits=0 if quantizer is None else quantizer.num_bits,
        num_sub_vectors=0 if quantizer is None else quantizer.num_sub_vectors,
        m=hnsw.max_connections if hnsw is not None and hnsw.max_connections else 20,
        ef_construction=hnsw.construction_ef if hnsw is not None and hnsw.construction_ef else 150,
        max_level=hnsw.max_level if hnsw is not None and hnsw.max_level else 7,
    )
    return VectorModel(parameters, opened.element, opened.centroids, opened.loss or 0.0, opened.quantizer)


def same_model(one: VectorModel, other: VectorModel) -> bool:
    """Whether codes of the two mean the same."""
    told, buffers = one.quantizer.storage()
    return (
        one.parameters.kind == other.parameters.kind
        and one.metric == other.metric
        and np.array_equal(one.centroids, other.centroids)
        and (told, buffers) == other.quantizer.storage()
    )


def merge_vector_segments(snapshot: Snapshot, segments: Sequence[IndexMetadata]) -> IndexMetadata:
    """One segment of several. Raises InputError: none, of several columns, with different models, over the same rows."""
    if not segments:
        raise InputError("there are no segments to merge")
    first = segments[0]
    covered: set[int] = set()
    builder: SegmentBuilder | None = None
    for segment in segments:
        opened = open_vector_segment(snapshot, segment)
        model = model_of(opened, segment)
        if segment.fields != first.fields:
            raise InputError(f"segments {first.uuid} and {segment.uuid} are on different columns")
        if builder is None:
            builder = SegmentBuilder(model)
        elif not same_model(builder.model, model):
            raise InputError(
                f"segments {first.uuid} and {segment.uuid} were trained apart", cure="Commit them side by side, or retrain."
            )
        mine = segment.fragment_bitmap or frozenset()
        if not covered.isdisjoint(mine):
            raise InputError(f"segment {segment.uuid} covers fragments that another covers too")
        covered |= mine
        for codes in opened.codes():
            builder.add_codes(codes)
    assert builder is not None
    return _written(snapshot, first, builder, covered, None)


def extended_segment(
    snapshot: Snapshot,
    index: IndexMetadata,
    merged: Sequence[tuple[IndexMetadata, Keep]],
    fragments: Sequence[Fragment],
    covered: Iterable[int],
    *,
    column: str,
    attempt: str | None = None,
) -> IndexMetadata:
    """A segment with the model of `index`: the codes of `merged` that stay, and the rows of `fragments`, coded now.

    Segments of another model are not among `merged`: their fragments are among `fragments`.
    """
    builder = SegmentBuilder(model_of(open_vector_segment(snapshot, index), index))
    for segment, keep in merged:
        for codes in open_vector_segment(snapshot, segment).codes():
            ids, kept = keep(codes.ids)
            columns = {name: values[kept] for name, values in codes.columns.items()}
            builder.add_codes(Codes(ids[kept], codes.owners[kept], columns))
    for rows, ids in vector_batches(snapshot, column, fragments):
        builder.add(rows, ids)
    return _written(snapshot, index, builder, covered, attempt)


def _written(
    snapshot: Snapshot, like: IndexMetadata, builder: SegmentBuilder, covered: Iterable[int], attempt: str | None
) -> IndexMetadata:
    folder, files = write_segment(snapshot, builder, attempt)
    entry = described(snapshot, folder, like.name, like.fields[0], builder.model.parameters, files, frozenset(covered))
    return replace(entry, details=like.details, clustering_id=like.clustering_id, metadata=like.metadata)
