"""Pages that we write: read back by us, and inside a file by the official library."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lance.file import LanceFileReader

from lance_core.codecs.options import EncodingOptions
from lance_core.format.version import FileVersion
from lance_core.pages.write.encode import encode_pages
from tests.pages.page_columns import COLUMNS
from tests.pages.page_files import OpenBytes, leaf_paths, project, read_rows, scan_column, to_arrow, write_official
from tests.pages.page_writing import assemble, leaf_of

VERSIONS = {"2.1": FileVersion.V2_1, "2.2": FileVersion.V2_2}


def _write(array: pa.Array, metadata: dict[str, str], version: str, folder: Path, max_chunk_values: int = 4096) -> OpenBytes:
    field = pa.field("c", array.type, metadata=metadata)
    template = write_official(pa.table([array], pa.schema([field])), folder, version)
    options = replace(EncodingOptions.parse(metadata, VERSIONS[version]), max_chunk_values=max_chunk_values)
    return assemble(template, [encode_pages(leaf_of(array, path), options) for path in leaf_paths(array.type)])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", sorted(COLUMNS))
def test_both_libraries_read_what_we_write(name: str, version: str, tmp_path: Path) -> None:
    case = COLUMNS[name]
    if version in case.refused:
        pytest.skip(f"the official library refuses this in {version}")
    array = case.build()
    file = _write(array, case.metadata, version, tmp_path)
    for path, column in zip(leaf_paths(array.type), file.columns(), strict=True):
        assert to_arrow(scan_column(file, column), array.type, path).to_pylist() == project(array, path)
        if not any(isinstance(item, tuple) for item in path):
            rows = np.unique(np.random.default_rng(1).integers(0, len(array), 13))
            got = to_arrow(read_rows(file, column, rows), array.type, path)
            assert got.to_pylist() == project(array.take(pa.array(rows)), path)
    target = tmp_path / "ours.lance"
    target.write_bytes(file.data)
    reader = LanceFileReader(str(target))
    assert reader.read_all().to_table().column(0).to_pylist() == array.to_pylist()
    rows = sorted({0, len(array) - 1, len(array) // 2, len(array) // 3})
    assert reader.take_rows(rows).to_table().column(0).to_pylist() == array.take(pa.array(rows)).to_pylist()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("max_chunk_values", [2, 64])
@pytest.mark.parametrize("name", ["list", "deep", "list_list", "list_text", "list_long_then_many", "int64_nulls"])
def test_the_official_library_finds_rows_in_small_chunks(
    name: str, max_chunk_values: int, version: str, tmp_path: Path
) -> None:
    array = COLUMNS[name].build()[:1200]
    array = pa.array(array.to_pylist(), array.type)
    file = _write(array, {}, version, tmp_path, max_chunk_values)
    target = tmp_path / "ours.lance"
    target.write_bytes(file.data)
    reader = LanceFileReader(str(target))
    rows = np.unique(np.random.default_rng(3).integers(0, len(array), 60))
    got = reader.take_rows(rows.tolist()).to_table().column(0)
    assert got.to_pylist() == array.take(pa.array(rows)).to_pylist()
    assert reader.read_range(100, 900).to_table().column(0).to_pylist() == array[100:1000].to_pylist()
