"""The examples of upkeep and of embeddings, run on real data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lance
import pytest

import lance_core
from tests.airflow.example_dags import FOLDER, dag_of, load_example


@pytest.fixture
def connected(connection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    connection("lance_default", json.dumps({"conn_type": "lance"}))
    monkeypatch.syspath_prepend(str(FOLDER))


def test_embeddings(tmp_path: Path, connected: None, run_dag: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = tmp_path / "texts.lance"
    module = load_example("embeddings", monkeypatch, TEXTS_TABLE=uri)
    run = run_dag(dag_of(module, "lance_embeddings"))
    assert run.state == "success"
    found = run.get_task_instance("search").xcom_pull(task_ids="search")
    assert found[0]["topic"].startswith("typesseq"), [row["topic"] for row in found]

    table = lance.dataset(uri)
    table.validate()
    assert table.version == 3
    assert [index.index_type for index in table.describe_indices()] == ["IVF_PQ"]
    import hash_embedding

    query = {"column": "embedding", "q": hash_embedding.vector_of(module.QUESTION), "k": 5, "use_index": False}
    exact = table.to_table(columns=["id"], nearest={**query, "metric": "cosine"})["id"].to_pylist()
    assert len({row["id"] for row in found} & set(exact)) >= 4, "recall against a search that looks at all"


def test_embeddings_of_the_second_day(
    tmp_path: Path, connected: None, run_dag: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import hash_embedding
    import pyarrow as pa

    uri = tmp_path / "texts.lance"
    module = load_example("embeddings", monkeypatch, TEXTS_TABLE=uri)
    dag = dag_of(module, "lance_embeddings")
    yesterday = hash_embedding.paragraphs().slice(0, 600)
    today = yesterday.slice(0, 3).set_column(0, "id", pa.array([9001, 9002, 9003], pa.int64()))
    monkeypatch.setattr(hash_embedding, "paragraphs", lambda: yesterday)
    assert run_dag(dag).state == "success"
    monkeypatch.setattr(hash_embedding, "paragraphs", lambda: pa.concat_tables([yesterday, today]))
    asked: list[int] = []
    embed = hash_embedding.embed
    monkeypatch.setattr(hash_embedding, "embed", lambda batch: (asked.append(batch.num_rows), embed(batch))[1])
    assert run_dag(dag).state == "success"
    assert sum(asked) == 3, "only what is new is computed"
    table = lance.dataset(uri)
    table.validate()
    assert (table.count_rows(), table.count_rows("embedding IS NULL")) == (603, 0)
    assert table.stats.index_stats("embedding_idx")["num_unindexed_rows"] == 0


def test_declared_embeddings(tmp_path: Path, connected: None, run_dag: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second day: others changed, deleted, compacted, and added texts; only those that are others now are computed."""
    import hash_embedding
    import pyarrow as pa

    uri = tmp_path / "texts.lance"
    module = load_example("declared_embeddings", monkeypatch, DECLARED_TEXTS_TABLE=uri)
    dag = dag_of(module, "lance_declared_embeddings")
    texts = hash_embedding.paragraphs().slice(0, 1200)
    monkeypatch.setattr(hash_embedding, "paragraphs", lambda: texts.slice(0, 600))
    first = run_dag(dag)
    assert first.state == "success"
    done = first.get_task_instance("refresh").xcom_pull(task_ids="refresh")
    assert (done["columns"]["embedding"]["new"], done["columns"]["embedding"]["left"]) == (600, 0)
    lance.dataset(uri).update({"text": "'a sorted list'"}, where="id IN (3, 599)")
    lance.dataset(uri).delete("id = 7")
    lance.dataset(uri).optimize.compact_files()
    given: list[str] = []
    embed = hash_embedding.embed
    monkeypatch.setattr(
        hash_embedding, "embed", lambda batch: (given.extend(batch.column("text").to_pylist()), embed(batch))[1]
    )
    monkeypatch.setattr(hash_embedding, "paragraphs", lambda: texts.slice(600, 5))
    run = run_dag(dag)
    assert run.state == "success"
    assert sorted(given) == sorted(["a sorted list"] * 2 + texts["text"].to_pylist()[600:605])
    table = lance.dataset(uri)
    table.validate()
    rows = table.to_table(columns=["text", "embedding"]).to_pylist()
    assert len(rows) == 604
    for row in rows:
        assert row["embedding"] == pa.array(hash_embedding.vector_of(row["text"])).to_pylist()

    monkeypatch.setattr(hash_embedding, "embed", embed)
    switch = dag_of(module, "lance_switch_embedding")
    run = run_dag(switch)
    assert run.state == "success"
    done = run.get_task_instance("to_2.switch").xcom_pull(task_ids="to_2.switch")
    assert done["switched"]
    assert 0.8 <= done["recall"] <= 1.0
    _has_model(uri, "2")
    again = run_dag(switch)
    assert again.state == "success"
    assert [again.get_task_instance(f"to_2.{task}").state for task in ("declare", "refresh", "build_index", "switch")] == [
        "skipped", "skipped", "skipped", "success",
    ]  # fmt: skip
    assert run_dag(dag_of(module, "lance_switch_back")).state == "success"
    _has_model(uri, "")
    assert lance.dataset(uri).version == done["version"] + 1


def _has_model(uri: Path, salt: str) -> None:
    """Every row has the model's vector, and the index on the column finds them."""
    import hash_embedding
    import numpy as np

    table = lance.dataset(uri)
    table.validate()
    for row in table.to_table(columns=["text", "embedding"]).to_pylist():
        assert row["embedding"] == hash_embedding.vector_of(row["text"], salt).tolist()
    query = {"column": "embedding", "q": hash_embedding.vector_of("a sorted list", salt), "k": 2, "nprobes": 8}
    scanner = table.scanner(columns=["text"], nearest={**query, "refine_factor": 10})
    assert "ANNSubIndex" in scanner.explain_plan()
    assert scanner.to_table()["text"].to_pylist() == ["a sorted list"] * 2
    assert np.float32 == hash_embedding.vector_of("a", salt).dtype


def test_maintenance(tmp_path: Path, connected: None, run_dag: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import flights_data
    import pyarrow.parquet as pq

    uri = tmp_path / "flights.lance"
    flights = pq.read_table(flights_data.write_month(str(tmp_path / "raw"), 1))
    lance.write_dataset(flights, uri, max_rows_per_file=1_000)
    lance_core.dataset(str(uri)).create_scalar_index("carrier", "BITMAP")
    for airline in ("UA", "B6", "9E"):
        lance.dataset(uri).delete(f"carrier = '{airline}'")
    rows, carriers = lance.dataset(uri).count_rows(), lance.dataset(uri).count_rows("carrier = 'AA'")
    places = {"MAINTAINED_FOLDER": tmp_path, "MAINTAINED_KEEP_DAYS": 0, "MAINTAINED_BACKOFF_SECONDS": 0}
    module = load_example("maintenance", monkeypatch, **places)
    run = run_dag(dag_of(module, "lance_maintenance"))
    assert run.state == "success"
    table = lance.dataset(uri)
    table.validate()
    assert (table.count_rows(), table.count_rows("carrier = 'AA'")) == (rows, carriers)
    assert len(table.get_fragments()) < 3
    assert table.stats.index_stats("carrier_idx")["num_unindexed_fragments"] == 0
    # The clean-up runs last: what it keeps are the newest three.
    assert len(table.versions()) <= 3
    evidence = lance_core.dataset(str(tmp_path / "_maintenance")).to_table(filter="outcome = 'done'").to_pylist()
    assert {row["action"] for row in evidence} >= {"compact", "optimize_indices"}
