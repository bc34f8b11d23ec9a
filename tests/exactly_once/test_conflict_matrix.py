"""The conflict matrix through operators: all kinds of tasks at once on one table, with an outside writer that appends.

    LANCE_MATRIX_SECONDS=600 pytest -m slow tests/exactly_once/test_conflict_matrix.py -s

No task fails, no row is lost, none is doubled, and the number of fragments stays bounded. Twenty seconds by default.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import lance
import numpy as np
import pytest
from matrix_workers import (
    ADDED,
    APPENDED_FROM,
    BASE_END,
    BLOCK,
    DELETED_FROM,
    KEPT_FROM,
    KINDS,
    OUTSIDE_FROM,
    UPDATED_FROM,
    rows,
    work,
)

SECONDS = float(os.environ.get("LANCE_MATRIX_SECONDS", "20"))
MOST_FRAGMENTS = 200
MOST_OF_ADDED = 0.1
"""Six kinds of writers and one compaction at a time: what piles up between two of them is less than a tenth of all that was
added (or that many, in a short run): on a busy machine everyone is slower, but not to the same degree."""
MOST_GROWTH = 1.5
"""The second half of the run against the first, by medians: what is bounded does not grow."""


@pytest.mark.slow
def test_no_task_fails_and_no_row_is_lost(tmp_path: Path, forks: None) -> None:
    uri, log = str(tmp_path / "t.lance"), tmp_path / "log"
    lance.write_dataset(rows(0, BASE_END), uri, max_rows_per_file=2_500)
    context = multiprocessing.get_context("forkserver")
    lane = context.Lock()
    workers = [context.Process(target=work, args=(kind, uri, SECONDS, lane, str(log))) for kind in KINDS]
    for worker in workers:
        worker.start()
    seen = [*_watch(uri, workers)]
    assert [worker.exitcode for worker in workers] == [0] * len(workers)

    records = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    _report(records, seen)
    failed = [record for record in records if not record["ok"] and record["kind"] != "outside"]
    assert failed == []
    table = lance.dataset(uri)
    table.validate()
    _check_rows(table, records)
    _check_columns(table, records)
    _check_fragments(seen, records)


def _watch(uri: str, workers: list[Any]) -> Iterator[int]:
    """The number of fragments, looked at until all workers have ended."""
    while any(worker.is_alive() for worker in workers):
        yield len(lance.dataset(uri).get_fragments())
        time.sleep(1)


def _check_fragments(seen: list[int], records: list[dict[str, Any]]) -> None:
    adding = ("append", "outside", "update")
    added = sum(record["ok"] and record["kind"] in adding for record in records)
    assert max(seen) <= max(MOST_FRAGMENTS, MOST_OF_ADDED * added)
    first, second = seen[: len(seen) // 2], seen[len(seen) // 2 :]
    assert median(second) <= max(MOST_FRAGMENTS / 2, MOST_GROWTH * median(first))


def _report(records: list[dict[str, Any]], seen: list[int]) -> None:
    for kind in KINDS:
        mine = [record for record in records if record["kind"] == kind]
        seconds = [record["seconds"] for record in mine]
        outcomes = Counter(record["ok"] for record in mine)
        again = sum(record.get("re_executed", 0) for record in mine)
        retried = sum(record["tries"] > 1 for record in mine)
        middle = median(seconds) if seconds else 0.0
        print(
            f"{kind:12} {outcomes[True]:5} done {outcomes[False]:3} failed {retried:3} retried {again:3} done again "
            f"in the lane, median {middle:.2f} s"
        )
    for record in records:
        if not record["ok"]:
            print(record)
    half = len(seen) // 2
    print(f"at most {max(seen)} fragments; medians of the halves {median(seen[:half]):.0f} and {median(seen[half:]):.0f}")


def _check_rows(table: Any, records: list[dict[str, Any]]) -> None:
    landed = {kind: {record["n"] for record in records if record["kind"] == kind and record["ok"]} for kind in KINDS}
    found = table.to_table(columns=["id", "value"])
    ids = np.sort(found["id"].to_numpy())
    blocks = [range(DELETED_FROM + n * BLOCK, DELETED_FROM + (n + 1) * BLOCK) for n in landed["delete"]]
    expected = [*(set(range(BASE_END)) - {number for block in blocks for number in block})]
    for kind, first in (("append", APPENDED_FROM), ("outside", OUTSIDE_FROM)):
        for n in landed[kind]:
            expected.extend(range(first + n * ADDED, first + (n + 1) * ADDED))
    doubtful = {record["n"] for record in records if record["kind"] == "outside" and not record["ok"]}
    unsure = {OUTSIDE_FROM + n * ADDED + k for n in doubtful for k in range(ADDED)}
    certain = np.array([number for number in ids.tolist() if number not in unsure])
    assert np.array_equal(certain, np.sort(expected)), "rows lost or doubled"
    values = dict(zip(found["id"].to_pylist(), found["value"].to_pylist(), strict=True))
    updated = {UPDATED_FROM + n * BLOCK + k for n in landed["update"] for k in range(BLOCK)}
    for number in range(UPDATED_FROM, BASE_END):
        assert values[number] == (1 if number in updated else 0), number


def _check_columns(table: Any, records: list[dict[str, Any]]) -> None:
    added = [record["n"] for record in records if record["kind"] == "add_columns" and record["ok"]]
    for n in added:
        kept = table.to_table(columns=["id", f"twice_{n}"], filter=f"id >= {KEPT_FROM} and id < {BASE_END}")
        assert np.array_equal(kept[f"twice_{n}"].to_numpy(), kept["id"].to_numpy() * 2)
