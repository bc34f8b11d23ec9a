"""Digests of values: vectors that the page states, one digest for all physical forms, others for other values."""

from __future__ import annotations

import datetime as dt
import decimal
import hashlib
import itertools
import random
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lance_core.arrow.digests import row_digests, type_signature
from lance_core.errors import InputError

SEED = bytes(16)
UTC = dt.timezone.utc


def digests(array: Any) -> list[str]:
    return [row.tobytes().hex() for row in row_digests([array], seed=SEED)]


def by_the_rule(cell: bytes) -> str:
    """The digest of a row of one cell, as the page defines it."""
    return hashlib.blake2b(SEED + cell, digest_size=16, person=b"lance:row").hexdigest()


def content(data: bytes, person: bytes = b"lance:content") -> bytes:
    return hashlib.blake2b(data, digest_size=16, person=person).digest()


VECTORS = [
    (pa.array([None], pa.null()), b"\0"),
    (pa.array([True, None]), b"\1\1"),
    (pa.array([-2], pa.int16()), b"\1\xfe\xff"),
    (pa.array([2], pa.uint64()), b"\1" + struct.pack("<Q", 2)),
    (pa.array([1.5], pa.float32()), b"\1" + struct.pack("<f", 1.5)),
    (pa.array([-0.0]), b"\1" + bytes(8)),
    (pa.array(["é"]), b"\1" + content("é".encode())),
    (pa.array([b""]), b"\1" + content(b"")),
    (pa.array([b"ab"], pa.binary(2)), b"\1" + content(b"ab")),
    (pa.array([dt.date(1970, 1, 2)]), b"\1" + struct.pack("<q", 1)),
    (pa.array([dt.datetime(1969, 12, 31, 23, 59, 59, 500000)]), b"\1" + struct.pack("<qI", -1, 500_000_000)),
    (pa.array([dt.time(0, 0, 1)]), b"\1" + struct.pack("<q", 10**9)),
    (pa.array([decimal.Decimal("-0.01")], pa.decimal128(5, 2)), b"\1" + (-1).to_bytes(32, "little", signed=True)),
    (pa.array([[1, 2]], pa.list_(pa.int8())), b"\1" + content(b"\1\2")),
    (pa.array([[1, None]], pa.list_(pa.int8())), b"\1" + content(content(b"\1\0") + b"\1\0", b"lance:nulls")),
    (pa.array([[]], pa.list_(pa.int8())), b"\1" + content(b"")),
    (pa.array([["a"]]), b"\1" + content(content(b"a"))),
    (pa.array([{"x": 1, "y": None}], pa.struct({"x": pa.int8(), "y": pa.int8()})), b"\1\1\1\0\0"),
]


@pytest.mark.parametrize(("array", "cell"), VECTORS, ids=lambda item: str(getattr(item, "type", ""))[:30])
def test_vectors(array: Any, cell: bytes) -> None:
    assert digests(array)[0] == by_the_rule(cell)


def test_a_null_is_zeros_whatever_is_below_it() -> None:
    values = pa.array([7, 8], pa.int32())
    hidden = pa.Array.from_buffers(pa.int32(), 2, [pa.py_buffer(b"\x02"), values.buffers()[1]])
    assert digests(hidden)[0] == by_the_rule(bytes(5))


def _forms(array: Any) -> list[Any]:
    """The same values in every physical form that Arrow has for them."""
    kind = array.type
    forms = [array, pa.concat_arrays([array[:0], array]), _amid(array), pa.chunked_array([array[:3], array[3:]])]
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        text = pa.types.is_string(kind)
        for other in (pa.large_string(), pa.string_view()) if text else (pa.large_binary(), pa.binary_view()):
            forms.append(array.cast(other))
        forms += [array.dictionary_encode(), array.cast(forms[-1].type).slice(0)]
    if pa.types.is_integer(kind):
        forms += [array.dictionary_encode(), pc.run_end_encode(array)]
    if pa.types.is_list(kind):
        forms += [array.cast(pa.large_list(kind.value_type)), pa.array(array.to_pylist(), pa.list_view(kind.value_type))]
        if pa.types.is_string(kind.value_type):
            forms.append(array.cast(pa.large_list(pa.large_string())))
    if pa.types.is_timestamp(kind):
        forms += [array.cast(pa.timestamp(unit, kind.tz)) for unit in ("ms", "us", "ns")]
    if pa.types.is_duration(kind):
        forms += [array.cast(pa.duration(unit)) for unit in ("ms", "us", "ns")]
    if pa.types.is_decimal(kind):
        forms.append(array.cast(pa.decimal256(kind.precision, kind.scale)))
    if pa.types.is_date(kind):
        forms.append(array.cast(pa.date64()))
    if pa.types.is_time(kind):
        forms += [array.cast(pa.time64("us")), array.cast(pa.time64("ns"))]
    return forms


