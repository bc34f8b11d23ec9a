"""Processes that write one table at once: nothing is lost, nothing torn, and the history is serial."""

from __future__ import annotations

import itertools
import multiprocessing
from collections.abc import Sequence
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from mixed_worker import Landed, work

import lance_core
from lance_core.commit.manifests import list_versions, load_manifest
from lance_core.commit.transactions import load_transaction
from lance_core.io.local import LocalStore
from lance_core.table.draft import build


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
    assert_serial(path)


def assert_serial(path: Path) -> None:
    """Versions have no gap, and replaying each transaction on the version before gives the version."""
    store = LocalStore(path)
    numbers = [entry.version for entry in list_versions(store)]
    assert numbers == [*range(1, numbers[-1] + 1)]
    for before, after in itertools.pairwise([load_manifest(store, number) for number in numbers]):
        transaction = load_transaction(store, after.version)
        assert transaction is not None
        assert after.writer_version is not None
        replayed = build(
            before,
            transaction,
            timestamp_ns=after.timestamp_ns,
            writer_version=after.writer_version,
            transaction_file=after.transaction_file,
        )
        for name in ("fragments", "max_fragment_id", "config", "indices", "schema", "next_row_id", "table_metadata"):
            assert _plain(getattr(replayed, name)) == _plain(getattr(after, name)), (after.version, name)


def _plain(value: object) -> object:
    return [*value] if isinstance(value, Sequence) else value  # fragments may be a lazy sequence
