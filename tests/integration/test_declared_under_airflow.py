"""An embedding declared once, computed by Spark, indexed and switched to another model, in a run whose refreshes are killed.

A worker of the first refresh is killed, then the driver of its second try, then the driver of the switch's refresh; each
time a person clears what failed. Values that were computed are not computed again, and a page says how fresh the column is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pytest
from airflow_stack import AirflowStack
from dying_embedding import FOLDER, rows_given

from airflow_lance.links import table_id

DAG, RUN = "lance_declared_spark", "killed"
DEATHS = (("1-worker", 300, "refresh"), ("1-driver", 1_000, "refresh"), ("2-driver", 700, "to_2.refresh"))
"""The file that asks for it, behind how many rows of that model, and the task that fails."""
BATCH_ROWS, WORKERS = 50, 2


def _states(stack: AirflowStack) -> dict[str, str]:
    return {task["task_id"]: task["state"] for task in stack.tasks(DAG, RUN)}


def _true_vectors(uri: Path, column: str, salt: str) -> tuple[int, int]:
    """How many rows there are, and how many have a vector, which is that of their text by a model."""
    import hash_embedding

    table = lance.dataset(uri)
    table.validate()
    rows = table.to_table(columns=["text", column]).to_pylist()
    made = [row for row in rows if row[column] is not None]
    assert all(row[column] == hash_embedding.vector_of(row["text"], salt).tolist() for row in made)
    return len(rows), len(made)


def _page(stack: AirflowStack, uri: Path) -> dict[str, dict[str, Any]]:
    page = stack.call("GET", f"api/tables/{table_id('lance_default', str(uri))}?refresh=true", root="lance")
    return {column["name"]: column for column in page["declared"]}


@pytest.mark.slow
def test_an_embedding_is_true_behind_kills_on_spark(stack: AirflowStack, place: Path) -> None:
    folder = place / FOLDER
    folder.mkdir()
    uri = folder / "texts.lance"
    for name, rows, _ in DEATHS:
        (folder / name).write_text(str(rows))
    stack.wait_for_dag(DAG)
    stack.unpause(DAG)
    stack.trigger(DAG, run_id=RUN)
    for number, (name, _, task) in enumerate(DEATHS, start=1):
        assert stack.wait_for_run(DAG, RUN) == "failed"
        assert (folder / "deaths").read_text().splitlines()[-1] == name
        assert (folder / "deaths").read_text().count("\n") == number
        assert _states(stack)[task] == "failed"
        salt, column = ("", "embedding") if name.startswith("1") else ("2", "embedding_next")
        num_rows, made = _true_vectors(uri, column, salt)
        assert made < num_rows
        assert 0 < _page(stack, uri)[column]["stale_rows"] <= num_rows
        body = {"dag_run_id": RUN, "dry_run": False, "only_failed": True, "reset_dag_runs": True}
        stack.call("POST", f"dags/{DAG}/clearTaskInstances", body)
    assert stack.wait_for_run(DAG, RUN) == "success"

    num_rows, made = _true_vectors(uri, "embedding", "2")
    assert made == num_rows
    for salt, deaths in (("", 2), ("2", 1)):
        given = rows_given(folder, salt)
        assert given <= num_rows + deaths * WORKERS * BATCH_ROWS, f"{given} rows were given of {num_rows}"
    counts = stack.xcom(DAG, RUN, "to_2.refresh")["columns"]["embedding_next"]
    assert (counts["left"], counts["failed_now"]) == (0, 0)
    assert [path.name for path in (uri / "_lance_core" / "columns").rglob("*.arrow")] == []
    (index,) = [item for item in lance.dataset(uri).list_indices() if item["fields"] == ["embedding"]]
    assert index["name"] == "embedding_2_idx"

    # The page: all of it is true, since when, for whom. A text that somebody changes makes it stale.
    fresh = _page(stack, uri)["embedding"]
    assert (fresh["stale_rows"], fresh["failed_rows"]) == (0, 0)
    by = fresh["refreshed_by"]
    assert (by["dag_id"], by["run_id"], by["task_id"]) == (DAG, RUN, "to_2.refresh")
    lance.dataset(uri).update({"text": "'another one'"}, where="id = 5")
    assert _page(stack, uri)["embedding"]["stale_rows"] > 0
