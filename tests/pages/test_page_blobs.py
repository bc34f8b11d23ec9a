"""Blob pages of 2.1: descriptors instead of values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_core.codecs.blocks import FixedBlock, StructBlock
from lance_core.codecs.options import EncodingOptions
from lance_core.errors import UnsupportedEncodingError
from lance_core.format.layout import BlobLayout, RepDefLayer
from lance_core.format.version import FileVersion
from lance_core.pages.leaf import Leaf
from lance_core.pages.registry import load, read, scan
from lance_core.pages.rows import RowSelection
from lance_core.pages.write_blob import encode_blobs
from tests.pages.page_files import OpenBytes, write_official
from tests.pages.test_page_nested import lay_out

R = RepDefLayer


def _pairs(leaf: Leaf) -> list[tuple[int, int]]:
    assert isinstance(leaf.values, StructBlock)
    position, size = (np.frombuffer(child.data, np.uint64) for child in leaf.values.children)
    return list(zip(position.tolist(), size.tolist(), strict=True))


def _values(file: OpenBytes, leaf: Leaf) -> list[bytes | None]:
    defs = [0] * leaf.num_rows if leaf.def_ is None else leaf.def_.tolist()
    return [
        None if level else file.data[position : position + size]
        for level, (position, size) in zip(defs, _pairs(leaf), strict=True)
    ]


@pytest.mark.parametrize("with_nulls", [False, True])
def test_official_blobs(with_nulls: bool, tmp_path: Path) -> None:
    blobs = [b"x" * 1000, None if with_nulls else b"y", b"", b"z" * 70_000] * 5
    schema = pa.schema([pa.field("c", pa.large_binary(), metadata={"lance-encoding:blob": "true"})])
    file = write_official(pa.table([pa.array(blobs, pa.large_binary())], schema), tmp_path, "2.1")
    (column,) = file.columns()
    (page,) = column.pages
    assert isinstance(page.layout, BlobLayout)
    assert _values(file, file.run(scan(page))) == blobs
    some = file.run(read(page, file.run(load(page)), RowSelection.indices([1, 2, 7])))
    assert _values(file, some) == [blobs[1], blobs[2], blobs[7]]


@pytest.mark.parametrize("levels", [None, [0, 1, 0], [2, 1, 0]])
def test_blobs_round_trip(levels: list[int] | None) -> None:
    numbers = np.array([[4096, 10], [0, 0], [8192, 2**40]], np.uint64)
    children = tuple(FixedBlock(64, np.ascontiguousarray(column).view(np.uint8), 3) for column in numbers.T)
    def_ = None if levels is None else np.array(levels, np.uint16)
    layers = (R.NULLABLE_ITEM, R.NULLABLE_ITEM) if levels else (R.ALL_VALID_ITEM,)
    leaf = Leaf(StructBlock(children, 3), None, def_, layers, 3)
    file, (page,) = lay_out([encode_blobs(leaf, EncodingOptions(version=FileVersion.V2_1))])
    back = file.run(scan(page))
    assert (None if back.def_ is None else back.def_.tolist()) == levels
    assert _pairs(back)[2] == (8192, 2**40)
    assert back.layers == layers


def test_blobs_in_lists_are_refused() -> None:
    block = StructBlock((FixedBlock(64, np.zeros(8, np.uint8), 1), FixedBlock(64, np.zeros(8, np.uint8), 1)), 1)
    leaf = Leaf(block, np.array([1], np.uint16), None, (R.ALL_VALID_ITEM, R.ALL_VALID_LIST), 1)
    with pytest.raises(UnsupportedEncodingError):
        encode_blobs(leaf, EncodingOptions(version=FileVersion.V2_1))
