"""Change the columns of a table: add, drop, rename, retype. Only what changes is written.

::

    add_columns(snapshot, {"twice": "2 * x"})      a new data file beside the others in every fragment     (Merge)
    add_columns(snapshot, reader)                  the same, the rows given                                (Merge)
    add_columns(snapshot, pa.field("n", ...))      nothing written; reads as null                          (Merge)
    drop_columns(snapshot, ["a", "s.x"])           the schema only; dead files go when no field is left    (Project)
    alter_columns(snapshot, {"path": "a", "name": "b", "nullable": True, "data_type": pa.int32()})
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from lance_core.arrow import field_to_arrow, schema_from_arrow
from lance_core.commit.column_notes import remove_vanished
from lance_core.dataset.columns.column_files import FirstId, add_files, append_fields
from lance_core.dataset.columns.declared_rules import refuse_cast, refuse_vanishing_input, with_evidence
from lance_core.dataset.columns.from_stream import stage_reader
from lance_core.dataset.columns.udf import BatchUDF
from lance_core.dataset.scan.chain import is_narrow
from lance_core.dataset.scan.plan import LARGE_BATCH_ROWS
from lance_core.dataset.scan.projection import needs_of
from lance_core.dataset.scan.sinks import count_matching
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.retry import StagedEdit, commit_with_retry
from lance_core.dataset.write.sources import open_source
from lance_core.errors import InputError
from lance_core.expr import columns_of, evaluate_value, field_of, parse_value
from lance_core.format.fragment import Fragment
from lance_core.format.schema import Field, Schema, unusable_name
from lance_core.shortage import ARROW_ERRORS
from lance_core.table.field_ids import next_field_id
from lance_core.table.operations.merge import Merge
from lance_core.table.operations.project import Project
from lance_core.table.transaction import Transaction

Compute = Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True)
class NewColumns:
    """Columns to be added: their fields, and how to compute them from `reads` (None: they are null)."""

    fields: pa.Schema
    reads: tuple[str, ...] = ()
    compute: Compute | None = None


def add_columns(
    snapshot: Snapshot,
    transforms: Any,
    *,
    read_columns: Sequence[str] | None = None,
    reader_schema: pa.Schema | None = None,
    batch_size: int | None = None,
) -> Snapshot:
    """Add columns: SQL expressions by name, pyarrow fields (null columns), a function of record batches, or rows.

    A function gets batches of `read_columns` (all when None) with all physical rows of a fragment, deleted ones too, and
    returns batches of the new columns; a `batch_udf` with a checkpoint file goes on where it was interrupted. Rows (a
    table, a reader, batches with `reader_schema`) are as many as the table's, in its order; they are read once, so a
    conflict is not tried again. Raises InputError, FilterError, CommitError.
    """
    if is_rows(transforms):
        source = open_source(transforms, reader_schema)
        return commit_with_retry(snapshot, lambda current: stage_reader(current, source), retries=0)[0]
    committed, _ = commit_with_retry(snapshot, lambda current: stage_add(current, transforms, read_columns, batch_size))
    if isinstance(transforms, BatchUDF) and transforms.checkpoint is not None:
        transforms.checkpoint.forget()
    return committed


def is_rows(transforms: Any) -> bool:
    """Whether what is to be added is rows, not a way to compute them."""
    plain = isinstance(transforms, (Mapping, pa.Field, pa.Schema)) or callable(transforms)
    return not plain and not (isinstance(transforms, Sequence) and all(isinstance(item, pa.Field) for item in transforms))


def stage_add(
    snapshot: Snapshot, transforms: Any, read_columns: Sequence[str] | None = None, batch_size: int | None = None
) -> StagedEdit:
    """Write the files of new columns and describe the commit."""
    new = parse_transforms(snapshot, transforms, read_columns)
    taken = [name for name in new.fields.names if name in snapshot.arrow_schema.names]
    if taken or not new.fields.names:
        what = f"column {taken[0]!r} already exists" if taken else "no column was passed"
        raise InputError(f"cannot add columns: {what}", cure="Drop or rename it first." if taken else None)
    added = schema_from_arrow(new.fields, version=snapshot.manifest.file_version)
    schema, part = append_fields(snapshot.manifest, added, FirstId(next_field_id(snapshot.manifest)))
    fragments, files = tuple(snapshot.manifest.fragments), tuple[str, ...]()
    if new.compute is not None:
        # An expression over numbers does not mind how it is called; a user's function may.
        reads = snapshot.manifest.schema.project(needs_of(snapshot.manifest.schema, new.reads).field_ids)
        is_light = isinstance(transforms, Mapping) and is_narrow(reads)
        fragments, files = add_files(
            snapshot,
            part,
            reads=new.reads,
            compute=new.compute,
            batch_size=LARGE_BATCH_ROWS if is_light and batch_size is None else batch_size,
            checkpoint=transforms.checkpoint if isinstance(transforms, BatchUDF) else None,
        )
    nullable = all(item.nullable for item in part.top_level)
    operation = Merge(fragments, schema, preserves_nullability=nullable)
    return StagedEdit(Transaction(snapshot.version, str(uuids.uuid4()), operation), files)


def parse_transforms(snapshot: Snapshot, transforms: Any, read_columns: Sequence[str] | None) -> NewColumns:
    """What the caller wants added."""
    if isinstance(transforms, Mapping):
        return _from_sql(snapshot.arrow_schema, transforms)
    if isinstance(transforms, pa.Field):
        return NewColumns(pa.schema([transforms]))
    if isinstance(transforms, pa.Schema):
        return NewColumns(transforms)
    if isinstance(transforms, Sequence) and all(isinstance(item, pa.Field) for item in transforms):
        return NewColumns(pa.schema([*transforms]))
    if callable(transforms):
        return _from_function(snapshot.visible_schema, transforms, read_columns)
    raise InputError(
        f"cannot add columns from {type(transforms).__name__}",
        cure="Pass a dict of name to SQL, pyarrow fields, or a function of a record batch.",
    )


def _from_sql(schema: pa.Schema, transforms: Mapping[str, str]) -> NewColumns:
    expressions = {name: parse_value(sql, schema) for name, sql in transforms.items()}
    fields = pa.schema([field_of(name, expr, schema) for name, expr in expressions.items()])
    reads = {name for expr in expressions.values() for name in columns_of(expr)}

    def compute(batch: pa.RecordBatch) -> pa.RecordBatch:
        made = [_as_stored(evaluate_value(expr, batch), fields.field(name)) for name, expr in expressions.items()]
        return pa.RecordBatch.from_arrays(made, schema=fields)

    return NewColumns(fields, tuple(sorted(reads)), compute)


def _as_stored(values: Any, field: pa.Field[Any]) -> Any:
    try:
        return values if values.type == field.type else values.cast(field.type)
    except pa.ArrowInvalid as error:
        raise InputError(
            f"a value of column {field.name!r} does not fit {field.type}: {error}",
            cure="CAST an operand to a wider type in the expression.",
        ) from error


def _from_function(schema: pa.Schema, function: Any, read_columns: Sequence[str] | None) -> NewColumns:
    reads = tuple(schema.names if read_columns is None else read_columns)
    fields = getattr(function, "output_schema", None)
    if fields is None:
        # What it gives for no rows says what it will give.
        none = pa.RecordBatch.from_pylist([], schema=pa.schema([schema.field(name) for name in reads]))
        fields = as_batch(function(none)).schema
    return NewColumns(fields, reads, lambda batch: as_batch(function(batch)))


def as_batch(value: Any) -> pa.RecordBatch:
    """What a user's function returned, as one batch. InputError when it is none."""
    if isinstance(value, pa.RecordBatch):
        return value
    if type(value).__module__.split(".", 1)[0] == "pandas":
        return pa.RecordBatch.from_pandas(value, preserve_index=False)
    if isinstance(value, Mapping):
        return pa.RecordBatch.from_pydict(dict(value))
    raise InputError(f"the function returned {type(value).__name__}, expected a pyarrow.RecordBatch")


