"""A hundred mapped appends, three deletes and an update under a real scheduler, on a table of 1,000 fragments: one version.

Then each of the 104 tasks is cleared and runs again, and the commit with them: nothing is added. On the second day, with new
rows between, the days are there already, and the deletes and the update find what is new.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from airflow_stack import AirflowStack

from lance_core.commit.identities import identities_of
from lance_core.commit.transactions import load_transaction
from lance_core.io.local.store import LocalStore

DAG = "lance_mapped_tasks"
FRAGMENTS, ROWS = 1_000, 27
DAYS = 100
STAGING = ["change.append", "change.delete", "change.correct"]


def _january(place: Path) -> pa.Table:
    import flights_data

    return pq.read_table(flights_data.write_month(str(place / "mapped-january"), 1)).slice(0, FRAGMENTS * ROWS)


def _expected(january: pa.Table, place: Path) -> Counter[str]:
    """The carriers at the end. Deletes and the update were planned on January, so they leave the new days alone."""
    return _changed(Counter(january["carrier"].to_pylist())) + Counter(
        name for path in _days(place) for name in pq.read_table(path)["carrier"].to_pylist()
    )


def _changed(before: Counter[str]) -> Counter[str]:
    """Carriers behind the deletes and the update."""
    withdrawn, renamed = {"HA", "OO", "YV"}, {"FL": "FLX"}
    kept: Counter[str] = Counter()
    for name, count in before.items():
        kept[renamed.get(name, name)] += 0 if name in withdrawn else count
    return +kept


def _days(place: Path) -> list[str]:
    import flights_data

    return list(flights_data.write_days(str(place / "mapped-raw"), first_month=2, num_days=DAYS))


def _carriers(table: Any) -> Counter[str]:
    counted = pc.value_counts(table.to_table(columns=["carrier"])["carrier"]).to_pylist()
    return Counter({entry["values"]: entry["counts"] for entry in counted})


def _identities(uri: Path, versions: range) -> set[str]:
    store = LocalStore(str(uri))
    return {identity for version in versions for identity in identities_of(load_transaction(store, version))}


@pytest.mark.slow
def test_a_hundred_and_four_tasks_become_one_version(stack: AirflowStack, place: Path) -> None:
    uri, january = place / "mapped.lance", _january(place)
    before = lance.write_dataset(january, uri, max_rows_per_file=ROWS)
    assert len(before.get_fragments()) == FRAGMENTS
    stack.wait_for_dag(DAG)
    stack.unpause(DAG)
    run_id = stack.trigger(DAG)
    stack.wait_for_runs(DAG, num_runs=1, timeout=1100)
    result = stack.xcom(DAG, run_id, "change.commit")
    assert result["num_versions"] in (1, 2)
    assert Counter(result["identities"].values()) == {"committed": DAYS + 4}
    assert "ERROR" not in stack.task_log(DAG, run_id, "change.commit"), "a log of a good commit has no red line"
    table = lance.dataset(uri)
    table.validate()
    assert table.version == before.version + result["num_versions"]
    assert _identities(uri, range(before.version + 1, table.version + 1)) == {*result["identities"]}
    expected = _expected(january, place)
    assert _carriers(table) == expected
    print(f"commit of {DAYS + 4} tasks on {FRAGMENTS} fragments: lane held for {result['seconds']:.2f} s")

    body = {"dag_run_id": run_id, "task_ids": STAGING, "include_downstream": True}
    stack.call("POST", f"dags/{DAG}/clearTaskInstances", {**body, "dry_run": False, "only_failed": False})
    stack.wait_for_runs(DAG, num_runs=1, timeout=1100)
    again = stack.xcom(DAG, run_id, "change.commit")
    assert again["identities"] == dict.fromkeys(result["identities"], "already_committed")
    assert (again["num_versions"], again["rows_added"]) == (0, 0)
    assert lance.dataset(uri).version == table.version
    assert _carriers(lance.dataset(uri)) == expected

    new = january.slice(0, 2_000)
    lance.write_dataset(new, uri, mode="append")
    second = stack.trigger(DAG)
    assert stack.wait_for_run(DAG, second, timeout=1100) == "success"
    result = stack.xcom(DAG, second, "change.commit")
    assert Counter(result["identities"].values()) == {"already_committed": DAYS, "committed": 4}
    table = lance.dataset(uri)
    table.validate()
    assert _carriers(table) == _changed(expected + Counter(new["carrier"].to_pylist()))
