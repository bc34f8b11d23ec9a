"""Arrays and constants made from buffers are those that pyarrow makes; pandas is not imported for them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_core.arrow_numpy import array_of, arrow_of, constant, no_rows, no_values, numpy_of, true_of

ARRAYS: dict[str, Any] = {
    **{f"numbers {code}": pa.array(np.array([1, 0, 3], code)) for code in ("i1", "u2", "i4", "u8", "f2", "f4", "f8")},
    "slice": pa.array([1, 2, 3, 4], pa.int32()).slice(1, 2),
    "no numbers": pa.array([], pa.int16()),
    "numbers and nulls": pa.array([1, None], pa.int64()),
    "floats and nulls": pa.array([1.5, None]),
    "booleans": pa.array([True, False, True] * 5).slice(3, 9),
    "no booleans": pa.array([], pa.bool_()),
    "booleans and nulls": pa.array([True, None]),
    "texts": pa.array(["a", None]),
    "times": pa.array([1, 2], pa.timestamp("us")),
    "chunks": pa.chunked_array([pa.array([1, 2]), pa.array([], pa.int64()), pa.array([3])]),
    "one chunk": pa.chunked_array([pa.array([1, 2])]),
    "no chunks": pa.chunked_array([], pa.uint8()),
    "no chunks of booleans": pa.chunked_array([], pa.bool_()),
    "no chunks of texts": pa.chunked_array([], pa.string()),
    "chunks of texts": pa.chunked_array([["a"], ["b"]]),
    "chunks of booleans": pa.chunked_array([[True], [False]]),
    "chunks and nulls": pa.chunked_array([pa.array([1]), pa.array([None], pa.int64())]),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_numpy_of(name: str) -> None:
    array = ARRAYS[name]
    wanted = array.to_numpy() if isinstance(array, pa.ChunkedArray) else array.to_numpy(zero_copy_only=False)
    found = numpy_of(array, may_copy=True)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)
    try:
        array.to_numpy()
    except pa.ArrowInvalid:
        with pytest.raises(pa.ArrowInvalid):
            numpy_of(array)


@pytest.mark.parametrize("code", ["i1", "u2", "i4", "u8", "f2", "f4", "f8", "?", "M8[us]", "O"])
def test_arrow_of(code: str) -> None:
    values = np.array([1, 0, 1, 1, 0, 0, 1, 0, 1, 0], "i8").astype(code)
    mask = np.arange(10) % 3 == 0
    for part, hidden in [(values, mask), (values[::2], mask[::2]), (values[:0], mask[:0])]:
        assert arrow_of(part).equals(pa.array(part))
        assert arrow_of(part, mask=hidden).equals(pa.array(part, mask=hidden))
        assert arrow_of(part, mask=hidden).null_count == hidden.sum()


def test_arrow_of_another_type() -> None:
    numbers = np.array([1, 2], np.int64)
    assert arrow_of(numbers, pa.uint8()).equals(pa.array([1, 2], pa.uint8()))
    assert arrow_of(numbers, pa.int64()).equals(pa.array([1, 2]))
    assert arrow_of(np.array([True]), pa.bool_()).equals(pa.array([True]))
    with pytest.raises(pa.ArrowInvalid):
        arrow_of(np.array([300]), pa.uint8())


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        *((value, None) for value in (None, True, False, 0, -(2**63), 2**63 - 1, 1.5, "", "aé", b"", b"\0x")),
        (5, pa.int8()), (5, pa.uint64()), (2**64 - 1, pa.uint64()), (5, pa.float32()), (1.5, pa.float32()),
        (1.5, pa.float64()), ("a", pa.string()), ("a", pa.large_string()), (b"a", pa.binary()), (True, pa.bool_()),
        (None, pa.list_(pa.int8())), (None, pa.dense_union([pa.field("a", pa.int8())])), (5, pa.timestamp("us")),
    ],
)  # fmt: skip
def test_constant(value: object, kind: Any) -> None:
    try:
        wanted = pa.scalar(value, kind)
    except pa.ArrowNotImplementedError:
        pytest.skip("pyarrow has no such constant")
    found = constant(value, kind)
    assert (found.type, type(found), found.is_valid) == (wanted.type, type(wanted), wanted.is_valid)
    assert found.equals(wanted)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2], pa.int8()), ([1, None], pa.int8()), ([], pa.int8()), ([1, 2], pa.float32()), ([1.5, 2.0], pa.float32()),
        (["a", "", "é"], pa.string()), (["a", None], pa.string()), ([b"a", b""], pa.binary()), ([], pa.string()),
        (["a"], pa.large_string()), (["a"], pa.binary()), ([True, None], pa.bool_()), ([[1], None], pa.list_(pa.int8())),
    ],
)  # fmt: skip
def test_array_of(values: list[object], kind: Any) -> None:
    found = array_of(values, kind)
    assert found.equals(pa.array(values, kind))
    found.validate(full=True)


@pytest.mark.parametrize(("value", "kind"), [(300, pa.int8()), (-1, pa.uint8()), (2**63, None), ("x", pa.int8())])
def test_no_constant(value: object, kind: Any) -> None:
    with pytest.raises((pa.ArrowException, OverflowError)):
        constant(value, kind)


@pytest.mark.parametrize("kind", [pa.int8(), pa.string_view(), pa.run_end_encoded(pa.int32(), pa.int8()), pa.json_()])
def test_nothing(kind: pa.DataType) -> None:
    assert no_values(kind).equals(pa.array([], kind))
    schema = pa.schema([pa.field("a", kind, nullable=False, metadata={"b": "c"})], metadata={"d": "e"})
    assert no_rows(schema).equals(schema.empty_table(), check_metadata=True)
    assert no_rows(pa.schema([])).num_rows == 0


def test_true_of() -> None:
    assert true_of(pa.array([True, None, False])).tolist() == [True, False, False]
    assert true_of(pa.chunked_array([[True], [None]])).tolist() == [True, False]


WITHOUT_PANDAS = """
import sys
import numpy as np
from lance_core.arrow_numpy import *
for values in (np.arange(3), np.ones(3, bool)):
    true_of(arrow_of(np.ones(3, bool)))
    numpy_of(arrow_of(values, mask=values > 5), may_copy=True)
    no_rows(pa.schema([("a", arrow_of(values).type), ("b", pa.list_(pa.string()))]))
[constant(value) for value in (None, True, 1, 1.5, "a", b"a")]
assert "pandas" not in sys.modules
"""


def test_pandas_is_not_imported() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_PANDAS], check=True)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a", "", "bcd"], pa.string()),
        (["a", "é", "", "日本"], pa.string()),
        (["", ""], pa.string()),
        ([b"", b"\xff\x00", b"a"], pa.binary()),
        (["a", None], pa.string()),
    ],
)
def test_texts_and_bytes_are_those_of_pyarrow(values: list[Any], kind: pa.DataType) -> None:
    made = array_of(values, kind)
    made.validate(full=True)
    assert made.equals(pa.array(values, kind))
