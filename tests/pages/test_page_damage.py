"""Damaged pages: always CorruptFileError or UnsupportedEncodingError, never another exception, a hang or a giant leaf."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, replace
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from lance_core.codecs.options import EncodingOptions
from lance_core.errors import CorruptFileError, FormatError
from lance_core.fetch import ByteRange
from lance_core.format.layout import FullZipLayout, MiniBlockLayout, Page, RepDefLayer
from lance_core.format.version import FileVersion
from lance_core.pages.group import load, read, scan
from lance_core.pages.leaf import Leaf
from lance_core.pages.levels.unravel import unravel
from lance_core.pages.rows import RowSelection
from lance_core.pages.write.encode import encode_pages
from tests.pages.page_columns import COLUMNS
from tests.pages.page_files import OpenBytes, leaf_paths
from tests.pages.page_writing import leaf_of
from tests.pages.test_page_nested import lay_out

NAMES = (
    "int64_nulls",
    "int64_few",
    "int32_runs",
    "bool_nulls",
    "text_short_nulls",
    "text_few_nulls",
    "text_long_nulls",
    "list",
    "deep",
    "list_text_long",
    "vector_wide_nulls",
    "vector_nulls",
    "constant_text_nulls",
    "list_null_items",
    "list_constant",
)
NUMBERS = (0, 1, -1, 7, 255, 65_535, 2**31, 2**40, 2**62)
ROUNDS = 40


@cache
def _pages(name: str, version: FileVersion) -> tuple[bytes, Page]:
    case = COLUMNS[name]
    array = case.build()[:700]
    array = pa.array(array.to_pylist(), array.type)
    path = next(leaf_paths(array.type))
    file, pages = lay_out(encode_pages(leaf_of(array, path), EncodingOptions.parse(case.metadata, version)))
    return file.data, pages[0]


def _use(data: bytes, page: Page) -> None:
    file = OpenBytes(data)
    rows = RowSelection.indices([0, page.num_rows // 2]) if page.num_rows > 1 else RowSelection.span(0, page.num_rows)
    for fetch in (lambda: scan(page), lambda: read(page, file.run(load(page)), rows)):
        with suppress(FormatError):
            leaf = file.run(fetch())
            assert isinstance(leaf, Leaf)
            assert leaf.num_levels < 10**6 or leaf.rep is leaf.def_ is None
            unravel(leaf.rep, leaf.def_, leaf.layers, leaf.values.count)


@pytest.mark.parametrize("version", [FileVersion.V2_1, FileVersion.V2_2])
@pytest.mark.parametrize("name", NAMES)
def test_flipped_bytes(name: str, version: FileVersion) -> None:
    data, page = _pages(name, version)
    rng = random.Random(name)
    for _ in range(ROUNDS):
        broken = bytearray(data)
        # The first bytes of a buffer are where headers and offsets are.
        where = rng.choice(page.buffers)
        for _ in range(rng.choice((1, 2, 8))):
            limit = rng.choice((32, max(where.size, 1)))
            at = where.start + rng.randrange(min(limit, max(where.size, 1)))
            if at < len(broken):
                broken[at] = rng.randrange(256)
        _use(bytes(broken), page)


@pytest.mark.parametrize("version", [FileVersion.V2_1, FileVersion.V2_2])
@pytest.mark.parametrize("name", NAMES)
def test_absurd_descriptions(name: str, version: FileVersion) -> None:
    data, page = _pages(name, version)
    rng = random.Random(name)
    for _ in range(ROUNDS):
        _use(data, _distort(page, rng))


def _distort(page: Page, rng: random.Random) -> Page:
    kind = rng.randrange(4)
    if kind == 0:
        number = rng.randrange(len(page.buffers)) if page.buffers else 0
        cut = tuple(
            ByteRange(item.start, item.start + rng.randrange(item.size + 1)) if index == number else item
            for index, item in enumerate(page.buffers)
        )
        return replace(page, buffers=cut)
    if kind == 1:
        return replace(page, num_rows=rng.choice(NUMBERS))
    if kind == 2:
        return replace(page, buffers=page.buffers[: rng.randrange(len(page.buffers) + 1)])
    names = [item.name for item in fields(page.layout) if isinstance(getattr(page.layout, item.name), int)]
    changes: dict[str, Callable[[], object]] = {
        "numbers": lambda: {rng.choice(names): rng.choice(NUMBERS)},
        "layers": lambda: {"layers": tuple(rng.choices(list(RepDefLayer), k=rng.randrange(4)))},
    }
    return replace(page, layout=replace(page.layout, **changes[rng.choice(sorted(changes))]()))


def test_messages_name_the_numbers() -> None:
    data, page = _pages("list", FileVersion.V2_2)
    assert isinstance(page.layout, MiniBlockLayout)
    with pytest.raises(CorruptFileError, match="the last chunk would hold"):
        OpenBytes(data).run(scan(replace(page, layout=replace(page.layout, num_items=2**40))))
    with pytest.raises(CorruptFileError, match="page's 9 rows"):
        OpenBytes(data).run(scan(replace(page, num_rows=9)))
    data, page = _pages("text_long_nulls", FileVersion.V2_2)
    assert isinstance(page.layout, FullZipLayout)
    broken = bytearray(data)
    row_index = page.buffers[1]
    broken[row_index.start : row_index.end] = np.full(row_index.size, 255, np.uint8).tobytes()
    with pytest.raises(CorruptFileError, match="row index"):
        OpenBytes(bytes(broken)).run(scan(page))
