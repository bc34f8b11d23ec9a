"""Sorting more than fits: the same rows in the same order as in memory, for every type, with nulls and with few values."""

from __future__ import annotations

import datetime as dt
import decimal
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InputError, StoreError
from lance_core.index.base import ID, VALUE
from lance_core.index.memory import MEMORY_VARIABLE, MIN_MEMORY, memory_bytes
from lance_core.index.scalar.external_sort import in_order
from lance_core.scratch import BatchFile

ROWS = 6000
rng = np.random.default_rng(5)


def some(values: list[Any]) -> list[Any]:
    return [values[number] for number in rng.integers(0, len(values), ROWS)]


CASES: dict[str, Any] = {
    "int64": pa.array(rng.integers(-(2**62), 2**62, ROWS)),
    "few": pa.array(rng.integers(0, 3, ROWS).astype(np.int32)),
    "one": pa.array(np.zeros(ROWS, np.int64)),
    "uint64": pa.array(rng.integers(0, 2**64, ROWS, np.uint64)),
    "nulls": pa.array([None if number % 3 else number % 50 for number in range(ROWS)], pa.int16()),
    "all null": pa.nulls(ROWS, pa.float32()),
    "floats": pa.array(np.where(rng.random(ROWS) < 0.2, np.nan, rng.normal(size=ROWS))),
    "zeros": pa.array(some([0.0, -0.0, 1.0, -1.0, float("inf")])),
    "texts": pa.array([f"value {number % 977:05d}" if number % 11 else None for number in range(ROWS)]),
    "bytes": pa.array(some([b"", b"\x00", b"\xff\xff", b"abc", None]), pa.binary()),
    "bool": pa.array(some([True, False, None])),
    "decimal": pa.array([decimal.Decimal(number) for number in some([*range(-50, 50)])], pa.decimal128(10, 2)),
    "dates": pa.array(some([dt.date(2020, 1, 1) + dt.timedelta(days=number) for number in range(99)])),
}


def batches(values: Any) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(values), 500):
        part = values.slice(start, 500)
        ids = pa.array(np.arange(start, start + len(part), dtype=np.uint64) * 3)
        yield pa.RecordBatch.from_arrays([part, ids], [VALUE, ID])


def joined(parts: Iterator[tuple[Any, Any]]) -> tuple[Any, list[int], int]:
    found = [*parts]
    ids = [number for part in found for number in part[1].tolist()]
    return pa.concat_arrays([part[0] for part in found]), ids, len(found)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("limit", [12_000, 100_000])
def test_runs_on_disk_give_what_memory_gives(name: str, limit: int) -> None:
    values = CASES[name]
    expected, expected_ids, one = joined(in_order(batches(values), values.type, limit=1 << 30))
    assert one == 1
    found, ids, parts = joined(in_order(batches(values), values.type, limit=limit))
    assert parts > 1
    assert ids == expected_ids
    assert [str(item) for item in found] == [str(item) for item in expected]


def test_nothing_gives_nothing() -> None:
    (found,) = in_order(iter(()), pa.int64(), limit=1000)
    assert len(found[0]) == len(found[1]) == 0


@pytest.mark.parametrize("name", ["int64", "texts", "floats"])
def test_what_is_sorted_at_once_is_bounded(name: str) -> None:
    limit = 60_000
    values = CASES[name]
    sizes = [part[0].nbytes + part[1].nbytes for part in in_order(batches(values), values.type, limit=limit)]
    assert len(sizes) > 5
    assert max(sizes) < 4 * limit // 8


def spoiled(monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Path], None]) -> None:
    """Every run is changed as soon as it has been written."""
    write = BatchFile.write.__func__  # type: ignore[attr-defined]

    def writes(cls: type[BatchFile], path: Path, *rest: Any) -> BatchFile:
        made: BatchFile = write(cls, path, *rest)
        spoil(path)
        return made

    monkeypatch.setattr(BatchFile, "write", classmethod(writes))


SPOILS: dict[str, Callable[[Path], None]] = {
    "cut by a page": lambda path: os.truncate(path, max(0, path.stat().st_size - 4096)),
    "cut to nothing": lambda path: os.truncate(path, 0),
    "of another": lambda path: path.write_bytes(b"no Arrow file at all"),  # type: ignore[dict-item]
    "gone": Path.unlink,
}


@pytest.mark.parametrize("spoil", SPOILS)
def test_runs_that_were_changed_on_the_disk_are_told(spoil: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mapped file that is cut ends the process with SIGBUS."""
    spoiled(monkeypatch, SPOILS[spoil])
    with pytest.raises(StoreError) as found:
        joined(in_order(batches(CASES["int64"]), pa.int64(), limit=100_000))
    assert found.value.retryable and "TMPDIR" in str(found.value)


def test_no_run_is_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a disk fails to give a page of a mapped file, the process gets SIGBUS."""
    seen: list[int] = []
    get = BatchFile.get

    def watched(file: BatchFile, number: int) -> pa.RecordBatch:
        found = get(file, number)
        seen.append(mapped_files())
        return found

    monkeypatch.setattr(BatchFile, "get", watched)
    joined(in_order(batches(CASES["int64"]), pa.int64(), limit=100_000))
    assert seen
    assert not any(seen)


def mapped_files() -> int:
    return Path("/proc/self/maps").read_text().count("lance-scratch") if Path("/proc/self/maps").exists() else 0


def test_an_index_built_in_little_memory_answers_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = rng.integers(0, 100_000, 400_000)
    ds = lance_core.write_dataset(pa.table({"a": numbers, "s": [f"{number:x}" for number in numbers]}), tmp_path / "t")
    monkeypatch.setattr("lance_core.index.memory.DEFAULT_MEMORY", 8 << 20)
    for column in ("a", "s"):
        ds.create_scalar_index(column, "BTREE")
    for text in ("a = 777", "a > 99990", "a BETWEEN 5 AND 9", "s = 'ff'", "s < '1001'"):
        found = ds.to_table(filter=text)["a"].to_pylist()
        assert found == ds.to_table(filter=text, use_scalar_index=False)["a"].to_pylist()
        assert found


def test_too_little_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MEMORY_VARIABLE, "1000")
    with pytest.raises(InputError, match=str(MIN_MEMORY)):
        memory_bytes()
    monkeypatch.setenv(MEMORY_VARIABLE, str(1 << 30))
    assert memory_bytes() == 1 << 30
