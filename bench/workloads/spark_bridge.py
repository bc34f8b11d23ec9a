"""`format("lance")` with the bridge against Spark's own Parquet and whoever else is there (`spark_peers`), in one session.

Counted is the processor time of this process, its JVM and all workers, which other programs of the machine hardly change; a
cold query is the elapsed time of a new process with a new JVM. Needs Java 17.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from bench.measure import Case
from bench.workloads.mixed import make_table
from bench.workloads.spark import FILES
from bench.workloads.spark_peers import DELTA, ICEBERG, LANCE_SPARK, OURS, PARQUET, Peers, open_peers

FEW = 1_000
ROUNDS = 5
COLD_ROUNDS = 3
SUMS = (
    "sum(id)",
    "sum(value)",
    "sum(small)",
    "sum(length(name))",  # max of a text makes Spark sort: its own cost, which hides the reading
    "sum(length(category))",
    "max(time)",
    "sum(maybe)",
    "sum(key)",
)


def cases(folder: Path, scale: float) -> Iterator[Case]:
    """Reads, appends, edits, first queries."""
    rows = int(5_000_000 * scale)
    peers = open_peers(folder)
    try:
        written = _write(peers, rows)
        yield from _reads(peers, written)
        yield from _appends(peers)
        yield from _edits(peers, rows)
    finally:
        peers.spark.stop()
    yield from _cold(folder, [name for name in (OURS, PARQUET) if name in peers.names])


def processor_time() -> float:
    """Seconds of this process, its JVM and all that they began, of those that have ended as well."""
    total = 0.0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        try:
            used = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += used.user + used.system + used.children_user + used.children_system
    return total


def _write(peers: Peers, rows: int) -> Mapping[str, Sequence[str]]:
    """The same rows for each contender: kind of table -> who has it."""
    rng = np.random.default_rng(2)
    table = make_table(rows).append_column("key", pa.array(rng.integers(0, 1_000_000, rows)))
    few = pa.table({"key": pa.array(rng.permutation(1_000_000)[:FEW]), "word": pa.array([f"w{i % 7}" for i in range(FEW)])})
    nested = pa.table(
        {
            "id": pa.array(range(rows // 10), pa.int64()),
            "parts": pa.array([{"x": i, "words": [f"w{i % 100}", "b"]} for i in range(rows // 10)]),
        }
    )
    for kind, content in {"table": table, "few": few, "nested": nested}.items():
        source = peers.folder / "source" / kind
        source.mkdir(parents=True, exist_ok=True)
        step = -(-content.num_rows // FILES)
        for number in range(FILES):
            pq.write_table(content.slice(number * step, step), source / f"part-{number}.parquet")
    vectors = peers.spark.range(rows // 25).selectExpr("id", "transform(sequence(1, 128), i -> cast(i * id as float)) v")
    written: dict[str, list[str]] = {}
    for kind in ("table", "few", "nested", "vectors"):
        for name in peers.names:
            if name == LANCE_SPARK and kind in ("nested", "vectors"):
                continue  # it fails on them
            frame = vectors if kind == "vectors" else peers.spark.read.parquet(str(peers.folder / "source" / kind))
            try:
                peers.save(frame, name, kind, is_there=False)
            except Exception as error:
                if name in (OURS, PARQUET):
                    raise
                print(f"{name} is left out of {kind}: {error}", file=sys.stderr)
            else:
                written.setdefault(kind, []).append(name)
    return written


def _reads(peers: Peers, written: Mapping[str, Sequence[str]]) -> Iterator[Case]:
    load = peers.load

    def joined(name: str) -> Any:
        return load(name, "table").join(load(name, "few"), "key").groupBy("word").sum("value")

    def nothing(frame: Any) -> None:
        frame.write.format("noop").mode("overwrite").save()

    ways: dict[str, tuple[str, Callable[[str], object]]] = {
        "scan 8 columns": ("table", lambda name: nothing(load(name, "table"))),
        "scan 2 of 8": ("table", lambda name: nothing(load(name, "table").select("id", "name"))),
        "sums over 8": ("table", lambda name: load(name, "table").selectExpr(*SUMS).collect()),
        "sums over 2 of 8": ("table", lambda name: load(name, "table").selectExpr("sum(id)", "sum(value)").collect()),
        "filter of 1 %": ("table", lambda name: nothing(load(name, "table").where("small = 7"))),
        "group by": ("table", lambda name: load(name, "table").groupBy("category").sum("value", "small").collect()),
        "join with 1,000 rows": ("table", lambda name: joined(name).collect()),
        "count": ("table", lambda name: load(name, "table").count()),
        "min and max": ("table", lambda name: load(name, "table").selectExpr("min(id)", "max(id)").collect()),
        "limit 10": ("table", lambda name: load(name, "table").limit(10).collect()),
        "top 10": ("table", lambda name: load(name, "table").orderBy("value").limit(10).collect()),
        "nested": ("nested", lambda name: nothing(load(name, "nested"))),
        "a part of a struct": ("nested", lambda name: load(name, "nested").selectExpr("sum(parts.x)").collect()),
        "vectors": ("vectors", lambda name: nothing(load(name, "vectors"))),
    }
    for _ in range(3):  # the JVM compiles what it runs often, for many seconds
        for title in ("scan 8 columns", "group by", "join with 1,000 rows", "filter of 1 %"):
            for name in written["table"]:
                ways[title][1](name)
    for title, (kind, act) in ways.items():
        yield _case(title, {name: _bound(act, name) for name in written[kind]})
    limit = {name: _bound(ways["limit 10"][1], name) for name in written["table"]}
    yield _case("limit 10, elapsed", limit, clock=time.perf_counter)


def _bound(act: Callable[[str], object], name: str) -> Callable[[], object]:
    return lambda: act(name)


def _appends(peers: Peers) -> Iterator[Case]:
    there: dict[str, bool] = {}

    def append(frame: Any, name: str) -> None:
        peers.save(frame, name, "append", is_there=there[name])
        there[name] = True

    def clean(name: str) -> None:
        peers.clean(name, "append")
        there[name] = False

    def appending(title: str, frame: Any, before: Callable[[str], None] | None = clean) -> Case:
        return _case(title, {name: _bound(lambda it: append(frame, it), name) for name in peers.names}, before=before)

    source = peers.spark.read.parquet(str(peers.folder / "source" / "table"))
    cached = source.cache()
    cached.count()
    yield appending("append a cached DataFrame", source)
    cached.unpersist()
    yield appending("append from Parquet", source)
    small = peers.spark.createDataFrame([(i, f"n{i}") for i in range(100)], "id long, name string").coalesce(1).cache()
    small.count()
    for name in peers.names:
        clean(name)
    yield appending("append 100 rows", small, None)


def _edits(peers: Peers, rows: int) -> Iterator[Case]:
    changes = rows // 100
    peers.spark.range(0, changes).selectExpr(
        f"id * 50 + cast(id % 2 as int) * {rows} as id", "0.5d as value", "7 as small"
    ).createOrReplaceTempView("changes")
    query = f"SELECT id, value, small FROM parquet.`{peers.folder}/source/table`"
    statements = {
        "DELETE 5 %": "DELETE FROM {} WHERE id % 20 = 3",
        "DELETE 5 % by a plain filter": "DELETE FROM {} WHERE small < 5",
        "UPDATE 5 %": "UPDATE {} SET value = value + 1 WHERE small < 5",
        "MERGE 1 %": "MERGE INTO {} t USING changes c ON t.id = c.id WHEN MATCHED THEN UPDATE SET t.value = c.value "
        "WHEN NOT MATCHED THEN INSERT (id, value, small) VALUES (c.id, c.value, c.small)",
    }
    names = [name for name in (OURS, DELTA, ICEBERG) if name in peers.names]
    for title, statement in statements.items():

        def run(name: str, text: str = statement) -> None:
            peers.spark.sql(text.format(peers.table(name, "edits")))

        yield _case(
            title,
            {name: _bound(run, name) for name in names},
            before=lambda name: peers.create_as(name, "edits", query),
        )


def _cold(folder: Path, names: Sequence[str]) -> Iterator[Case]:
    """The first query of a new process, its JVM's start included, which is the same for all."""

    def first(name: str, query: str) -> None:
        command = [sys.executable, "-m", "bench.workloads.spark_bridge", str(folder), name, query]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    for query in FIRST_QUERIES:
        contenders = {name: _bound(lambda it, text=query: first(it, text), name) for name in names}
        title = f"cold, elapsed: {query}"
        yield Case(f"{title}", contenders, repeats=COLD_ROUNDS, clock=time.perf_counter)


FIRST_QUERIES: Mapping[str, Callable[[Any], object]] = {
    "scan 8 columns": lambda frame: frame.write.format("noop").mode("overwrite").save(),
    "count": lambda frame: frame.count(),
}


def _case(
    title: str,
    contenders: Mapping[str, Callable[[], object]],
    *,
    before: Callable[[str], None] | None = None,
    clock: Callable[[], float] = processor_time,
) -> Case:
    return Case(title, contenders, before=before, repeats=ROUNDS, clock=clock)


if __name__ == "__main__":
    _place, _name, _query = sys.argv[1:]
    FIRST_QUERIES[_query](open_peers(Path(_place)).load(_name, "table"))
