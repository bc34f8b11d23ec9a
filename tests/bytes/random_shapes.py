"""Columns of random shapes: a tree says type, nullability, nulls, distribution and metadata of every level.

    shape = draw(numpy.random.default_rng(7), version="2.2")      Shape(kind="list", children=(Shape(kind="int16", ...),))
    shape.field("c"), shape.array(1000)                           what Arrow makes of it

Every node has a seed of its own, so a smaller tree holds the same values as before in what is left of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tests.bytes import byte_pools as pools

Rng = np.random.Generator

FIXED = {
    "bool": pa.bool_(),
    **{str(kind): kind for kind in (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32())},
    **{str(kind): kind for kind in (pa.int64(), pa.uint64(), pa.float16(), pa.float32(), pa.float64())},
    "decimal128": pa.decimal128(30, 4),
    "decimal256": pa.decimal256(60, 3),
    **{str(kind): kind for kind in (pa.date32(), pa.date64(), pa.time32("s"), pa.time64("ns"), pa.duration("ms"))},
    "timestamp": pa.timestamp("us", "UTC"),
}
TEXTS = {
    "string": pa.string(),
    "large_string": pa.large_string(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "string_view": pa.string_view(),
    "binary_view": pa.binary_view(),
}
NESTED = ("list", "large_list", "fixed_size_list", "struct", "map", "dictionary")
ODD = ("null", "fixed_binary", "uuid", "json", "bfloat16", "blob")
STYLES = ("random", "small", "constant", "few", "runs", "sorted", "long")

PREFIX = "lance-encoding:"
SETTINGS: dict[str, tuple[str, ...]] = {
    "compression": ("zstd", "lz4", "none", "fsst"),
    "compression-level": ("1", "7"),
    "structural-encoding": ("miniblock", "fullzip"),
    "rle-threshold": ("0.0", "0.9", "1.0"),
    "bss": ("on", "off", "auto"),
    "dict-divisor": ("1", "4", "100000"),
    "dict-size-ratio": ("0.2", "1.0"),
    "dict-max-size": ("10", "100000"),
    "dict-values-compression": ("zstd", "lz4", "none"),
    "dict-values-compression-level": ("2",),
    "minichunk-size": ("128", "1024", "16384"),
}


@dataclass(frozen=True)
class Shape:
    """One level of a column. `nulls` is the share of nulls; `dirty` leaves values under them."""

    kind: str
    children: tuple[Shape, ...] = ()
    nullable: bool = True
    nulls: float = 0.0
    style: str = "random"
    size: int = 3
    dirty: bool = False
    metadata: tuple[tuple[str, str], ...] = ()
    seed: int = 0

    @property
    def type(self) -> pa.DataType:
        """The Arrow type."""
        return _type(self)

    def field(self, name: str) -> pa.Field:
        """The Arrow field, with its nullability and metadata."""
        return pa.field(name, self.type, self.nullable, dict(self.metadata) or None)

    def array(self, count: int) -> pa.Array:
        """`count` values."""
        array = _VALUES.get(self.kind, _leaf)(self, count)
        return _with_nulls(self, array) if self.nulls and self.nullable and self.kind != "null" else array

    @property
    def size_of_tree(self) -> int:
        """How much there is to it: what shrinking makes smaller."""
        own = 4 + 2 * len(self.metadata) + (self.nulls > 0) + self.dirty + (not self.nullable) + (self.style != "random")
        return own + (self.kind != "int32") + (self.size > 1) + sum(child.size_of_tree for child in self.children)

    @property
    def values_per_row(self) -> float:
        """About how many leaf values a row holds, a long text counted as some; 1 at least."""
        below = sum(child.values_per_row for child in self.children)
        if self.kind == "fixed_size_list":
            return self.size * below
        if self.kind in ("list", "large_list", "map"):
            return max(1.0, _MEAN_LENGTHS.get(self.style, 2.0) * below)
        return max(1.0, below, 20.0 * (self.kind in TEXTS and self.style == "long"))

    def describe(self) -> str:
        """The tree on one line."""
        marks = [f"nulls={self.nulls:g}"] if self.nulls else []
        marks += ["dirty"] if self.dirty and self.nulls else []
        marks += [self.style] if self.style != "random" and not self.children else []
        marks += [f"{key.removeprefix(PREFIX)}={value}" for key, value in self.metadata]
        inner = ", ".join(child.describe() for child in self.children)
        size = f"[{self.size}]" if self.kind in ("fixed_size_list", "fixed_binary") else ""
        text = f"{self.kind}{size}" + (f"<{inner}>" if self.children or self.kind == "struct" else "")
        return text + ("" if self.nullable else "!") + (f"({' '.join(marks)})" if marks else "")


def smaller(shape: Shape) -> Iterator[Shape]:
    """Shapes that are a step simpler, boldest first."""
    yield from shape.children
    if shape.children and shape.kind == "struct" and len(shape.children) > 1:
        for number in range(len(shape.children)):
            yield replace(shape, children=shape.children[:number] + shape.children[number + 1 :])
    for number in range(len(shape.metadata)):
        yield replace(shape, metadata=shape.metadata[:number] + shape.metadata[number + 1 :])
    for change in _SIMPLER:
        made = replace(shape, **change)
        if made.size_of_tree < shape.size_of_tree and (not shape.children or "kind" not in change):
            yield made
    for number, child in enumerate(shape.children):
        for made in smaller(child):
            if _fits(shape, number, made):
                yield replace(shape, children=(*shape.children[:number], made, *shape.children[number + 1 :]))


_SIMPLER: tuple[dict[str, Any], ...] = (
    {"kind": "int32"},
    {"nulls": 0.0},
    {"dirty": False},
    {"nullable": True},
    {"style": "random"},
    {"size": 1},
)


def _fits(parent: Shape, number: int, child: Shape) -> bool:
    if parent.kind == "map" and number == 0:
        return not child.nullable and not child.children
    if parent.kind == "dictionary":
        return child.kind in _DICTIONARY_VALUES
    return True


def draw(rng: Rng, version: str, *, depth: int = 0) -> Shape:
    """A random column for a version of the format."""
    kind = _draw_kind(rng, depth)
    if version == "0.1":
        kind = kind.removesuffix("_view")  # the official library stores none in legacy files
    nullable = bool(rng.random() < 0.75) or kind == "null"
    nulls = float(rng.choice([0.0, 0.0, 0.1, 0.5, 0.97, 1.0])) if nullable else 0.0
    shape = Shape(
        kind,
        nullable=nullable,
        nulls=nulls,
        style=str(rng.choice(STYLES)),
        size=int(rng.choice([1, 1, 2, 3, 5, 8, 16, 33, 70])),
        dirty=bool(rng.random() < 0.4),
        seed=int(rng.integers(1 << 30)),
    )
    if kind == "blob":
        blob = ((PREFIX + "blob", "true"),)
        return (
            replace(shape, kind="large_binary", metadata=blob)
            if depth == 0 and version < "2.2"
            else draw(rng, version, depth=9)
        )
    return replace(_with_children(rng, shape, version, depth), metadata=_draw_metadata(rng, shape))


def _draw_kind(rng: Rng, depth: int) -> str:
    roll = rng.random()
    if roll < (0.5, 0.45, 0.3, 0.15, 0.0)[min(depth, 4)]:
        return str(rng.choice(NESTED))
    if roll < 0.9:
        return str(rng.choice([*FIXED, *TEXTS, *TEXTS]))
    return str(rng.choice(ODD))


def _with_children(rng: Rng, shape: Shape, version: str, depth: int) -> Shape:
    if shape.kind in ("list", "large_list", "fixed_size_list"):
        return replace(shape, children=(draw(rng, version, depth=depth + 1),))
    if shape.kind == "struct":
        count = int(rng.choice([0, 1, 1, 2, 2, 3, 4]))
        return replace(shape, children=tuple(draw(rng, version, depth=depth + 1) for _ in range(count)))
    if shape.kind == "map":
        key = Shape(str(rng.choice(["string", "int32", "int64", "binary"])), nullable=False, seed=int(rng.integers(1 << 30)))
        return replace(shape, children=(key, draw(rng, version, depth=depth + 1)))
    if shape.kind == "dictionary":
        value = Shape(
            str(rng.choice(_DICTIONARY_VALUES)),
            nulls=float(rng.choice([0, 0, 0.2])),
            style=str(rng.choice(["random", "long"])),
            seed=int(rng.integers(1 << 30)),
        )
        return replace(shape, children=(value,), size=int(rng.choice([1, 2, 20, 100])))
    return shape


def _draw_metadata(rng: Rng, shape: Shape) -> tuple[tuple[str, str], ...]:
    found = {}
    if shape.kind == "struct" and rng.random() < 0.4:
        found[PREFIX + "packed"] = "true"
    if rng.random() < 0.4:
        for key in rng.choice([*SETTINGS], int(rng.integers(1, 4)), replace=False):
            found[PREFIX + str(key)] = str(rng.choice(SETTINGS[str(key)]))
    return tuple(found.items())


_DICTIONARY_VALUES = ("string", "large_string", "binary", "int64", "int16", "double", "string", "string")


def _type(shape: Shape) -> pa.DataType:
    kind = shape.kind
    if kind in FIXED or kind in TEXTS:
        return FIXED.get(kind) or TEXTS[kind]
    if kind in ("list", "large_list"):
        make = pa.list_ if kind == "list" else pa.large_list
        return make(shape.children[0].field("item"))
    if kind == "fixed_size_list":
        return pa.list_(shape.children[0].field("item"), shape.size)
    if kind == "struct":
        return pa.struct([child.field("abcdefgh"[number]) for number, child in enumerate(shape.children)])
    if kind == "map":
        return pa.map_(shape.children[0].field("key"), shape.children[1].field("value"))
    if kind == "dictionary":
        return pa.dictionary(_INDEX_TYPES[shape.seed % len(_INDEX_TYPES)], shape.children[0].type)
    if kind == "fixed_binary":
        return pa.binary(shape.size)
    return {"null": pa.null(), "uuid": pa.uuid(), "json": pa.json_(pa.string()), "bfloat16": pools.BFloat16Type()}[kind]


_INDEX_TYPES = (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64())


def _rng(shape: Shape, salt: int = 0) -> Rng:
    return np.random.default_rng([shape.seed, salt])


def positions(shape: Shape, count: int, pool: int) -> np.ndarray[Any, Any]:
    """Which values of a pool the column holds."""
    rng = _rng(shape, 1)
    if shape.style == "constant":
        return np.zeros(count, np.int64)
    if shape.style == "few":
        return rng.integers(0, min(pool, 6), count)
    if shape.style == "runs":
        return np.repeat(rng.integers(0, pool, count // 17 + 1), 17)[:count]
    found = rng.integers(0, pool, count)
    return np.sort(found) if shape.style == "sorted" else found


def _leaf(shape: Shape, count: int) -> pa.Array:
    pool = max(1, min(count, 700))
    values = _pool(shape, pool)
    picked = values.take(pa.array(positions(shape, count, pool)))
    return picked.cast(shape.type) if shape.kind in ("string_view", "binary_view") else picked


def _pool(shape: Shape, count: int) -> pa.Array:
    rng = _rng(shape)
    kind = shape.type
    if shape.kind == "bool":
        return pa.array(rng.random(count) < 0.5)
    if shape.kind in TEXTS:
        return _texts(shape, rng, count)
    if pa.types.is_floating(kind):
        return pools.POOLS[f"{shape.kind}_special"](rng, count)
    width = kind.bit_width // 8
    if shape.style == "small" and not pa.types.is_date64(kind):
        wide = np.zeros((count, width), np.uint8)
        wide[:, 0] = rng.integers(0, 100, count)
    else:
        wide = np.frombuffer(rng.bytes(count * width), np.uint8).reshape(count, width).copy()
        if shape.kind.startswith("decimal"):
            wide[:, 8:] = 0
        if pa.types.is_time(kind) or pa.types.is_date64(kind):
            wide[:, 2:] = 0
        if pa.types.is_date64(kind):
            days = wide.view(np.int64)[:, 0] * 86_400_000
            wide = days.view(np.uint8).reshape(count, 8)
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(np.ascontiguousarray(wide))])


def _texts(shape: Shape, rng: Rng, count: int) -> pa.Array:
    stored = {"string_view": pa.string(), "binary_view": pa.binary()}.get(shape.kind) or TEXTS[shape.kind]
    low, high = (200, 500) if shape.style == "long" else (0, 3) if shape.style == "small" else (0, 25)
    sizes = rng.integers(low, high, count)
    if shape.style == "long" and count > 3 and shape.seed % 5 == 0:
        sizes[3] = 40_000
    values: list[Any]
    if "string" in shape.kind:
        letters = rng.choice(list("abcde é"), int(sizes.sum()))
        ends = np.cumsum(sizes)
        values = ["".join(letters[end - size : end]) for end, size in zip(ends, sizes, strict=True)]
    else:
        values = [rng.bytes(size) for size in sizes]
    return pa.array(values, stored)


_MEAN_LENGTHS = {"small": 0.5, "long": 20.0, "constant": 3.0}


def _lengths(shape: Shape, count: int) -> np.ndarray[Any, Any]:
    rng = _rng(shape)
    most = {"small": 2, "long": 40, "constant": 3}.get(shape.style, 5)
    if shape.style == "constant":
        return np.full(count, most if shape.seed % 2 else 0)
    lengths = rng.integers(0, most, count)
    if shape.style == "few" and count:
        lengths[:] = 0
        lengths[rng.integers(0, count, 2)] = 300
    return lengths


def _list(shape: Shape, count: int) -> pa.Array:
    offsets = np.concatenate(([0], np.cumsum(_lengths(shape, count))))
    items = shape.children[0].array(int(offsets[-1]))
    dtype = np.int32 if shape.kind == "list" else np.int64
    buffers = [None, pa.py_buffer(offsets.astype(dtype))]
    return pa.Array.from_buffers(shape.type, count, buffers, children=[items])


def _fixed_size_list(shape: Shape, count: int) -> pa.Array:
    items = shape.children[0].array(count * shape.size)
    return pa.Array.from_buffers(shape.type, count, [None], children=[items])


def _struct(shape: Shape, count: int) -> pa.Array:
    return pa.Array.from_buffers(shape.type, count, [None], children=[child.array(count) for child in shape.children])


def _map(shape: Shape, count: int) -> pa.Array:
    offsets = np.concatenate(([0], np.cumsum(_lengths(shape, count))))
    pairs = [child.array(int(offsets[-1])) for child in shape.children]
    entries = pa.struct([shape.type.key_field, shape.type.item_field])
    items = pa.Array.from_buffers(entries, int(offsets[-1]), [None], children=pairs)
    return pa.Array.from_buffers(shape.type, count, [None, pa.py_buffer(offsets.astype(np.int32))], children=[items])


def _dictionary(shape: Shape, count: int) -> pa.Array:
    value = shape.children[0]
    items = value.array(min(shape.size, 100))
    keys = _rng(shape).integers(0, len(items), count).astype(shape.type.index_type.to_pandas_dtype())
    return pa.DictionaryArray.from_arrays(pa.array(keys, shape.type.index_type), items)


def _fixed_binary(shape: Shape, count: int) -> pa.Array:
    pool = pa.Array.from_buffers(pa.binary(shape.size), 50, [None, pa.py_buffer(_rng(shape).bytes(50 * shape.size))])
    return pool.take(pa.array(positions(shape, count, 50)))


def _extension(shape: Shape, count: int) -> pa.Array:
    storage = _fixed_binary(replace(shape, kind="fixed_binary", size=16 if shape.kind == "uuid" else 2), count)
    return pa.ExtensionArray.from_storage(shape.type, storage)


def _json(shape: Shape, count: int) -> pa.Array:
    return pools.POOLS["json"](_rng(shape), count)


_VALUES: dict[str, Any] = {
    "list": _list,
    "large_list": _list,
    "fixed_size_list": _fixed_size_list,
    "struct": _struct,
    "map": _map,
    "dictionary": _dictionary,
    "fixed_binary": _fixed_binary,
    "uuid": _extension,
    "bfloat16": _extension,
    "json": _json,
    "null": lambda shape, count: pa.nulls(count),
}


def _with_nulls(shape: Shape, array: pa.Array) -> pa.Array:
    """Nulls over the values; without `dirty`, nothing is left under them (as far as Arrow can say it)."""
    valid = _rng(shape, 2).random(len(array)) >= shape.nulls
    if isinstance(array, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(array.type, _masked(array.storage, valid, dirty=shape.dirty))
    return _masked(array, valid, dirty=shape.dirty)


def _masked(array: pa.Array, valid: np.ndarray[Any, Any], *, dirty: bool) -> pa.Array:
    bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
    if isinstance(array, pa.DictionaryArray):
        return pa.DictionaryArray.from_arrays(_masked(array.indices, valid, dirty=True), array.dictionary)
    kind = array.type
    if not dirty and not pa.types.is_nested(kind) and kind not in (pa.string_view(), pa.binary_view()):
        return array.take(pa.array(np.arange(len(array)), mask=~valid))
    if not dirty and (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind)):
        return _without_items_under_nulls(array, valid, bitmap)
    children = _children(array)
    buffers = [bitmap, *array.buffers()[1 : _num_buffers(array)]]
    return pa.Array.from_buffers(kind, len(array), buffers, children=children)


def _without_items_under_nulls(array: pa.Array, valid: np.ndarray[Any, Any], bitmap: pa.Buffer) -> pa.Array:
    dtype = np.int64 if pa.types.is_large_list(array.type) else np.int32
    offsets = np.frombuffer(array.buffers()[1], dtype)
    lengths = np.where(valid, np.diff(offsets), 0)
    ends = np.concatenate(([0], np.cumsum(lengths))).astype(dtype)
    # The child keeps its length; what the nulls held is behind the last list now.
    return pa.Array.from_buffers(array.type, len(array), [bitmap, pa.py_buffer(ends)], children=_children(array))


def _children(array: pa.Array) -> list[pa.Array] | None:
    kind = array.type
    if pa.types.is_struct(kind):
        return [array.field(number) for number in range(kind.num_fields)]
    if pa.types.is_map(kind):
        entries = pa.struct([kind.key_field, kind.item_field])
        return [pa.Array.from_buffers(entries, len(array.keys), [None], children=[array.keys, array.items])]
    return [array.values] if pa.types.is_nested(kind) else None


def _num_buffers(array: pa.Array) -> int:
    kind = array.type
    if pa.types.is_struct(kind) or pa.types.is_fixed_size_list(kind):
        return 1
    return 2 if pa.types.is_nested(kind) else len(array.buffers())
