"""The bridge and its catalog where no Python drives: a Spark Connect server and its clients, `spark-sql`, a Thrift server.

Clients of Connect have no JVM and no jar. What SQL left behind is read by the official library.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import lance
import psutil
import pyspark
import pytest
from spark_servers import SPARK_HOME, Server, arguments, connect_server, environment, thrift_server

from lance_core.catalog.locate import find_table
from lance_core.errors import InputError
from lance_core.spark.bridge import EXTENSIONS, catalog_class, enable, is_enabled, jar_path
from lance_core.spark.bridge.catalog import open_catalog

pytestmark = pytest.mark.spark
HAS_CALL = int(pyspark.__version__.split(".")[0]) >= 4

STATEMENTS = (
    "CREATE NAMESPACE lake.sales",
    "CREATE TABLE lake.sales.orders (id BIGINT, name STRING) TBLPROPERTIES ('enable_stable_row_ids' = 'true')",
    "INSERT INTO lake.sales.orders SELECT id, concat('n', id) FROM range(0, 10)",
    "UPDATE lake.sales.orders SET name = 'new' WHERE sqrt(id) > 2.5",
    "DELETE FROM lake.sales.orders WHERE id = 9",
    "DELETE FROM lake.sales.orders WHERE sqrt(id) < 1.5",
    "MERGE INTO lake.sales.orders t USING (SELECT id FROM range(8, 12)) s ON t.id = s.id WHEN MATCHED THEN DELETE "
    "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'merged')",
    *(["CALL lake.system.compact(table => 'sales.orders')", "OPTIMIZE lake.sales.orders"] if HAS_CALL else []),
)
ROWS = {3: "n3", 4: "n4", 5: "n5", 6: "n6", 7: "new", 9: "merged", 10: "merged", 11: "merged"}
QUESTIONS = {
    "SELECT count(*), sum(id) FROM lake.sales.orders": ("8", "55"),
    "SELECT count(*), sum(id) FROM lake.sales.orders VERSION AS OF 2": ("10", "45"),
    "SELECT count(*), min(operation) FROM lake.sales.orders.versions WHERE version < 3": ("2", "Append"),
    "SELECT count(*), min(id) FROM SEARCH('lake.sales.orders', 'merged', 10, search_columns => array('name'))": ("3", "9"),
    "SELECT min(id) >= 0, sum(num_rows) FROM lake.sales.orders.fragments": ("true", "8"),
}
"""And their one row."""


def settings(lake: Path) -> dict[str, str]:
    """Of an application with the bridge and a catalog."""
    return {
        "spark.jars": jar_path(),
        "spark.sql.extensions": EXTENSIONS,
        "spark.sql.catalog.lake": catalog_class(),
        "spark.sql.catalog.lake.uri": str(lake),
    }


def check(lake: Path) -> None:
    table = lance.dataset(find_table(open_catalog({"uri": str(lake)})[0], ["sales", "orders"]).uri)
    table.validate()
    assert {row["id"]: row["name"] for row in table.to_table().to_pylist()} == ROWS
    assert table.has_stable_row_ids


def workers(server: Server) -> list[psutil.Process]:
    found = []
    for process in psutil.Process(server.pid).children(recursive=True):
        with suppress(psutil.Error):  # one that has just ended
            if "lance_core.spark.bridge.worker" in " ".join(process.cmdline()):
                found.append(process)
    return found


# Connect


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, lake: Path) -> Iterator[Server]:
    with connect_server(tmp_path_factory.mktemp("connect"), settings(lake)) as found:
        yield found


@contextmanager
def connected(server: Server) -> Iterator[Any]:
    """A session, which ends before the server does: a client that cannot say goodbye tries for minutes."""
    from pyspark.sql.connect.session import SparkSession

    session = SparkSession.builder.remote(server.url).create()
    try:
        yield session
    finally:
        session.stop()


@pytest.fixture
def client(server: Server) -> Iterator[Any]:
    with connected(server) as found:
        yield found


def test_statements_by_a_client_of_connect(server: Server, client: Any, lake: Path) -> None:
    for number, statement in enumerate(STATEMENTS):
        if number % 3 == 2:  # the planner dies between two statements
            for worker in workers(server):
                os.kill(worker.pid, signal.SIGKILL)
        client.sql(statement).collect()
    assert [row["id"] for row in client.table("lake.sales.orders").orderBy("id").collect()] == [*ROWS]
    for question, answer in QUESTIONS.items():
        assert tuple(str(value).replace("True", "true") for value in client.sql(question).collect()[0]) == answer, question
    check(lake)


def test_frames_by_a_client_of_connect(client: Any, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    client.range(100).selectExpr("id", "id * 2 AS twice").write.format("lance").mode("append").save(uri)
    client.createDataFrame([(100, 200)], "id BIGINT, twice BIGINT").write.format("lance").mode("append").save(uri)
    assert sorted(lance.dataset(uri).to_table()["twice"].to_pylist()) == [*range(0, 202, 2)]
    frame = client.read.format("lance").load(uri)
    assert (frame.count(), frame.where("twice > 190").count()) == (101, 5)
    assert client.read.format("lance").option("version", 1).load(uri).count() == 100
    frame.where("id > 98").write.format("lance").mode("overwrite").save(uri)
    assert sorted(lance.dataset(uri).to_table()["id"].to_pylist()) == [99, 100]
    with pytest.raises(Exception, match="unknown option 'verzion'"):
        client.read.format("lance").option("verzion", 1).load(uri).schema


def test_a_stream_by_a_client_of_connect(client: Any, tmp_path: Path) -> None:
    """By path; its last batch runs again, as after a crash before the checkpoint's note of it."""
    uri, incoming, checkpoint = str(tmp_path / "t.lance"), tmp_path / "incoming", tmp_path / "checkpoint"
    incoming.mkdir()

    def run() -> None:
        stream = client.readStream.schema("id BIGINT").json(str(incoming)).writeStream.format("lance").queryName("events")
        query = stream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start(uri)
        assert query.awaitTermination(120)
        assert query.exception() is None

    for number in range(2):
        (incoming / f"{number}.json").write_text(f'{{"id": {number}}}\n')
        run()
    for note in (checkpoint / "commits").iterdir():
        if note.name.strip(".").startswith("1"):
            note.unlink()
    run()
    assert sorted(lance.dataset(uri).to_table()["id"].to_pylist()) == [0, 1]
    assert lance.dataset(uri).version == 2


