"""Tables that old releases of the official library wrote (0.8 to 0.15; see fixtures/make_old.py), read exactly.

The expectation is what today's official library reads: legacy files keep few nulls (empty strings read as null, null
numbers as zero), and both readers must make the same of it.
"""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.file.open import open_file
from lance_core.format.version import FileVersion
from lance_core.io.local.store import LocalStore
from tests.bytes import byte_files as files

OLD = Path(__file__).parent / "fixtures" / "old"
TABLES = sorted(path for path in OLD.glob("*/*") if path.is_dir())
EXPECTED = [path for table in TABLES for path in sorted(table.glob("expected-*.arrow"))]


def load(path: Path) -> pa.Table:
    """A committed expectation."""
    with pa.ipc.open_file(path) as reader:
        return reader.read_all()


def label(path: Path) -> str:
    return "-".join(path.relative_to(OLD).with_suffix("").parts)


def test_the_fixtures_are_there() -> None:
    assert {path.parent.name for path in TABLES} >= {"0.8.0", "0.10.18", "0.15.0"}
    assert {path.name for path in TABLES} == {"numbers", "strings", "nested", "statistics", "batches", "history"}
    assert sum(path.stat().st_size for path in OLD.rglob("*") if path.is_file()) < 1 << 20


@pytest.mark.parametrize("path", EXPECTED, ids=label)
def test_every_version_is_read(path: Path) -> None:
    version = int(path.stem.split("-")[1])
    expected = load(path)
    dataset = lance_core.dataset(str(path.parent), version=version)
    assert dataset.count_rows() == expected.num_rows
    assert not list(files.differences(dataset.to_table(), expected))
    picks = np.array([expected.num_rows - 1, 0, 3, 3, expected.num_rows // 2])
    assert not list(files.differences(dataset.take(picks.tolist()), files.take(expected, picks)))
    names = expected.column_names[::2]
    assert not list(files.differences(dataset.to_table(columns=names), expected.select(names)))


@pytest.mark.parametrize("path", EXPECTED, ids=label)
def test_the_expectation_is_what_the_official_library_reads(path: Path) -> None:
    dataset = lance.dataset(path.parent, version=int(path.stem.split("-")[1]))
    assert not list(files.differences(dataset.to_table(), load(path)))


@pytest.mark.parametrize("path", [path for path in TABLES if path.name != "history"], ids=label)
def test_single_files_are_read(path: Path) -> None:
    (data,) = (path / "data").glob("*.lance")
    opened = open_file(LocalStore(path), f"data/{data.name}")
    assert opened.version is FileVersion.V0_1
    expected = load(path / "expected-1.arrow")
    assert opened.num_rows == expected.num_rows
    assert not list(files.differences(files.batches_of(opened, opened.schema, batch_size=100), expected))


def test_history_keeps_its_deletions_and_merged_columns() -> None:
    for release in sorted(OLD.iterdir()):
        history = release / "history"
        deleted = lance_core.dataset(str(history), version=3)
        assert deleted.to_table().column("id").to_pylist() == [i for i in range(50) if i % 7 != 3]
        merged = lance_core.dataset(str(history))
        assert merged.version == 4
        assert merged.to_table(columns=["more"]).column("more").to_pylist() == [i / 2 for i in range(50) if i % 7 != 3]
