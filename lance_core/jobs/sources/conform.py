"""Turns a source's batches into batches of the table's schema: vectors, units, widths and nullability restored.

Spark and file readers know fewer types than a table; their output is converted back::

    source  id: int64, vector: list<double>            table  id: int32 not null, vector: fixed_size_list<float>[4]
    batch   1, [0.5, 1, 1.5, 2]                   ->   1, [0.5, 1, 1.5, 2]
    batch   null, ...                             ->   SchemaMismatchError: column 'id' is not nullable but holds a null

`check_schema` judges the types before anything runs; a `Conformer` converts and checks values batch by batch, on any worker.

Check whether a column of one Arrow type may be written into a column of another, by the types alone.

The rules are SQL's store assignment, narrowed where a silent change of meaning could hide:

::

    int32 -> int64, uint8      yes (a value that does not fit is an error when it is met)
    list<double> -> fixed_size_list<float>[768]     yes (lengths are checked when they are met)
    decimal(20, 0) -> uint64   yes, as Spark reads it; decimal(20, 2) -> uint64: no
    double -> float            yes (rounds); double -> decimal: yes (rounds, half away from zero); double -> int: no
    string -> int, int -> string, timestamp without zone -> with zone: no, convert in the source
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from lance_core.arrow.buffers import with_buffers
from lance_core.arrow.cast import ExactBatches, cast_array, check_nulls, has_required
from lance_core.errors import FilterError, SchemaMismatchError
from lance_core.expr.casts import cast_as
from lance_core.format.declared import is_filled_by_refresh
from lance_core.jobs.specs.spec import Drift

Array = Any
Field = Any
Kind = Any


def check_schema(source: pa.Schema, target: pa.Schema, *, drift: Drift, uri: str, is_new: bool = False) -> None:
    """SchemaMismatchError, naming every column at fault, when `source` rows cannot be written as `target` rows.

    `is_new`: the target is made of the source, declared columns and all.
    """
    problems: list[str] = []
    repeated = sorted({name for name in source.names if source.names.count(name) > 1})
    problems += [f"column {name!r} occurs twice in the source" for name in repeated]
    for name in source.names:
        if name not in target.names and not _may_lack(source.field(source.names.index(name)), drift):
            problems.append(f"column {name!r} is in the source but not in the table")
    for field in target:
        if field.name not in source.names:
            problems += _absent(field, drift)
        elif is_filled_by_refresh(field.metadata or {}) and not is_new:
            problems.append(f"column {field.name!r} is declared, and its values come from refresh")
        elif field.name not in repeated:
            problem = misfit(source.field(field.name).type, field.type, field.name)
            problems += [problem] if problem else []
    if problems:
        raise SchemaMismatchError(
            "the source does not match the schema of the table: " + "; ".join(problems), uri=uri, cure=_cure(problems)
        )


_CURES = (
    ("is in the source but not", 'to add it to the table: schema_drift="add_extra"; to leave it out: "drop_extra"'),
    ("is in the table but not in the source", 'to write nulls: schema_drift="fill_missing"'),
    ("is declared, and", "leave it out of the source, or undeclare it first"),
    ("is not nullable", "bring a value for it"),
    ("occurs twice", "rename one of them"),
    (": the table has ", "cast it in a query (source.sql), or give the source the table's type in `schema`"),
)
"""What helps against each kind of problem, by words of its sentence."""


def _cure(problems: Sequence[str]) -> str:
    """The cures of these kinds of problems, and no other."""
    parts = [cure for words, cure in _CURES if any(words in problem for problem in problems)]
    both = len([cure for cure in parts if "schema_drift" in cure]) == 2
    if both:
        parts.append('both at once: "fill_and_add" or "fill_and_drop"')
    told = "; ".join(parts) or "select or cast the columns in the source"
    return f"{told[0].upper()}{told[1:]}."


def _may_lack(field: Field, drift: Drift) -> bool:
    """Whether the table need not have a column of the source."""
    return drift in ("drop_extra", "fill_and_drop") or (adds_columns(drift) and pt.is_null(field.type))


def adds_columns(drift: Drift) -> bool:
    """Whether columns of the source that the table lacks are added to it."""
    return drift in ("add_extra", "fill_and_add")


def added_columns(source: pa.Schema, target: pa.Schema, *, drift: Drift) -> pa.Schema:
    """The columns that a source adds to a table: nullable, because the rows that are there have no values for them.

    Without those of nulls alone, whose type nobody knows yet.
    """
    names = [name for name in source.names if name not in target.names] if adds_columns(drift) else []
    fields = [source.field(source.names.index(name)) for name in dict.fromkeys(names)]
    return created_schema(pa.schema([field for field in fields if not pt.is_null(field.type)]))


def _absent(field: Field, drift: Drift) -> list[str]:
    if is_filled_by_refresh(field.metadata or {}):
        return []  # no source brings its values
    if drift not in ("fill_missing", "fill_and_drop", "fill_and_add"):
        return [f"column {field.name!r} is in the table but not in the source"]
    return [] if field.nullable else [f"column {field.name!r} is not in the source and is not nullable"]


def created_schema(source: pa.Schema) -> pa.Schema:
    """The schema of a table created from a source whose engine marks nullability by accident (Spark): all nullable,
    nested fields too, names and types kept."""
    fields = [pa.field(item.name, _nullable_type(item.type), nullable=True, metadata=item.metadata) for item in source]
    return pa.schema(fields)


def _nullable_type(kind: Kind) -> Kind:
    return kind if isinstance(kind, pa.BaseExtensionType) else relaxed(kind)


class Conformer:
    """Converts batches to `target`. Pickles; keeps no rows. `rows_seen` counts input rows."""

    def __init__(self, target: pa.Schema, *, uri: str) -> None:
        self._target = target
        self._uri = uri
        self._takes_nulls = all(field.nullable and not has_required(field.type) for field in target)
        self.rows_seen = 0

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with the target's columns in its order; a missing one becomes nulls, an additional one is dropped.

        SchemaMismatchError names column and row for a value that does not fit or a null where none may be.
        """
        if self._takes_nulls and batch.num_columns and batch.schema.equals(self._target, check_metadata=True):
            self.rows_seen += batch.num_rows
            return batch
        arrays = [self._column(batch, field) for field in self._target]
        for field, array in zip(self._target, arrays, strict=True):
            check_nulls(array, field, path=field.name, first_row=self.rows_seen)
        self.rows_seen += batch.num_rows
        if not arrays:
            return batch.select([])
        return pa.RecordBatch.from_arrays(arrays, schema=self._target)

    def stream(self, batches: Iterable[pa.RecordBatch]) -> ExactBatches:
        """`apply` over a stream, without empty batches. Whoever writes the result need not cast it again."""
        return ExactBatches(self._target, (self.apply(batch) for batch in batches if batch.num_rows))

    def _column(self, batch: pa.RecordBatch, field: Field) -> Array:
        index = batch.schema.get_field_index(field.name)
        if index < 0:
            return cast_array(pa.nulls(batch.num_rows, relaxed(field.type)), field.type, path=field.name)
        column: Array = batch.column(index)
        if column.type == field.type:
            return column
        storage = column.storage if isinstance(column, pa.ExtensionArray) else column
        if pt.is_dictionary(storage.type) and not pt.is_dictionary(field.type):
            storage = storage.dictionary_decode()
        try:
            if pt.is_floating(storage.type) and pt.is_decimal(field.type):
                return cast_as(storage, field.type, safe=False)
            # Values first, under nullable types: Arrow refuses to cast to a nested field that is not nullable.
            cast = with_buffers(storage).cast(relaxed(field.type), safe=True)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, FilterError) as error:
            raise SchemaMismatchError(
                f"column {field.name!r}: a value of {column.type} cannot be converted to {field.type}: {error}",
                uri=self._uri,
            ) from None
        return cast_array(cast, field.type, path=field.name)


