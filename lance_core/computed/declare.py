"""Declare a column, take the declaration back, and give a column that others declared its evidence.

::

    declare(snapshot, "doubled", sql's declaration, pa.int64())
    new column       one commit: value and evidence, both null, no file written       (Merge)
    existing column  one commit: the declaration in its field, the evidence beside it  (Merge)
    declared again   the field's metadata alone                                        (UpdateConfig)
"""

from __future__ import annotations

import secrets
import uuid as uuids
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lance_core.arrow import schema_from_arrow
from lance_core.arrow.digests import type_signature
from lance_core.commit.column_notes import remove_vanished
from lance_core.computed.blob_inputs import blob_fields
from lance_core.computed.declaration import Declaration, find_declared, in_order
from lance_core.dataset.columns.column_files import FirstId, append_fields
from lance_core.dataset.edit.metadata import stage_fields
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.retry import StagedEdit, commit_with_retry
from lance_core.errors import InputError, UnsupportedFeatureError
from lance_core.expr import columns_of, parse_filter
from lance_core.format import declared
from lance_core.format.declared import EVIDENCE_OF, EVIDENCE_SIZE, ID, OTHERS_PREFIX, OWN_KEYS, evidence_of, is_column_id
from lance_core.format.schema import Field, Schema
from lance_core.table.field_ids import next_field_id
from lance_core.table.operations.merge import Merge
from lance_core.table.operations.project import Project
from lance_core.table.transaction import Transaction


def declare(snapshot: Snapshot, name: str, declaration: Declaration, kind: pa.DataType | None) -> Snapshot:
    """Declare a column, which is added where the table has none of that name; nothing is computed.

    `kind` is the type of a column that is added. InputError for inputs that are not there, a circle, another type.
    """
    return commit_with_retry(snapshot, lambda current: _stage(current, name, declaration, kind))[0]


def _stage(snapshot: Snapshot, name: str, declaration: Declaration, kind: pa.DataType | None) -> StagedEdit:
    schema = snapshot.manifest.schema
    if snapshot.manifest.file_version.is_legacy:
        raise UnsupportedFeatureError(
            f"columns of a table of file version {snapshot.manifest.file_version.text} cannot be declared",
            uri=snapshot.uri,
            cure="Overwrite the table with a newer data_storage_version.",
        )
    _check_inputs(snapshot, name, declaration)
    existing = next((item for item in schema.top_level if item.name == name), None)
    if existing is None:
        if kind is None:
            raise InputError(f"column {name!r} is not in the table, so its type must be given", cure="Pass its type.")
        return _add(snapshot, name, _with_id(declaration, None), kind)
    if not existing.nullable:
        raise InputError(f"column {name!r} is not nullable, and a row that is not computed yet is null")
    if declared.is_evidence(existing):
        raise InputError(f"column {name!r} is the evidence of a declared column")
    _check_type(snapshot, name, kind)
    declaration = _with_id(declaration, existing)
    _check_order(snapshot, existing, declaration)
    if evidence_of(schema, existing) is not None:
        return stage_fields(snapshot, {name: _changes(existing, declaration)})
    return _add_evidence(snapshot, existing, declaration)


def _with_id(declaration: Declaration, existing: Field | None) -> Declaration:
    known = "" if existing is None else declared.text_of(existing.metadata, ID)
    return replace(declaration, id=known if is_column_id(known) else secrets.token_hex(8))


def _check_inputs(snapshot: Snapshot, name: str, declaration: Declaration) -> None:
    schema = snapshot.manifest.schema
    there = [path for path in declaration.inputs if declared.has_path(schema, path)]
    blobs = {item.name for item in blob_fields(schema, there)}
    for path in declaration.inputs:
        if not declared.has_path(schema, path):
            raise InputError(f"column {name!r} cannot be declared: the table has no column {path!r}, which it reads")
        if path.partition(".")[0] == name:
            raise InputError(
                f"column {name!r} cannot be declared: it reads itself", cure="Give the computed column another name."
            )
        for item in schema.descend(schema.find(path).id):
            if declared.is_evidence(item):
                raise InputError(f"column {name!r} cannot be declared: {path!r} is evidence, not a column to read")
        if path not in blobs:
            type_signature(snapshot.arrow_schema.field(path.partition(".")[0]).type)
    asked = columns_of(parse_filter(declaration.where, snapshot.arrow_schema)) if declaration.where else ()
    read = sorted(blobs if declaration.kind == "sql" else blobs & {*asked})
    if read:
        reader = "SQL" if declaration.kind == "sql" else "where"
        raise InputError(
            f"column {name!r} cannot be declared: {read[0]!r} holds blobs, which {reader} cannot read",
            cure="Read them in a function.",
        )


def _check_type(snapshot: Snapshot, name: str, kind: pa.DataType | None) -> None:
    there = snapshot.arrow_schema.field(name).type
    if kind is not None and kind != there:
        raise InputError(
            f"column {name!r} is {there} in the table, but {kind} would be computed", cure="CAST it, or use another name."
        )
    type_signature(there)


