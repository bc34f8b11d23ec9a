"""Columns that make the official library choose each layout it has."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

N = 5000


@dataclass(frozen=True)
class ColumnCase:
    build: Callable[[], pa.Array]
    metadata: dict[str, str] = field(default_factory=dict)
    refused: tuple[str, ...] = ()


def _rng() -> np.random.Generator:
    return np.random.default_rng(7)


def _nulls(share: float, count: int = N) -> np.ndarray:
    return _rng().random(count) < share


def _ints(low: int, high: int, type_: pa.DataType, nulls: float = 0.0, count: int = N) -> pa.Array:
    return pa.array(_rng().integers(low, high, count), type_, mask=_nulls(nulls, count) if nulls else None)


def _text(length: int, count: int = N, nulls: float = 0.0, type_: pa.DataType | None = None) -> pa.Array:
    rng = _rng()
    words = ["".join(rng.choice(list("abcdefgh "), rng.integers(0, length))) for _ in range(count)]
    gone = _nulls(nulls, count)
    return pa.array([None if null else word for word, null in zip(words, gone, strict=True)], type_ or pa.string())


def _lists(make: Callable[[np.random.Generator], Any], type_: pa.DataType, count: int = N, plain: bool = False) -> pa.Array:
    rng = _rng()
    rows: list[Any] = []
    for _ in range(count):
        kind = 1.0 if plain else rng.random()
        rows.append(None if kind < 0.1 else [] if kind < 0.2 else [make(rng) for _ in range(rng.integers(1, 6))])
    return pa.array(rows, type_)


def _maybe(rng: np.random.Generator, value: Any, share: float = 0.2) -> Any:
    return None if rng.random() < share else value


def _vectors(dimension: int, count: int, null_rows: bool, null_items: bool, type_: pa.DataType) -> pa.Array:
    rng = _rng()
    rows: list[Any] = []
    for _ in range(count):
        items: list[Any] = rng.random(dimension).astype(np.float16 if type_ == pa.float16() else np.float32).tolist()
        if type_ == pa.bool_():
            items = [item > 0.5 for item in items]
        if null_items:
            items[int(rng.integers(dimension))] = None
        rows.append(_maybe(rng, items) if null_rows else items)
    return pa.array(rows, pa.list_(type_, dimension))


def _word(rng: np.random.Generator, length: int) -> str:
    return "".join(rng.choice(list("abcdefgh "), rng.integers(0, length)))


def _structs(nulls: float, child_nulls: float) -> pa.Array:
    x, y = _ints(0, 1000, pa.int64(), child_nulls), _text(12, nulls=child_nulls)
    mask = pa.array(_nulls(nulls)[::-1])
    return pa.StructArray.from_arrays([x, y], ["x", "y"], mask=mask if nulls else None)


def _deep(rng: np.random.Generator) -> Any:
    inner = _maybe(rng, [_maybe(rng, int(rng.integers(9))) for _ in range(rng.integers(0, 3))])
    return _maybe(rng, {"a": inner, "b": _maybe(rng, 3)})


_INT_LIST = pa.list_(pa.int32())
_DEEP = pa.list_(pa.struct([("a", _INT_LIST), ("b", pa.int32())]))


COLUMNS: dict[str, ColumnCase] = {
    "int64_three": ColumnCase(lambda: pa.array([1, 2, -3])),
    "int64_negative": ColumnCase(lambda: _ints(-(2**60), 2**60, pa.int64())),
    "int64_small": ColumnCase(lambda: _ints(0, 2**20, pa.int64())),
    "int64_nulls": ColumnCase(lambda: _ints(-(2**60), 2**60, pa.int64(), 0.3)),
    "int64_three_nulls": ColumnCase(lambda: pa.array([1, None, 3])),
    "int32_small": ColumnCase(lambda: _ints(0, 100, pa.int32())),
    "int32_few": ColumnCase(lambda: _ints(0, 2, pa.int32(), 0.5)),
    "uint8": ColumnCase(lambda: _ints(0, 256, pa.uint8())),
    "int16_nulls": ColumnCase(lambda: _ints(-300, 300, pa.int16(), 0.01)),
    "float64": ColumnCase(lambda: pa.array(_rng().normal(size=N))),
    "float32_unit": ColumnCase(lambda: pa.array(_rng().random(N).astype(np.float32))),
    "float64_zstd": ColumnCase(lambda: pa.array(np.sort(_rng().normal(size=N))), {"lance-encoding:compression": "zstd"}),
    "bool": ColumnCase(lambda: pa.array(_rng().random(20_000) < 0.5)),
    "bool_nulls": ColumnCase(lambda: pa.array(_rng().random(20_000) < 0.5, mask=_nulls(0.2, 20_000))),
    "int64_few": ColumnCase(lambda: _ints(0, 99, pa.int64(), 0.1)),
    "int64_runs": ColumnCase(lambda: pa.array(np.repeat(np.arange(N // 500), 500))),
    "int32_runs": ColumnCase(lambda: pa.array(np.repeat(np.arange(N // 500), 500), pa.int32())),
    "decimal": ColumnCase(
        lambda: pa.array([decimal.Decimal(int(x)) for x in _rng().integers(0, 10**9, 2000)], pa.decimal128(20, 0))
    ),
    "timestamp": ColumnCase(lambda: _ints(10**15, 2 * 10**15, pa.timestamp("us", "UTC"))),
    "text_short": ColumnCase(lambda: _text(20)),
    "text_short_nulls": ColumnCase(lambda: _text(20, nulls=0.2)),
    "text_tiny": ColumnCase(lambda: pa.array(["a", None, "", "bcd"])),
    "large_text": ColumnCase(lambda: _text(30, type_=pa.large_string())),
    "text_few": ColumnCase(lambda: pa.array([f"word {x}" for x in _rng().integers(0, 9, N)])),
    "text_few_nulls": ColumnCase(lambda: pa.array([None if x < 2 else f"w{x}" for x in _rng().integers(0, 9, N)])),
    "text_long": ColumnCase(lambda: _text(600, 400)),
    "text_long_nulls": ColumnCase(lambda: _text(600, 400, 0.3)),
    "text_huge": ColumnCase(lambda: pa.array(["ab" * 30_000, None, "c", "d" * 40_000])),
    "binary": ColumnCase(lambda: pa.array([_rng().bytes(int(n)) for n in _rng().integers(0, 40, N)], pa.binary())),
    "binary_long": ColumnCase(
        lambda: pa.array([_rng().bytes(int(n)) for n in _rng().integers(0, 900, 300)], pa.large_binary())
    ),
    "text_zstd": ColumnCase(lambda: _text(20), {"lance-encoding:compression": "zstd"}),
    "text_lz4": ColumnCase(lambda: _text(200), {"lance-encoding:compression": "lz4"}),
    "fixed_binary": ColumnCase(lambda: pa.array([_rng().bytes(16) for _ in range(N)], pa.binary(16))),
    "fixed_binary_300": ColumnCase(
        lambda: pa.array([_maybe(_rng(), bytes([i % 256]) * 300, 0) for i in range(300)], pa.binary(300))
    ),
    "int64_forced_zip": ColumnCase(
        lambda: _ints(-(2**60), 2**60, pa.int64(), 0.2), {"lance-encoding:structural-encoding": "fullzip"}
    ),
    "text_forced_zip": ColumnCase(lambda: _text(20, nulls=0.2), {"lance-encoding:structural-encoding": "fullzip"}),
    "constant": ColumnCase(lambda: pa.array(np.full(N, 7))),
    "constant_nulls": ColumnCase(lambda: pa.array(np.full(N, 7), mask=_nulls(0.2))),
    "constant_bool": ColumnCase(lambda: pa.array(np.ones(N, bool))),
    "constant_text": ColumnCase(lambda: pa.array(["same"] * N)),
    "constant_text_nulls": ColumnCase(lambda: pa.array([None if null else "same" for null in _nulls(0.5)])),
    "constant_wide": ColumnCase(lambda: pa.array([b"x" * 40] * N, pa.binary(40))),
    "all_null": ColumnCase(lambda: pa.nulls(N, pa.int64())),
    "all_null_text": ColumnCase(lambda: pa.nulls(N, pa.string())),
    "null_type": ColumnCase(lambda: pa.nulls(100)),
    "list": ColumnCase(lambda: _lists(lambda rng: _maybe(rng, int(rng.integers(1000))), _INT_LIST)),
    "list_plain": ColumnCase(lambda: _lists(lambda rng: int(rng.integers(1000)), _INT_LIST, plain=True)),
    "list_three": ColumnCase(lambda: pa.array([[1, 2], None, []], _INT_LIST)),
    "list_large": ColumnCase(lambda: _lists(lambda rng: int(rng.integers(1000)), pa.large_list(pa.int16()))),
    "list_long_rows": ColumnCase(lambda: pa.array([list(range(n)) for n in (30_000, 0, 5, 70_000, 1)], _INT_LIST)),
    "list_long_then_many": ColumnCase(
        lambda: pa.array([list(range(5000)), *[[i] for i in range(3000)], list(range(9000))], _INT_LIST)
    ),
    "list_all_null": ColumnCase(lambda: pa.nulls(N, _INT_LIST)),
    "list_all_empty": ColumnCase(lambda: pa.array([[]] * N, _INT_LIST)),
    "list_null_items": ColumnCase(lambda: _lists(lambda rng: None, _INT_LIST)),
    "list_constant": ColumnCase(lambda: _lists(lambda rng: 7, _INT_LIST)),
    "list_text": ColumnCase(lambda: _lists(lambda rng: _maybe(rng, "t" * int(rng.integers(9))), pa.list_(pa.string()))),
    "list_text_long": ColumnCase(lambda: _lists(lambda rng: _maybe(rng, _word(rng, 400)), pa.list_(pa.string()), 600)),
    "list_vectors_wide": ColumnCase(
        lambda: _lists(
            lambda rng: _maybe(rng, rng.random(80).astype(np.float32).tolist()), pa.list_(pa.list_(pa.float32(), 80)), 200
        )
    ),
    "list_vectors": ColumnCase(
        lambda: _lists(lambda rng: rng.random(4).astype(np.float32).tolist(), pa.list_(pa.list_(pa.float32(), 4)))
    ),
    "list_list": ColumnCase(
        lambda: _lists(lambda rng: _maybe(rng, [_maybe(rng, 3) for _ in range(rng.integers(0, 4))]), pa.list_(_INT_LIST))
    ),
    "list_list_many": ColumnCase(lambda: pa.array([[[1] * (i % 4)] * (i % 5) for i in range(40_000)], pa.list_(_INT_LIST))),
    "list_struct": ColumnCase(
        lambda: _lists(
            lambda rng: _maybe(rng, {"x": _maybe(rng, 1), "y": "t"}),
            pa.list_(pa.struct([("x", pa.int32()), ("y", pa.string())])),
        )
    ),
    "deep": ColumnCase(lambda: _lists(_deep, _DEEP)),
    "struct": ColumnCase(lambda: _structs(0.0, 0.0)),
    "struct_nulls": ColumnCase(lambda: _structs(0.3, 0.2)),
    "struct_all_null": ColumnCase(lambda: pa.nulls(N, pa.struct([("x", pa.int64()), ("y", pa.string())]))),
    "struct_of_list": ColumnCase(
        lambda: pa.array(
            [_maybe(_rng(), {"l": [1, 2][: i % 3]}, 0) if i % 7 else None for i in range(N)], pa.struct([("l", _INT_LIST)])
        )
    ),
    "vector_wide": ColumnCase(lambda: _vectors(80, 500, False, False, pa.float32())),
    "vector_wide_nulls": ColumnCase(lambda: _vectors(80, 500, True, False, pa.float32())),
    "vector_wide_null_items": ColumnCase(lambda: _vectors(80, 500, True, True, pa.float32())),
    "vector": ColumnCase(lambda: _vectors(4, N, False, False, pa.float32())),
    "vector_nulls": ColumnCase(lambda: _vectors(4, N, True, True, pa.float32())),
    "vector_bool": ColumnCase(lambda: _vectors(13, 1000, False, False, pa.bool_())),
    "vector_vector": ColumnCase(
        lambda: pa.array([[[1, i], [None, 2]] for i in range(N)], pa.list_(pa.list_(pa.int32(), 2), 2))
    ),
    "vector_structs": ColumnCase(
        lambda: pa.array(
            [None if i % 5 == 0 else [{"x": i, "y": "a"}, None if i % 3 else {"x": None, "y": "b"}] for i in range(400)],
            pa.list_(pa.struct([("x", pa.int32()), ("y", pa.string())]), 2),
        ),
        refused=("2.1",),
    ),
    "map": ColumnCase(
        lambda: pa.array(
            [None if i % 9 == 0 else [(f"k{j}", _maybe(_rng(), j, 0)) for j in range(i % 4)] for i in range(N)],
            pa.map_(pa.string(), pa.int32()),
        ),
        refused=("2.1",),
    ),
    "dictionary": ColumnCase(lambda: pa.array(["a", "b", None, "c"] * 1000).dictionary_encode()),
}
