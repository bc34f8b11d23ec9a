"""Pages that the official library wrote, in every layout it chooses: scanned whole, and read by rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.pages.page_columns import COLUMNS
from tests.pages.page_files import leaf_paths, project, read_rows, scan_column, to_arrow, write_official

UNSUPPORTED_23 = ("float64_zstd", "list_struct", "vector_structs")
VERSIONS = ("2.1", "2.2", "2.3")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", sorted(COLUMNS))
def test_reads_what_the_official_library_wrote(name: str, version: str, tmp_path: Path) -> None:
    column = COLUMNS[name]
    if version in column.refused:
        pytest.skip(f"the official library refuses this in {version}")
    if version == "2.3" and name in UNSUPPORTED_23:
        pytest.skip("2.3 is unstable: this page uses an encoding that is refused by name")
    array = column.build()
    field = pa.field("c", array.type, metadata=column.metadata)
    file = write_official(pa.table([array], pa.schema([field])), tmp_path, version)
    columns = file.columns()
    paths = list(leaf_paths(array.type))
    assert len(paths) == len(columns)
    for path, one in zip(paths, columns, strict=True):
        assert to_arrow(scan_column(file, one), array.type, path).to_pylist() == project(array, path)
        if any(isinstance(item, tuple) for item in path):
            continue
        for rows in _selections(len(array)):
            got = to_arrow(read_rows(file, one, rows), array.type, path)
            assert got.to_pylist() == project(array.take(pa.array(rows)), path)


def _selections(count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(count)
    some = np.unique(rng.integers(0, count, 17))
    return [some, np.arange(count // 3, min(count // 3 + 700, count)), np.array([count - 1]), np.array([0])]