def _check_order(snapshot: Snapshot, existing: Field, declaration: Declaration) -> None:
    """InputError when the declaration closes a circle."""
    schema = snapshot.manifest.schema
    metadata = {**existing.metadata, **{key: value.encode() for key, value in declaration.metadata().items()}}
    in_order(_with_field(schema, replace(existing, metadata=metadata)))


def _with_field(schema: Schema, changed: Field) -> Schema:
    return replace(schema, fields=tuple(changed if item.id == changed.id else item for item in schema.fields))


def _changes(existing: Field, declaration: Declaration) -> dict[str, str | None]:
    """Keys to set, and those of LanceDB's refresh to forget: what it computed, it computed by another definition."""
    forgotten: dict[str, str | None] = {key: None for key in existing.metadata if key.startswith(OTHERS_PREFIX)}
    return {**forgotten, **declaration.metadata()}


def _add(snapshot: Snapshot, name: str, declaration: Declaration, kind: pa.DataType) -> StagedEdit:
    type_signature(kind)
    first = next_field_id(snapshot.manifest)
    value = pa.field(name, kind, metadata=declaration.metadata())
    fields = [value, _evidence_field(snapshot.manifest.schema, first, declaration.id)]
    added = schema_from_arrow(pa.schema(fields), version=snapshot.manifest.file_version)
    schema, _ = append_fields(snapshot.manifest, added, FirstId(first))
    in_order(schema)
    return _merge(snapshot, schema)


def _add_evidence(snapshot: Snapshot, existing: Field, declaration: Declaration) -> StagedEdit:
    first = next_field_id(snapshot.manifest)
    fields = [_evidence_field(snapshot.manifest.schema, existing.id, declaration.id)]
    added = schema_from_arrow(pa.schema(fields), version=snapshot.manifest.file_version)
    schema, _ = append_fields(snapshot.manifest, added, FirstId(first))
    kept = {key: value for key, value in existing.metadata.items() if not key.startswith(OTHERS_PREFIX)}
    metadata = {**kept, **{key: value.encode() for key, value in declaration.metadata().items()}}
    return _merge(snapshot, _with_field(schema, replace(existing, metadata=metadata)))


def _evidence_field(schema: Schema, field_id: int, column_id: str) -> Any:
    taken = {item.name for item in schema.top_level}
    name = next(name for name in (f"_evidence_{field_id}", f"_evidence_{column_id}") if name not in taken)
    return pa.field(name, pa.binary(EVIDENCE_SIZE), metadata={EVIDENCE_OF: f"{field_id}:{column_id}"})


def _merge(snapshot: Snapshot, schema: Schema) -> StagedEdit:
    """The commit of a schema, without evidence of columns that are no more: others dropped them, or cast them."""
    live = {found.id for item in declared.declared_fields(schema) if (found := evidence_of(schema, item)) is not None}
    schema = replace(
        schema, fields=tuple(item for item in schema.fields if item.id in live or not declared.is_evidence(item))
    )
    operation = Merge(tuple(snapshot.manifest.fragments), schema, preserves_nullability=True)
    return StagedEdit(Transaction(snapshot.version, str(uuids.uuid4()), operation))


def undeclare(snapshot: Snapshot, name: str) -> Snapshot:
    """Take a declaration back: the column stays as it is, its evidence goes, and with it the values and notes that are kept
    beside the table. InputError when it is not declared."""
    committed = commit_with_retry(snapshot, lambda current: _stage_undeclare(current, name))[0]
    remove_vanished(committed.store, snapshot.manifest.schema, committed.manifest.schema)
    return committed


def _stage_undeclare(snapshot: Snapshot, name: str) -> StagedEdit:
    schema = snapshot.manifest.schema
    existing = find_declared(schema, name)
    evidence = evidence_of(schema, existing)
    kept = {
        key: value for key, value in existing.metadata.items() if key not in OWN_KEYS and not key.startswith(OTHERS_PREFIX)
    }
    changed = _with_field(schema, replace(existing, metadata=kept))
    fields = tuple(item for item in changed.fields if evidence is None or item.id != evidence.id)
    operation = Project(replace(changed, fields=fields), preserves_nullability=True)
    return StagedEdit(Transaction(snapshot.version, str(uuids.uuid4()), operation))


def give_evidence(snapshot: Snapshot, item: Field, declaration: Declaration) -> Snapshot:
    """The table with an evidence column for a column that was declared elsewhere, or whose evidence was dropped."""

    def stage(current: Snapshot) -> StagedEdit:
        field = next((found for found in declared.declared_fields(current.manifest.schema) if found.id == item.id), None)
        if field is None:
            raise InputError(f"column {item.name!r} is not declared any more", cure="Refresh the other columns.")
        return _add_evidence(current, field, _with_id(declaration, field))

    return commit_with_retry(snapshot, stage)[0]
