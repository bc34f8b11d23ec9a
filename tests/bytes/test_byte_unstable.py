"""2.3 (unstable): what today's official library writes, over the matrix of types, nulls and shapes.

Offsets of texts as differences, ranges and runs; validity and lists as positions; runs of which both halves are packed.
"""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.codecs.blocks import Pieces, VariableBlock
from lance_core.codecs.registry import CODECS
from lance_core.errors import CorruptFileError, UnsupportedEncodingError
from lance_core.fetch import ByteRange, run_fetch
from lance_core.format.encoding import Constant, Delta, Dictionary, Flat, InlineBitpacking, Range, Rle, Variable
from lance_core.format.layout import (
    ConstantLayout,
    FullZipLayout,
    IndexedLayout,
    Page,
    RepDefLayer,
    SparseLayout,
)
from lance_core.pages.read import indexed
from tests.bytes import byte_cases as cases
from tests.bytes import byte_files as files
from tests.bytes import byte_pools as pools

NAMES = tuple(pools.POOLS)
SPREAD = [*itertools.product(pools.NULLS, pools.DISTRIBUTIONS)]
CASES = [(rows, *spread) for rows in (*cases.SMALL, 5000) for spread in SPREAD]


def check(root: Path, table: pa.Table) -> None:
    """What the official library writes, we read equal: whole, projected, taken, sliced."""
    files.write_official(root, table, "2.3")
    problems = files.read_by_us(root, table)
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(("number", "spread"), [*enumerate(SPREAD)])
def test_some_types(tmp_path: Path, number: int, spread: tuple[str, str]) -> None:
    names = NAMES[(number + number // 5) % 5 :: 5]
    check(tmp_path, pa.table({name: pools.column(name, 1025, *spread) for name in names}))


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "nulls", "distribution"), CASES)
def test_every_type(tmp_path: Path, rows: int, nulls: str, distribution: str) -> None:
    check(tmp_path, pa.table({name: pools.column(name, rows, nulls, distribution) for name in NAMES}))


@pytest.mark.slow
@pytest.mark.parametrize(("nulls", "distribution"), SPREAD)
def test_encoding_metadata(tmp_path: Path, nulls: str, distribution: str) -> None:
    check(tmp_path, cases.metadata_table("2.2", 2500, nulls, distribution))


NUMBERS = "00000000 00000000 01000000 01000000 00000000 02000000"


@pytest.mark.parametrize(
    ("offsets", "buffers"),
    [
        (Delta(32, 0, Flat(32)), ["020000000000000003000000", "6162636465"]),
        (Delta(64, 0, Range(64, 0, 1)), ["616263"]),
        (Range(32, 0, 2), ["616263646566"]),
        (Constant(bytes(4)), [""]),
        (Rle(Range(32, 0, 1), Flat(32)), ["0000000000000000 01000000 03000000", "61"]),
        (Rle(Range(32, 0, 2), Range(32, 1, 2)), ["6162"]),
        (Rle(Range(32, 0, 1), Constant(b"\x02\0\0\0")), ["61"]),
        (Dictionary(Flat(32), Flat(32), 2), [f"1000000000000000 0800000000000000 {NUMBERS}", "6162"]),
        (Dictionary(Flat(32), Range(32, 0, 2), 2), [f"1000000000000000 0000000000000000 {NUMBERS[:35]}", "6162"]),
        (Rle(Flat(32), Flat(8)), ["0400000000000000 02000000 04", "6162"]),
    ],
)
def test_offsets_apart(offsets: object, buffers: list[str]) -> None:
    """Three values by each description that is known; every byte less is refused."""
    encoding, counts = Variable(offsets), np.array([3], np.int64)  # type: ignore[arg-type]
    raw = [bytes.fromhex(text) for text in buffers]
    pieces = tuple(Pieces.whole(np.frombuffer(item, np.uint8)) for item in raw)
    whole = CODECS.decode(encoding, pieces, counts)
    assert whole.count == 3
    for position in range(3):
        one = CODECS.decode_at(encoding, tuple(memoryview(item) for item in raw), 3, position)
        assert isinstance(whole, VariableBlock)
        assert one == whole.data[whole.offsets[position] : whole.offsets[position + 1]].tobytes()
    for number, item in enumerate(raw):
        if item and not (number and isinstance(offsets, Rle) and isinstance(offsets.values, Flat)):
            short = [*pieces]
            short[number] = Pieces.whole(np.frombuffer(item[:-1], np.uint8))
            with pytest.raises(CorruptFileError):
                CODECS.decode(encoding, tuple(short), counts)


