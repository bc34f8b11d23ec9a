"""Packed structs: one column of rows, fixed width in chunks, variable width zipped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lance.file import LanceFileReader

from lance_core.codecs.blocks import StructBlock
from lance_core.codecs.options import EncodingOptions
from lance_core.format.layout import FullZipLayout, MiniBlockLayout, RepDefLayer
from lance_core.format.version import FileVersion
from lance_core.pages.leaf import Leaf
from lance_core.pages.write.encode import encode_pages
from tests.pages.page_files import block_to_arrow, read_rows, scan_column, write_official
from tests.pages.page_writing import assemble, block_of

N = 3000
RNG = np.random.default_rng(5)
NUMBERS = {"x": pa.array(RNG.integers(0, 99, N), pa.int32()), "y": pa.array(RNG.normal(size=N))}
TEXTS = {**NUMBERS, "z": pa.array(["t" * int(n) for n in RNG.integers(0, 30, N)])}
METADATA = {"lance-encoding:packed": "true"}
CASES = [("numbers", "2.1"), ("numbers", "2.2"), ("texts", "2.2")]
VERSIONS = {"2.1": FileVersion.V2_1, "2.2": FileVersion.V2_2}


def _array(name: str) -> pa.StructArray:
    children = NUMBERS if name == "numbers" else TEXTS
    return pa.StructArray.from_arrays(list(children.values()), list(children))


def _rows(leaves: list[Leaf], type_: pa.DataType) -> list[object]:
    return [row for leaf in leaves for row in block_to_arrow(leaf.values, type_).to_pylist()]


@pytest.mark.parametrize(("name", "version"), CASES)
def test_official_packed_structs(name: str, version: str, tmp_path: Path) -> None:
    array = _array(name)
    file = write_official(pa.table([array], pa.schema([pa.field("c", array.type, metadata=METADATA)])), tmp_path, version)
    (column,) = file.columns()
    assert isinstance(column.pages[0].layout, MiniBlockLayout if name == "numbers" else FullZipLayout)
    assert _rows(scan_column(file, column), array.type) == array.to_pylist()
    rows = np.array([0, 5, 6, 1500, N - 1])
    assert _rows(read_rows(file, column, rows), array.type) == array.take(pa.array(rows)).to_pylist()


@pytest.mark.parametrize("with_nulls", [False, True])
@pytest.mark.parametrize(("name", "version"), CASES)
def test_packed_structs_we_write(name: str, version: str, with_nulls: bool, tmp_path: Path) -> None:
    array = _array(name)
    template = write_official(
        pa.table([array], pa.schema([pa.field("c", array.type, metadata=METADATA)])), tmp_path, version
    )
    block = StructBlock(tuple(block_of(child) for child in array.flatten()), N)
    def_ = (np.arange(N) % 7 == 0).astype(np.uint16) if with_nulls else None
    layers = (RepDefLayer.NULLABLE_ITEM if with_nulls else RepDefLayer.ALL_VALID_ITEM,)
    leaf = Leaf(block, None, def_, layers, N)
    file = assemble(template, [encode_pages(leaf, EncodingOptions.parse(METADATA, VERSIONS[version]))])
    expected = [None if with_nulls and i % 7 == 0 else row for i, row in enumerate(array.to_pylist())]
    (back,) = scan_column(file, file.columns()[0])
    got = _rows([back], array.type)
    assert [None if want is None else row for row, want in zip(got, expected, strict=True)] == expected
    target = tmp_path / "ours.lance"
    target.write_bytes(file.data)
    assert LanceFileReader(str(target)).read_all().to_table().column(0).to_pylist() == expected


def test_blob_descriptors_of_2_2(tmp_path: Path) -> None:
    blobs = pa.array([b"x" * 2000, b"", b"y" * 70_000], pa.large_binary())
    schema = pa.schema([pa.field("c", pa.large_binary(), metadata={"lance-encoding:blob": "true"})])
    file = write_official(pa.table([blobs], schema), tmp_path, "2.2")
    (leaf,) = scan_column(file, file.columns()[0])
    assert isinstance(leaf.values, StructBlock)
    kind, _, size, _, uri = leaf.values.children
    assert np.frombuffer(size.data, np.uint64).tolist() == [2000, 0, 70_000]
    assert len(kind.data) == 3
    assert uri.count == 3
