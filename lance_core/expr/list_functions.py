"""Functions that make lists of lists or take them apart: one row each in a table, as in `functions`.

::

    array_append([1, 2], 3) -> [1, 2, 3]     array_slice([1, 2, 3], 2, 3) -> [2, 3]     array_position([4, 5], 5) -> 2
    array_sort([2, NULL, 1]) -> [NULL, 1, 2]     array_to_string([1, NULL, 2], '-') -> '1-2'

They are computed row by row; a null list gives null, where nothing else is said. Positions count from 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain, zip_longest
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from pyarrow import compute

from lance_core.arrow_numpy import constant
from lance_core.errors import FilterError
from lance_core.expr.coerce import Value, as_text, cast, family_of, plain, plain_item, repeat
from lance_core.expr.common_type import as_common, cast_common, common_type
from lance_core.expr.compare import key_of
from lance_core.expr.lists import dims_of, element
from lance_core.expr.rows import made_of, rows_of
from lance_core.expr.text_functions import MAX_TEXT
from lance_core.expr.value_text import is_list, plain_text

pc: Any = compute  # the stubs know only some of what the kernels take
Items = list[Any]
Row = tuple[int, int, Callable[..., Value]]
_SKIP = object()


def _item_type(kind: Any, name: str) -> Any:
    if pa.types.is_null(kind):
        return pa.null()
    if not is_list(kind):
        raise FilterError(f"{name} works on lists, got {kind}")
    found: pa.DataType = kind.value_type
    return found


def _lists(name: str, fewest: int, most: int, function: Callable[..., Any], *, items: Sequence[int] = (0,)) -> Row:
    """A function whose result is a list of what its arguments hold: `items` says which of them are or hold items."""

    def call(*given: Value) -> Value:
        values = [plain_item(value) for value in given]
        if name in _NULL_OF_NULL and pa.types.is_null(values[0].type):
            return made_of((None for _ in rows_of(values)), pa.null(), values)
        kinds = [
            _item_type(value.type, name) if number == items[0] or number in items[1:] else value.type
            for number, value in enumerate(values)
        ]
        singles = [number for number in _SINGLE.get(name, ()) if number < len(kinds)]
        many = [number for number in items if number < len(kinds)]
        item = common_type(kinds[number] for number in [*many, *singles])
        is_large = any(pa.types.is_large_list(values[number].type) for number in many)
        kind = pa.large_list(item) if is_large else pa.list_(item)
        for numbers, wanted in ((singles, item), (many, kind)):
            for number in numbers:
                values[number] = cast_common(values[number], wanted)
        return made_of((function(*row) for row in rows_of(values)), kind, values)

    return fewest, most, call


_NULL_OF_NULL = frozenset(
    {"array_replace", "array_replace_n", "array_replace_all", "array_reverse", "array_sort", "array_distinct"}
)
"""Officially null for no list; the others make a list, of nothing."""


def _of(name: str, fewest: int, most: int, function: Callable[..., Any], kind: pa.DataType | None) -> Row:
    """A function of a list; of the type of its items where no type is said."""

    def call(*given: Value) -> Value:
        values = [plain(value) for value in given]
        found = _item_type(values[0].type, name) if kind is None else kind
        item = _item_type(values[0].type, name)
        if name in ("array_position", "array_positions") and item != values[1].type:
            with suppress(FilterError):  # what has no type in common is in no list
                both = common_type((item, values[1].type))
                values[:2] = [cast_common(values[0], pa.list_(both)), cast_common(values[1], both)]
        results = (None if row[0] is None else function(*row) for row in rows_of(values))
        return made_of(results, found, values)

    return fewest, most, call


def _unless_null(function: Callable[..., Items | None]) -> Callable[..., Items | None]:
    return lambda items, *rest: None if items is None else function(items, *rest)


def _distinct(items: Iterable[Any]) -> Items:
    found: Items = []
    seen: set[Any] = set()
    for item in items:
        key = key_of(item)
        if key not in seen:
            seen.add(key)
            found.append(item)
    return found


def _concat(*lists: Items | None) -> Items | None:
    known = [items for items in lists if items is not None]
    return [*chain.from_iterable(known)] if known else None


def _set(choose: Callable[[Items, Items], Iterable[Any]]) -> Callable[..., Items | None]:
    return lambda left, right: None if left is None or right is None else _distinct(choose(left, right))


def _which(*, are_in: bool) -> Callable[[Items, Items], Items]:
    """The items of one list that are, or are not, in another."""

    def choose(left: Items, right: Items) -> Items:
        others = set(map(key_of, right))
        return [item for item in left if (key_of(item) in others) is are_in]

    return choose


def _remove(items: Items, gone: Any, count: int | None = 1) -> Items | None:
    if gone is None:
        return None
    left, wanted = max(count or 0, 0), key_of(gone)
    kept: Items = []
    for item in items:
        if left and key_of(item) == wanted:
            left -= 1
        else:
            kept.append(item)
    return kept


def _replace(items: Items, old: Any, new: Any, count: int | None = 1) -> Items | None:
    left, wanted = max(count or 0, 0), key_of(old)
    made: Items = []
    for item in items:
        hit = bool(left) and key_of(item) == wanted
        left -= hit
        made.append(new if hit else item)
    return made


def _resize(items: Items, size: int | None, fill: Any = None) -> Items:
    if size is None:
        return []
    if not 0 <= size <= MAX_TEXT:
        raise FilterError(f"a list of {size:,} items, at most {MAX_TEXT:,} are made")
    return [*items[:size], *[fill] * (size - len(items))]


def _slice(items: Items, first: int | None, last: int | None, step: int = 1) -> Items | None:
    if first is None or last is None or step is None:
        return None
    begin = first + len(items) if first < 0 else max(first - 1, 0)
    end = last + len(items) if last < 0 else min(last, len(items)) - 1
    begin = max(begin, 0)
    if step == 0:
        if begin > end or begin >= len(items):
            return []
        raise FilterError("array_slice takes a step other than 0")
    if step > 0:
        return items[begin : end + 1 : step]
    return items[begin : end - 1 if end > 0 else None : step] if len(items) > begin >= end >= 0 else []


def _sort(items: Items, order: str = "ASC", nulls: str = "NULLS FIRST") -> Items | None:
    if order is None or nulls is None:
        return None
    if order.upper() not in ("ASC", "DESC") or nulls.upper() not in ("NULLS FIRST", "NULLS LAST"):
        raise FilterError(f"array_sort by {order!r}, {nulls!r}", cure="Use 'ASC' or 'DESC', 'NULLS FIRST' or 'NULLS LAST'.")
    known = sorted((item for item in items if item is not None), key=order_of, reverse=order.upper() == "DESC")
    empty = [None] * (len(items) - len(known))
    return [*empty, *known] if nulls.upper() == "NULLS FIRST" else [*known, *empty]


def order_of(item: Any) -> Any:
    """What floats order by: NaN above all numbers, -0.0 below 0.0."""
    return (item != item, item, math.copysign(1.0, item)) if isinstance(item, float) else item


def _position(items: Items, wanted: Any, first: int = 1) -> int | None:
    key = key_of(wanted)
    return next((number for number, item in enumerate(items, 1) if number >= first and key_of(item) == key), None)


def _joined(items: Items, by: str | None, null: str | None = None) -> str | None:
    if by is None:
        return None
    texts = [text for item in _leaves(items) if (text := null if item is None else item) is not None]
    size = sum(map(len, texts)) + len(by) * max(len(texts) - 1, 0)
    if size > MAX_TEXT:
        raise FilterError(f"array_to_string returns a string of {size:,} characters, the limit is {MAX_TEXT:,}")
    return by.join(texts)


def _leaves(items: Items) -> Iterable[Any]:
    """What is in lists of lists; a null list in one is an item."""
    return chain.from_iterable(_leaves(item) if isinstance(item, list) else (item,) for item in items)


def _array_to_string(given: Value, *others: Value) -> Value:
    lists = plain(given)
    _item_type(lists.type, "array_to_string")
    values = [_with_text(lists), *(as_text(other, "array_to_string") for other in others)]
    return made_of((None if row[0] is None else _joined(*row) for row in rows_of(values)), pa.string(), values)


def _with_text(lists: Value) -> Value:
    """Lists of the texts of their items, those of floats without an exponent."""
    if isinstance(lists, pa.Scalar):
        return _with_text(repeat(lists, 1))[0] if lists.is_valid else constant(None, pa.list_(pa.string()))
    if not is_list(lists.type):
        if pa.types.is_floating(lists.type):
            return pa.array([None if item is None else plain_text(item) for item in lists.to_pylist()], pa.string())
        return cast(lists, pa.string())
    counts = pc.fill_null(pc.list_value_length(lists), 0)
    ends = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(pc.cast(counts, pa.int64())).cast(pa.int64())])
    return pa.LargeListArray.from_arrays(ends, _with_text(pc.list_flatten(lists)), mask=lists.is_null())


def _extreme(choose: Callable[..., Any]) -> Callable[[Items], Any]:
    def function(items: Items) -> Any:
        known = [item for item in items if item is not None]
        return choose(known) if known else None

    return function


def _make(*given: Value) -> Value:
    values = [plain_item(value) for value in given]
    if not values:
        return constant([], pa.list_(pa.int64()))
    values = as_common(values)
    return made_of(([*row] for row in rows_of(values)), pa.list_(values[0].type), values)


def _repeat_item(given: Value, count: Value) -> Value:
    values = [plain_item(given), plain(count)]
    rows = (None if times is None else [item] * _size(times) for item, times in rows_of(values))
    kind = values[0].type
    return made_of(rows, pa.large_list(kind) if pa.types.is_large_list(kind) else pa.list_(kind), values)


def _size(times: int) -> int:
    if times > MAX_TEXT:
        raise FilterError(f"a list of {times:,} items, at most {MAX_TEXT:,} are made")
    return max(times, 0)


def _split(text: str | None, by: str | None, null: Any = _SKIP) -> Items | None:
    if text is None:
        return None
    parts = [text] * bool(text) if by == "" else [*text] if by is None else text.split(by) if text else []
    return [None if part == null else part for part in parts]


def _string_to_array(*given: Value) -> Value:
    values = [plain(value) for value in given]
    item = pa.large_string() if values[0].type == pa.large_string() else pa.string()
    return made_of((_split(*row) for row in rows_of(values)), pa.list_(item), values)


def _flatten(given: Value) -> Value:
    """The lists of a list as one; a list of no lists as it is."""
    lists = plain(given)
    inner: Any = _item_type(lists.type, "flatten")
    if not is_list(inner):
        return cast(lists, pa.list_(inner)) if pa.types.is_fixed_size_list(lists.type) else lists
    is_large = pa.types.is_large_list(lists.type) or pa.types.is_large_list(inner)
    kind = pa.large_list(inner.value_type) if is_large else pa.list_(inner.value_type)
    found = (None if row is None else [*chain.from_iterable(part or [] for part in row)] for (row,) in rows_of([lists]))
    return made_of(found, kind, [given])


def _ndims(given: Value) -> Value:
    depth, kind = 1, _item_type(plain(given).type, "array_ndims")
    while is_list(kind):
        depth, kind = depth + 1, kind.value_type
    return made_of((None if row is None else depth for (row,) in rows_of([plain(given)])), pa.uint64(), [given])


def _series(*, past_end: int) -> Callable[..., Value]:
    """range and generate_series of whole numbers; `past_end` is 1 where the end belongs to the series."""

    def numbers(*row: int | None) -> Items | None:
        known = [number for number in row if number is not None]
        if len(known) < len(row):
            return None
        first, last, step = (0, *known, 1) if len(known) == 1 else (*known, 1)[:3]
        if step == 0 or abs(last - first) // abs(step) > MAX_TEXT:
            raise FilterError(f"a series from {first} to {last} by {step}", cure="Take another step.")
        return [*range(first, last + past_end * (1 if step > 0 else -1), step)]

    def call(*given: Value) -> Value:
        if not {family_of(value.type) for value in given} <= {"int", "null"}:
            raise FilterError("a series takes whole numbers")
        return made_of((numbers(*row) for row in rows_of(given)), pa.list_(pa.int64()), given)

    return call


def _map(function: Callable[[Items], Items], kind_of: Callable[[Any], Any]) -> Callable[..., Value]:
    """A list of something of each entry, in the order of the map."""

    def call(given: Value) -> Value:
        kind = kind_of(_map_type(given))
        return made_of((None if row is None else function(row) for (row,) in rows_of([given])), pa.list_(kind), [given])

    return call


def _map_type(given: Value) -> Any:
    if not pa.types.is_map(given.type):
        raise FilterError(f"expected a map, got {given.type}")
    return given.type


def _map_extract(given: Value, wanted: Value) -> Value:
    """A list of the value of a key, of null where the map has no such key."""
    kind = pa.list_(_map_type(given).item_type)
    values = [given, cast(wanted, given.type.key_type)]
    return made_of(([dict(row or ()).get(key)] for row, key in rows_of(values)), kind, values)


def _entry(kind: Any) -> Any:
    entry = pa.struct([pa.field("key", kind.key_type, nullable=False), pa.field("value", kind.item_type)])
    return pa.field("item", entry, nullable=False)


def _zip(*given: Value) -> Value:
    fields = [pa.field(str(at), _item_type(value.type, "arrays_zip")) for at, value in enumerate(given, 1)]

    def row_of(row: tuple[Any, ...]) -> Items | None:
        if all(items is None for items in row):
            return None
        row = tuple(items or [] for items in row)
        return [{str(at): item for at, item in enumerate(items, 1)} for items in zip_longest(*row)]

    return made_of(map(row_of, rows_of(given)), pa.list_(pa.struct(fields)), given)


_CONCAT = _lists("array_concat", 1, 255, _concat, items=range(255))[2]


def _array_concat(*given: Value) -> Value:
    """Lists behind each other; a list among lists of such lists is one item of them."""
    values = [plain(value) for value in given]
    depths = [_depth(value.type) for value in values]
    items = [
        _as_item(value) if depth == max(depths) - 1 and not pa.types.is_null(value.type) else value
        for value, depth in zip(values, depths, strict=True)
    ]
    return _CONCAT(*items)


def _as_item(value: Value) -> Value:
    return made_of(([row] for (row,) in rows_of([value])), pa.list_(value.type), [value])


def _depth(kind: Any) -> int:
    return 1 + _depth(kind.value_type) if is_list(kind) else 0


_SINGLE: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {
        "array_append": (1,), "array_prepend": (0,), "array_remove": (1,), "array_remove_n": (1,), "array_remove_all": (1,),
        "array_replace": (1, 2), "array_replace_n": (1, 2), "array_replace_all": (1, 2), "array_resize": (2,),
    }
)  # fmt: skip
"""Arguments that are items themselves."""
_ALL = 1 << 31
_BOTH = (0, 1)
_NAMED: Mapping[str, Row] = MappingProxyType(
    {
        "array_append": _lists("array_append", 2, 2, lambda items, item: [*(items or []), item]),
        "array_prepend": _lists("array_prepend", 2, 2, lambda item, items: [item, *(items or [])], items=(1,)),
        "array_concat": (1, 255, _array_concat),
        "array_distinct": _lists("array_distinct", 1, 1, _unless_null(_distinct)),
        "array_except": _lists("array_except", 2, 2, _set(_which(are_in=False)), items=_BOTH),
        "array_intersect": _lists("array_intersect", 2, 2, _set(_which(are_in=True)), items=_BOTH),
        "array_union": _lists("array_union", 2, 2, _set(lambda a, b: [*a, *b]), items=_BOTH),
        "array_pop_back": _lists("array_pop_back", 1, 1, _unless_null(lambda items: items[:-1])),
        "array_pop_front": _lists("array_pop_front", 1, 1, _unless_null(lambda items: items[1:])),
        "array_remove": _lists("array_remove", 2, 2, _unless_null(_remove)),
        "array_remove_n": _lists("array_remove_n", 3, 3, _unless_null(_remove)),
        "array_remove_all": _lists("array_remove_all", 2, 2, _unless_null(lambda items, gone: _remove(items, gone, _ALL))),
        "array_replace": _lists("array_replace", 3, 3, _unless_null(_replace)),
        "array_replace_n": _lists("array_replace_n", 4, 4, _unless_null(_replace)),
        "array_replace_all": _lists(
            "array_replace_all", 3, 3, _unless_null(lambda items, old, new: _replace(items, old, new, _ALL))
        ),
        "array_compact": _lists("array_compact", 1, 1, _unless_null(lambda items: [x for x in items if x is not None])),
        "array_resize": _lists("array_resize", 2, 3, _unless_null(_resize)),
        "array_reverse": _lists("array_reverse", 1, 1, _unless_null(lambda items: items[::-1])),
        "array_slice": _lists("array_slice", 3, 4, lambda items, *rest: None if items is None else _slice(items, *rest)),
        "array_sort": _lists("array_sort", 1, 3, lambda items, *rest: None if items is None else _sort(items, *rest)),
        "array_extract": (2, 2, element),
        "array_position": _of("array_position", 2, 3, _position, pa.uint64()),
        "array_positions": _of(
            "array_positions", 2, 2,
            lambda items, wanted: [at for at, item in enumerate(items, 1) if key_of(item) == key_of(wanted)],
            pa.list_(pa.uint64()),
        ),
        "array_to_string": (2, 3, _array_to_string),
        "array_max": _of("array_max", 1, 1, _extreme(lambda known: max(known, key=order_of)), None),
        "array_min": _of("array_min", 1, 1, _extreme(lambda known: min(known, key=order_of)), None),
        "array_any_value": _of("array_any_value", 1, 1, _extreme(lambda known: known[0]), None),
        "array_empty": _of("array_empty", 1, 1, lambda items: not items, pa.bool_()),
        "array_dims": _of("array_dims", 1, 1, lambda items: dims_of(items) if items else None, pa.list_(pa.uint64())),
        "array_ndims": (1, 1, _ndims),
        "range": (1, 3, _series(past_end=0)),
        "generate_series": (1, 3, _series(past_end=1)),
        "array_repeat": (2, 2, _repeat_item),
        "flatten": (1, 1, _flatten),
        "make_array": (0, 255, _make),
        "string_to_array": (2, 3, _string_to_array),
        "arrays_zip": (1, 255, _zip),
        "map_keys": (1, 1, _map(lambda row: [key for key, _ in row], lambda kind: kind.key_type)),
        "map_values": (1, 1, _map(lambda row: [value for _, value in row], lambda kind: kind.item_type)),
        "map_entries": (1, 1, _map(lambda row: [{"key": key, "value": value} for key, value in row], _entry)),
        "map_extract": (2, 2, _map_extract),
    }
)  # fmt: skip
_OTHER_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "empty": "array_empty", "array_cat": "array_concat", "array_push_back": "array_append", "list_cat": "array_concat",
        "array_push_front": "array_prepend", "array_indexof": "array_position", "array_join": "array_to_string",
        "list_push_back": "array_append", "list_push_front": "array_prepend", "list_indexof": "array_position",
        "list_join": "array_to_string", "list_zip": "arrays_zip", "element_at": "map_extract",
        "make_list": "make_array", "string_to_list": "string_to_array",
    }
)  # fmt: skip
LIST_FUNCTIONS: Mapping[str, Row] = MappingProxyType(
    {
        **_NAMED,
        **{name.replace("array_", "list_", 1): row for name, row in _NAMED.items() if name.startswith("array_")},
        **{name: _NAMED[known] for name, known in _OTHER_NAMES.items()},
        "list_element": (2, 2, element),
    }
)