def test_offsets_beyond_their_dictionary_are_refused() -> None:
    buffers = bytes.fromhex(f"1000000000000000 0400000000000000 {NUMBERS[:44]}"), b"ab"
    pieces = tuple(Pieces.whole(np.frombuffer(item, np.uint8)) for item in buffers)
    with pytest.raises(CorruptFileError, match="in a dictionary"):
        CODECS.decode(Variable(Dictionary(Flat(32), Flat(32), 1)), pieces, np.array([3], np.int64))


def test_few_long_texts_have_offsets_by_dictionary(tmp_path: Path) -> None:
    """The official library keeps them so where nearly all values are null, read by chunk, by row and whole."""
    values = [None] * 130
    values[14], values[78], values[80], values[90] = b"", b"seventeen letters", b"abc", b"fifteen letters"
    field = pa.field("c", pa.binary(), metadata={"lance-encoding:rle-threshold": "0.0"})
    table = pa.Table.from_arrays([pa.array(values, pa.binary())], schema=pa.schema([field]))
    files.write_official(tmp_path, table, "2.3")
    (column,) = files.open_at(tmp_path).columns([0])  # type: ignore[attr-defined]
    assert isinstance(column.pages[0].layout.value_compression.offsets, Dictionary)
    assert not files.read_by_us(tmp_path, table)


@pytest.mark.parametrize("lengths", [Range(32, 2, 3), Range(32, 0, 1), Constant(bytes(4)), Range(32, 5, 0)])
def test_runs_that_do_not_add_up_are_refused(lengths: Range | Constant) -> None:
    pieces = (Pieces.whole(np.zeros(100, np.uint8)),)
    with pytest.raises(CorruptFileError, match="runs"):
        CODECS.decode(Variable(Rle(Range(32, 0, 1), lengths)), pieces, np.array([3], np.int64))


def test_what_is_unknown_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedEncodingError, match="offsets of InlineBitpacking"):
        CODECS.num_buffers(Variable(InlineBitpacking(32)))
    with pytest.raises(UnsupportedEncodingError, match="Delta"):
        CODECS.num_buffers(Delta(32, 0, Flat(32)))