Test = Callable[[Kind], bool]


def misfit(source: Kind, target: Kind, path: str) -> str | None:
    """Why `source` values can never become `target` values, or None when they may. `path` is the column's dotted name."""
    source, target = _plain(source), _plain(target)
    if source.equals(target) or pt.is_null(source):
        return None
    if _is_list(source) and _is_list(target):
        return _list_misfit(source, target, path)
    if pt.is_struct(source) and pt.is_struct(target):
        return _struct_misfit(source, target, path)
    if pt.is_map(source) and pt.is_map(target):
        return misfit(source.key_type, target.key_type, f"{path}.key") or misfit(
            source.item_type, target.item_type, f"{path}.value"
        )
    if any(from_(source) and to(target) for from_, to in _RULES) and _zones_agree(source, target):
        return None
    return f"column {path!r}: the table has {target}, the source has {source}"


def relaxed(kind: Kind) -> Kind:
    """The same type with every nested field nullable and extension types as their storage."""
    kind = _storage(kind)
    if pt.is_struct(kind):
        return pa.struct([_relaxed_field(kind.field(index)) for index in range(kind.num_fields)])
    if pt.is_fixed_size_list(kind):
        return pa.list_(_relaxed_field(kind.value_field), kind.list_size)
    if pt.is_large_list(kind):
        return pa.large_list(_relaxed_field(kind.value_field))
    if pt.is_list(kind):
        return pa.list_(_relaxed_field(kind.value_field))
    return kind


