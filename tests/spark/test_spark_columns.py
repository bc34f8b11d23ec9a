"""Columns in Spark's own SQL: evaluated on executors, filled in by a commit that starts Spark when it needs it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from lance_core.errors import InputError, SchemaMismatchError
from lance_core.io.local.store import LocalStore
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.edits import AddColumnsSpec
from lance_core.jobs.specs.spec import CommitSpec
from lance_core.publish.attempts import list_staged
from lance_core.spark.on_demand import OnDemandSpark
from lance_core.spark.runner import SparkRunner

COLUMNS = {
    "hash": "sha2(name, 256)",
    "parts": "transform(split(name, ' '), part -> upper(part))",
    "when": "timestamp_micros(id * 1000000)",
    "point": "named_struct('a', id, 'b', small)",
}


def _rows(start: int, stop: int) -> pa.Table:
    ids = range(start, stop)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": [None if i % 7 == 3 else f"row {i}" for i in ids],
            "small": pa.array([i % 256 for i in ids], pa.uint8()),
            "vector": pa.array([[float(i)] * 4 for i in ids], pa.list_(pa.float32(), 4)),
        }
    )


@pytest.fixture
def uri(tmp_path: Path) -> str:
    path = str(tmp_path / "t.lance")
    lance.write_dataset(_rows(0, 2_000), path, max_rows_per_file=700)
    lance.dataset(path).delete("id % 10 = 4")
    return path


def _spec(uri: str, key: str, **fields: Any) -> AddColumnsSpec:
    given: dict[str, Any] = {"columns": COLUMNS, "engine": "spark", "rows_per_task": 1_000, "batch_size": 300, **fields}
    return AddColumnsSpec(uri=uri, identity=key, **given)


def _check(row: dict[str, Any]) -> None:
    name = row["name"]
    assert row["hash"] == (None if name is None else hashlib.sha256(name.encode()).hexdigest())
    assert row["parts"] == (None if name is None else name.upper().split(" "))
    assert row["when"].timestamp() == row["id"]
    assert row["point"] == {"a": row["id"], "b": row["small"]}


def test_spark_evaluates_and_the_commit_fills_in(spark: Any, uri: str) -> None:
    staged = run_job(_spec(uri, "columns-1"), runner=SparkRunner(lambda: spark))
    lance.write_dataset(_rows(2_000, 2_100), uri, mode="append")
    with OnDemandSpark() as runner:
        result = run_job(CommitSpec.of([staged], uri=uri), runner=runner)
    assert result.re_executed == 1
    assert spark.range(3).count() == 3, "a session that was there is left alone"
    table = lance.dataset(uri)
    table.validate()
    found = table.to_table().to_pylist()
    assert [row["id"] for row in found] == [i for i in range(2_100) if i % 10 != 4 or i >= 2_000]
    for row in found:
        _check(row)
    assert list_staged(LocalStore(uri)) == []


def test_spark_fills_the_rows_of_the_second_day_skips_and_refuses(spark: Any, uri: str) -> None:
    runner = SparkRunner(lambda: spark)
    columns = {"hash": COLUMNS["hash"]}

    def run(key: str, sql: dict[str, str], if_exists: str) -> Any:
        staged = run_job(_spec(uri, key, columns=sql, if_exists=if_exists), runner=runner)
        return run_job(CommitSpec.of([staged], uri=uri), runner=runner)

    run("day-1", columns, "fill")
    lance.write_dataset(_rows(2_000, 2_100), uri, mode="append")
    before = {fragment.fragment_id: [file.path for file in fragment.data_files()] for fragment in _fragments(uri)}
    run("day-2", columns, "fill")
    after = {fragment.fragment_id: [file.path for file in fragment.data_files()] for fragment in _fragments(uri)}
    table = lance.dataset(uri)
    table.validate()
    for row in table.to_table().to_pylist():
        name = row["name"]
        assert row["hash"] == (None if name is None else hashlib.sha256(name.encode()).hexdigest())
    assert [number for number, files in after.items() if len(files) > len(before[number])] != []
    version = table.version
    run("day-2-skip", {"hash": "upper(name)"}, "skip")
    assert lance.dataset(uri).to_table(columns=["hash"]) == table.to_table(columns=["hash"])
    with pytest.raises(InputError, match='if_exists="fill"'):
        run("day-2-fail", columns, "fail")
    with pytest.raises(SchemaMismatchError, match="cannot fill column 'hash'"):
        run("day-2-other", {"hash": "id"}, "fill")
    assert lance.dataset(uri).version == version
    assert list_staged(LocalStore(uri)) == []


def _fragments(uri: str) -> Any:
    return lance.dataset(uri).get_fragments()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": "nope + 1"}, "Spark rejected the expressions of a: .*nope"),
        ({"a": "id +"}, "Spark rejected the expressions of a"),
        ({"a": "explode(array(1, 2))"}, "more rows than they received"),
        ({"a": "sum(id)"}, "Spark rejected"),
    ],
)
def test_what_spark_or_we_refuse(spark: Any, uri: str, columns: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run_job(_spec(uri, "columns-2", columns=columns), runner=SparkRunner(lambda: spark))
    assert list_staged(LocalStore(uri)) == []
    assert lance.dataset(uri).schema.names == ["id", "name", "small", "vector"]
