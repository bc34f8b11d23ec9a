"""Pools of values of every Arrow type the format knows, and columns drawn from them.

    POOLS["int64"](rng, 4)                         4 values, no nulls at the top level
    column("int64", 1025, nulls="some", distribution="runs")

A column is its pool taken by a list of positions: the distribution makes the positions, the nulls punch holes into them,
so one rule serves numbers and nested lists alike. Pools of floats hold NaNs (with payloads), infinities and both zeros.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance.arrow import BFloat16Type

POOL_SIZE = 3000
LARGE_SIZE = 100_000

Pool = Callable[[np.random.Generator, int], pa.Array]


def _ints(arrow_type: pa.DataType, low: int, high: int) -> Pool:
    def make(rng: np.random.Generator, count: int) -> pa.Array:
        dtype = arrow_type.to_pandas_dtype() if pa.types.is_integer(arrow_type) else np.int64
        values = rng.integers(low, high, count, dtype=dtype, endpoint=True)
        values[: min(2, count)] = [low, high][: min(2, count)]
        return pa.array(values).cast(arrow_type)

    return make


def _full(arrow_type: pa.DataType) -> Pool:
    info = np.iinfo(arrow_type.to_pandas_dtype())
    return _ints(arrow_type, int(info.min), int(info.max))


def _temporal(arrow_type: pa.DataType, low: int, high: int, step: int = 1) -> Pool:
    def make(rng: np.random.Generator, count: int) -> pa.Array:
        dtype = np.int32 if arrow_type.bit_width == 32 else np.int64
        values = rng.integers(low, high, count, dtype=np.int64, endpoint=True) * step
        return pa.array(values.astype(dtype)).view(arrow_type)

    return make


def _floats(arrow_type: pa.DataType, *, special: bool) -> Pool:
    def make(rng: np.random.Generator, count: int) -> pa.Array:
        values = (rng.random(count) * (200 if special else 1) - (100 if special else 0)).astype(arrow_type.to_pandas_dtype())
        if special:
            odd = [-0.0, 0.0, np.nan, np.inf, -np.inf, np.finfo(values.dtype).tiny, np.finfo(values.dtype).max]
            values[: min(7, count)] = odd[: min(7, count)]
            bits = values.view(f"u{values.dtype.itemsize}")
            bits[7:8] |= bits[2:3] | 1  # a NaN with a payload
        return pa.array(values, arrow_type)

    return make


def _decimals(arrow_type: pa.DataType) -> Pool:
    def make(rng: np.random.Generator, count: int) -> pa.Array:
        words = rng.integers(-(2**62), 2**62, count, dtype=np.int64) >> rng.integers(0, 62, count)
        width = arrow_type.bit_width // 64
        wide = np.repeat((words >> 63)[:, None], width, axis=1)
        wide[:, 0] = words
        return pa.Array.from_buffers(arrow_type, count, [None, pa.py_buffer(np.ascontiguousarray(wide))])

    return make


def _bytes(arrow_type: pa.DataType, low: int, high: int, *, text: str = "") -> Pool:
    alphabet = list(text)

    def make(rng: np.random.Generator, count: int) -> pa.Array:
        lengths = rng.integers(low, high, count, endpoint=True)
        lengths[: min(2, count)] = [low, high][: min(2, count)]
        if alphabet:
            values: list[Any] = ["".join(rng.choice(alphabet, size)) for size in lengths]
        else:
            values = [rng.bytes(size) for size in lengths]
        return pa.array(values, arrow_type)

    return make


def _sentences(arrow_type: pa.DataType, low: int, high: int) -> Pool:
    words = ["lance", "table", "page", "chunk", "of", "the", "is", "value", "naïve", "数", ""]

    def make(rng: np.random.Generator, count: int) -> pa.Array:
        lengths = rng.integers(low, high, count, endpoint=True)
        return pa.array([" ".join(rng.choice(words, size)) for size in lengths], arrow_type)

    return make


def _fixed(width: int) -> Pool:
    def make(rng: np.random.Generator, count: int) -> pa.Array:
        return pa.Array.from_buffers(pa.binary(width), count, [None, pa.py_buffer(rng.bytes(width * count))])

    return make


def _holes(rng: np.random.Generator, array: pa.Array, share: float) -> pa.Array:
    """The array with some nulls; values stay under them no longer."""
    places = np.arange(len(array))
    return array.take(pa.array(places, mask=rng.random(len(array)) < share))


def _lists(item: Pool, *, most: int, share: float = 0.0, large: bool = False) -> Pool:
    def make(rng: np.random.Generator, count: int) -> pa.Array:
        lengths = rng.integers(0, most, count, endpoint=True)
        lengths[rng.random(count) < 0.2] = 0
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        items = _holes(rng, item(rng, int(offsets[-1])), share)
        if large:
            return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), items)
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items)

    return make


def _fixed_lists(item: Pool, dimension: int, share: float = 0.0) -> Pool:
    def make(rng: np.random.Generator, count: int) -> pa.Array:
        items = _holes(rng, item(rng, count * dimension), share) if share else item(rng, count * dimension)
        return pa.FixedSizeListArray.from_arrays(items, dimension)

    return make


def _structs(share: float = 0.0, **children: Pool) -> Pool:
    def make(rng: np.random.Generator, count: int) -> pa.Array:
        arrays = [_holes(rng, child(rng, count), share) if share else child(rng, count) for child in children.values()]
        return pa.StructArray.from_arrays(arrays, names=list(children))

    return make


def _nullable(item: Pool, share: float) -> Pool:
    """For places where the level itself shall have nulls (items of a list, children of a struct)."""
    return lambda rng, count: _holes(rng, item(rng, count), share)


def _maps(key: Pool, value: Pool, share: float = 0.0) -> Pool:
    def make(rng: np.random.Generator, count: int) -> pa.Array:
        lengths = rng.integers(0, 4, count)
        offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
        total = int(offsets[-1])
        return pa.MapArray.from_arrays(pa.array(offsets), key(rng, total), _holes(rng, value(rng, total), share))

    return make


def _dictionary(index: pa.DataType, values: Pool, distinct: int) -> Pool:
    def make(rng: np.random.Generator, count: int) -> pa.Array:
        keys = rng.integers(0, distinct, count).astype(index.to_pandas_dtype())
        items = values(rng, distinct)
        return pa.DictionaryArray.from_arrays(pa.array(keys, index), items)

    return make


def _extension(extension: pa.DataType, storage: Pool) -> Pool:
    return lambda rng, count: pa.ExtensionArray.from_storage(extension, storage(rng, count))


def _cast(pool: Pool, arrow_type: pa.DataType) -> Pool:
    return lambda rng, count: pool(rng, count).cast(arrow_type)


def _json(rng: np.random.Generator, count: int) -> pa.Array:
    """Texts as both libraries print them: keys in order, no spaces."""
    numbers = rng.integers(-(10**9), 10**9, count)
    makers: list[Callable[[int], Any]] = [
        lambda number: {"a": number, "b": [number % 3, None, True], "é": {"x": "y" * (number % 9)}},
        lambda number: [number, f"v{number}", -1.5, {}],
        lambda number: number,
        lambda number: f'quote " and \\ {number}',
        lambda number: [None, [], False],
    ]
    texts = [json.dumps(makers[i % 5](int(n)), separators=(",", ":"), ensure_ascii=False) for i, n in enumerate(numbers)]
    return pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(texts, pa.string()))


def _with_null_value(pool: Pool) -> Pool:
    """A dictionary that holds a null among its values."""

    def make(rng: np.random.Generator, count: int) -> pa.Array:
        values = pool(rng, count)
        return pa.concat_arrays([values.slice(0, count - 1), pa.nulls(1, values.type)])

    return make


def _empty_structs(rng: np.random.Generator, count: int) -> pa.Array:
    return pa.Array.from_buffers(pa.struct([]), count, [None], children=[])


_I8, _I16, _I32, _I64 = _full(pa.int8()), _full(pa.int16()), _ints(pa.int32(), 0, 5000), _full(pa.int64())
_F32, _F64 = _floats(pa.float32(), special=False), _floats(pa.float64(), special=False)
_WORD = _bytes(pa.string(), 0, 12, text="abcdeé")
_BOOL: Pool = lambda rng, count: pa.array(rng.random(count) < 0.5)  # noqa: E731
_PAIR = _structs(0.2, x=_I64, y=_WORD)
_DAY = 86_400_000

POOLS: dict[str, Pool] = {
    "bool": _BOOL,
    **{str(kind): _full(kind) for kind in (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32())},
    "int64": _I64,
    "uint64": _full(pa.uint64()),
    **{f"{kind}_small": _ints(kind, 0, 100) for kind in (pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.uint64())},
    "int64_negative": _ints(pa.int64(), -100, 100),
    **{f"{kind}_special": _floats(kind, special=True) for kind in (pa.float16(), pa.float32(), pa.float64())},
    **{str(kind): _floats(kind, special=False) for kind in (pa.float16(), pa.float32(), pa.float64())},
    "decimal128": _decimals(pa.decimal128(38, 5)),
    "decimal256": _decimals(pa.decimal256(76, 10)),
    "date32": _temporal(pa.date32(), -10_000, 40_000),
    "date64": _temporal(pa.date64(), -10_000, 40_000, _DAY),
    "time32_s": _temporal(pa.time32("s"), 0, 86_399),
    "time32_ms": _temporal(pa.time32("ms"), 0, _DAY - 1),
    "time64_us": _temporal(pa.time64("us"), 0, _DAY * 1000 - 1),
    "time64_ns": _temporal(pa.time64("ns"), 0, _DAY * 1_000_000 - 1),
    **{f"timestamp_{unit}": _temporal(pa.timestamp(unit), -(10**9), 2 * 10**9) for unit in ("s", "ms", "us", "ns")},
    "timestamp_utc": _temporal(pa.timestamp("us", "UTC"), 0, 10**15),
    "timestamp_zone": _temporal(pa.timestamp("ns", "America/New_York"), 0, 10**18),
    **{f"duration_{unit}": _temporal(pa.duration(unit), -(10**9), 10**9) for unit in ("s", "ms", "us", "ns")},
    "string": _WORD,
    "string_empty": _bytes(pa.string(), 0, 0, text="a"),
    "string_sentences": _sentences(pa.string(), 0, 20),
    "string_long": _sentences(pa.string(), 60, 90),
    "large_string": _cast(_WORD, pa.large_string()),
    "large_string_long": _sentences(pa.large_string(), 50, 90),
    "string_view": _WORD,
    "binary": _bytes(pa.binary(), 0, 20),
    "binary_long": _bytes(pa.binary(), 0, 700),
    "large_binary": _bytes(pa.large_binary(), 0, 20),
    "binary_view": _bytes(pa.binary(), 0, 20),
    **{f"fixed_binary_{width}": _fixed(width) for width in (1, 2, 7, 16, 33, 255, 256, 400)},
    "uuid": _extension(pa.uuid(), _fixed(16)),
    **{
        f"dictionary_{index}": _dictionary(index, _WORD, 60)
        for index in (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64())
    },
    "dictionary_of_ints": _dictionary(pa.int16(), _I64, 300),
    "dictionary_of_floats": _dictionary(pa.int32(), _F64, 300),
    "dictionary_of_binary": _dictionary(pa.int32(), _bytes(pa.binary(), 0, 9), 300),
    "dictionary_of_large": _dictionary(pa.uint8(), _cast(_WORD, pa.large_string()), 30),
    "dictionary_of_sentences": _dictionary(pa.int32(), _sentences(pa.string(), 60, 90), 50),
    "list_int": _lists(_I32, most=6),
    "list_int_nulls": _lists(_I32, most=6, share=0.3),
    "list_long": _lists(_ints(pa.int32(), 0, 30), most=60),
    "list_bool": _lists(_BOOL, most=9, share=0.1),
    "list_string": _lists(_WORD, most=4, share=0.2),
    "list_sentences": _lists(_sentences(pa.string(), 50, 70), most=2, share=0.2),
    "list_decimal": _lists(_decimals(pa.decimal128(20, 2)), most=3, share=0.1),
    "list_dictionary": _lists(_dictionary(pa.int16(), _WORD, 60), most=3),
    "large_list": _lists(_F64, most=5, share=0.2, large=True),
    "list_list": _lists(_lists(_I8, most=3, share=0.2), most=3, share=0.3),
    "list_list_list": _lists(_lists(_lists(_I16, most=2), most=2, share=0.2), most=2, share=0.2),
    "list_struct": _lists(_PAIR, most=3, share=0.2),
    "list_struct_list": _lists(_structs(0.2, a=_lists(_I8, most=3, share=0.1), b=_BOOL), most=2, share=0.2),
    "list_fsl": _lists(_fixed_lists(_F32, 3), most=3),
    "list_fsl_wide": _lists(_fixed_lists(_F32, 70), most=2),
    "struct": _structs(0.0, x=_I64, y=_WORD),
    "struct_nulls": _PAIR,
    "struct_struct": _structs(0.2, inner=_PAIR, z=_BOOL),
    "struct_list": _structs(0.2, items=_lists(_I16, most=3, share=0.2), k=_I8),
    "struct_fsl": _structs(0.2, vector=_fixed_lists(_F32, 4), k=_I8),
    "struct_deep": _structs(0.1, a=_structs(0.1, b=_structs(0.1, c=_lists(_PAIR, most=2, share=0.1)))),
    "map": _maps(_WORD, _I64, 0.2),
    "map_struct": _maps(_I64, _PAIR, 0.2),
    "list_map": _lists(_maps(_WORD, _I32), most=2, share=0.2),
    "fsl_f32": _fixed_lists(_F32, 4),
    "fsl_f16": _fixed_lists(_floats(pa.float16(), special=True), 5),
    "fsl_nulls": _fixed_lists(_I16, 3, 0.2),
    "fsl_bool": _fixed_lists(_BOOL, 5),
    "fsl_bool_nulls": _fixed_lists(_BOOL, 3, 0.2),
    "fsl_one": _fixed_lists(_I64, 1),
    "fsl_wide": _fixed_lists(_F32, 96),
    "fsl_wide_nulls": _fixed_lists(_F32, 96, 0.1),
    "fsl_decimal": _fixed_lists(_decimals(pa.decimal128(20, 2)), 2),
    "fsl_timestamp": _fixed_lists(_temporal(pa.timestamp("us"), 0, 10**9), 2),
    "fsl_fsl": _fixed_lists(_fixed_lists(_I8, 2), 3),
    "fsl_fsl_nulls": _fixed_lists(_fixed_lists(_I8, 2, 0.2), 3, 0.2),
    "fsl_struct": _fixed_lists(_structs(0.2, a=_I8, b=_WORD), 2),
    "fsl_struct_nulls": _fixed_lists(_structs(0.2, a=_I8, b=_WORD), 2, 0.2),
    "null": lambda rng, count: pa.nulls(count),
    "json": _json,
    "list_json": _lists(_json, most=3, share=0.2),
    "struct_json": _structs(0.2, j=_json, k=_I8),
    "bfloat16": _extension(BFloat16Type(), _fixed(2)),
    "list_uuid": _lists(_extension(pa.uuid(), _fixed(16)), most=2),
    "timestamp_offset": _temporal(pa.timestamp("ms", "+05:30"), 0, 10**12),
    "dictionary_of_bool": _dictionary(pa.int8(), _BOOL, 2),
    "dictionary_with_null": _dictionary(pa.int8(), _with_null_value(_WORD), 20),
    "struct_dictionary": _structs(0.2, d=_dictionary(pa.int16(), _WORD, 60), k=_I8),
    "list_large_binary": _lists(_cast(_bytes(pa.binary(), 0, 9), pa.large_binary()), most=3, share=0.2, large=True),
    "list_null": _lists(lambda rng, count: pa.nulls(count), most=3),
    "struct_null": _structs(n=lambda rng, count: pa.nulls(count), k=_I8),
    "struct_empty": _empty_structs,
    "fsl_fixed_binary": _fixed_lists(_fixed(3), 2),
    "map_list": _maps(_I64, _lists(_I16, most=3, share=0.2), 0.2),
    "map_map": _maps(_WORD, _maps(_I32, _I8, 0.2), 0.2),
    "struct_map": _structs(0.2, m=_maps(_WORD, _I32, 0.2), k=_I8),
    "large_list_map": _lists(_maps(_I16, _F32), most=2, share=0.1, large=True),
    "list_string_view": _lists(_WORD, most=4, share=0.2),
    "struct_view": _structs(0.2, x=_WORD, y=_bytes(pa.binary(), 0, 20)),
}

# Arrow takes no rows of views, so they are drawn as what they are stored as.
VIEWS: dict[str, pa.DataType] = {
    "string_view": pa.string_view(),
    "binary_view": pa.binary_view(),
    "list_string_view": pa.list_(pa.string_view()),
    "struct_view": pa.struct([("x", pa.string_view()), ("y", pa.binary_view())]),
}


@functools.cache
def pool(name: str, size: int = POOL_SIZE) -> pa.Array:
    """The pool of a type, the same in every run."""
    return POOLS[name](np.random.default_rng(abs(hash_of(name))), size)


def hash_of(name: str) -> int:
    """A number for a name that is the same in every process."""
    return int.from_bytes(name.encode()[-8:], "little") % 2**32


def _sorted_positions(name: str, num_rows: int, size: int) -> np.ndarray[Any, Any]:
    values = pool(name, size)
    try:
        ranks = pc.sort_indices(values).to_numpy()
    except (pa.ArrowException, NotImplementedError):
        ranks = np.arange(size)  # types without an order: each value's place in the pool
    return ranks[np.sort(np.random.default_rng(3).integers(0, size, num_rows))]


DISTRIBUTIONS: dict[str, Callable[[str, int, int], Any]] = {
    "random": lambda name, rows, size: np.random.default_rng(1).permutation(max(rows, size))[:rows] % size,
    "sorted": _sorted_positions,
    "constant": lambda name, rows, size: np.full(rows, 5),
    "low cardinality": lambda name, rows, size: np.random.default_rng(2).integers(0, 7, rows),
    "runs": lambda name, rows, size: (np.arange(rows) // 130) * 7 % size,
}

NULLS: dict[str, Callable[[int], Any]] = {
    "none": lambda rows: None,
    "some": lambda rows: np.random.default_rng(4).random(rows) < 0.15,
    "all": lambda rows: np.ones(rows, bool),
}


def column(name: str, num_rows: int, nulls: str = "none", distribution: str = "random") -> pa.Array:
    """One column drawn from the pool of its type."""
    size = POOL_SIZE
    positions = DISTRIBUTIONS[distribution](name, num_rows, size)
    values = pool(name, size)
    wanted = pa.array(positions, pa.int64(), mask=NULLS[nulls](num_rows))
    if isinstance(values, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(values.type, values.storage.take(wanted))
    taken = values.take(wanted)
    return taken.cast(VIEWS[name]) if name in VIEWS else taken
