"""Declared columns are computed in Spark's tasks: the driver publishes, and what a task put aside is found again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.computed import refresh as refreshing
from lance_core.computed.history import read_records
from lance_core.io.local.store import LocalStore
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.columns import RefreshColumnsSpec
from lance_core.jobs.specs.identity import random_identity
from lance_core.spark.runner import SparkRunner
from tests.computed.functions import EMBED, SHOUT, expected_vector


@pytest.fixture
def uri(tmp_path: Path) -> str:
    path = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"id": range(100), "text": [f"text {i}" for i in range(100)]}), path, max_rows_per_file=15)
    lance.dataset(path).delete("id % 10 = 4")
    lance_core.declare_column(path, "loud", function=SHOUT, inputs=["text"], type=pa.string(), on_error="skip", batch_size=8)
    return path


def _run(spark: Any, uri: str, **fields: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"functions": (EMBED, SHOUT), "commit_every": 4, "rows_per_task": 20, **fields}
    spec = RefreshColumnsSpec(uri=uri, identity=random_identity(), **given)
    run_job(spec, runner=SparkRunner(lambda: spark))
    record = read_records(LocalStore(uri))[0]
    assert record.identity == spec.identity
    return dict(record.report)


def test_tasks_compute_and_the_driver_publishes(spark: Any, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lance.dataset(uri).update({"text": "'secret!'"}, where="id = 7")
    lance_core.declare_column(uri, "length", sql="octet_length(loud)")
    real, calls = refreshing.commit_transaction, list[int]()

    def commit(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(refreshing, "commit_transaction", commit)
    with pytest.raises(KeyboardInterrupt):
        _run(spark, uri)
    report = _run(spark, uri)
    counts = report["columns"]["loud"]
    assert (counts["fresh"] + counts["new"], counts["failed_now"], counts["left"]) == (90, 1, 0)
    assert counts["reused"] > 0, "what the tasks of the killed try put aside"
    assert counts["rows_given"] < 60
    rows = lance.dataset(uri).to_table(columns=["id", "text", "loud", "length"]).to_pylist()
    for row in rows:
        assert row["loud"] == (None if row["id"] == 7 else row["text"].upper())
        assert row["length"] == (None if row["id"] == 7 else len(row["text"]))
    (failed,) = lance_core.failed_rows(uri, "loud").rows
    assert failed.error.startswith("ValueError at functions.py:")
    again = _run(spark, uri, retry_failed=False)
    assert (again["columns"]["loud"]["left"], again["columns"]["loud"]["rows_given"], again["num_versions"]) == (1, 0, 0)

    lance_core.declare_column(uri, "vector", function=EMBED, inputs=["text"], type=pa.list_(pa.float32(), 4))
    stopped = _run(spark, uri, columns=("vector",), max_rows=30)
    assert stopped["stopped"] == "rows"
    assert stopped["columns"]["vector"]["rows_given"] <= 30
    report = _run(spark, uri, columns=("vector",))
    assert stopped["columns"]["vector"]["rows_given"] + report["columns"]["vector"]["rows_given"] == 90
    assert report["spent"]["vector"]["cents"] == report["columns"]["vector"]["rows_given"]
    found = lance.dataset(uri).to_table(columns=["text", "vector"]).to_pylist()
    assert all(row["vector"] == expected_vector(row["text"]) for row in found)
