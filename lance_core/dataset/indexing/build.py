"""Build index segments: read one column with row ids, let the kind write its files, publish them with one CreateIndex.

::

    create_scalar_index(snapshot, "id", "BTREE")                         -> a new version with the index `id_idx`
    build_segment(snapshot, "id", "BTREE", fragment_ids=[0, 1])          -> a segment's entry, published by nobody yet

A segment's files are in `_indices/{uuid}/`; nobody sees them before the commit.
"""

from __future__ import annotations

import difflib
import itertools
import uuid as uuids
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from lance_core.arrow.to_arrow import value_type_of
from lance_core.commit.naming import INDEX_CHECKSUMS_HINT, INDEX_CHECKSUMS_KIND
from lance_core.commit.naming import index_uuid as new_index_uuid
from lance_core.dataset.indexing.folder import INDICES, paths_of, remove_folder, segments_named, training_batches
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.retry import StagedEdit, commit_with_retry
from lance_core.errors import CorruptFileError, InputError, UnknownIndexKindError, UnsupportedFeatureError, WrongTypeError
from lance_core.format.fragment import Fragment
from lance_core.format.index import IndexMetadata
from lance_core.format.schema import Schema, column_of
from lance_core.index.base import IndexFolder, IndexKind
from lance_core.index.over_json import may_hold_ids
from lance_core.index.registry import KINDS, kind_by_details, kind_by_name
from lance_core.index.vector.parameters import KINDS as VECTOR_KINDS
from lance_core.index.vector.parameters import unknown_parameter
from lance_core.table.moment import now_ns
from lance_core.table.operations.create_index import CreateIndex
from lance_core.table.transaction import Transaction
from lance_core.wire.index import encode_details


@dataclass(frozen=True)
class IndexRequest:
    """What is to be built. `parameters` are the kind's own (`rows_per_zone`)."""

    column: str
    kind: IndexKind
    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    is_named: bool = True
    """Whether the user chose the name; without one, an index of another kind keeps its own (`a_idx`, `a_idx_2`)."""


def parse_index_request(
    schema: Schema, column: str, index_type: str, name: str | None, parameters: Mapping[str, Any]
) -> IndexRequest:
    """Check the user's arguments. Raises InputError: no such column, kind, option, or a type the kind cannot index."""
    kind = kind_by_name(index_type) if isinstance(index_type, str) else None
    if kind is None:
        raise _unknown_kind(index_type)
    _check_type(column, kind, value_type_of(schema, schema.find(column)))
    for key in parameters:
        if key not in kind.parameters:
            raise TypeError(unknown_parameter(kind.name, key, kind.parameters))
    return IndexRequest(column, kind, name or f"{column}_idx", dict(parameters), bool(name))


def _check_type(column: str, kind: IndexKind, value_type: pa.DataType) -> None:
    if not kind.accepts(value_type):
        fitting = ", ".join(other.name for other in KINDS if other.accepts(value_type)) or "none"
        raise WrongTypeError(
            f"column {column!r} has type {value_type}, which {kind.name} indices do not support",
            cure=f"Kinds of scalar indices for that type: {fitting}.",
        )


def _unknown_kind(index_type: object) -> UnknownIndexKindError:
    kinds = [*(kind.name for kind in KINDS), *VECTOR_KINDS]
    near = difflib.get_close_matches(str(index_type).upper(), kinds, n=2)
    guess = f"Did you mean {' or '.join(near)}? " if near else ""
    return UnknownIndexKindError(
        f"index type {index_type!r} is not implemented", cure=f"{guess}The kinds are {', '.join(kinds)}."
    )


def with_free_name(snapshot: Snapshot, request: IndexRequest) -> IndexRequest:
    """The request under the first of `a_idx`, `a_idx_2`, … that is free, or names an index of this column and kind."""
    field_id = snapshot.manifest.schema.find(request.column).id
    for number in itertools.count(1):
        name = request.name if number == 1 else f"{request.name}_{number}"
        old = [index for index in snapshot.manifest.indices if index.name == name]
        if all(index.fields == (field_id,) and _is_of(index, request.kind) for index in old):
            return replace(request, name=name)
    raise AssertionError("numbers end")


def _is_of(index: IndexMetadata, kind: IndexKind) -> bool:
    return index.details is not None and kind_by_details(index.details.kind) is kind


