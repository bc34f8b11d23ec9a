"""How often, and for how many bytes, a page reader asks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_core.codecs.options import EncodingOptions
from lance_core.errors import InputError
from lance_core.format.layout import ConstantLayout, FileColumn, FullZipLayout, MiniBlockLayout
from lance_core.pages.group import load, read, scan
from lance_core.pages.rows import RowSelection
from lance_core.pages.write.encode import encode_pages
from tests.pages.page_columns import COLUMNS
from tests.pages.page_files import OpenBytes, leaf_paths, write_official
from tests.pages.page_writing import assemble, leaf_of


def _ours(name: str, folder: Path) -> tuple[OpenBytes, FileColumn]:
    case = COLUMNS[name]
    array = case.build()
    (path,) = leaf_paths(array.type)
    template = write_official(pa.table([array], pa.schema([pa.field("c", array.type)])), folder, "2.2")
    file = assemble(template, [encode_pages(leaf_of(array, path), EncodingOptions.parse(case.metadata))])
    return file, file.columns()[0]


@pytest.mark.parametrize(
    "name", ["int64_negative", "int64_few", "list", "text_long", "vector_wide_nulls", "constant", "constant_text_nulls"]
)
def test_a_scan_asks_once_for_each_buffer(name: str, tmp_path: Path) -> None:
    file, column = _ours(name, tmp_path)
    for page in column.pages:
        file.requests.clear()
        file.run(scan(page))
        wanted = [item for item in page.buffers if item.size]
        assert len(file.requests) == (1 if wanted else 0)
        assert sorted(item for ranges in file.requests for item in ranges) == sorted(wanted)


def test_rows_of_a_mini_block_page_cost_their_chunks(tmp_path: Path) -> None:
    file, column = _ours("int64_negative", tmp_path)
    (page,) = column.pages
    assert isinstance(page.layout, MiniBlockLayout)
    index = file.run(load(page))
    assert sum(item.size for ranges in file.requests for item in ranges) == page.buffers[0].size
    file.requests.clear()
    file.run(read(page, index, RowSelection.indices([5, 6, 4999])))
    (ranges,) = file.requests
    assert len(ranges) == 2
    assert sum(item.size for item in ranges) < page.buffers[1].size / 2
    file.requests.clear()
    file.run(read(page, index, RowSelection.all(page.num_rows)))
    assert file.requests == [[page.buffers[1]]]


def test_rows_of_variable_width_take_two_rounds(tmp_path: Path) -> None:
    file, column = _ours("text_long_nulls", tmp_path)
    (page,) = column.pages
    assert isinstance(page.layout, FullZipLayout)
    index = file.run(load(page))
    assert file.requests == []
    file.run(read(page, index, RowSelection.indices([3, 7, 8])))
    first, second = file.requests
    assert [item.size for item in first] == [2 * 2, 3 * 2]
    assert len(second) <= 2
    assert sum(item.size for item in second) < 3 * 700


def test_rows_of_fixed_width_take_one_round(tmp_path: Path) -> None:
    file, column = _ours("vector_wide", tmp_path)
    (page,) = column.pages
    index = file.run(load(page))
    file.run(read(page, index, RowSelection.indices([3, 7, 8])))
    (ranges,) = file.requests
    assert [item.size for item in ranges] == [320, 640]


def test_plain_constants_and_nothing_ask_for_nothing(tmp_path: Path) -> None:
    file, column = _ours("constant", tmp_path)
    (page,) = column.pages
    assert isinstance(page.layout, ConstantLayout)
    leaf = file.run(read(page, file.run(load(page)), RowSelection.span(3, 10)))
    assert (leaf.num_rows, leaf.values.count) == (7, 7)
    file, column = _ours("list", tmp_path)
    page = column.pages[0]
    index = file.run(load(page))
    file.requests.clear()
    leaf = file.run(read(page, index, RowSelection.span(0, 0)))
    assert (leaf.num_rows, leaf.values.count, file.requests) == (0, 0, [])


@pytest.mark.parametrize("rows", [RowSelection.span(0, 5001), RowSelection(np.array([3, 2]), np.array([5, 4]))])
def test_rows_the_page_does_not_have(rows: RowSelection, tmp_path: Path) -> None:
    file, column = _ours("int64_negative", tmp_path)
    index = file.run(load(column.pages[0]))
    with pytest.raises(InputError):
        file.run(read(column.pages[0], index, rows))


def test_long_lists_are_split_by_level_budget(tmp_path: Path) -> None:
    array = pa.array([[1, 2, 3, i] for i in range(50_000)], pa.list_(pa.int32()))
    pages = encode_pages(leaf_of(array, ["list"]), EncodingOptions())
    assert len(pages) > 1
    assert sum(page.num_rows for page in pages) == len(array)
    assert max(page.layout.num_items for page in pages) <= 131_072