def drop_columns(snapshot: Snapshot, columns: Iterable[str]) -> Snapshot:
    """Drop columns, or fields of structs by dotted path. The data stays in the files until compaction."""
    names = [*columns]
    committed, _ = commit_with_retry(snapshot, lambda current: stage_drop(current, names))
    remove_vanished(committed.store, snapshot.manifest.schema, committed.manifest.schema)
    return committed


def stage_drop(snapshot: Snapshot, names: Sequence[str]) -> StagedEdit:
    """Describe the commit of a drop."""
    schema = snapshot.manifest.schema
    if not names:
        raise InputError("drop_columns needs at least one column")
    refuse_vanishing_input(schema, names, what="drop")
    names = with_evidence(schema, names)
    gone = {item.id for name in names for item in schema.descend(schema.find(name).id)}
    kept = replace(schema, fields=tuple(item for item in schema.fields if item.id not in gone))
    emptied = [item.name for item in kept.fields if schema.children(item.id) and not kept.children(item.id)]
    if emptied or not kept.fields:
        what = f"struct {emptied[0]!r} without fields" if emptied else "table without columns"
        raise InputError(f"dropping {', '.join(names)} would leave a {what}", cure="Drop the parent, or the table.")
    return StagedEdit(Transaction(snapshot.version, str(uuids.uuid4()), Project(kept, preserves_nullability=True)))


def alter_columns(snapshot: Snapshot, alterations: Sequence[Mapping[str, Any]]) -> Snapshot:
    """Rename, retype, or change nullability: dicts with "path" and some of "name", "nullable", "data_type"."""
    committed, _ = commit_with_retry(snapshot, lambda current: stage_alter(current, alterations))
    return committed