def _relaxed_field(field: Field) -> Field:
    return pa.field(field.name, relaxed(field.type), nullable=True, metadata=field.metadata)


def _list_misfit(source: Kind, target: Kind, path: str) -> str | None:
    sizes = [kind.list_size for kind in (source, target) if pt.is_fixed_size_list(kind)]
    if len(sizes) == 2 and sizes[0] != sizes[1]:
        return f"column {path!r}: the table has lists of {sizes[1]}, the source has lists of {sizes[0]}"
    return misfit(source.value_type, target.value_type, f"{path}.item")


def _struct_misfit(source: Kind, target: Kind, path: str) -> str | None:
    have = {source.field(index).name: source.field(index) for index in range(source.num_fields)}
    want = {target.field(index).name: target.field(index) for index in range(target.num_fields)}
    extra = [name for name in have if name not in want]
    absent = [name for name, field in want.items() if name not in have and not field.nullable]
    if extra or absent:
        what = f"the source has {', '.join(extra)} more" if extra else f"the source lacks {', '.join(absent)}"
        return f"column {path!r}: the fields of the struct differ: {what}"
    problems = (misfit(have[name].type, field.type, f"{path}.{name}") for name, field in want.items() if name in have)
    return next((problem for problem in problems if problem), None)


def _storage(kind: Kind) -> Kind:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _plain(kind: Kind) -> Kind:
    storage = _storage(kind)
    return storage.value_type if pt.is_dictionary(storage) else storage


def _is_list(kind: Kind) -> bool:
    return pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind) or _is_view(kind, "list_view")


def _is_view(kind: Kind, name: str) -> bool:
    # The view types and their predicates came with later pyarrow releases than the oldest one supported.
    return any(bool(getattr(pt, f"is_{prefix}{name}", lambda _: False)(kind)) for prefix in ("", "large_"))


def _is_text(kind: Kind) -> bool:
    return pt.is_string(kind) or pt.is_large_string(kind) or _is_view(kind, "string_view")


def _is_bytes(kind: Kind) -> bool:
    return pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_fixed_size_binary(kind) or _is_view(kind, "binary_view")


def _is_number(kind: Kind) -> bool:
    return bool(pt.is_integer(kind) or pt.is_floating(kind))


def _is_whole_decimal(kind: Kind) -> bool:
    """As Spark reads integers of 64 bits without a sign."""
    return bool(pt.is_decimal(kind)) and kind.scale == 0


def _zones_agree(source: Kind, target: Kind) -> bool:
    if not (pt.is_timestamp(source) and pt.is_timestamp(target)):
        return True
    return bool((source.tz is None) == (target.tz is None))


_RULES: tuple[tuple[Test, Test], ...] = (
    (pt.is_integer, _is_number),
    (pt.is_integer, pt.is_decimal),
    (pt.is_floating, pt.is_floating),
    (pt.is_floating, pt.is_decimal),
    (pt.is_decimal, pt.is_decimal),
    (pt.is_decimal, pt.is_floating),
    (_is_whole_decimal, pt.is_integer),
    (_is_text, _is_text),
    (_is_bytes, _is_bytes),
    (_is_text, _is_bytes),
    (pt.is_date, pt.is_date),
    (pt.is_date, pt.is_timestamp),
    (pt.is_timestamp, pt.is_timestamp),
    (pt.is_time, pt.is_time),
    (pt.is_duration, pt.is_duration),
)
"""(source, target) pairs of families; a value that does not fit is found when it is converted."""


# Arrow arrays and types told apart at run time, by the kind in hand.
