"""The order of values in indices, judged by Python's own sort."""

from __future__ import annotations

import datetime as dt
import itertools
import math
import struct
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_core.index.scalar.external_sort import extremes, is_change, order_of
from lance_core.kernels.sort import order_of_words

TEXTS = st.one_of(
    st.text(max_size=30),
    st.sampled_from(["", "\0", "\0\0", "a", "a\0", "a" * 8, "a" * 16, "a" * 17, "a" * 16 + "\0", "a" * 40, "a" * 40 + "b"]),
    st.text(alphabet="ab\0", max_size=40).map(lambda text: "https://example.org/" + text),
)


def judge(values: list[Any], data_type: pa.DataType, key: Any = lambda value: value) -> None:
    array = pa.array([values[0] if values else None, *values], data_type).slice(1)
    order = order_of(array).tolist()
    nulls = [place for place, value in enumerate(values) if value is None]
    rest = [place for place, value in enumerate(values) if value is not None]
    assert order == nulls + sorted(rest, key=lambda place: key(values[place]))
    ordered = [None if values[place] is None else key(values[place]) for place in order]
    changes = [left != right for left, right in itertools.pairwise(ordered)]
    assert is_change(array.take(pa.array(order, pa.int64()))).tolist() == changes


def by_bits(value: float) -> int:
    bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return bits if bits >= 0 else bits ^ 0x7FFFFFFFFFFFFFFF


@given(st.lists(st.none() | TEXTS, max_size=30))
def test_texts(values: list[str | None]) -> None:
    for data_type in (pa.string(), pa.large_string()):
        judge(values, data_type, lambda text: text.encode())


@given(st.lists(st.none() | st.binary(max_size=20), max_size=20))
def test_binary(values: list[bytes | None]) -> None:
    judge(values, pa.binary())


def test_long_texts_of_one_prefix() -> None:
    rng = np.random.default_rng(0)
    judge([f"{'x' * 40}/{number:07}/{'y' * 20}" for number in rng.integers(0, 500, 2000)], pa.string())


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=40))
def test_whole_numbers(values: list[int | None]) -> None:
    judge(values, pa.int64())


@given(st.lists(st.integers(0, 2**64 - 1), max_size=40))
def test_large_whole_numbers(values: list[int]) -> None:
    judge(values, pa.uint64())


@given(st.lists(st.none() | st.floats(allow_nan=False), max_size=40))
def test_floats(values: list[float | None]) -> None:
    judge([*values, -0.0, 0.0, math.inf, -math.inf], pa.float64(), by_bits)


@pytest.mark.parametrize(
    ("data_type", "values"),
    [
        (pa.bool_(), [True, None, False, True]),
        (pa.int8(), [3, -128, None, 127, 3]),
        (pa.float16(), [np.float16(2), np.float16(-1), None]),
        (pa.date32(), [dt.date(2020, 1, 2), None, dt.date(1950, 1, 1)]),
        (pa.date64(), [dt.date(2020, 1, 2), dt.date(1950, 1, 1)]),
        (pa.timestamp("us", "UTC"), [dt.datetime(2020, 1, 2, tzinfo=dt.timezone.utc), None]),
        (pa.time32("s"), [dt.time(5), dt.time(1), None]),
        (pa.time64("us"), [dt.time(5), dt.time(1), None]),
        (pa.duration("us"), [dt.timedelta(5), dt.timedelta(-1), None, dt.timedelta(5)]),
        (pa.decimal128(10, 2), [Decimal("1.50"), None, Decimal("-3.00"), Decimal("1.50")]),
        (pa.binary(3), [b"abc", b"\xff\0\0", None, b"abc"]),
        (pa.string(), []),
        (pa.string(), [None, None]),
        (pa.int32(), [None, None]),
        (pa.int64(), []),
    ],
)
def test_every_type(data_type: pa.DataType, values: list[Any]) -> None:
    judge(values, data_type)


@pytest.mark.parametrize("bits", [1, 20, 50, 64])
@pytest.mark.parametrize("shift", [0, 13])
def test_words(bits: int, shift: int) -> None:
    rng = np.random.default_rng(bits)
    keys = (
        rng.integers(0, 1 << bits, 5000, dtype=np.uint64, endpoint=False)
        if bits < 64
        else rng.bit_generator.random_raw(5000)
    )
    keys = (keys << np.uint64(shift)) + np.uint64(7)
    assert order_of_words(keys).tolist() == np.argsort(keys, kind="stable").tolist()


@given(st.lists(st.none() | st.floats(), max_size=20))
def test_extremes_are_the_ends_of_the_order(values: list[float | None]) -> None:
    array = pa.array(values, pa.float64())
    present = array.take(pa.array(order_of(array), pa.int64())).drop_null()
    low, high = extremes(array)
    if len(present) == 0:
        assert not low.is_valid
        assert not high.is_valid
    else:
        ends = [struct.pack("<d", scalar.as_py()) for scalar in (present[0], present[-1])]
        assert [struct.pack("<d", scalar.as_py()) for scalar in (low, high)] == ends
