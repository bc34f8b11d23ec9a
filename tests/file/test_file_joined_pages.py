"""Rows of one width that follow each other in the file are one page, whatever the batches they came in; the official
library reads such files, and makes such pages itself."""

from __future__ import annotations

import uuid
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.arrow import schema_from_arrow
from lance_core.file.open import ContainerFile, open_file
from lance_core.file.writer import FileWriter
from lance_core.format.layout import FullZipLayout
from lance_core.format.version import parse_storage_version
from lance_core.io.memory import MemoryStore
from tests.file.small_pages import opened_small_pages

RNG = np.random.default_rng(11)
ROWS = 3000
VERSIONS = ["2.1", "2.2", "2.3"]


def _vectors(dimension: int = 96, *, nulls: float = 0.0) -> pa.FixedSizeListArray:
    mask = pa.array(RNG.random(ROWS) < nulls) if nulls else None
    return pa.FixedSizeListArray.from_arrays(pa.array(RNG.random(ROWS * dimension, np.float32)), dimension, mask=mask)


def _pages(table: pa.Table, version: str, **options: int) -> list[int]:
    opened, _, _ = opened_small_pages(table, version, **options)
    return [len(column.pages) for column in opened.columns(range(opened.metadata.num_columns))]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "column",
    [
        pytest.param(_vectors(), id="vectors"),
        pytest.param(_vectors(nulls=0.4), id="nulls"),
        pytest.param(_vectors(97, nulls=0.4), id="entries that end at no multiple of 64"),
        pytest.param(pa.array([bytes(300)] * 5 + [RNG.bytes(300) for _ in range(ROWS - 5)], pa.binary(300)), id="binary"),
    ],
)
def test_rows_of_one_width_are_one_page(column: pa.Array, version: str) -> None:
    assert _pages(pa.table({"v": column}), version, batch_rows=500) == [1]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_column_between_them_keeps_pages_apart(version: str) -> None:
    one, other = _pages(pa.table({"a": _vectors(), "b": _vectors()}), version)
    assert one > 1
    assert other > 1


@pytest.mark.parametrize("version", VERSIONS)
def test_pages_with_and_without_nulls_stay_apart(version: str) -> None:
    parts = [_vectors(), _vectors(nulls=0.5), _vectors()]
    assert _pages(pa.table({"v": pa.chunked_array(parts)}), version, max_page_bytes=1 << 20) == [3]


def test_rows_of_different_widths_are_not_joined() -> None:
    texts = pa.array([f"{number:0>300}" for number in range(ROWS)])
    assert _pages(pa.table({"s": texts}), "2.1") > [1]


def test_lists_of_wide_values_are_not_joined() -> None:
    lists = pa.array([[RNG.bytes(300)] * (number % 3) for number in range(ROWS)], pa.list_(pa.binary(300)))
    assert _pages(pa.table({"v": lists}), "2.1") > [1]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("nulls", [0.0, 0.3])
def test_the_official_library_reads_what_was_joined(tmp_path: Path, version: str, nulls: float) -> None:
    first = pa.table(
        {"id": np.arange(ROWS), "v": _vectors(nulls=nulls), "s": pa.array([{"x": row} for row in _vectors(8).to_pylist()])}
    )
    uri = str(tmp_path / "t.lance")
    reader = pa.RecordBatchReader.from_batches(first.schema, first.to_batches(max_chunksize=70))
    lance_core.write_dataset(reader, uri, data_storage_version=version)
    for library in (lance, lance_core):
        table = library.dataset(uri)
        assert table.to_table().equals(first)
        rows = sorted(RNG.choice(ROWS, 200, replace=False).tolist())
        assert table.take(rows).equals(first.take(rows))
        assert table.to_table(filter="id % 7 = 3").equals(first.filter(pa.array(np.arange(ROWS) % 7 == 3)))


def test_pages_are_as_large_as_the_official_ones(tmp_path: Path) -> None:
    """One batch of 24 MiB, which is three pages' worth of rows."""
    table = pa.table({"v": pa.FixedSizeListArray.from_arrays(pa.array(RNG.random(6 << 20, np.float32)), 1024)})
    found = []
    for library in (lance, lance_core):
        uri = tmp_path / f"{library.__name__}.lance"
        library.write_dataset(table, str(uri), data_storage_version="2.1")
        (path,) = (uri / "data").iterdir()
        store = MemoryStore(f"joined-{uuid.uuid4()}")
        store.put("data/x.lance", path.read_bytes())
        opened = open_file(store, "data/x.lance")
        assert isinstance(opened, ContainerFile)
        (column,) = opened.columns([0])
        found.append([(type(page.layout), page.num_rows, page.buffers[0].size) for page in column.pages])
    assert found[0] == found[1] == [(FullZipLayout, 6144, 24 << 20)]


def test_global_buffers_between_pages_keep_them_apart() -> None:
    table = pa.table({"v": _vectors()})
    parsed = parse_storage_version("2.1")
    store = MemoryStore(f"joined-{uuid.uuid4()}")
    writer = FileWriter(store, "data/x.lance", schema_from_arrow(table.schema, version=parsed), max_page_bytes=4096)
    for number, batch in enumerate(table.to_batches(max_chunksize=1000)):
        writer.write(batch)
        writer._body._ahead.drain()  # type: ignore[attr-defined]
        if number == 0:
            writer.add_global_buffer(b"of the caller")
    writer.finish()
    opened = open_file(store, "data/x.lance")
    assert isinstance(opened, ContainerFile)
    (column,) = opened.columns([0])
    assert len(column.pages) == 2
    assert sum(page.num_rows for page in column.pages) == ROWS
