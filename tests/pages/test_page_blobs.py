"""Blob pages of 2.1: descriptors instead of values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_core.codecs.blocks import StructBlock
from lance_core.format.layout import BlobLayout, RepDefLayer
from lance_core.pages.group import load, read, scan
from lance_core.pages.leaf import Leaf
from lance_core.pages.rows import RowSelection
from tests.pages.page_files import OpenBytes, write_official

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
