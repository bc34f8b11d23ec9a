"""Cast a batch to the exact types of a schema, only by conversions that cannot change a value.

string_view -> string        struct<y, x> -> struct<x, y>        dictionary(ordered) -> dictionary
a missing nullable field of a struct -> nulls                    utf8 -> arrow.json
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_core.arrow.buffers import with_buffers
from lance_core.arrow.kinds import as_dictionary, as_extension, as_list, as_struct, list_type
from lance_core.arrow.logical import BLOB_V2, EXTENSION_NAME
from lance_core.arrow.to_arrow import schema_to_arrow
from lance_core.arrow_numpy import numpy_of
from lance_core.errors import SchemaMismatchError
from lance_core.format.schema import Schema
from lance_core.shortage import ARROW_ERRORS


def cast_batch(batch: pa.RecordBatch, schema: Schema, *, first_row: int = 0) -> pa.RecordBatch:
    """The batch's columns, picked by name, in the order and exact types of `schema` (see `schema_to_arrow`).

    `first_row` is the number of the batch's first row in the whole input; it is only used in messages.
    Raises SchemaMismatchError, naming column and row, for a missing column, a type that does not match, or a null in a
    field that is not nullable. Use `check_compatible` first to learn which columns a table accepts.
    """
    return BatchCaster(schema).cast(batch, first_row=first_row)


@dataclass(frozen=True)
class ExactBatches:
    """Batches that have the exact types of a schema, their nulls checked, so that no layer below casts them again."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self.batches


