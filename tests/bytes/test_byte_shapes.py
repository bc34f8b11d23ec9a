"""Shapes that one of the libraries once got wrong, each by name: both read what either writes, or it is refused aloud."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lance_core.errors import InputError, SchemaMismatchError
from tests.bytes import byte_files as files
from tests.bytes import random_judge as judge
from tests.bytes.random_shapes import PREFIX, Shape

INT, TEXT, BOOL = Shape("int32"), Shape("string", seed=5), Shape("bool", seed=5)
PACKED = ((PREFIX + "packed", "true"),)
FULL_ZIP = ((PREFIX + "structural-encoding", "fullzip"),)
SMALL_CHUNKS = ((PREFIX + "minichunk-size", "128"), (PREFIX + "structural-encoding", "miniblock"))
MINI_BLOCK = ((PREFIX + "structural-encoding", "miniblock"),)


def fixed(item: Shape, size: int, **marks: object) -> Shape:
    return Shape("fixed_size_list", (item,), size=size, **marks)  # type: ignore[arg-type]


def some(kind: str, **marks: object) -> Shape:
    return Shape(kind, nulls=0.2, seed=6, **marks)  # type: ignore[arg-type]


AGREE = {
    "bools of eight bits": (("2.1", "2.2"), Shape("bool", nulls=0.1, seed=5, metadata=FULL_ZIP)),
    "bools of eight bits in lists": (("2.1", "2.2"), Shape("list", (BOOL,), nulls=0.1, metadata=FULL_ZIP)),
    "bools of eight bits in lists of lists": (
        ("2.1", "2.2"),
        Shape("list", (Shape("list", (some("bool"),), nulls=0.1),), metadata=FULL_ZIP),
    ),
    "wide lists of bools with nulls": (("2.1", "2.2"), fixed(some("bool"), 2100, nulls=0.2)),
    "lists of one int8": (("2.1", "2.2"), fixed(some("int8"), 1, nulls=0.1, metadata=FULL_ZIP)),
    "lists of null": (("2.0", "2.1", "2.2"), fixed(Shape("null"), 2, nulls=0.2)),
    "lists of lists that are null": (("2.0", "2.1", "2.2"), fixed(fixed(INT, 3, nulls=1.0), 1)),
    "lists of bytes that are null": (("2.0", "2.1", "2.2"), fixed(Shape("fixed_binary", nulls=1.0, size=1), 3, nulls=0.3)),
    "lists of bfloat16": (("2.0", "2.1", "2.2"), fixed(Shape("bfloat16"), 4, nulls=0.2)),
    "lists of uuid": (("2.0", "2.1", "2.2"), fixed(Shape("uuid"), 2)),
    "lists behind another field of fixed lists of structs": (
        ("2.2",),
        fixed(Shape("struct", (some("int32"), Shape("list", (TEXT,), nulls=0.2)), nulls=0.2), 2, nulls=0.2),
    ),
    "packed lists": (("2.0", "2.2"), Shape("struct", (fixed(INT, 3), Shape("double", seed=5)), metadata=PACKED)),
    "no rows of lists of dictionaries": (("2.1", "2.2"), fixed(Shape("dictionary", (TEXT,)), 3)),
    "a packed null of lists": (("2.1", "2.2"), Shape("struct", (Shape("list", (TEXT,)),), nulls=1.0, metadata=PACKED)),
    "a packed empty struct": (("2.1", "2.2"), Shape("struct", nulls=1.0, metadata=PACKED)),
    "structs of empty structs": (
        ("2.0", "2.1", "2.2", "2.3"),
        Shape("struct", (Shape("struct"), Shape("struct", (Shape("struct", nullable=False),)))),
    ),
    "fixed lists of empty structs": (("2.3",), fixed(Shape("struct"), 3)),
    "few nulls of a packed empty struct": (("2.3",), Shape("struct", nulls=0.5, seed=6, metadata=PACKED)),
    "few nulls of packed empty structs in a list": (
        ("2.3",),
        Shape("list", (Shape("struct", nulls=0.5, seed=6, metadata=PACKED),), nulls=0.1),
    ),
    "packed empty structs that are required": (
        ("2.3",),
        Shape("list", (Shape("struct", nullable=False, metadata=PACKED),), seed=6),
    ),
    "uuids of a map": (("2.2",), Shape("map", (Shape("string", nullable=False), Shape("uuid")), nulls=0.3)),
    "texts longer than a chunk": (
        ("2.2",),
        Shape("list", (Shape("list", (Shape("struct", (Shape("binary", style="long", metadata=SMALL_CHUNKS),)),)),)),
    ),
    "fixed bytes wider than a chunk": (("2.1", "2.2"), Shape("fixed_binary", size=5000, metadata=MINI_BLOCK)),
}
CASES = [(name, version) for name, (versions, _) in AGREE.items() for version in versions]


@pytest.mark.filterwarnings("ignore:file version 2.3")
@pytest.mark.parametrize(("name", "version"), CASES)
def test_both_read_what_either_writes(tmp_path: Path, name: str, version: str) -> None:
    rows = 0 if name.startswith("no rows") else 300
    assert judge.judge(judge.Case(0, version, rows, (AGREE[name][1],)), tmp_path) == []


def test_batches_of_a_dictionary_that_holds_a_null(tmp_path: Path) -> None:
    """Small slices of a large batch are copied before they wait, dictionaries with them."""
    items = pa.array([1.5, None, 2.5])
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2] * 3000, pa.int64()), items)
    table = pa.table({"c": column})
    written = files.write_ours(tmp_path, table, "2.2", batch_rows=700)
    assert files.official_table(tmp_path, table, written, "2.2").to_table().column(0).to_pylist() == [1.5, None, 2.5] * 3000


REFUSED = {
    "rows of lists of text": ("2.2", fixed(TEXT, 3), "fixed width"),
    # Refused by the type: what holds no value of it today could never take one.
    "no rows of lists of text": ("2.2", fixed(TEXT, 3), "fixed width"),
    "no rows of lists of text in 2.0": ("2.0", fixed(TEXT, 3), "fixed width"),
    "null lists of lists of text": ("2.1", fixed(fixed(TEXT, 1, nulls=1.0, dirty=True), 1), "fixed width"),
    "rows of lists of text in 2.0": ("2.0", fixed(TEXT, 3), "fixed width"),
    "an empty struct in a struct": ("2.2", Shape("struct", (Shape("struct"), INT)), "without fields"),
    "an empty struct in a list": ("2.1", Shape("list", (Shape("struct"),)), "without fields"),
    "nulls of an empty struct": ("2.2", some("struct"), "nulls would be lost"),
    "nulls of an empty struct in 2.3": ("2.3", some("struct"), "nulls would be lost"),
    "nulls of a struct of empty structs": ("2.2", some("struct", children=(Shape("struct"),)), "nulls would be lost"),
    "an empty struct in a list in 2.3": ("2.3", Shape("list", (Shape("struct"),)), "without fields"),
    "a packed empty struct without nulls": ("2.3", Shape("struct", metadata=PACKED), "read as null"),
    "nulls of an empty struct in 2.0": ("2.0", some("struct"), "2.0 files cannot hold"),
    "nulls of a packed struct in 2.0": ("2.0", Shape("struct", (INT,), nulls=1.0, metadata=PACKED), "2.0 files cannot hold"),
    "a packed empty struct": ("2.2", Shape("struct", metadata=PACKED), "read as null"),
    "lists of structs in fixed lists": ("2.2", fixed(Shape("struct", (Shape("list", (INT,)),)), 2), "nested"),
    "fixed lists of structs in lists": ("2.2", Shape("list", (fixed(Shape("struct", (INT,)), 2),)), "inside of lists"),
    "fixed lists of structs beside others": ("2.2", Shape("struct", (fixed(Shape("struct", (INT,)), 2), INT)), "beside"),
    "lists in a packed struct": ("2.2", Shape("struct", (Shape("list", (INT,)), INT), metadata=PACKED), "one column"),
}


@pytest.mark.filterwarnings("ignore:file version 2.3")
@pytest.mark.parametrize("name", REFUSED)
def test_what_nobody_else_could_read_is_refused(tmp_path: Path, name: str) -> None:
    version, shape, message = REFUSED[name]
    with pytest.raises(InputError, match=message):
        files.write_ours(
            tmp_path, judge.Case(0, version, 0 if name.startswith("no rows") else 50, (shape,)).table(), version
        )


def test_nulls_among_the_values_of_a_dictionary_count(tmp_path: Path) -> None:
    items = pa.array(["a", None])
    column = pa.DictionaryArray.from_arrays(pa.array([0, 0, 1], pa.int8()), items)
    table = pa.Table.from_arrays([column], schema=pa.schema([pa.field("c", column.type, nullable=False)]))
    with pytest.raises(SchemaMismatchError, match="row 2"):
        files.write_ours(tmp_path, table, "2.2")
    written = files.write_ours(tmp_path / "sound", table.slice(0, 2), "2.2")
    assert files.official_table(tmp_path / "sound", table, written, "2.2").to_table().column(0).to_pylist() == ["a", "a"]


@pytest.mark.parametrize("inner", [{}, {"structural-encoding": "fullzip"}])
def test_settings_reach_the_leaves(tmp_path: Path, inner: dict[str, str]) -> None:
    """What is said of a list or a struct holds for what is in it, unless that says something itself."""
    own = {PREFIX + key: value for key, value in inner.items()} or None
    item = pa.field("item", pa.struct([pa.field("x", pa.int64(), metadata=own)]))
    field = pa.field("c", pa.list_(item), metadata={PREFIX + "structural-encoding": "miniblock" if inner else "fullzip"})
    table = pa.Table.from_arrays([pa.array([[{"x": 1}, {"x": 2}]], field.type)], schema=pa.schema([field]))
    files.write_ours(tmp_path, table, "2.2")
    (column,) = files.open_at(tmp_path).columns([0])  # type: ignore[attr-defined]
    assert type(column.pages[0].layout).__name__ == "FullZipLayout"
