"""Processes that write one table at once: nothing is lost, nothing torn, and the history is serial."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.io.local.store import LocalStore
from tests.histories.mixed_worker import Landed, work
from tests.histories.serial_history import assert_serial


def test_a_few_processes(tmp_path: Path) -> None:
    run(tmp_path / "t", processes=4, each=5)


@pytest.mark.slow
def test_8_processes_of_50_operations(tmp_path: Path) -> None:
    run(tmp_path / "t", processes=8, each=50)


def run(path: Path, *, processes: int, each: int) -> None:
    lance_core.write_dataset(pa.table({"id": [-1, -2], "x": [0, 0]}), path)
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        done: list[Landed] = pool.map(work, [(str(path), number, each) for number in range(1, processes + 1)], chunksize=1)
    assert [item.given_up for item in done] == [0] * processes
    expected = {-1: 0, -2: 0}
    for item in done:
        expected.update(item.rows)
    for library in (lance, lance_core):
        ds = library.dataset(str(path))
        ds.validate()
        table = ds.to_table()
        assert dict(zip(table["id"].to_pylist(), table["x"].to_pylist(), strict=True)) == expected
        assert table.num_rows == len(expected)
        assert {name: tag["version"] for name, tag in ds.tags.list().items()} == {
            name: version for item in done for name, version in item.tags.items()
        }
    config = lance.dataset(str(path)).config()
    assert {key: value for item in done for key, value in item.config.items()}.items() <= config.items()
    assert_serial(LocalStore(path))