def stage_alter(snapshot: Snapshot, alterations: Sequence[Mapping[str, Any]]) -> StagedEdit:
    """Write the files of retyped columns and describe the commit."""
    if not alterations:
        raise InputError("alter_columns needs at least one change")
    schema, keeps_nulls = snapshot.manifest.schema, True
    retyped: dict[int, pa.DataType] = {}
    for change in alterations:
        unknown = set(change) - {"path", "name", "nullable", "data_type"}
        if unknown or "path" not in change:
            raise InputError(f"an alteration may have the keys path, name, nullable and data_type, got {sorted(change)}")
        field = snapshot.manifest.schema.find(change["path"])
        if change.get("nullable") is False and field.nullable:
            _require_no_nulls(snapshot, change["path"])
            keeps_nulls = False
        _refuse_for_declared(snapshot.manifest.schema, change)
        schema = _altered(schema, field.id, change)
        if change.get("data_type") is not None:
            retyped[field.id] = change["data_type"]
    if not retyped:
        return StagedEdit(
            Transaction(snapshot.version, str(uuids.uuid4()), Project(schema, preserves_nullability=keeps_nulls))
        )
    return _retype(snapshot, schema, retyped, keeps_nulls=keeps_nulls)


def _refuse_for_declared(schema: Schema, change: Mapping[str, Any]) -> None:
    if change.get("data_type") is not None:
        refuse_cast(schema, change["path"])
        refuse_vanishing_input(schema, [change["path"]], what="change the type of")
    if change.get("name") not in (None, change["path"].rpartition(".")[2]):
        refuse_vanishing_input(schema, [change["path"]], what="rename")


def _altered(schema: Schema, field_id: int, change: Mapping[str, Any]) -> Schema:
    field = schema.by_id[field_id]
    name = field.name if change.get("name") is None else change["name"]
    if not isinstance(name, str):
        raise InputError(f"cannot rename {field.name!r}: a name must be a string, got {name!r}")
    why = unusable_name(name) if name != field.name and field.parent_id not in schema.by_id else ""
    if why:
        raise InputError(f"cannot rename {field.name!r}: {why}", cure="Choose another name.")
    if name != field.name and any(item.name == name for item in schema.children(field.parent_id)):
        raise InputError(
            f"cannot rename {field.name!r}: column {name!r} already exists",
            cure="Choose another name, or drop that column first.",
        )
    nullable = field.nullable if change.get("nullable") is None else bool(change["nullable"])
    changed = replace(field, name=name, nullable=nullable)
    return replace(schema, fields=tuple(changed if item.id == field_id else item for item in schema.fields))


def _require_no_nulls(snapshot: Snapshot, path: str) -> None:
    quoted = ".".join(f"`{name}`" for name in path.split("."))
    nulls = count_matching(snapshot, f"{quoted} is null")
    if nulls:
        raise InputError(
            f"column {path!r} has {nulls} nulls, so it cannot become non-nullable", cure="Update the null values first."
        )


def _retype(snapshot: Snapshot, schema: Schema, retyped: Mapping[int, pa.DataType], *, keeps_nulls: bool) -> StagedEdit:
    """Write retyped top-level columns under new ids; the old columns stay in their files, without a field."""
    manifest = snapshot.manifest
    first = next_field_id(manifest)
    fields: list[Field] = [*schema.fields]
    part: list[Field] = []
    old_names: dict[str, str] = {}
    for field_id, data_type in retyped.items():
        field = schema.by_id[field_id]
        if field.parent_id in schema.by_id or schema.children(field_id):
            raise InputError(f"column {field.name!r}: the type of nested columns and of their fields cannot be changed")
        as_arrow = field_to_arrow(schema, field).with_type(data_type)
        made = schema_from_arrow(pa.schema([as_arrow]), version=manifest.file_version).fields
        if len(made) != 1:
            raise InputError(f"column {field.name!r} ({field.type}) cannot be converted to {data_type}", cure=_COMPUTE)
        new = replace(made[0], id=first + len(part))
        part.append(new)
        fields[fields.index(field)] = new
        old_names[new.name] = manifest.schema.by_id[field_id].name

    target = Schema(tuple(part))

    def compute(batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [_cast(batch.column(old_names[item.name]), field_to_arrow(target, item)) for item in part]
        return pa.RecordBatch.from_arrays(arrays, names=[item.name for item in part])

    reads = tuple(old_names[item.name] for item in part)
    fragments, files = add_files(snapshot, target, reads=reads, compute=compute)
    changed = replace(schema, fields=tuple(fields))
    # A file of nothing but old columns is one the official library calls corrupt.
    living = tuple(_without_dead(fragment, changed) for fragment in fragments)
    operation = Merge(living, changed, preserves_nullability=keeps_nulls)
    return StagedEdit(Transaction(snapshot.version, str(uuids.uuid4()), operation), files)


def _without_dead(fragment: Fragment, schema: Schema) -> Fragment:
    files = tuple(file for file in fragment.files if not schema.by_id.keys().isdisjoint(file.fields))
    return fragment if len(files) == len(fragment.files) else replace(fragment, files=files)


def _cast(array: Any, field: Any) -> Any:
    try:
        return array.cast(field.type)
    except ARROW_ERRORS as error:
        raise InputError(f"column {field.name!r} cannot be converted to {field.type}: {error}", cure=_COMPUTE) from error


_COMPUTE = "Add a column that computes the values in SQL, drop this one, and give the new one its name."
