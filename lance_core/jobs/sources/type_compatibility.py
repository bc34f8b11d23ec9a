"""Check whether a column of one Arrow type may be written into a column of another, by the types alone.

The rules are SQL's store assignment, narrowed where a silent change of meaning could hide:

::

    int32 -> int64, uint8      yes (a value that does not fit is an error when it is met)
    list<double> -> fixed_size_list<float>[768]     yes (lengths are checked when they are met)
    double -> float            yes (rounds); double -> decimal: yes (rounds, half away from zero); double -> int: no
    string -> int, int -> string, timestamp without zone -> with zone: no, convert in the source
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

Kind = Any  # an Arrow data type, told apart at run time
Field = Any
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
