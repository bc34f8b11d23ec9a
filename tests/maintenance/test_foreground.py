"""Writers beside upkeep: none of their commits fails, and each row is there once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lance
import pyarrow as pa

import lance_core
from lance_core.maintenance.api import carry_out, plan_now
from lance_core.maintenance.policy import Budget, Policy, ServiceLevels

ROUNDS = 4
LEVELS = ServiceLevels(
    min_fragments=4, tier_fanout=2, max_files_per_fragment=2, max_versions=5, keep_versions=3, target_rows_per_fragment=200
)


def rows(first: int, count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + count), pa.int64()), "x": [0] * count, "late": [0] * count})


def test_no_commit_of_a_writer_fails_beside_upkeep(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    for number in range(6):
        lance_core.write_dataset(rows(50 * number, 50).select(["id", "x"]), uri, mode="append" if number else "create")
    lance_core.dataset(uri).add_columns({"late": "x + 0"})
    lance_core.dataset(uri).create_scalar_index("id", "BTREE")
    policy = Policy(base_uri=str(tmp_path), levels=LEVELS, budget=Budget(backoff_seconds=0))

    def appends() -> None:
        for number in range(ROUNDS):
            lance.write_dataset(rows(1000 + 20 * number, 20), uri, mode="append")

    def deletes() -> None:
        for number in range(ROUNDS):
            lance_core.dataset(uri).delete(f"id = {40 * number}")

    def updates() -> None:
        for number in range(ROUNDS):
            lance_core.dataset(uri).update({"x": "x + 1"}, where=f"id = {40 * number + 1}")

    def columns() -> None:
        lance_core.dataset(uri).add_columns({"new": "id * 2"})

    def upkeep() -> None:
        for _ in range(ROUNDS):
            carry_out(policy, plan_now(policy).steps)

    works: list[Callable[[], None]] = [appends, deletes, updates, upkeep]
    with ThreadPoolExecutor(len(works)) as pool:
        for done in [pool.submit(work) for work in works]:
            done.result()
    columns()
    upkeep()
    table = lance.dataset(uri)
    table.validate()
    found = table.to_table()
    expected = sorted({*range(300), *range(1000, 1000 + 20 * ROUNDS)} - {40 * number for number in range(ROUNDS)})
    assert sorted(found["id"].to_pylist()) == expected
    assert sorted(table.to_table(filter="x = 1")["id"].to_pylist()) == [40 * number + 1 for number in range(ROUNDS)]
    assert found["new"].to_pylist() == [2 * number for number in found["id"].to_pylist()]