@pytest.mark.filterwarnings("ignore:file version 2.3")
@pytest.mark.parametrize(("number", "spread"), [*enumerate(SPREAD)])
def test_some_types_are_written(tmp_path: Path, number: int, spread: tuple[str, str]) -> None:
    """What we write, both libraries read equal; each page is described in the words of 2.3."""
    names = [name for name in NAMES[(number + number // 5) % 5 :: 5] if not name.startswith(cases.ALONE)]
    table = pa.table({name: pools.column(name, 700, *spread) for name in names})
    written = files.write_ours(tmp_path, table, "2.3")
    assert not files.read_by_us(tmp_path, table)
    found = files.official_table(tmp_path, table, written, "2.3").to_table()
    assert not list(files.differences(found, table))
    assert b"encodings23.PlanarLayout" in (tmp_path / files.PATH).read_bytes()


@pytest.mark.filterwarnings("ignore:file version 2.3")
def test_pages_without_values_are_positions(tmp_path: Path) -> None:
    kind = pa.list_(pa.struct([("x", pa.int32()), ("y", pa.string())]))
    table = pa.table({"c": pa.array([None, [], None, [], []], kind), "d": pa.nulls(5, pa.int64()), "e": pa.array([7] * 5)})
    written = files.write_ours(tmp_path, table, "next")
    columns = files.open_at(tmp_path).columns(range(4))  # type: ignore[attr-defined]
    layouts = [column.pages[0].layout for column in columns]
    assert [type(layout) for layout in layouts] == [SparseLayout, SparseLayout, SparseLayout, ConstantLayout]
    assert not files.read_by_us(tmp_path, table)
    assert files.official_table(tmp_path, table, written, "2.3").to_table().equals(table)


def test_a_warning_comes_with_it(tmp_path: Path) -> None:
    table = pa.table({"c": [1]})
    with pytest.warns(UserWarning, match=r"2\.3 is unstable"):
        lance_core.write_dataset(table, str(tmp_path / "t"), data_storage_version="next")
    assert lance.dataset(tmp_path / "t").data_storage_version == "2.3"
    assert lance.dataset(tmp_path / "t").to_table().equals(table)
    with pytest.warns(UserWarning, match=r"2\.3 is unstable"):
        lance_core.write_dataset(pa.table({"c": [2]}), str(tmp_path / "t"), mode="append")
    assert lance.dataset(tmp_path / "t").to_table().column("c").to_pylist() == [1, 2]
    assert lance_core.dataset(str(tmp_path / "t")).to_table(filter="c = 2").num_rows == 1


def nested(kind: pa.DataType, count: int) -> pa.Array:
    """Values of a nested type, nulls on each level; texts are long, and few."""
    rng = random.Random(5)

    def value(of: pa.DataType) -> object:
        if rng.random() < 0.2:
            return None
        if pa.types.is_list(of):
            return [value(of.value_type) for _ in range(rng.randrange(4))]
        if pa.types.is_fixed_size_list(of):
            return [value(of.value_type) for _ in range(of.list_size)]
        if pa.types.is_struct(of):
            return {"a": value(of.field(0).type)}
        return "x" * (300 + rng.randrange(50)) if pa.types.is_string(of) else rng.randrange(1000)

    return pa.array([value(kind) for _ in range(count)], kind)


def around(item: pa.DataType) -> dict[str, pa.DataType]:
    """Lists around and inside fixed-size lists of structs."""
    flat, inner = pa.struct([("a", item)]), pa.struct([("a", pa.list_(item))])
    fixed = pa.list_(flat, 3)
    both = pa.list_(pa.struct([("a", pa.list_(fixed))]), 2)
    return {"list": pa.list_(fixed), "lists": pa.list_(pa.list_(fixed)), "inside": pa.list_(inner, 3), "both": both}


@pytest.mark.filterwarnings("ignore:file version 2.3")
@pytest.mark.parametrize("item", [pa.int32(), pa.string()], ids=str)
@pytest.mark.parametrize("shape", ["list", "lists", "inside", "both"])
def test_lists_and_fixed_size_lists_of_structs(tmp_path: Path, shape: str, item: pa.DataType) -> None:
    """Both ways; the official library keeps few long texts once, and points at them."""
    table = pa.table({"c": nested(around(item)[shape], 600)})
    rows = [0, 7, 599]
    for writer in (lance, lance_core):
        root = tmp_path / writer.__name__
        writer.write_dataset(table, root, data_storage_version="2.3")
        for reader in (lance, lance_core):
            dataset = reader.dataset(root)
            assert dataset.to_table().column(0).to_pylist() == table.column(0).to_pylist()
            assert dataset.take(rows).column(0).to_pylist() == table.take(rows).column(0).to_pylist()
    if item == pa.string():
        assert b"xxx" in (raw := next((tmp_path / "lance" / "data").glob("*.lance")).read_bytes())
        assert len(raw) < len(next((tmp_path / "lance_core" / "data").glob("*.lance")).read_bytes())


def test_indices_beyond_their_values_are_refused() -> None:
    items = FullZipLayout(Variable(Flat(32)), (RepDefLayer.ALL_VALID_ITEM,), 1, 1, bits_per_offset=32)
    layout = IndexedLayout(Flat(32), items)
    data = np.array([0, 1], "<u4").tobytes()
    page = Page(layout, (ByteRange(0, 8),), 2)  # type: ignore[arg-type]
    with pytest.raises(CorruptFileError, match="index 1 is outside 1 values"):
        run_fetch(indexed.load(layout, page, CODECS), lambda ranges: [data[item.start : item.end] for item in ranges])
