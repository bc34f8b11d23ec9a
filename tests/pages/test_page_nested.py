"""Random nested columns through pages: levels cut into chunks anywhere, read whole and by rows."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_core.codecs.blocks import Block, FixedBlock, VariableBlock
from lance_core.codecs.options import EncodingOptions
from lance_core.fetch import ByteRange
from lance_core.format.layout import Page
from lance_core.format.version import FileVersion
from lance_core.pages.group import load, read, scan
from lance_core.pages.leaf import ConstantValues, Leaf
from lance_core.pages.levels.build import build_levels
from lance_core.pages.levels.join import join_levels
from lance_core.pages.levels.unravel import unravel
from lance_core.pages.read.constant import expand
from lance_core.pages.rows import RowSelection
from lance_core.pages.write.encode import EncodedPage, encode_pages
from tests.pages.page_files import OpenBytes
from tests.pages.page_nesting import arrays, rebuild, steps_of, types

OPTIONS = st.builds(
    EncodingOptions,
    version=st.sampled_from([FileVersion.V2_1, FileVersion.V2_2]),
    structural=st.sampled_from([None, "fullzip"]),
    max_chunk_values=st.sampled_from([1, 2, 8, 4096]),
)


def lay_out(pages: list[EncodedPage]) -> tuple[OpenBytes, list[Page]]:
    out, listed = bytearray(), []
    for page in pages:
        places = []
        for buffer in page.buffers:
            places.append(ByteRange(len(out), len(out) + len(buffer)))
            out.extend(buffer)
        listed.append(Page(page.layout, tuple(places), page.num_rows))
    return OpenBytes(bytes(out)), listed


def _leaf(array: pa.Array, variable: bool) -> tuple[Leaf, list[int]]:
    steps, items, dimensions = steps_of(array)
    built = build_levels(steps, len(array))
    numbers = np.asarray(items.fill_null(0), np.int32)
    numbers = numbers if built.slots is None else numbers[built.slots]
    return Leaf(_block(numbers, variable), built.rep, built.def_, built.layers, built.num_rows), dimensions


def _block(numbers: np.ndarray, variable: bool) -> Block:
    if not variable:
        return FixedBlock(32, np.ascontiguousarray(numbers).view(np.uint8), len(numbers))
    words = [str(number).encode() for number in numbers]
    offsets = np.append(0, np.cumsum([len(word) for word in words])).astype(np.int32)
    return VariableBlock(offsets, np.frombuffer(b"".join(words), np.uint8))


def _numbers(values: Block | ConstantValues, variable: bool) -> np.ndarray:
    if isinstance(values, ConstantValues):
        if values.scalar is None:
            return np.zeros(values.count, np.int32)
        values = expand(values, bits=None if variable else 32)
    if isinstance(values, FixedBlock):
        return np.frombuffer(values.data, np.int32, values.count)
    assert isinstance(values, VariableBlock)
    data = values.data.tobytes()
    cuts = values.offsets.tolist()
    return np.array([int(data[a:b] or b"0") for a, b in itertools.pairwise(cuts)], np.int32)


def _rebuild(type_: pa.DataType, leaves: list[Leaf], dimensions: list[int], variable: bool) -> list[object]:
    joined = join_levels(leaves)
    nestings = unravel(joined.rep, joined.def_, joined.layers, joined.num_visible, dimensions=dimensions)
    items = np.concatenate([_numbers(values, variable) for values in joined.values])
    return rebuild(type_, nestings, items).to_pylist()


@settings(max_examples=300, deadline=None)
@given(types().flatmap(lambda type_: arrays(type_, 30)), OPTIONS, st.booleans())
def test_nested_columns_survive_pages(array: pa.Array, options: EncodingOptions, variable: bool) -> None:
    leaf, dimensions = _leaf(array, variable)
    file, pages = lay_out(encode_pages(leaf, options))
    if not len(array):
        assert pages == []
        return
    leaves = [file.run(scan(page)) for page in pages]
    assert _rebuild(array.type, leaves, dimensions, variable) == array.to_pylist()


@settings(max_examples=300, deadline=None)
@given(types(fixed_lists=False).flatmap(lambda type_: arrays(type_, 30)), OPTIONS, st.booleans(), st.data())
def test_rows_of_nested_columns(array: pa.Array, options: EncodingOptions, variable: bool, data: st.DataObject) -> None:
    if not len(array):
        return
    leaf, dimensions = _leaf(array, variable)
    file, (page,) = lay_out(encode_pages(leaf, options))
    rows = sorted(data.draw(st.sets(st.integers(0, len(array) - 1), min_size=1)))
    index = file.run(load(page))
    got = file.run(read(page, index, RowSelection.indices(rows)))
    assert _rebuild(array.type, [got], dimensions, variable) == array.take(pa.array(rows)).to_pylist()


def test_more_levels_than_a_chunk_can_count() -> None:
    inner = pa.list_(pa.int32())
    rows = [[[]] * 70_000 + [[1, 2]], [[3]], [None] * 140_000 + [[4], None], None]
    array = pa.array(rows, pa.list_(inner))
    leaf, dimensions = _leaf(array, False)
    for version in (FileVersion.V2_1, FileVersion.V2_2):
        file, pages = lay_out(encode_pages(leaf, EncodingOptions(version=version)))
        leaves = [file.run(scan(page)) for page in pages]
        assert _rebuild(array.type, leaves, dimensions, False) == rows


def test_alternating_long_and_short_chunks() -> None:
    rows = [list(range(n)) for n in (5000, 1, 0, 9000, 3, 4096, 1024)]
    array = pa.array(rows, pa.list_(pa.int32()))
    leaf, dimensions = _leaf(array, False)
    file, (page,) = lay_out(encode_pages(leaf, EncodingOptions()))
    index = file.run(load(page))
    for row in range(len(rows)):
        got = file.run(read(page, index, RowSelection.span(row, row + 1)))
        assert _rebuild(array.type, [got], dimensions, False) == [rows[row]]
