"""Batches are brought into a schema's exact types, and nulls where none belong are named by column and row."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_core.arrow import cast_batch, schema_from_arrow
from lance_core.arrow.buffers import with_buffers
from lance_core.errors import SchemaMismatchError
from lance_core.jobs.sources.conform import Conformer


def cast(array: pa.Array, field: pa.Field) -> pa.Array:
    batch = pa.record_batch([array], names=[field.name])
    return cast_batch(batch, schema_from_arrow(pa.schema([field]))).column(0)


@pytest.mark.parametrize(
    ("array", "target"),
    [
        (pa.array(["a", None, "long enough to leave the view"], pa.string_view()), pa.string()),
        (pa.array([b"a", None], pa.binary_view()), pa.binary()),
        (pa.array([["a"], None, ["b", None]], pa.list_(pa.string_view())), pa.list_(pa.string())),
        (pa.array([{"y": 1, "x": "a"}, None], pa.struct([("y", pa.int8()), ("x", pa.string())])),
         pa.struct([("x", pa.string()), ("y", pa.int8())])),
        (pa.array([{"x": "a"}, None], pa.struct([("x", pa.string())])),
         pa.struct([("x", pa.string()), ("y", pa.int8())])),
        (pa.array([[("k", "v")], None], pa.map_(pa.string_view(), pa.string_view())), pa.map_(pa.string(), pa.string())),
    ],
)  # fmt: skip
@pytest.mark.parametrize("start", [0, 1])
def test_harmless_casts(array: pa.Array, target: pa.DataType, start: int) -> None:
    sliced = array.slice(start)
    got = cast(sliced, pa.field("c", target))
    got.validate(full=True)
    assert got.type == target

    def expected(value: object) -> object:
        if isinstance(value, dict) and pa.types.is_struct(target):
            return {target.field(i).name: value.get(target.field(i).name) for i in range(target.num_fields)}
        return value

    assert got.to_pylist() == [expected(value) for value in sliced.to_pylist()]


@pytest.mark.parametrize(
    ("array", "target"),
    [
        (pa.array([1], pa.int32()), pa.int64()),
        (pa.array(["1"]), pa.int64()),
        (pa.array(["1"]), pa.dictionary(pa.int8(), pa.string())),
        (pa.array([1], pa.int64()), pa.timestamp("us")),
    ],
)
def test_other_casts_are_refused(array: pa.Array, target: pa.DataType) -> None:
    with pytest.raises(SchemaMismatchError, match="'c'"):
        cast(array, pa.field("c", target))


def required(name: str, arrow_type: pa.DataType) -> pa.Field:
    return pa.field(name, arrow_type, nullable=False)


@pytest.mark.parametrize(
    ("array", "field", "where"),
    [
        (pa.array([1, 2, None]), required("c", pa.int64()), "'c'.*row 2"),
        (pa.array([{"a": 1}, {"a": None}]), pa.field("c", pa.struct([required("a", pa.int64())])), "'c.a'.*row 1"),
        (pa.array([[1], [None]]), pa.field("c", pa.list_(required("item", pa.int64()))), "'c.item'"),
    ],
)
def test_nulls_where_none_belong(array: pa.Array, field: pa.Field, where: str) -> None:
    target = schema_from_arrow(pa.schema([field]))
    with pytest.raises(SchemaMismatchError, match=where):
        cast_batch(pa.record_batch([array], names=["c"]), target)


def test_nulls_under_null_parents_are_fine() -> None:
    field = pa.field("c", pa.struct([required("a", pa.int64())]))
    array = pa.array([None, {"a": 1}], pa.struct([("a", pa.int64())]))
    assert cast(array, field).to_pylist() == [None, {"a": 1}]


def test_row_numbers_count_from_the_input_start() -> None:
    schema = schema_from_arrow(pa.schema([required("c", pa.int64())]))
    with pytest.raises(SchemaMismatchError, match="row 101"):
        cast_batch(pa.record_batch([pa.array([1, None])], names=["c"]), schema, first_row=100)


def test_missing_column_is_named() -> None:
    with pytest.raises(SchemaMismatchError, match="'c'"):
        cast_batch(pa.record_batch([pa.array([1])], names=["d"]), schema_from_arrow(pa.schema([("c", pa.int64())])))


def test_json_text_gets_its_type() -> None:
    got = cast(pa.array(['{"a":1}', None], pa.large_string()), pa.field("c", pa.json_(pa.string())))
    assert got.type == pa.json_(pa.string())


def _sent(kind: pa.DataType, offsets: bytes, child: pa.Array, *, length: int, nulls: bool) -> pa.Array:
    """A list as another language's Arrow may send it: its child without a buffer."""
    validity = pa.py_buffer(b"\0") if nulls else None
    return pa.Array.from_buffers(kind, length, [validity, pa.py_buffer(offsets)], children=[child])


@pytest.mark.parametrize("large", [False, True])
def test_lists_without_a_value_and_without_a_buffer(large: bool) -> None:
    """Arrow's own cast ends the process."""
    bare = pa.Array.from_buffers(pa.float32(), 0, [None, None])
    kind = pa.large_list(pa.float32()) if large else pa.list_(pa.float32())
    lists = _sent(kind, bytes(3 * (8 if large else 4)), bare, length=2, nulls=True)
    vectors = pa.list_(pa.float32(), 2)
    assert Conformer(pa.schema([pa.field("v", vectors)]), uri="t").apply(pa.record_batch([lists], names=["v"])).column(
        0
    ).to_pylist() == [None, None]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([pa.field("v", kind)])) as stream:
        stream.write_batch(pa.record_batch([lists], names=["v"]))
    sent = pa.ipc.open_stream(sink.getvalue()).read_next_batch()
    assert Conformer(pa.schema([pa.field("v", vectors)]), uri="t").apply(sent).column(0).to_pylist() == [None, None]
    assert with_buffers(pa.array([[1.0], None])).equals(pa.array([[1.0], None]))
    inside = pa.StructArray.from_arrays([lists], names=["v"])
    assert with_buffers(inside).field(0).cast(vectors).to_pylist() == [None, None]