def _amid(array: Any) -> Any:
    """A slice of a longer array: with an offset in all its buffers."""
    return pa.concat_arrays([array[-2:], array, array[:2]])[2 : len(array) + 2]


KINDS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.string(), ["", "a", "b", "é", "é", "a\0", "\0"]),
    (pa.binary(), [b"", b"a", b"\0", b"\0\0"]),
    (pa.int8(), [0, 1, -1, 127]),
    (pa.int64(), [0, 1, -1, 2**62]),
    (pa.uint32(), [0, 1, 2**32 - 1]),
    (pa.float16(), [np.float16(0), np.float16(1.5), np.float16("inf")]),
    (pa.float64(), [0.0, 1.5, -1.5, float("inf"), 5e-324]),
    (pa.bool_(), [True, False]),
    (pa.date32(), [dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(9999, 1, 1)]),
    (pa.time32("ms"), [dt.time(0), dt.time(1), dt.time(23, 59, 59, 999000)]),
    (pa.timestamp("s"), [dt.datetime(1900, 1, 1), dt.datetime(1970, 1, 1), dt.datetime(2200, 1, 1)]),
    (pa.timestamp("s", "UTC"), [dt.datetime(1900, 1, 1, tzinfo=UTC), dt.datetime(2200, 1, 1, tzinfo=UTC)]),
    (pa.duration("s"), [dt.timedelta(seconds=-1), dt.timedelta(0), dt.timedelta(days=9)]),
    (pa.decimal128(20, 3), [decimal.Decimal("-1.001"), decimal.Decimal(0), decimal.Decimal("12345678901234.5")]),
    (pa.list_(pa.string()), [[], [None], [None, None], [""], ["a", "b"], ["ab"], ["a", None, "b"]]),
    (pa.list_(pa.float32()), [[], [0.0], [0.0, 0.0], [None], [0.0, None], [None, 0.0], [1.0]]),
    (pa.list_(pa.list_(pa.int8())), [[], [[]], [[], []], [[1]], [[1], [2]], [[1, 2]], [[None]], [None]]),
    (pa.list_(pa.null()), [[], [None], [None, None]]),
    (pa.list_(pa.float32(), 2), [[0.0, 0.0], [0.0, None], [None, 0.0], [1.0, 2.0], [2.0, 1.0]]),
    (pa.struct({"x": pa.int8(), "y": pa.string()}), [{"x": 1, "y": ""}, {"x": 1}, {}, {"x": 0, "y": None}]),
    (pa.map_(pa.string(), pa.int8()), [[], [("a", 1)], [("a", None)], [("a", 1), ("b", 2)], [("b", 2), ("a", 1)]]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "values"), KINDS, ids=lambda item: str(item)[:40] if isinstance(item, pa.DataType) else "")
def test_equal_values_have_one_digest_in_every_form_and_others_another(kind: pa.DataType, values: list[Any]) -> None:
    draw = random.Random(str(kind))
    picked = [draw.choice([None, *values]) for _ in range(40)] + [None, *values]
    array = pa.array(picked, kind)
    expected = digests(array)
    distinct = {repr(value): digest for value, digest in zip(array.to_pylist(), expected, strict=True)}
    assert (
        len(set(distinct.values()))
        == len(distinct)
        == len({repr(item) for item in pa.array([None, *values], kind).to_pylist()})
    )
    for form in _forms(array):
        assert digests(form) == expected, form.type
        assert type_signature(form.type) == type_signature(kind)


