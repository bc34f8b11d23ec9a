"""Every example runs a second time, with new data between, under a real scheduler.

Two of those that the package ships are in every run of the tests; the third and those of `dags_examples` are among the long
ones. `test_flights.py` runs `flights.py` for one month after the other, `test_backfill.py` a year twice, and
`test_mapped_tasks.py` and `tests/airflow` have the others' second runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from airflow_stack import AirflowStack

import lance_core


def _run(stack: AirflowStack, dag_id: str, turn: int, conf: dict[str, Any] | None = None) -> str:
    """Trigger a DAG, and wait until it has so many runs that ended well; the id of the new one."""
    run_id = _begin(stack, dag_id, conf)
    stack.wait_for_runs(dag_id, num_runs=turn, timeout=900)
    return run_id


def _begin(stack: AirflowStack, dag_id: str, conf: dict[str, Any] | None = None) -> str:
    stack.wait_for_dag(dag_id)
    stack.unpause(dag_id)
    return stack.trigger(dag_id, conf=conf)


def _twice(stack: AirflowStack, *dag_ids: str) -> dict[str, list[str]]:
    """Two runs of each, the DAGs at the same time; their tasks log no error."""
    runs: dict[str, list[str]] = {dag_id: [] for dag_id in dag_ids}
    for turn in (1, 2):
        for dag_id in dag_ids:
            runs[dag_id].append(_begin(stack, dag_id))
        for dag_id in dag_ids:
            stack.wait_for_runs(dag_id, num_runs=turn, timeout=900)
    for dag_id, run_id in [(dag_id, run_id) for dag_id, found in runs.items() for run_id in found]:
        logs = [stack.task_log(dag_id, run_id, task["task_id"]) for task in stack.tasks(dag_id, run_id)]
        loud = [line for log in logs for line in log.splitlines() if '"level":"error"' in line or "Traceback" in line]
        assert loud == [], dag_id
    return runs


def test_orders_and_texts_twice(stack: AirflowStack, temporary: Path) -> None:
    """Each run brings rows of its own."""
    runs = _twice(stack, "example_lance_orders", "example_lance_embeddings")
    orders = lance.dataset(temporary / "lance_examples" / "orders.lance")
    orders.validate()
    assert sorted(orders.to_table()["id"].to_pylist()) == [*range(8)]
    assert orders.count_rows("city = 'Quito'") == 2, "each run corrects its newest order"
    texts = lance.dataset(temporary / "lance_examples" / "texts.lance")
    texts.validate()
    assert (texts.count_rows(), texts.count_rows("embedding IS NULL")) == (200, 0)
    assert len(stack.xcom("example_lance_embeddings", runs["example_lance_embeddings"][1], "search")) == 5


@pytest.mark.slow
def test_sales_twice(stack: AirflowStack, temporary: Path) -> None:
    runs = _twice(stack, "example_lance_write_audit_publish")
    sales = lance.dataset(temporary / "lance_examples" / "sales.lance").to_table().to_pylist()
    assert sorted(row["run_id"] for row in sales) == sorted(runs["example_lance_write_audit_publish"])
    assert {row["amount"] for row in sales} == {12.5}


@pytest.mark.slow
def test_embeddings_compute_only_what_is_new(stack: AirflowStack, place: Path) -> None:
    """Between the runs a paragraph comes, and one goes."""
    dag_id = "lance_embeddings"
    _run(stack, dag_id, 1)
    table = lance.dataset(place / "texts.lance")
    before = table.count_rows()
    table.delete("id = 0")
    lance.write_dataset(
        pa.Table.from_pylist(
            [{"id": 10**6, "topic": "new", "text": "a paragraph that nobody has seen before the second run"}],
            schema=table.schema,
        ),
        place / "texts.lance",
        mode="append",
    )
    run_id = _run(stack, dag_id, 2)
    table = lance.dataset(place / "texts.lance")
    table.validate()
    assert (table.count_rows(), table.count_rows("embedding IS NULL")) == (before + 1, 0), "the one that went came again"
    assert "2 rows had no value and were computed" in stack.task_log(dag_id, run_id, "vectors.add")


@pytest.mark.slow
def test_declared_embeddings_are_true_on_the_second_day_and_after_a_switch(stack: AirflowStack, place: Path) -> None:
    """Between the runs a paragraph goes, another is changed, and one comes that no later run brings."""
    uri = place / "declared_texts.lance"
    _run(stack, "lance_declared_embeddings", 1)
    table = lance.dataset(uri)
    before = table.count_rows()
    table.delete("id = 0")
    lance.dataset(uri).update({"text": "'a sorted list'"}, where="id = 5")
    others = pa.table({"id": [10**6], "topic": ["new"], "text": ["a paragraph that stands in no reference"]})
    lance_core.write_dataset(others, uri, mode="append")
    run_id = _run(stack, "lance_declared_embeddings", 2)
    assert stack.xcom("lance_declared_embeddings", run_id, "refresh")["columns"]["embedding"]["left"] == 0
    assert _vectors_are_of(uri, "") == before + 1
    assert len(stack.xcom("lance_declared_embeddings", run_id, "search")) == 5
    _run(stack, "lance_switch_embedding", 1)
    assert _vectors_are_of(uri, "2") == before + 1
    _run(stack, "lance_switch_back", 1)
    assert _vectors_are_of(uri, "") == before + 1


def _vectors_are_of(uri: Path, salt: str) -> int:
    """The number of rows, each of which has the vector that its text has by a model."""
    import hash_embedding

    table = lance.dataset(uri)
    table.validate()
    rows = table.to_table(columns=["text", "embedding"]).to_pylist()
    assert all(row["embedding"] == hash_embedding.vector_of(row["text"], salt).tolist() for row in rows)
    return len(rows)


@pytest.mark.slow
def test_a_second_person_is_forgotten(stack: AirflowStack, place: Path) -> None:
    import flights_data
    import pyarrow.parquet as pq

    january = pq.read_table(flights_data.write_month(str(place / "gdpr-raw"), 1))
    uri = place / "gdpr.lance"
    lance.write_dataset(january.slice(0, 10_000), uri, max_rows_per_file=1_000)
    _run(stack, "lance_gdpr_delete", 1, {"tail_number": "N14228"})
    lance.write_dataset(january.slice(10_000), uri, mode="append")
    _run(stack, "lance_gdpr_delete", 2, {"tail_number": "N24211"})
    table = lance.dataset(uri)
    table.validate()
    assert table.count_rows("tailnum = 'N24211'") == 0
    expected = january.filter(pc.invert(_is_any(january, "N24211"))).num_rows
    gone = january.slice(0, 10_000).filter(_is_any(january.slice(0, 10_000), "N14228")).num_rows
    assert table.count_rows() == expected - gone


@pytest.mark.slow
def test_tables_are_maintained_on_the_second_day_too(stack: AirflowStack, place: Path) -> None:
    uri = place / "maintained" / "flights.lance"
    rows = 0
    for _ in range(2):
        for _ in range(30):
            lance.write_dataset(pa.table({"id": range(rows, rows + 10)}), uri, mode="append" if rows else "create")
            rows += 10
        before = len(lance.dataset(uri).get_fragments())
        run_id = _begin(stack, "lance_maintenance")  # beside the run of its schedule
        assert stack.wait_for_run("lance_maintenance", run_id) == "success"
        table = lance.dataset(uri)
        table.validate()
        assert sorted(table.to_table()["id"].to_pylist()) == [*range(rows)]
        assert len(table.get_fragments()) < before, stack.task_log("lance_maintenance", run_id, "maintenance.plan")


def _is_any(table: Any, value: str) -> Any:
    return pa.array([item == value for item in pc.fill_null(table["tailnum"], "").to_pylist()])
