"""Turns a source's batches into batches of the table's schema: vectors, units, widths and nullability restored.

Spark and file readers know fewer types than a table; what they hand over is put back::

    source  id: int64, vector: list<double>            table  id: int32 not null, vector: fixed_size_list<float>[4]
    batch   1, [0.5, 1, 1.5, 2]                   ->   1, [0.5, 1, 1.5, 2]
    batch   null, ...                             ->   SchemaMismatchError: column 'id' may not hold nulls

`check_schema` judges the types before anything runs; a `Conformer` converts and checks values batch by batch, on any worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lance_core.errors import SchemaMismatchError
from lance_core.jobs.fits import misfit, relaxed
from lance_core.jobs.spec import Drift

# Arrow arrays and types told apart at run time, by the kind in hand.
Array = Any
Field = Any
Kind = Any


def check_schema(source: pa.Schema, target: pa.Schema, *, drift: Drift, uri: str) -> None:
    """SchemaMismatchError, naming every column at fault, when `source` rows cannot be written as `target` rows."""
    problems: list[str] = []
    repeated = sorted({name for name in source.names if source.names.count(name) > 1})
    problems += [f"column {name!r} is there twice in the source" for name in repeated]
    for name in source.names:
        if name not in target.names and drift not in ("drop_extra", "fill_and_drop"):
            problems.append(f"column {name!r} is in the source but not in the table")
    for field in target:
        if field.name not in source.names:
            problems += _absent(field, drift)
        elif field.name not in repeated:
            problem = misfit(source.field(field.name).type, field.type, field.name)
            problems += [problem] if problem else []
    if problems:
        raise SchemaMismatchError(
            "the source does not fit the table: " + "; ".join(problems),
            uri=uri,
            cure="Select or cast the columns in the source, or choose another schema_drift policy.",
        )


def _absent(field: Field, drift: Drift) -> list[str]:
    if drift not in ("fill_missing", "fill_and_drop"):
        return [f"column {field.name!r} is in the table but not in the source"]
    return [] if field.nullable else [f"column {field.name!r} is not in the source and may not hold nulls"]


def created_schema(source: pa.Schema) -> pa.Schema:
    """The schema of a table created from a source whose engine marks nullability by accident (Spark): all nullable,
    nested fields too, names and types kept."""
    fields = [pa.field(item.name, _nullable_type(item.type), nullable=True, metadata=item.metadata) for item in source]
    return pa.schema(fields)


def _nullable_type(kind: Kind) -> Kind:
    return kind if isinstance(kind, pa.BaseExtensionType) else relaxed(kind)


class Conformer:
    """Converts batches to `target`. Pickles; keeps no rows."""

    def __init__(self, target: pa.Schema, *, uri: str) -> None:
        self._target = target
        self._uri = uri

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with the target's columns in its order; one that is absent becomes nulls, one too many is left out.

        SchemaMismatchError names the column for a value that does not fit or a null where none may be.
        """
        if batch.schema.equals(self._target):
            columns = list(batch.columns)
        else:
            columns = [self._column(batch, field) for field in self._target]
        for field, column in zip(self._target, columns, strict=True):
            self._refuse_nulls(field, column, field.name)
        arrays = [
            column if column.type.equals(field.type) else _retype(column, field.type)
            for field, column in zip(self._target, columns, strict=True)
        ]
        if not arrays:
            return batch.select([])
        return pa.RecordBatch.from_arrays(arrays, schema=self._target)

    def stream(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """`apply` over a stream, empty batches left out."""
        for batch in batches:
            if batch.num_rows:
                yield self.apply(batch)

    def _column(self, batch: pa.RecordBatch, field: Field) -> Array:
        index = batch.schema.get_field_index(field.name)
        if index < 0:
            return pa.nulls(batch.num_rows, relaxed(field.type))
        column = batch.column(index)
        if column.type.equals(field.type):
            return column
        storage: Array = column.storage if isinstance(column, pa.ExtensionArray) else column
        if pt.is_dictionary(storage.type) and not pt.is_dictionary(field.type):
            storage = storage.dictionary_decode()
        try:
            return storage.cast(relaxed(field.type), safe=True)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise SchemaMismatchError(
                f"column {field.name!r}: a value of {column.type} cannot become {field.type}: {error}", uri=self._uri
            ) from None

    def _refuse_nulls(self, field: Field, column: Array, path: str) -> None:
        if not field.nullable and column.null_count:
            raise SchemaMismatchError(
                f"column {path!r} may not hold nulls, the source has {column.null_count} in one batch",
                uri=self._uri,
                cure="Filter or fill them in the source.",
            )
        if not _has_strict_child(field.type):
            return
        for child, values in _children(field.type, column):
            self._refuse_nulls(child, values, f"{path}.{child.name}")


def _has_strict_child(kind: Kind) -> bool:
    return any(
        not kind.field(index).nullable or _has_strict_child(kind.field(index).type) for index in range(_num_children(kind))
    )


def _num_children(kind: Kind) -> int:
    # A map's key is never nullable and Arrow itself holds it so.
    return 0 if pt.is_map(kind) or isinstance(kind, pa.BaseExtensionType) else kind.num_fields


def _children(kind: Kind, column: Array) -> Iterator[tuple[Field, Array]]:
    """Child fields with their values, only below parents that are not null."""
    present = column.drop_null() if column.null_count else column
    if pt.is_struct(kind):
        for index in range(kind.num_fields):
            yield kind.field(index), present.field(index)
    elif pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        yield kind.value_field, present.flatten()


def _retype(column: Array, kind: Kind) -> Array:
    """The same values under a type that differs only in extension or nested nullability (checked before)."""
    if column.type.equals(kind):
        return column
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, _retype(column, kind.storage_type))
    if pt.is_struct(kind):
        children = [_retype(column.field(index), kind.field(index).type) for index in range(kind.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=_nulls(column))
    if pt.is_fixed_size_list(kind):
        values: Array = column.values.slice(column.offset * kind.list_size, len(column) * kind.list_size)
        vectors: Any = pa.FixedSizeListArray
        return vectors.from_arrays(_retype(values, kind.value_type), type=kind, mask=_nulls(column))
    if pt.is_list(kind) or pt.is_large_list(kind):
        whole = pa.concat_arrays([column])  # offset 0, so that offsets and validity line up
        maker: Any = pa.ListArray if pt.is_list(kind) else pa.LargeListArray
        return maker.from_arrays(whole.offsets, _retype(whole.values, kind.value_type), type=kind, mask=_nulls(whole))
    return column.cast(kind)


def _nulls(column: Array) -> Any:
    return pc.is_null(column) if column.null_count else None
