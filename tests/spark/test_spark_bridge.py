"""The bridge: the jar's own ways, beside what `test_spark_source` asks of it as of the Python source."""

from __future__ import annotations

import datetime as dt
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from decimal import Decimal
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lance
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.errors import PySparkException

from lance_core.errors import InputError
from lance_core.spark.bridge import JAR, configure, enable, is_enabled, jar_path
from lance_core.spark.bridge.frames import Connection
from lance_core.spark.bridge.predicates import to_sql
from lance_core.spark.bridge.worker import IDLE_SECONDS
from lance_core.spark.options import NO_TABLE
from tests.spark.conftest import needs_bridge, needs_classic

pytestmark = [pytest.mark.spark, needs_bridge, needs_classic]
ROOT = Path(__file__).resolve().parents[2]

FIRST = dt.datetime(1, 1, 1)


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    assert is_enabled(spark)
    return spark


@pytest.fixture
def uri(tmp_path: Path) -> str:
    where = str(tmp_path / "t.lance")
    table = pa.table({"id": pa.array(range(20_000)), "text": [f"t{i}" for i in range(20_000)]})
    lance.write_dataset(table, where, max_rows_per_file=5_000)
    return where


def _workers(parent: psutil.Process | None = None) -> list[psutil.Process]:
    found = []
    for process in (parent or psutil.Process()).children(recursive=True):
        try:
            if "lance_core.spark.bridge.worker" in process.cmdline():
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_the_jar_is_what_its_sources_make(tmp_path: Path) -> None:
    spec = spec_from_file_location("jvm_build", ROOT / "jvm" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    build = module_from_spec(spec)
    spec.loader.exec_module(build)
    javac = build.find_javac()
    if pyspark.__version__ != build.SPARK:
        pytest.skip(f"the jar is built against Spark {build.SPARK}")
    if javac is None:
        pytest.skip(f"no javac of JDK {build.JDK}")
    assert build.build(tmp_path, javac, build.spark_jars()).read_bytes() == Path(jar_path()).read_bytes(), "run `make jvm`"
    assert Path(jar_path()).stat().st_size < 120_000


LEAVES: dict[str, tuple[pa.DataType, Callable[[random.Random], Any]]] = {
    "boolean": (pa.bool_(), lambda by: by.random() < 0.5),
    "byte": (pa.int8(), lambda by: by.randint(-128, 127)),
    "short": (pa.int16(), lambda by: by.randint(-(2**15), 2**15 - 1)),
    "int": (pa.int32(), lambda by: by.randint(-(2**31), 2**31 - 1)),
    "long": (pa.int64(), lambda by: by.randint(-(2**63), 2**63 - 1)),
    "float": (pa.float32(), lambda by: by.choice([0.5, -0.25, float("inf")])),
    "double": (pa.float64(), lambda by: by.random()),
    "text": (pa.string(), lambda by: by.choice(["", "a", "ü\U0001f600", "long " * 9])),
    "bytes": (pa.binary(), lambda by: by.randbytes(by.randint(0, 5))),
    "date": (pa.date32(), lambda by: dt.date(2000, 1, 1) + dt.timedelta(by.randint(0, 9999))),
    "time": (pa.timestamp("us"), lambda by: FIRST + dt.timedelta(by.randint(0, 9999))),
    "decimal": (pa.decimal128(20, 3), lambda by: Decimal(by.randint(-(10**9), 10**9)).scaleb(-3)),
}


def _made(by: random.Random, depth: int) -> tuple[pa.DataType, Callable[[], Any]]:
    """A type, and what makes values of it; a quarter of them are null at every level."""

    def maybe(make: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: None if by.random() < 0.25 else make()

    kind = by.choice(["struct", "list", "map"]) if depth and by.random() < 0.8 else "leaf"
    if kind == "leaf":
        data_type, make = by.choice([*LEAVES.values()])
        return data_type, maybe(lambda: make(by))
    if kind == "struct":
        parts = [_made(by, depth - 1) for _ in range(by.randint(1, 3))]
        named = pa.struct([(f"p{number}", part[0]) for number, part in enumerate(parts)])
        return named, maybe(lambda: {f"p{number}": part[1]() for number, part in enumerate(parts)})
    item, make_item = _made(by, depth - 1)
    if kind == "list":
        return pa.list_(item), maybe(lambda: [make_item() for _ in range(by.randint(0, 3))])
    return pa.map_(pa.string(), item), maybe(lambda: [(f"k{number}", make_item()) for number in range(by.randint(0, 2))])


@pytest.mark.parametrize("seed", range(3))
def test_nested_values_arrive_in_columns_as_the_official_library_reads_them(session: Any, tmp_path: Path, seed: int) -> None:
    by = random.Random(seed)
    made = [*LEAVES.values()] if not seed else []
    columns = [(found, lambda make=make: None if by.random() < 0.3 else make(by)) for found, make in made]  # type: ignore[misc]
    columns += [_made(by, 3) for _ in range(8)]
    rows = 700
    arrays = [pa.array([make() for _ in range(rows)], found) for found, make in columns]
    full = pa.array(range(rows), pa.int64())
    table = pa.table([full, *arrays], names=["id", *(f"c{number}" for number in range(len(arrays)))])
    lance.write_dataset(table, str(tmp_path / "t.lance"), max_rows_per_file=300, data_storage_version="2.2")
    frame = session.read.format("lance").option("batchSize", "64").load(str(tmp_path / "t.lance"))
    for name, part in (("all", frame), ("some", frame.where("id % 3 = 1"))):
        part.write.parquet(str(tmp_path / name))
        found = pq.read_table(tmp_path / name).sort_by("id")
        expected = lance.dataset(str(tmp_path / "t.lance")).to_table()
        if name == "some":
            expected = expected.filter(pa.array([number % 3 == 1 for number in range(rows)]))
        assert found.column_names == expected.column_names
        for column in found.column_names:
            assert found[column].to_pylist() == expected[column].to_pylist(), (column, expected.schema.field(column).type)


def test_the_plan_is_columnar_and_has_true_sizes(session: Any, uri: str) -> None:
    frame = session.read.format("lance").load(uri)
    plan = frame.where("id > 10")._jdf.queryExecution().executedPlan().toString()
    assert "ColumnarToRow" in plan
    assert "BatchScan lance" in plan
    size = frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()
    assert 20_000 * 8 < size < 20_000 * 200


def test_count_and_limit_read_no_rows_that_are_not_needed(session: Any, uri: str) -> None:
    lance.dataset(uri).delete("id % 3 = 0")
    expected = lance.dataset(uri).count_rows()
    data = Path(uri, "data")
    frame = session.read.format("lance").load(uri)
    hidden = data.with_name("hidden")
    data.rename(hidden)  # what reads a row now fails
    try:
        assert frame.count() == expected
    finally:
        hidden.rename(data)
    assert [row["id"] for row in frame.limit(3).collect()] == [1, 2, 4]
    assert frame.where("id < 0").count() == 0
    assert session.read.format("lance").option("filter", "id < 10").load(uri).count() == 6


def _leaves(frame: Any) -> list[Any]:
    """The scans of a query that has run, whatever Spark has made of its plan meanwhile."""
    plan = frame._jdf.queryExecution().executedPlan()
    if plan.getClass().getSimpleName() == "AdaptiveSparkPlanExec":
        plan = plan.executedPlan()
    found, waiting = [], [plan]
    while waiting:
        node = waiting.pop()
        name = node.getClass().getSimpleName()
        children = node.children()
        waiting += [children.apply(index) for index in range(children.size())]
        if name.endswith("QueryStageExec"):
            waiting.append(node.plan())
        elif name == "BatchScanExec":
            found.append(node)
    return found


def test_parts_of_structs_are_read_alone(session: Any, tmp_path: Path) -> None:
    where = str(tmp_path / "parts.lance")
    inner = pa.struct([("a", pa.string()), ("b", pa.int64())])
    values = [{"x": 1, "y": {"a": "q", "b": 7}}, None, {"x": 3, "y": None}, {"x": None, "y": {"a": None, "b": 8}}]
    lists = [[{"u": 1, "v": 2}, None], [], None, [{"u": None, "v": 3}]]
    table = pa.table(
        {
            "id": [1, 2, 3, 4],
            "p": pa.array(values, pa.struct([("x", pa.int64()), ("y", inner)])),
            "l": pa.array(lists, pa.list_(pa.struct([("u", pa.int64()), ("v", pa.int64())]))),
        }
    )
    lance.write_dataset(table, where, data_storage_version="2.1")
    frame = session.read.format("lance").load(where)
    part = frame.select("id", "p.y.b")
    read = part._jdf.queryExecution().optimizedPlan().collectLeaves().head().schema().simpleString()
    assert "y:struct<b:bigint>" in read
    assert "x:" not in read
    assert [tuple(row) for row in part.orderBy("id").collect()] == [(1, 7), (2, None), (3, None), (4, 8)]
    by_other_part = frame.where("p.x = 3 OR p.y.a = 'q'").select("id", "p.y.b").orderBy("id")
    assert [tuple(row) for row in by_other_part.collect()] == [(1, 7), (3, None)]
    both = frame.selectExpr("id", "p.x", "l.v", "p is null").orderBy("id").collect()
    assert [tuple(row) for row in both] == [
        (1, 1, [2, None], False), (2, None, [], True), (3, 3, None, False), (4, None, [3], False),
    ]  # fmt: skip
    assert [row["p"] and row["p"].asDict(True) for row in frame.orderBy("id").collect()] == values


def test_what_the_other_side_of_a_join_holds_restricts_the_scan(session: Any, uri: str) -> None:
    few = session.createDataFrame([(5, "a"), (7_000, "b"), (7_001, "c")], "id long, kind string")
    few.write.mode("overwrite").parquet(uri + ".few")
    wide = session.read.format("lance").load(uri)
    for _ in range(2):  # the second time the plan of the first has told its scan what to leave out
        joined = wide.join(session.read.parquet(uri + ".few").where("kind <> 'a'"), "id")
        assert sorted(row["id"] for row in joined.collect()) == [7_000, 7_001]
        scans = [scan for scan in _leaves(joined) if "lance" in scan.toString()]
        assert "dynamicpruning" in scans[0].toString()
        assert scans[0].metrics().apply("numOutputRows").value() == 2
        assert wide.count() == 20_000
        assert wide.selectExpr("sum(id)").collect()[0][0] == sum(range(20_000))


def test_a_longer_list_of_values_is_left_to_the_join(session: Any, uri: str) -> None:
    many = session.range(0, 4_000, 2).selectExpr("id", "id % 3 as kind")
    many.write.mode("overwrite").parquet(uri + ".many")
    wide = session.read.format("lance").load(uri)
    joined = wide.join(session.read.parquet(uri + ".many").where("kind < 2"), "id")
    assert joined.count() == sum(1 for number in range(0, 4_000, 2) if number % 3 < 2)


def test_a_table_that_is_read_twice_in_a_query_is_read_once(session: Any, uri: str) -> None:
    session.read.format("lance").load(uri).createOrReplaceTempView("twice")
    query = session.sql(
        "WITH c AS (SELECT id % 7 AS k, sum(id) AS s FROM twice GROUP BY 1) SELECT count(*) FROM c a JOIN c b ON a.s = b.s"
    )
    assert query.collect()[0][0] == 7
    assert "ReusedExchange" in query._jdf.queryExecution().executedPlan().toString()


def test_blobs_are_read_as_bytes_or_as_where_they_are(session: Any, tmp_path: Path) -> None:
    """As by the Python source: those of the first kind as bytes, those of the second as their bytes or the place of them."""
    first, second = str(tmp_path / "first.lance"), str(tmp_path / "second.lance")
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    values = [b"abc" * 1000, None, b""]
    columns = [pa.array([1, 2, 3]), pa.array(values, pa.large_binary())]
    lance.write_dataset(pa.table(columns, schema=pa.schema([("id", pa.int64()), field])), first, data_storage_version="2.1")
    found = session.read.format("lance").load(first).orderBy("id").collect()
    assert [row["b"] if row["b"] is None else bytes(row["b"]) for row in found] == values
    session.createDataFrame([(4, bytearray(b"new"))], "id long, b binary").write.format("lance").mode("append").save(first)
    assert [blob.read() for blob in lance.dataset(first).take_blobs("b", indices=[0, 3])] == [values[0], b"new"]
    table = pa.table(
        [pa.array([1, 2]), lance.blob_array([b"abc", None])], pa.schema([("id", pa.int64()), lance.blob_field("b")])
    )
    lance.write_dataset(table, second, data_storage_version="2.2")
    rows = session.read.format("lance").load(second).orderBy("id").selectExpr("b.data", "b is null").collect()
    assert [(row[0] and bytes(row[0]), row[1]) for row in rows] == [(b"abc", False), (None, True)]


def test_a_worker_that_is_killed_costs_a_try(session: Any, uri: str, tmp_path: Path) -> None:
    frame = session.read.format("lance").load(uri)
    assert frame.selectExpr("sum(id)").collect()[0][0] == sum(range(20_000))
    stop = threading.Event()
    killed: list[int] = []

    def kill_the_first() -> None:
        while not stop.is_set() and not killed:
            for process in _workers():
                if process.is_running() and process.cpu_percent(0.02) > 0:
                    os.kill(process.pid, signal.SIGKILL)
                    killed.append(process.pid)
                    return

    wide = frame.repartition(2).selectExpr("id", "repeat(text, 50) as text")
    killer = threading.Thread(target=kill_the_first)
    killer.start()
    try:
        for _ in range(40):
            found = wide.selectExpr("sum(id)", "count(text)").collect()[0]
            assert tuple(found) == (sum(range(20_000)), 20_000)
            if killed:
                break
    finally:
        stop.set()
        killer.join()
    assert killed
    assert frame.selectExpr("sum(id)").collect()[0][0] == sum(range(20_000))


def test_a_client_that_closes_early_leaves_the_worker_alive(session: Any, uri: str) -> None:
    frame = session.read.format("lance").option("batchSize", 10).load(uri)
    before = {process.pid for process in _workers()}
    for _ in range(5):
        assert len(frame.where("id >= 0").limit(5).collect()) == 5
    after = {process.pid for process in _workers()}
    assert len(after - before) <= 2, "a worker was started for each query"


def test_secrets_stay_out_of_arguments_plans_and_errors(session: Any, uri: str) -> None:
    secret = "s3cr3t-of-a-store"
    frame = session.read.format("lance").option("aws_secret_access_key", secret).load(uri)
    assert frame.where("id > 5").count() == 19_994
    assert secret not in frame.where("id > 5")._jdf.queryExecution().toString()
    for process in _workers():
        assert secret not in " ".join(process.cmdline()) + json.dumps(process.environ())
    with pytest.raises(Exception, match="no column 'nope'") as failed:
        session.read.format("lance").option("aws_secret_access_key", secret).option("columns", "nope").load(uri)
    assert secret not in str(failed.value)


@pytest.mark.parametrize(
    "said", ["[DATA_SOURCE_NOT_FOUND] lance", f"[PYTHON_DATA_SOURCE_ERROR] InputError: {NO_TABLE}", "[OTHER] no path"]
)
def test_a_connect_client_is_told_what_to_do(said: str) -> None:
    """Of a server that does not know the source, has the Python source, or somebody else's jar."""

    class Reader:
        def format(self, name: str) -> Reader:
            return self

        def load(self) -> Any:
            raise PySparkException(said)

    with pytest.raises(InputError, match="--jars"):
        enable(SimpleNamespace(read=Reader()))


def test_configure_keeps_what_was_said() -> None:
    class Builder:
        def __init__(self) -> None:
            self._options = {"spark.jars": "a.jar", "spark.driver.extraJavaOptions": "-Dx=1"}

        def config(self, name: str, value: str) -> Builder:
            self._options[name] = value
            return self

    told = configure(configure(Builder()))._options
    assert told["spark.jars"].split(",") == ["a.jar", jar_path()]
    assert told["spark.driver.extraJavaOptions"].startswith("-Dx=1 -Darrow.")
    assert told["spark.driver.extraJavaOptions"].count("unsafe") == 1
    assert Path(jar_path()).name == JAR


@pytest.fixture
def worker(tmp_path: Path) -> Any:
    process = subprocess.Popen(
        [sys.executable, "-m", "lance_core.spark.bridge.worker"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env={**os.environ, "TMPDIR": "/tmp"},
    )  # fmt: skip
    assert process.stdout is not None
    yield process, json.loads(process.stdout.readline())
    process.kill()
    process.wait()


def _request(place: str, body: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(30)
        peer.connect(place)
        peer.sendall(body)
        peer.shutdown(socket.SHUT_WR)
        found = b""
        while chunk := peer.recv(1 << 16):
            found += chunk
        return found


def test_a_worker_by_itself(worker: Any) -> None:
    process, ready = worker
    place = Path(ready["socket"])
    assert place.parent.stat().st_mode & 0o777 == 0o700
    listening = [item for item in psutil.Process(process.pid).net_connections() if item.status == "LISTEN"]
    assert not listening, "a port that others on this machine can reach"
    for body in (
        b"",
        b"\x00",
        struct.pack(">i", -1),
        struct.pack(">i", 2**31 - 1),
        struct.pack(">i", 2) + b"[]",
        b"GET / HTTP",
    ):
        assert _request(str(place), body) == b""
    unknown = _request(str(place), struct.pack(">i", 15) + b'{"do": "nope"} ')
    assert unknown[:1] == b"E"
    assert b"no request" in unknown
    time.sleep(IDLE_SECONDS + 0.5)  # it has given its memory back, and answers as before
    absent = json.dumps({"do": "open", "options": {"path": "/no/such/t.lance"}}).encode()
    assert b"NotFound" in _request(str(place), struct.pack(">i", len(absent)) + absent)
    process.stdin.close()
    assert process.wait(30) == 0
    assert not place.parent.exists()


def test_a_stream_without_its_trailer_is_no_answer() -> None:
    batch = pa.record_batch({"a": pa.array(range(10))})
    left, right = socket.socketpair()
    with left, right:
        out = left.makefile("wb")
        with pa.ipc.new_stream(out, batch.schema) as stream:
            stream.write_batch(batch)
        out.flush()
        left.shutdown(socket.SHUT_WR)
        with pytest.raises(EOFError):
            list(Connection(right).batches())


def test_an_error_behind_the_first_batch_is_the_trailer() -> None:
    batch = pa.record_batch({"a": pa.array(range(10))})

    def failing() -> Any:
        yield batch
        raise ValueError("behind the first")

    left, right = socket.socketpair()
    with left, right:
        Connection(left).send_batches(batch.schema, failing())
        left.shutdown(socket.SHUT_WR)
        source = right.makefile("rb")
        assert source.read(1) == b"A"
        assert pa.ipc.open_stream(source).read_all().num_rows == 10
        assert source.read(1) == b"E"
        assert b"behind the first" in source.read()


def test_a_driver_that_is_killed_leaves_no_worker(uri: str, tmp_path: Path) -> None:
    program = (
        "import sys, time\n"
        "from pyspark.sql import SparkSession\n"
        "from lance_core.spark.bridge import configure\n"
        "b = SparkSession.builder.master('local[2]').config('spark.ui.enabled', 'false')\n"
        "s = configure(b.config('spark.driver.host', '127.0.0.1')).getOrCreate()\n"
        "print(s.read.format('lance').load(sys.argv[1]).where('id > 9').count(), flush=True)\n"
        "time.sleep(600)\n"
    )
    driver = subprocess.Popen(
        [sys.executable, "-c", program, uri], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT
    )
    assert driver.stdout is not None
    try:
        assert driver.stdout.readline().strip() == b"19990"
        workers = _workers(psutil.Process(driver.pid))
        assert workers
        for process in psutil.Process(driver.pid).children(recursive=True):
            if "java" in process.name():
                process.kill()
        _, alive = psutil.wait_procs(workers, timeout=60)
        assert not alive
    finally:
        driver.kill()
        driver.wait()


def _test(op: str, column: str) -> dict[str, Any]:
    return {"op": op, "column": [column], "values": []}


@pytest.mark.parametrize(
    ("described", "sql"),
    [
        ({"op": "=", "column": ["a"], "values": [{"type": "integer", "value": 3}]}, "`a` = 3"),
        ({"op": "<>", "column": ["s", "k"], "values": [{"type": "integer", "value": 3}]}, "NOT (`s`.`k` = 3)"),
        ({"op": "IN", "column": ["t"], "values": [{"type": "string", "value": "x'y"}]}, "`t` IN ('x''y')"),
        ({"op": ">", "column": ["d"], "values": [{"type": "date", "value": 0}]}, "`d` > DATE '1970-01-01'"),
        ({"op": ">", "column": ["d"], "values": [{"type": "date", "value": 2**31 - 1}]}, None),
        ({"op": ">", "column": ["f"], "values": [{"type": "integer", "value": 1}]}, None),
        ({"op": "STARTS_WITH", "column": ["t"], "values": [{"type": "string", "value": "x"}]}, None),
        ({"op": "OR", "of": [_test("IS_NULL", "a"), _test("IS_NULL", "nope")]}, None),
        ({"op": "AND", "of": [_test("IS_NULL", "a"), _test("IS_NOT_NULL", "t")]}, "(`a` IS NULL) AND (`t` IS NOT NULL)"),
    ],
)  # fmt: skip
def test_predicates(described: Any, sql: str | None) -> None:
    schema = pa.schema(
        [
            ("a", pa.int64()),
            ("t", pa.string()),
            ("d", pa.date32()),
            ("f", pa.float64()),
            ("s", pa.struct([("k", pa.int32())])),
        ]
    )
    assert to_sql(described, schema) == sql


def test_filters_never_change_an_answer(session: Any, spark: Any, tmp_path: Path) -> None:
    """Random conditions over odd values: through the bridge, and by Spark over its own Parquet of the same rows."""
    rng = np.random.default_rng(20)
    numbers = pa.array([None if x < 0 else int(x) for x in rng.integers(-2, 12, 300)], pa.int32())
    texts = pa.array([None if x == 0 else "ab'`%_"[: int(x)] for x in rng.integers(0, 7, 300)])
    dates = pa.array([None if x == 0 else int(x) for x in rng.integers(0, 9, 300)], pa.int32()).cast(pa.date32())
    floats = pa.array([float("nan") if x > 0.9 else x for x in rng.random(300)])
    table = pa.table({"n": numbers, "t": texts, "d": dates, "f": floats})
    uri, parquet = str(tmp_path / "t.lance"), str(tmp_path / "t.parquet")
    lance.write_dataset(table, uri, max_rows_per_file=100)
    import pyarrow.parquet as pq

    pq.write_table(table, parquet)
    atoms = [
        "n = 3", "n <> 3", "n > 5", "n <= 2", "n in (1, 2, null)", "n not in (1, 2)", "n is null", "n is not null",
        "t = 'ab'", "t like 'ab%'", "t in ('a', \"ab'\")", "d > date'1970-01-04'", "d <> date'1970-01-02'", "f > 0.5",
        "f = f", "n <=> null", "t >= 'ab'", "not (n = 3)", "n between 2 and 6",
    ]  # fmt: skip
    frame, judge = session.read.format("lance").load(uri), spark.read.parquet(parquet)
    for _ in range(30):
        one, two, three = rng.choice(atoms, 3)
        condition = f"({one} {rng.choice(['and', 'or'])} {two}) {rng.choice(['and', 'or', 'and not', 'or not'])} ({three})"
        columns = ("n", "t", "d", "f")
        found, expected = (sorted(map(repr, each.where(condition).select(*columns).collect())) for each in (frame, judge))
        assert found == expected, condition


def test_a_write_that_fails_in_python_says_why(session: Any, tmp_path: Path) -> None:
    where = str(tmp_path / "w.lance")
    lance.write_dataset(pa.table({"id": pa.array([1], pa.int8())}), where)
    with pytest.raises(Exception, match="a value of int64 cannot be converted to int8"):
        session.range(1000, 3000).write.format("lance").mode("append").save(where)
    assert lance.dataset(where).count_rows() == 1
    until = time.monotonic() + 60
    while len(list(Path(where, "data").glob("*"))) > 1 and time.monotonic() < until:
        time.sleep(0.05)
    assert len(list(Path(where, "data").glob("*"))) == 1
