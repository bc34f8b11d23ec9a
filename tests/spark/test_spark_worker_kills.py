"""A worker of a real Spark is killed at steps of statements and streams: Spark goes on, and each row is there once.

`test_spark_kills` takes every step of what is asked of workers, without a JVM. Here the jar and Spark have their own part.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pytest
from kill_file import Kills
from kill_harness import LATER, orphans

from lance_core.io.local.store import LocalStore
from lance_core.publish.collect import collect_garbage
from lance_core.spark.bridge import catalog_class
from tests.spark.conftest import ENVIRONMENT, needs_bridge, new_session

pytestmark = [pytest.mark.spark, needs_bridge]
SOURCE = "(SELECT id * 3 AS id, 9 AS day FROM range(5, 15))"
STATEMENTS = {
    "INSERT INTO lake.t SELECT id, 7 FROM range(100, 110)": [*range(30), *range(100, 110)],
    "INSERT OVERWRITE lake.t SELECT id, 7 FROM range(100, 110)": [*range(100, 110)],
    "DELETE FROM lake.t WHERE id < 12": [*range(12, 30)],
    "DELETE FROM lake.t WHERE sqrt(id) < 4": [*range(16, 30)],
    "UPDATE lake.t SET id = id + 100 WHERE id >= 8": [*range(8), *range(108, 130)],
    f"MERGE INTO lake.t USING {SOURCE} s ON t.id = s.id WHEN MATCHED AND s.id < 18 THEN DELETE WHEN MATCHED THEN "
    "UPDATE SET day = 9 WHEN NOT MATCHED THEN INSERT *": [*(i for i in range(30) if i != 15), *range(30, 43, 3)],
}
QUICK = ("INSERT INTO", "MERGE")


@pytest.fixture
def lake(spark: Any, tmp_path: Path) -> Callable[[str], Any]:
    session = new_session(spark)
    session.conf.set("spark.sql.catalog.lake", catalog_class())
    session.conf.set("spark.sql.catalog.lake.uri", str(tmp_path))
    return session.sql


@pytest.fixture
def kills() -> Kills:
    return Kills(ENVIRONMENT["LANCE_TEST_KILLS"])


def _start_over(sql: Callable[[str], Any], tmp_path: Path) -> str:
    sql("DROP TABLE IF EXISTS lake.t")
    sql("CREATE TABLE lake.t (id BIGINT, day INT)")
    sql("INSERT INTO lake.t SELECT id, int(id / 10) FROM range(0, 30, 1, 3)")
    return str(tmp_path / "t.lance")


def _check(uri: str, expected: list[int], what: str) -> None:
    table = lance.dataset(uri)
    table.validate()
    assert sorted(table.to_table()["id"].to_pylist()) == expected, what
    collect_garbage(LocalStore(uri), now=time.time() + LATER)
    assert orphans(LocalStore(uri)) <= {".lance-reserved"}, what  # the catalog's
    assert sorted(lance.dataset(uri).to_table()["id"].to_pylist()) == expected, what


def _numbers(steps: list[str], *, quick: bool) -> list[int]:
    """A step in a task, one before its version is there, and one behind; or every third."""
    if not quick:
        return [*range(1, len(steps) + 1, 3)]
    (version,) = [number for number, step in enumerate(steps, start=1) if step.startswith("publish _versions/")][-1:]
    return [next(number for number, step in enumerate(steps, start=1) if "data/" in step), version - 1, version]


@pytest.mark.parametrize(
    "statement",
    [text if text.startswith(QUICK) else pytest.param(text, marks=pytest.mark.slow) for text in STATEMENTS],
    ids=lambda text: text.split(" lake.t")[0],
)
def test_a_worker_dies_in_a_statement(lake: Any, kills: Kills, tmp_path: Path, statement: str) -> None:
    _kill(lake, kills, tmp_path, statement, quick=True)


def test_a_worker_that_is_dying_is_not_taken_again(lake: Any, kills: Kills, tmp_path: Path) -> None:
    """Its connection has ended, and the process is there for some seconds."""
    statement = "INSERT INTO lake.t SELECT id, 7 FROM range(100, 110, 1, 1)"  # one task, so that this worker is the next
    uri = _start_over(lake, tmp_path)
    with kills.at(0, under=uri):
        lake(statement)
    number = next(number for number, step in enumerate(kills.steps, start=1) if "data/" in step)
    uri = _start_over(lake, tmp_path)
    with kills.at(number, under=uri, slowly=True):
        lake(statement)
    _check(uri, [*range(30), *range(100, 110)], "a worker has died slowly")


@pytest.mark.slow
@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda text: text.split(" lake.t")[0])
def test_a_worker_dies_at_every_third_step(lake: Any, kills: Kills, tmp_path: Path, statement: str) -> None:
    _kill(lake, kills, tmp_path, statement, quick=False)


def _kill(sql: Any, kills: Kills, tmp_path: Path, statement: str, *, quick: bool) -> None:
    uri = _start_over(sql, tmp_path)
    with kills.at(0, under=uri):
        sql(statement)
    _check(uri, STATEMENTS[statement], "nobody dies")
    for number in _numbers(kills.steps, quick=quick):
        uri = _start_over(sql, tmp_path)
        with kills.at(number, under=uri):
            sql(statement)
        _check(uri, STATEMENTS[statement], f"step {number}: {kills.steps[number - 1 : number]}")


def test_a_worker_dies_in_a_batch(lake: Any, spark: Any, kills: Kills, tmp_path: Path) -> None:
    """And then the driver, between the commit and Spark's note of it."""
    session = new_session(spark)
    session.conf.set("spark.sql.catalog.lake", catalog_class())
    session.conf.set("spark.sql.catalog.lake.uri", str(tmp_path))
    incoming, checkpoint = tmp_path / "incoming", tmp_path / "checkpoint"
    incoming.mkdir()
    uri = _start_over(session.sql, tmp_path)
    expected = [*range(30)]

    def run() -> None:
        stream = session.readStream.schema("id BIGINT, day INT").json(str(incoming))
        query = stream.writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        query.toTable("lake.t").awaitTermination()

    numbers = [0]
    for batch in range(4):
        (incoming / f"{batch}.json").write_text(f'{{"id": {100 + batch}, "day": 1}}\n')
        expected.append(100 + batch)
        with kills.at(numbers[batch], under=uri):
            run()
        if not batch:
            numbers += _numbers(kills.steps, quick=True)
        assert sorted(lance.dataset(uri).to_table()["id"].to_pylist()) == expected, batch
        for path in (checkpoint / "commits").iterdir():
            if path.name.strip(".").startswith(f"{batch}"):
                path.unlink()
        run()
        assert sorted(lance.dataset(uri).to_table()["id"].to_pylist()) == expected, batch
    _check(uri, expected, "the stream")
