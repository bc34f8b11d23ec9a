"""Build vector indices: train once on a sample, build segments over groups of fragments, publish them in one commit.

::

    model   = train_index(snapshot, request)                    anywhere, once
    segment = build_vector_segment(snapshot, request, model, fragments)       per task; published by nobody yet
    whole   = merge_segments(snapshot, [segment, ...])          optional: one segment of several with the same model
    commit_segments(snapshot, request.name, request.column, [whole])

A task's memory is its segment's codes and one batch of vectors.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Floats, Ids
from lance_core.arrow_numpy import numpy_of
from lance_core.commit.naming import INDEX_CHECKSUMS_HINT, INDEX_CHECKSUMS_KIND
from lance_core.commit.naming import index_uuid as new_index_uuid
from lance_core.dataset.indexing.folder import INDICES, paths_of, remove_folder
from lance_core.dataset.scan.flat_knn import vectors_of
from lance_core.dataset.scan.nearest_request import vector_type
from lance_core.dataset.scan.plan import LARGE_BATCH_ROWS, plan_scan
from lance_core.dataset.scan.projection import plan_projection
from lance_core.dataset.scan.sinks import scan
from lance_core.dataset.scan.take import take_rows
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.retry import StagedEdit, commit_with_retry
from lance_core.errors import InputError
from lance_core.format.fragment import Fragment
from lance_core.format.index import IndexFile, IndexMetadata
from lance_core.format.index_details import Metric
from lance_core.index.base import IndexFolder
from lance_core.index.vector.model import VectorModel, sample_size, train_model
from lance_core.index.vector.parameters import KINDS, VectorParameters, parse_parameters
from lance_core.index.vector.segment import SegmentBuilder, build
from lance_core.table.moment import now_ns
from lance_core.table.operations.create_index import CreateIndex
from lance_core.table.transaction import Transaction
from lance_core.wire.index import encode_details

VECTOR_DETAILS = "VectorIndexDetails"
VERSIONS = {"rq": 2}
"""The index version written; 1 for other kinds of storage."""
BATCH_BYTES = 64 << 20
SCAN_SHARE = 0.1
"""Samples of a larger share of the rows are taken from a scan instead of row by row."""


@dataclass(frozen=True, eq=False)
class VectorRequest:
    """What is to be built. `centroids` and `codebook` given are used instead of trained ones."""

    column: str
    name: str
    parameters: VectorParameters
    element: np.dtype[Any]
    centroids: Floats | None = None
    codebook: Floats | None = None


def parse_vector_request(
    snapshot: Snapshot,
    column: str,
    index_type: str,
    name: str | None,
    *,
    ivf_centroids: Any = None,
    pq_codebook: Any = None,
    **parameters: Any,
) -> VectorRequest:
    """Check the user's arguments. Raises InputError; TypeError for an unknown option."""
    element, dimension = vector_type(snapshot.manifest.schema, column)
    centroids = None if ivf_centroids is None else _numbers(ivf_centroids, "ivf_centroids")
    codebook = None if pq_codebook is None else _numbers(pq_codebook, "pq_codebook")
    if codebook is not None and centroids is None:
        raise InputError("pq_codebook needs ivf_centroids", cure="Pass both.")
    if centroids is not None:
        centroids = centroids.reshape(-1, dimension)
        asked = parameters.get("num_partitions")
        if len(centroids) == 0 or (asked is not None and asked != len(centroids)):
            raise InputError(f"ivf_centroids has {len(centroids)} clusters, but num_partitions is {asked}")
        parameters = {**parameters, "num_partitions": len(centroids)}
    parsed = parse_parameters(index_type, dimension=dimension, num_rows=snapshot.manifest.num_rows, **parameters)
    if codebook is not None and parsed.storage == "pq":
        codebook = codebook.reshape(parsed.num_sub_vectors, 1 << parsed.num_bits, -1)
    if element == np.uint8 or parsed.metric == "hamming":
        raise InputError(f"{parsed.kind} over {element} vectors by {parsed.metric} distance is not implemented")
    if is_unstorable(element, parsed.metric, parsed.storage):
        raise InputError(
            f"{parsed.kind} over int8 vectors by cosine distance is not possible: "
            "it stores vectors of length one, which whole numbers cannot hold",
            cure=f"Use one of {', '.join(kind for kind, (storage, _) in KINDS.items() if storage != 'flat')}, or l2 or dot.",
        )
    return VectorRequest(column, name or f"{column}_idx", parsed, element, centroids, codebook)


def is_unstorable(element: np.dtype[Any], metric: Metric, storage: str) -> bool:
    """Whether an index would store vectors scaled to length one as whole numbers: all of them are zeros then."""
    return element == np.int8 and metric == "cosine" and storage == "flat"


def _numbers(given: Any, what: str) -> Floats:
    values = given
    while hasattr(values, "flatten") and hasattr(values, "type"):
        flat = values.flatten()
        if flat.type == values.type:
            values = numpy_of(flat, may_copy=True)
            break
        values = flat
    try:
        return np.ascontiguousarray(values, np.float32)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} is not an array of numbers: {error}") from error