def test_what_a_client_of_connect_need_not_do(client: Any, tmp_path: Path) -> None:
    """The server has the jar: to enable it, or to register the Python source, changes nothing."""
    assert is_enabled(client)
    enable(client)
    if HAS_CALL:  # Spark 3.5 has no Python sources
        from lance_core.spark.source import register

        register(client)
    client.range(3).write.format("lance").mode("append").save(str(tmp_path / "t.lance"))
    assert client.read.format("lance").load(str(tmp_path / "t.lance")).count() == 3


@pytest.mark.slow
@pytest.mark.skipif(not HAS_CALL, reason="Spark 3.5 has no Python sources")
def test_a_server_without_the_jar(tmp_path: Path) -> None:
    from lance_core.spark.source import register

    uri = str(tmp_path / "t.lance")
    with connect_server(tmp_path, {}, functions=True) as plain, connected(plain) as client:
        for _ in range(2):  # before the Python source is there, and behind
            assert not is_enabled(client)
            with pytest.raises(InputError, match=r"started without its jar.*--jars.*register"):
                enable(client)
            register(client)
        client.range(3).write.format("lance").mode("append").save(uri)
        assert client.read.format("lance").load(uri).count() == 3
    assert lance.dataset(uri).count_rows() == 3


# By SQL's own servers


def run(command: Sequence[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-8_000:]
    return done.stdout


def script(folder: Path) -> Path:
    place = folder / "statements.sql"
    place.write_text("".join(f"{text};\n" for text in (*STATEMENTS, *QUESTIONS)), encoding="utf-8")
    return place


def test_statements_by_spark_sql(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    conf = arguments(tmp_path, {**settings(lake), "spark.sql.catalogImplementation": "in-memory"})
    command = [str(SPARK_HOME / "bin" / "spark-sql"), "--master", "local[2]", "-S", *conf, "-f", str(script(tmp_path))]
    lines = run(command, tmp_path).splitlines()
    assert [tuple(line.split("\t")) for line in lines[-len(QUESTIONS) :]] == [*QUESTIONS.values()]
    check(lake)


@pytest.mark.slow
def test_statements_by_a_thrift_server(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    beeline = [str(SPARK_HOME / "bin" / "beeline"), "--silent=true", "--outputformat=tsv2", "--showHeader=false"]
    with thrift_server(tmp_path, settings(lake)) as server:
        lines = run([*beeline, "-u", server.url, "-f", str(script(tmp_path))], tmp_path).splitlines()
        left = workers(server)
        assert left
    rows = [tuple(line.split("\t")) for line in lines if line.strip()]
    assert rows[-len(QUESTIONS) :] == [*QUESTIONS.values()]
    check(lake)
    _, alive = psutil.wait_procs(left, timeout=60)
    assert not alive
