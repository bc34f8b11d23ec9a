"""`airflow backfill create` over a year, four runs at a time, twice; a reader polls all the while."""

from __future__ import annotations

import hashlib
import threading
import time
from pathlib import Path
from typing import Any

import lance
import pytest
from airflow_stack import AirflowStack

MONTHS, ROWS = 12, 336_776
BACKFILL = ["backfill", "create", "--dag-id", "flights_backfill", "--from-date", "2013-01-01", "--to-date", "2013-12-01"]


class Poller:
    """Reads the newest version again and again: a month that was there stays there, whole."""

    def __init__(self, uri: Path) -> None:
        self._uri = uri
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self.looks = 0
        self.gaps: list[str] = []
        self.months: dict[int, int] = {}

    def __enter__(self) -> Poller:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(60)

    def _poll(self) -> None:
        version = 0
        while not self._stop.wait(0.05):
            if not (self._uri / "_versions").exists():
                continue
            table = lance.dataset(self._uri)
            self.looks += 1
            if table.version == version:
                continue
            version = table.version
            counted = table.to_table(columns=["month"]).group_by("month").aggregate([([], "count_all")]).to_pylist()
            found = {row["month"]: row["count_all"] for row in counted}
            for month, rows in self.months.items():
                if found.get(month) != rows:
                    self.gaps.append(f"version {version}: month {month} has {found.get(month)} rows, not {rows}")
            self.months.update(found)


def checksum(uri: Path) -> str:
    """Of the rows, in whatever order they are."""
    table = lance.dataset(uri).to_table()
    keys = [(name, "ascending") for name in ("month", "day", "carrier", "flight", "origin", "sched_dep_time", "tailnum")]
    digest = hashlib.sha256()
    for batch in table.select(sorted(table.column_names)).sort_by(keys).combine_chunks().to_batches():
        for column in batch.columns:
            digest.update(repr(column.to_pylist()).encode())
    return digest.hexdigest()


@pytest.mark.slow
def test_a_year_twice(stack: AirflowStack, place: Path) -> None:
    uri = place / "backfill.lance"
    stack.wait_for_dag("flights_backfill")
    stack.unpause("flights_backfill")
    with Poller(uri) as poller:
        with stack.quiet():
            stack.airflow(*BACKFILL, "--max-active-runs", "4")
        _wait_for_backfill(stack, MONTHS)
        first = checksum(uri)
        table = lance.dataset(uri)
        assert (table.count_rows(), table.version) == (ROWS, MONTHS)
        with stack.quiet():
            stack.airflow(*BACKFILL, "--max-active-runs", "4", "--reprocess-behavior", "completed")
        _wait_for_backfill(stack, MONTHS)
    table = lance.dataset(uri)
    table.validate()
    assert checksum(uri) == first
    assert table.count_rows() == ROWS
    assert poller.gaps == []
    assert poller.months == _months(table)
    print(f"{poller.looks} looks of the reader, {table.version} versions, checksum {first[:12]}")


def _months(table: Any) -> dict[int, int]:
    counted = table.to_table(columns=["month"]).group_by("month").aggregate([([], "count_all")]).to_pylist()
    return {row["month"]: row["count_all"] for row in counted}


def _wait_for_backfill(stack: AirflowStack, num_runs: int) -> None:
    deadline = time.monotonic() + 1800
    while time.monotonic() < deadline:
        backfills = stack.call("GET", "backfills?dag_id=flights_backfill")["backfills"]
        if backfills and all(entry["completed_at"] for entry in backfills):
            stack.wait_for_runs("flights_backfill", num_runs=num_runs, timeout=600)
            return
        time.sleep(1)
    raise TimeoutError("the backfill did not end")