def train_index(snapshot: Snapshot, request: VectorRequest) -> VectorModel:
    """The model all segments of the index share, from a sample of the whole column."""
    parameters = request.parameters
    storage = parameters.storage
    is_given = request.centroids is not None and (storage in ("flat", "rq") or request.codebook is not None)
    _, dimension = vector_type(snapshot.manifest.schema, request.column)
    wanted = 1 if is_given else sample_size(parameters, dimension)
    sample = sample_vectors(snapshot, request.column, wanted, seed=parameters.seed)
    return train_model(parameters, sample, element=request.element, centroids=request.centroids, codebook=request.codebook)


def sample_vectors(snapshot: Snapshot, column: str, count: int, *, seed: int) -> Floats:
    """About `count` vectors of random rows (all, when there are no more), float32[n, dimension]."""
    total = snapshot.manifest.num_rows
    rng = np.random.default_rng(seed)
    if total * SCAN_SHARE > count:
        rows = np.unique(rng.integers(0, total, count))
        table = take_rows(snapshot, rows, plan_projection(snapshot.manifest.schema, [column]))
        return vectors_of(table.column(0).combine_chunks(), np.dtype(np.float32))[0]
    share = min(1.0, count / max(1, total))
    found = []
    for rows_here, _ in vector_batches(snapshot, column, snapshot.manifest.fragments):
        picked = rng.random(len(rows_here)) < share if share < 1 else slice(None)
        found.append(rows_here[picked])
    return np.concatenate(found) if found else np.empty((0, 0), np.float32)


def vector_batches(snapshot: Snapshot, column: str, fragments: Sequence[Fragment]) -> Iterator[tuple[Floats, Ids]]:
    """(vectors float32[n, dimension], row ids) of the live rows that have a vector."""
    schema = snapshot.manifest.schema
    element, dimension = vector_type(schema, column)
    size = max(1024, min(LARGE_BATCH_ROWS, BATCH_BYTES // max(1, element.itemsize * dimension)))
    plan = plan_scan(schema, fragments, plan_projection(schema, [column, "_rowid"]))
    for batch in scan(snapshot, plan, batch_size=size):
        rows, present = vectors_of(batch.column(0), np.dtype(np.float32))
        ids: npt.NDArray[np.uint64] = numpy_of(batch.column(1))
        if len(rows):
            yield rows, ids if present is None else ids[present]


def build_vector_segment(
    snapshot: Snapshot,
    request: VectorRequest,
    model: VectorModel,
    fragments: Sequence[Fragment],
    *,
    attempt: str | None = None,
) -> IndexMetadata:
    """Write one segment over some fragments of the snapshot and describe it; what was written goes when it fails."""
    folder = _new_folder(snapshot, attempt)
    try:
        files = build(model, vector_batches(snapshot, request.column, fragments), folder)
        folder.seal()
    except BaseException:
        remove_folder(snapshot, folder.path)
        raise
    item = snapshot.manifest.schema.find(request.column)
    covered = frozenset(fragment.id for fragment in fragments)
    return described(snapshot, folder, request.name, item.id, model.parameters, files, covered)


def _new_folder(snapshot: Snapshot, attempt: str | None) -> IndexFolder:
    return IndexFolder(snapshot.store, f"{INDICES}/{new_index_uuid(attempt)}")


def write_segment(
    snapshot: Snapshot, builder: SegmentBuilder, attempt: str | None
) -> tuple[IndexFolder, tuple[IndexFile, ...]]:
    """Write what a builder collected into a separate folder."""
    folder = _new_folder(snapshot, attempt)
    try:
        files = builder.write(folder)
        folder.seal()
        return folder, files
    except BaseException:
        remove_folder(snapshot, folder.path)
        raise


def described(
    snapshot: Snapshot,
    folder: IndexFolder,
    name: str,
    field_id: int,
    parameters: VectorParameters,
    files: tuple[IndexFile, ...],
    covered: frozenset[int],
) -> IndexMetadata:
    """The manifest's entry for a segment that was written."""
    return IndexMetadata(
        uuid=folder.path.rsplit("/", 1)[-1],
        name=name,
        fields=(field_id,),
        dataset_version=snapshot.version,
        fragment_bitmap=covered,
        details=encode_details(parameters.details()),
        index_version=VERSIONS.get(parameters.storage, 1),
        created_at=now_ns() // 1_000_000,
        files=files,
        metadata={INDEX_CHECKSUMS_HINT: INDEX_CHECKSUMS_KIND},
    )


def create_vector_index(
    snapshot: Snapshot, request: VectorRequest, *, replaces: bool, attempt: str | None = None
) -> Snapshot:
    """Train, build one segment over all fragments and publish it in the place of an index of that name."""

    def plan(current: Snapshot) -> StagedEdit:
        old = _replaced(current, request.name, request.column, replaces=replaces)
        model = train_index(current, request)
        built = build_vector_segment(current, request, model, current.manifest.fragments, attempt=attempt)
        operation = CreateIndex(new_indices=(built,), removed_indices=old)
        return StagedEdit(Transaction(current.version, str(uuids.uuid4()), operation), paths_of(built))

    return commit_with_retry(snapshot, plan)[0]


def _replaced(snapshot: Snapshot, name: str, column: str, *, replaces: bool) -> tuple[IndexMetadata, ...]:
    old = tuple(index for index in snapshot.manifest.indices if index.name == name)
    if old and not replaces:
        raise InputError(f"there is already an index named {name!r}", cure="Pass replace=True, or another name.")
    field_id = snapshot.manifest.schema.find(column).id
    if any(index.fields != (field_id,) for index in old):
        raise InputError(f"the index {name!r} is on another column", cure="Pass another name.")
    return old