def test_signs_of_zero_and_kinds_of_nan_do_not_count() -> None:
    for code, kind, quiet in (("<f4", pa.float32(), 0x7FC00001), ("<f8", pa.float64(), 0x7FF8000000000001)):
        whole = np.array([quiet], code.replace("f", "u")).view(code)
        made = pa.array(np.concatenate([whole, np.array([np.nan, -np.nan, 0.0, -0.0], code)]), kind)
        found = digests(made)
        assert len({*found[:3]}) == 1
        assert len({*found[3:]}) == 1
        assert found[0] != found[3]


def test_columns_do_not_run_into_each_other() -> None:
    pairs = [["ab", "c"], ["a", "bc"], ["", "abc"], ["abc", ""], [None, "abc"], ["abc", None]]
    made = row_digests([pa.array([left for left, _ in pairs]), pa.array([right for _, right in pairs])], seed=SEED)
    assert len({row.tobytes() for row in made}) == len(pairs)
    assert row_digests([pa.array(["a"])], seed=b"x" * 16).tobytes() != row_digests([pa.array(["a"])], seed=SEED).tobytes()


def test_random_nested_values_agree_only_when_equal() -> None:
    draw = random.Random(5)
    kind = pa.struct({"l": pa.list_(pa.struct({"a": pa.list_(pa.int8()), "b": pa.string()})), "n": pa.float64()})

    def value(kind: pa.DataType) -> Any:
        if draw.random() < 0.2:
            return None
        if pa.types.is_struct(kind):
            return {field.name: value(field.type) for field in kind}
        if pa.types.is_list(kind):
            return [value(kind.value_type) for _ in range(draw.randrange(3))]
        return draw.choice(["", "a", "b"] if pa.types.is_string(kind) else [0, 1])

    values = [value(kind) for _ in range(3000)]
    array = pa.array(values, kind)
    found = digests(array)
    assert (
        found
        == digests(_amid(array))
        == list(itertools.chain.from_iterable(digests(array[at : at + 1]) for at in range(len(array))))
    )
    told: dict[str, str] = {}
    for plain, digest in zip(array.to_pylist(), found, strict=True):
        assert told.setdefault(repr(plain), digest) == digest
    assert len(set(told.values())) == len(told)


def test_types_say_what_matters() -> None:
    same = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
    assert {type_signature(kind) for kind in same} == {"text"}
    assert type_signature(pa.list_(pa.int8(), 3)) == type_signature(pa.large_list(pa.int8())) == "list<int8>"
    assert (
        type_signature(pa.timestamp("s")) == type_signature(pa.timestamp("ns")) != type_signature(pa.timestamp("ns", "UTC"))
    )
    assert len({type_signature(kind) for kind in (pa.int8(), pa.int64(), pa.uint8(), pa.float32(), pa.float64())}) == 5
    twisted = pa.struct({"a int8, 1:b": pa.int8()}), pa.struct({"a": pa.int8(), "b": pa.int8()})
    assert type_signature(twisted[0]) != type_signature(twisted[1])


def test_a_type_without_a_rule_is_refused() -> None:
    with pytest.raises(InputError, match="no digest"):
        type_signature(pa.month_day_nano_interval())
    with pytest.raises(InputError, match="no digest"):
        row_digests([pa.array([None], pa.month_day_nano_interval())], seed=SEED)


def test_the_page_states_these_digests() -> None:
    page = (Path(__file__).parents[2] / "docs" / "freshness.md").read_text(encoding="utf-8")
    stated = dict(re.findall(r"^\| (.+ \(.+\)) \| `([0-9a-f]{32})` \|$", page, re.MULTILINE))
    values = {
        "null (int64)": pa.array([None], pa.int64()),
        "1 (int64)": pa.array([1]),
        "1 (int32)": pa.array([1], pa.int32()),
        "0.0 and -0.0 (double)": pa.array([-0.0]),
        "NaN (double)": pa.array([float("nan")]),
        '"" (text)': pa.array([""]),
        '"é" (text)': pa.array(["é"]),
        "[1, null] (list of int8)": pa.array([[1, None]], pa.list_(pa.int8())),
        "[] (list of int8)": pa.array([[]], pa.list_(pa.int8())),
        "1970-01-01 00:00:00.5 (timestamp)": pa.array([500], pa.timestamp("ms")),
    }
    assert stated == {name: digests(array)[0] for name, array in values.items()}
