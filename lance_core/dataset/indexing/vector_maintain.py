"""Merge vector segments, and rebuild them with their model: after their rows moved, or to cover rows that were added later.

::

    merge_vector_segments(snapshot, [a, b])             one segment with the codes of both: they share a model
    rebuild_vectors(snapshot, index, fragments)     no training: rows are coded by the model of `index`
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from lance_core.dataset.indexing.vector_build import (
    VECTOR_DETAILS,
    VectorRequest,
    build_vector_segment,
    described,
    is_unstorable,
    train_index,
    write_segment,
)
from lance_core.dataset.indexing.vector_search import NEWEST_VERSION, OLDEST_VERSION, open_vector_segment, vector_title
from lance_core.dataset.indexing.verify import ensure_verified
from lance_core.dataset.scan.index_policy import VERIFIED
from lance_core.dataset.scan.nearest_request import vector_type
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import InputError, LanceError
from lance_core.format.fragment import Fragment
from lance_core.format.index import IndexMetadata
from lance_core.format.index_details import VectorDetails
from lance_core.format.schema import column_of
from lance_core.index.vector.model import VectorModel
from lance_core.index.vector.parameters import VectorParameters
from lance_core.index.vector.quantizers.rabit import RabitQuantizer
from lance_core.index.vector.searcher import OpenVectorIndex
from lance_core.index.vector.segment import SegmentBuilder
from lance_core.wire.index import decode_details

_LOG = logging.getLogger("lance_core.index")


def is_vector_segment(index: IndexMetadata) -> bool:
    """Whether it is a vector segment that this release can build again in its place."""
    if index.details is None or index.details.kind != VECTOR_DETAILS or len(index.fields) != 1 or index.covering_fields:
        return False
    known = OLDEST_VERSION <= (index.index_version or 0) <= NEWEST_VERSION
    return known and index.fragment_bitmap is not None


def finds_nothing(snapshot: Snapshot, index: IndexMetadata) -> bool:
    """Whether it is of vectors that its kind cannot store, so that searches pass it over; said as a RuntimeWarning."""
    details = decode_details(index.details) if index.details is not None else None
    if not isinstance(details, VectorDetails) or len(index.fields) != 1:
        return False
    column = column_of(snapshot.manifest.schema, index.fields[0])
    storage = "flat" if details.quantizer is None else details.quantizer.kind
    if not is_unstorable(vector_type(snapshot.manifest.schema, column)[0], details.metric, storage):
        return False
    warnings.warn(
        f"index {index.name} is left as it is: it stores int8 vectors scaled to length one, which whole numbers cannot "
        "hold. Drop it, or build an IVF_PQ or IVF_SQ index in its place.",
        RuntimeWarning,
        stacklevel=2,
    )
    return True


def rebuild_vectors(
    snapshot: Snapshot,
    index: IndexMetadata,
    fragments: Sequence[Fragment],
    *,
    attempt: str | None = None,
    retrain: bool = False,
) -> IndexMetadata:
    """A segment with the model of `index` over fragments of the snapshot; trained again on request, or when it is
    damaged."""
    column = column_of(snapshot.manifest.schema, index.fields[0])
    model = None
    try:
        model = model_of(open_vector_segment(snapshot, index), index)
    except (LanceError, OSError) as error:
        _LOG.warning("index %s (%s) cannot be read and is trained again: %s", index.name, index.uuid, error)
    element, _ = vector_type(snapshot.manifest.schema, column)
    if model is None or retrain:
        parameters = _parameters_of(index) if model is None else model.parameters
        model = train_index(snapshot, VectorRequest(column, index.name, parameters, element))
    if isinstance(model.quantizer, RabitQuantizer):
        model = replace(model, quantizer=model.quantizer.todays())
    request = VectorRequest(column, index.name, model.parameters, element)
    built = build_vector_segment(snapshot, request, model, fragments, attempt=attempt)
    return replace(built, clustering_id=index.clustering_id, metadata=index.metadata)


def _parameters_of(index: IndexMetadata) -> VectorParameters:
    """The manifest's description of an index whose files cannot be read."""
    details = decode_details(index.details) if index.details is not None else None
    assert isinstance(details, VectorDetails)
    quantizer = details.quantizer
    return VectorParameters(
        kind=vector_title(index) if quantizer is not None else "IVF_FLAT",
        metric=details.metric,
        num_partitions=details.target_num_partitions or 256,
        num_bits=0 if quantizer is None else quantizer.num_bits,
        num_sub_vectors=0 if quantizer is None else quantizer.num_sub_vectors,
    )


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
    """One segment of several; those without checksums are compared with their rows first, as the new one gets checksums.

    Raises InputError: none, of several columns, with different models, over the same rows; CorruptFileError.
    """
    if not segments:
        raise InputError("the list of segments to merge is empty")
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
                f"segments {first.uuid} and {segment.uuid} were trained separately",
                cure="Commit them as separate segments, or retrain.",
            )
        mine = segment.fragment_bitmap or frozenset()
        if not covered.isdisjoint(mine):
            raise InputError(f"segment {segment.uuid} covers fragments that another segment also covers")
        covered |= mine
        ensure_verified(snapshot, segment, mine, opened, VERIFIED)
        for codes in opened.codes():
            builder.add_codes(codes)
    assert builder is not None
    return _written(snapshot, first, builder, covered, None)


def _written(
    snapshot: Snapshot, like: IndexMetadata, builder: SegmentBuilder, covered: Iterable[int], attempt: str | None
) -> IndexMetadata:
    folder, files = write_segment(snapshot, builder, attempt)
    entry = described(snapshot, folder, like.name, like.fields[0], builder.model.parameters, files, frozenset(covered))
    told = {**like.metadata, **entry.metadata}
    return replace(entry, details=like.details, clustering_id=like.clustering_id, metadata=told)
