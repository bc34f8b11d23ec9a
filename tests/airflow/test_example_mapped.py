"""A hundred mapped appends, three deletes and an update: staged in parallel, one version, and no second time."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.commit import LanceCommitOperator
from airflow_lance.operators.delete import LanceDeleteOperator
from airflow_lance.operators.update import LanceUpdateOperator
from lance_core.io.local import store as local
from tests.airflow.example_dags import dag_of, load_example

APPENDS = 100
MIXED = 100
"""Fragments that every edit touches, of 1,000."""
DELETIONS = ("carrier = 'HA'", "carrier = 'OO'", "carrier = 'YV'")


class MappedTi:
    """A mapped task instance."""

    def __init__(self, task_id: str, map_index: int) -> None:
        self.dag_id, self.run_id, self.task_id, self.map_index, self.try_number = "d", "r", task_id, map_index, 1


def _execute(operator: Any, map_index: int = -1) -> Any:
    return operator.execute({"ti": MappedTi(operator.task_id, map_index), "outlet_events": {}})


def _stage_one(uri: str, number: int) -> Any:
    own: dict[str, Any] = {"uri": uri, "execution": "local", "commit": "elsewhere"}
    if number < APPENDS:
        source = {"callable": f"{__name__}:new_rows", "kwargs": {"number": number}}
        return _execute(LanceAppendOperator(task_id="append", source=source, **own), number)
    if number < APPENDS + len(DELETIONS):
        index = number - APPENDS
        return _execute(LanceDeleteOperator(task_id="delete", predicate=DELETIONS[index], **own), index)
    return _execute(LanceUpdateOperator(task_id="correct", updates={"carrier": "'FLX'"}, where="carrier = 'FL'", **own))


def new_rows(number: int) -> pa.Table:
    return pa.table(
        {"id": pa.array(range(10_000 + number * 10, 10_000 + number * 10 + 10), pa.int64()), "carrier": ["UA"] * 10}
    )


def _base(uri: str) -> None:
    """1,000 fragments from two data files of 8 rows, named again and again, as both libraries allow: 900 that no edit
    touches, 100 with rows of every carrier."""
    carriers = ["UA", "FL", "HA", "OO", "YV", "AA", "DL", "B6"]
    for number, names in enumerate((["UA"] * 8, carriers)):
        rows = pa.table({"id": pa.array(range(8), pa.int64()), "carrier": names})
        made = lance.write_dataset(rows, uri, mode="append" if number else "create")
    # Number 0 means that the commit gives it one.
    plain, mixed = (replace(fragment.metadata, id=0) for fragment in made.get_fragments())
    again = lance.LanceOperation.Append([plain] * 899 + [mixed] * (MIXED - 1))
    lance.LanceDataset.commit(uri, again, read_version=made.version)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Every call to a local store, by name."""
    counts: Counter[str] = Counter()
    for name in ("get", "get_ranges", "size", "put", "put_if_absent", "open_writer", "list", "list_names", "delete"):
        inner = getattr(local.LocalStore, name)

        def counted(self: Any, *args: Any, _inner: Any = inner, _name: str = name, **kwargs: Any) -> Any:
            counts[_name] += 1
            return _inner(self, *args, **kwargs)

        monkeypatch.setattr(local.LocalStore, name, counted)
    return counts


@pytest.fixture
def connected(connection: Any) -> None:
    connection("lance_default", json.dumps({"conn_type": "lance"}))