def create_scalar_index(snapshot: Snapshot, request: IndexRequest, *, replaces: bool = True, train: bool = True) -> Snapshot:
    """Build an index over all fragments (none when not `train`) and publish it in the place of one of that name."""
    committed, _ = commit_with_retry(snapshot, lambda current: stage_index(current, request, replaces=replaces, train=train))
    return committed


def stage_index(snapshot: Snapshot, asked: IndexRequest, *, replaces: bool, train: bool) -> StagedEdit:
    """Write the files of a new index and describe its commit."""
    request = asked if asked.is_named else with_free_name(snapshot, asked)
    old = tuple(index for index in snapshot.manifest.indices if index.name == request.name)
    if old and not replaces:
        raise InputError(f"there is already an index named {request.name!r}", cure="Pass replace=True, or another name.")
    item = snapshot.manifest.schema.find(request.column)
    if any(index.fields != (item.id,) for index in old):
        raise InputError(f"the index {request.name!r} is on another column", cure="Pass another name.")
    fragments = snapshot.manifest.fragments if train else ()
    built = build_segment(snapshot, request, fragments)
    operation = CreateIndex(new_indices=(built,), removed_indices=old)
    return StagedEdit(Transaction(snapshot.version, str(uuids.uuid4()), operation), paths_of(built))


def build_segment(
    snapshot: Snapshot,
    request: IndexRequest,
    fragments: Sequence[Fragment],
    *,
    attempt: str | None = None,
    uuid: str | None = None,
) -> IndexMetadata:
    """Write one segment over some fragments of the snapshot and describe it; what was written goes when it fails."""
    manifest = snapshot.manifest
    item = manifest.schema.find(request.column)
    kind, value_type = request.kind, value_type_of(manifest.schema, item)
    _check_type(request.column, kind, value_type)  # the kind of an index that is there is what a manifest says
    details = encode_details(kind.describe(value_type, request.parameters))
    stable = manifest.uses_stable_row_ids
    if stable and not may_hold_ids(details):
        raise UnsupportedFeatureError(
            f"index {request.name!r}: this kind of JSON index does not support tables with stable row ids",
            cure="Use target_index_type='bitmap' or 'ngram'.",
        )
    uuid = uuid or new_index_uuid(attempt)
    folder = IndexFolder(snapshot.store, f"{INDICES}/{uuid}")
    by_address = kind.needs_addresses or not stable or kind.stable_version is not None
    batches = training_batches(snapshot, request.column, fragments, "_rowaddr" if by_address else "_rowid")
    try:
        files = kind.train(folder, batches, value_type, **request.parameters)
        folder.seal()
    except BaseException as error:
        remove_folder(snapshot, folder.path)
        if isinstance(error, UnicodeDecodeError):
            raise CorruptFileError(f"column {request.column!r} holds a string that is not valid UTF-8: {error}") from error
        raise
    return IndexMetadata(
        uuid=uuid,
        name=request.name,
        fields=(item.id,),
        dataset_version=snapshot.version,
        fragment_bitmap=frozenset(fragment.id for fragment in fragments),
        details=details,
        index_version=kind.stable_version if stable and kind.stable_version is not None else kind.written_version,
        created_at=now_ns() // 1_000_000,
        files=files,
        metadata={INDEX_CHECKSUMS_HINT: INDEX_CHECKSUMS_KIND},
    )


def drop_index(snapshot: Snapshot, name: str) -> Snapshot:
    """Publish a version without the index of that name. Raises InputError when there is none."""

    def plan(current: Snapshot) -> StagedEdit:
        gone = segments_named(current, name)
        return StagedEdit(Transaction(current.version, str(uuids.uuid4()), CreateIndex((), gone)))

    return commit_with_retry(snapshot, plan)[0]


def rebuild_request(
    snapshot: Snapshot, index: IndexMetadata, kind: IndexKind, parameters: Mapping[str, Any]
) -> IndexRequest:
    """The request that would build a segment like this one. Raises UnsupportedFeatureError for several columns."""
    if len(index.fields) != 1:
        raise UnsupportedFeatureError(f"index {index.name!r} is on {len(index.fields)} fields, expected one")
    return IndexRequest(column_of(snapshot.manifest.schema, index.fields[0]), kind, index.name, dict(parameters))


def rebuilt(segment: IndexMetadata, index: IndexMetadata, coverage: Collection[int]) -> IndexMetadata:
    """A rebuilt segment that replaces one with more metadata (an id of a cluster, metadata)."""
    told = {**index.metadata, **segment.metadata}
    return replace(segment, fragment_bitmap=frozenset(coverage), clustering_id=index.clustering_id, metadata=told)