class BatchCaster:
    """`cast_batch` for many batches of one schema, which is translated once."""

    def __init__(self, schema: Schema) -> None:
        self._target = schema_to_arrow(schema)
        # Without extension types a batch that has the target's schema needs no more than a look at its nulls.
        self._is_plain = not any(item.extension_name or item.metadata for item in schema.fields)
        self._is_nullable = all(item.nullable for item in schema.fields)

    def cast(self, batch: pa.RecordBatch, *, first_row: int = 0) -> pa.RecordBatch:
        """See `cast_batch`."""
        if self._is_plain and self._is_nullable and batch.schema.equals(self._target, check_metadata=True):
            return batch
        arrays = [_column(batch, field, first_row=first_row) for field in self._target]
        # Built from parts: `pa.record_batch` would lose the row count of a batch without columns.
        if not arrays:
            return batch.select([])
        return pa.RecordBatch.from_arrays(arrays, schema=self._target)

    def stream(self, batches: Iterable[pa.RecordBatch]) -> ExactBatches:
        """Cast each batch that has rows; a stream that is of the schema already is handed on as it is."""
        if isinstance(batches, ExactBatches) and batches.schema.equals(self._target, check_metadata=True):
            return batches
        return ExactBatches(self._target, self._cast_all(batches))

    def _cast_all(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        first_row = 0
        for batch in batches:
            if batch.num_rows:
                yield self.cast(batch, first_row=first_row)
                first_row += batch.num_rows


def _column(batch: pa.RecordBatch, field: pa.Field[Any], *, first_row: int) -> pa.Array[Any]:
    index = batch.schema.get_field_index(field.name)
    if index < 0:
        raise SchemaMismatchError(f"column {field.name!r} ({field.type}) is missing from the data")
    array = _cast_field(batch.column(index), field, path=field.name)
    check_nulls(array, field, path=field.name, first_row=first_row)
    return array


def _cast_field(array: pa.Array[Any], field: pa.Field[Any], *, path: str) -> pa.Array[Any]:
    """`array` as the field has it; plain bytes may stand for blobs."""
    if _is_blob(field) and str(array.type) in _BYTES:
        array = _as_blob(array)
    return cast_array(array, field.type, path=path)


def _is_blob(field: pa.Field[Any]) -> bool:
    if isinstance(field.type, pa.BaseExtensionType):
        return bool(field.type.extension_name == BLOB_V2)
    return (field.metadata or {}).get(EXTENSION_NAME.encode()) == BLOB_V2.encode()


def _as_blob(array: pa.Array[Any]) -> pa.Array[Any]:
    """Plain bytes as blob v2 values."""
    data = array.cast(pa.large_binary())
    mask = data.is_null() if data.null_count else None
    return pa.StructArray.from_arrays([data, pa.nulls(len(data), pa.string())], names=["data", "uri"], mask=mask)


def cast_array(array: pa.Array[Any], target: pa.DataType, *, path: str) -> pa.Array[Any]:
    """`array` in the type `target`, or SchemaMismatchError naming the column at `path`."""
    if array.type == target and not isinstance(target, pa.BaseExtensionType):
        return array
    if isinstance(target, pa.BaseExtensionType):
        if array.type == target:
            return array
        return pa.ExtensionArray.from_storage(target, cast_array(array, target.storage_type, path=path))
    if isinstance(array.type, pa.BaseExtensionType):
        return cast_array(as_extension(array).storage, target, path=path)
    types = pa.types
    if types.is_struct(target) and types.is_struct(array.type):
        return _cast_struct(as_struct(array), target, path=path)
    if _is_list(target) and target.id == array.type.id:
        return _cast_list(array, target, path=path)
    if _is_harmless(array.type, target):
        try:
            return pc.cast(with_buffers(array), target, safe=True)
        except ARROW_ERRORS as error:
            raise _mismatch(array.type, target, path=path) from error
    raise _mismatch(array.type, target, path=path)


def without_views(data: pa.Table) -> pa.Table:
    """The same with views of text and bytes, of which Arrow picks no rows, as text and bytes, at any depth."""
    types = [_plain_type(kind) for kind in data.schema.types]
    if types == data.schema.types:
        return data
    fields = [field.with_type(kind) for field, kind in zip(data.schema, types, strict=True)]
    return data.cast(pa.schema(fields, cast("Any", data.schema.metadata)))


def _plain_type(kind: Any) -> Any:
    types = pa.types
    if "_view" not in str(kind) or isinstance(kind, pa.BaseExtensionType):
        return kind
    if types.is_string_view(kind) or types.is_binary_view(kind):
        return pa.string() if types.is_string_view(kind) else pa.binary()
    if types.is_struct(kind):
        return pa.struct([_plain_field(kind.field(number)) for number in range(kind.num_fields)])
    if types.is_map(kind):
        make: Any = pa.map_
        return make(_plain_field(kind.key_field), _plain_field(kind.item_field), keys_sorted=kind.keys_sorted)
    if types.is_fixed_size_list(kind):
        return pa.list_(_plain_field(kind.value_field), kind.list_size)
    if types.is_list(kind) or types.is_large_list(kind):
        return (pa.list_ if types.is_list(kind) else pa.large_list)(_plain_field(kind.value_field))
    return kind


def _plain_field(field: Any) -> Any:
    return field.with_type(_plain_type(field.type))


def _mismatch(got: pa.DataType, expected: pa.DataType, *, path: str) -> SchemaMismatchError:
    return SchemaMismatchError(f"column {path!r}: expected {expected}, got {got}", cure="Cast the column before writing it.")


_TEXT = frozenset({"string", "string_view", "large_string"})
_BYTES = frozenset({"binary", "binary_view", "large_binary"})


def _is_harmless(got: pa.DataType, expected: pa.DataType) -> bool:
    if pa.types.is_dictionary(expected):
        return bool(pa.types.is_dictionary(got) and got.index_type == expected.index_type)
    names = (str(got), str(expected))
    return all(name in _TEXT for name in names) or all(name in _BYTES for name in names)


def _is_list(arrow_type: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_list(arrow_type)
        or types.is_large_list(arrow_type)
        or types.is_map(arrow_type)
        or types.is_fixed_size_list(arrow_type)
    )


def _cast_struct(array: pa.StructArray, target: pa.StructType, *, path: str) -> pa.Array[Any]:
    names = {array.type.field(i).name: i for i in range(array.type.num_fields)}
    fields = [target.field(i) for i in range(target.num_fields)]
    unexpected = set(names) - {field.name for field in fields}
    if unexpected or (not fields and names):
        raise SchemaMismatchError(f"column {path!r} has fields that are not in the schema: {sorted(unexpected)}")
    children = []
    for field in fields:
        child_path = f"{path}.{field.name}"
        if field.name in names:
            children.append(_cast_field(array.field(names[field.name]), field, path=child_path))
        elif field.nullable:
            children.append(pa.nulls(len(array), field.type))
        else:
            raise SchemaMismatchError(f"column {child_path!r} ({field.type}, not nullable) is missing from the data")
    if not children:
        return pa.Array.from_buffers(target, len(array), [array.buffers()[0]], offset=array.offset, children=[])
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _cast_list(array: pa.Array[Any], target: pa.DataType, *, path: str) -> pa.Array[Any]:
    if pa.types.is_fixed_size_list(target) and target.list_size != array.type.list_size:
        raise _mismatch(array.type, target, path=path)
    values: pa.Array[Any]
    if pa.types.is_map(target):
        values = _cast_entries(as_struct(as_list(array).values), target, path=path)
    else:
        values = _cast_field(
            as_list(array).values, list_type(target).value_field, path=f"{path}.{list_type(target).value_field.name}"
        )
    num_buffers = 1 if pa.types.is_fixed_size_list(target) else 2
    return pa.Array.from_buffers(target, len(array), array.buffers()[:num_buffers], offset=array.offset, children=[values])


def _cast_entries(entries: pa.StructArray, target: pa.MapType[Any, Any, Any], *, path: str) -> pa.StructArray:
    # Key and value may be named differently from writer to writer.
    return pa.StructArray.from_arrays(
        [
            cast_array(entries.field(0), target.key_type, path=f"{path}.key"),
            cast_array(entries.field(1), target.item_type, path=f"{path}.value"),
        ],
        fields=[target.key_field, target.item_field],
    )


def check_nulls(array: pa.Array[Any], field: pa.Field[Any], *, path: str, first_row: int = 0) -> None:
    """Raise SchemaMismatchError for the first null in a field, or a field below it, that is not nullable."""
    problem = _first_null(array, field, path, None)
    if problem is not None:
        where, row = problem
        at = f" at row {first_row + row}" if row >= 0 else ""
        raise SchemaMismatchError(
            f"column {where!r} is not nullable but holds a null{at}",
            cure="Fill or drop the nulls, or make the column nullable.",
        )


def _first_null(
    array: pa.Array[Any], field: pa.Field[Any], path: str, parent_valid: pa.BooleanArray | None
) -> tuple[str, int] | None:
    """(path, row) of the first forbidden null; row is -1 below a list, where positions are not rows."""
    if isinstance(array.type, pa.BaseExtensionType):
        return _first_null(
            as_extension(array).storage,
            pa.field(field.name, as_extension(array).storage.type, field.nullable),
            path,
            parent_valid,
        )
    if not field.nullable and _holds_null_values(array):
        # Keys that point at a null among the values.
        array = as_dictionary(array).dictionary.take(as_dictionary(array).indices)
    if not field.nullable and array.null_count:
        bad = array.is_null() if parent_valid is None else pc.and_(array.is_null(), parent_valid)
        row = pc.index(bad, True).as_py()
        if row >= 0:
            return path, row
    if not has_required(array.type):
        return None
    if pa.types.is_struct(array.type):
        return _first_null_in_struct(as_struct(array), path, parent_valid)
    return _first_null_in_list(array, path)


def _holds_null_values(array: pa.Array[Any]) -> bool:
    return bool(pa.types.is_dictionary(array.type) and as_dictionary(array).dictionary.null_count)


def _first_null_in_struct(array: pa.StructArray, path: str, parent_valid: pa.BooleanArray | None) -> tuple[str, int] | None:
    valid = array.is_valid() if array.null_count else None
    if parent_valid is not None:
        valid = parent_valid if valid is None else pc.and_(valid, parent_valid)
    for index in range(array.type.num_fields):
        child = array.type.field(index)
        found = _first_null(array.field(index), child, f"{path}.{child.name}", valid)
        if found is not None:
            return found
    return None


def _first_null_in_list(array: pa.Array[Any], path: str) -> tuple[str, int] | None:
    if len(array) == 0:
        return None
    if pa.types.is_fixed_size_list(array.type):
        size = array.type.list_size
        first, lengths = array.offset * size, np.full(len(array), size)
    else:
        offsets = numpy_of(as_list(array).offsets)
        first, lengths = int(offsets[0]), np.diff(offsets)
    items = as_list(array).values.slice(first, int(lengths.sum()))
    # Items of a null list are nobody's values.
    valid = np.repeat(numpy_of(array.is_valid(), may_copy=True), lengths) if array.null_count else None
    name = "entries" if pa.types.is_map(array.type) else array.type.value_field.name
    item = pa.field(name, items.type, nullable=not pa.types.is_map(array.type) and array.type.value_field.nullable)
    where = path if pa.types.is_map(array.type) else f"{path}.{name}"
    found = _first_null(items, item, where, None if valid is None else pa.array(valid))
    return None if found is None else (found[0], -1)


def has_required(arrow_type: pa.DataType) -> bool:
    """Whether any field below this type is not nullable."""
    return any(not child.nullable or has_required(child.type) for child in _children(arrow_type))


def _children(arrow_type: pa.DataType) -> Sequence[pa.Field[Any]]:
    types = pa.types
    if types.is_struct(arrow_type):
        return [arrow_type.field(i) for i in range(arrow_type.num_fields)]
    if types.is_map(arrow_type):
        return [arrow_type.key_field, arrow_type.item_field]
    if types.is_list(arrow_type) or types.is_large_list(arrow_type) or types.is_fixed_size_list(arrow_type):
        return [arrow_type.value_field]
    return []