def test_a_hundred_and_four_tasks_become_one_version(tmp_path: Path, connected: None, calls: Counter[str]) -> None:
    uri = str(tmp_path / "t.lance")
    _base(uri)
    before = lance.dataset(uri).version
    everything = range(APPENDS + len(DELETIONS) + 1)
    with ThreadPoolExecutor(8) as pool:
        staged = list(pool.map(lambda number: _stage_one(uri, number), everything))
    assert lance.dataset(uri).version == before, "staging is not seen by anybody"

    calls.clear()
    result = _execute(LanceCommitOperator(task_id="commit", uri=uri, staged=staged))
    assert result["num_versions"] in (1, 2)
    assert Counter(result["identities"].values()) == {"committed": len(everything)}
    table = lance.dataset(uri)
    table.validate()
    assert table.version == before + result["num_versions"]
    assert _carriers(table) == {
        "UA": 7200 + MIXED + 10 * APPENDS,
        **dict.fromkeys(("FLX", "AA", "DL", "B6"), MIXED),
    }
    # About 20 for each staged piece (records, transaction, ledger entry, drain); for a fragment that all four edits touch 16
    # (four deletion files looked for, read and removed, a joint one written). Nothing for the 900 others.
    assert sum(calls.values()) <= 24 * len(everything) + 18 * MIXED, calls
    num_calls = sum(calls.values())
    print(f"commit of {len(everything)} pieces on 1,000 fragments: {result['seconds']:.2f} s, {num_calls} store calls")

    noted = _identities_in_history(uri, range(before + 1, table.version + 1))
    assert noted == {reference["identity"] for reference in staged}

    for number in (0, 57, APPENDS - 1, APPENDS, APPENDS + 3):
        again = _stage_one(uri, number)
        assert again["identity"] == staged[number]["identity"]
    result = _execute(LanceCommitOperator(task_id="commit", uri=uri, staged=staged))
    assert (result["num_versions"], result["rows_added"]) == (0, 0)
    assert lance.dataset(uri).version == table.version


def _carriers(table: Any) -> dict[str, int]:
    counted = pc.value_counts(table.to_table(columns=["carrier"])["carrier"]).to_pylist()
    return {entry["values"]: entry["counts"] for entry in counted}


def _identities_in_history(uri: str, versions: Any) -> set[str]:
    from lance_core.commit.identities import identities_of
    from lance_core.commit.transactions import load_transaction
    from lance_core.io.local.store import LocalStore

    store = LocalStore(uri)
    return {identity for version in versions for identity in identities_of(load_transaction(store, version))}


@pytest.mark.slow
def test_the_example_dag(tmp_path: Path, connected: None, run_dag: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table_uri = tmp_path / "mapped.lance"
    module = load_example("mapped_tasks", monkeypatch, MAPPED_TABLE=table_uri, MAPPED_RAW=tmp_path / "raw")
    run = run_dag(dag_of(module, "lance_mapped_tasks"))
    assert run.state == "success"
    result = run.get_task_instance("change.commit").xcom_pull(task_ids="change.commit")
    assert (result["num_versions"], len(result["identities"])) == (1, 104)
    table = lance.dataset(table_uri)
    table.validate()
    assert table.version == 2
    carriers = _carriers(table)
    assert carriers["FLX"] == 328, "January's flights of FL"


def test_the_example_dag_has_its_days_once(
    tmp_path: Path, connected: None, run_dag: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second day's run has two days more."""
    table_uri = tmp_path / "mapped.lance"
    shared = {"MAPPED_TABLE": table_uri, "MAPPED_RAW": tmp_path / "raw"}
    rows = []
    for days in (2, 4):
        module = load_example("mapped_tasks", monkeypatch, MAPPED_DAYS=days, **shared)
        assert run_dag(dag_of(module, "lance_mapped_tasks")).state == "success"
        table = lance.dataset(table_uri)
        table.validate()
        per_day = (
            table.to_table(columns=["month", "day"], filter="month = 2").group_by(["day"]).aggregate([([], "count_all")])
        )
        rows.append({row["day"]: row["count_all"] for row in per_day.to_pylist()})
    assert [sorted(found) for found in rows] == [[1, 2], [1, 2, 3, 4]]
    assert all(rows[1][day] <= rows[0][day] for day in (1, 2)), "no day is there twice"
