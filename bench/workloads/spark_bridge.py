"""`format("lance")` with the bridge against Spark's own Parquet and whoever else is there, in one session.

Counted is the processor time of this process, its JVM and all workers, which other programs of the machine hardly change.
Jars of others come by `LANCE_BENCH_JARS` (comma-separated): with lance-spark's, reads and appends are timed with its source
as well, with delta-spark's the edits. Needs Java 17.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from bench.measure import Case
from bench.workloads.mixed import make_table
from bench.workloads.spark import FILES, session_builder

OURS = "lance.DefaultSource"
"""The bridge by its class: with lance-spark's jar, `lance` is the name of its source."""
THEIRS, DELTA = "org.lance.spark.LanceSparkDataSource", "io.delta.sql.DeltaSparkSessionExtension"
FRESH = {"lance_core": "append", "parquet": "append", "lance-spark": "errorifexists"}
"""The mode that makes a table where none is."""
FEW = 1_000
ROUNDS = 5


def cases(folder: Path, scale: float) -> Iterator[Case]:
    """Reads, appends, edits."""
    rows = int(5_000_000 * scale)
    jars = [jar for jar in os.environ.get("LANCE_BENCH_JARS", "").split(",") if jar]
    spark = _open_session(jars, folder)
    try:
        places = _write(spark, folder, rows, has_theirs=_has(jars, THEIRS))
        yield from _reads(spark, places)
        yield from _appends(spark, folder, places)
        yield from _edits(spark, folder, rows, has_delta=_has(jars, DELTA))
    finally:
        spark.stop()


def _has(jars: list[str], name: str) -> bool:
    entry = name.replace(".", "/") + ".class"
    return any(entry in zipfile.ZipFile(jar).namelist() for jar in jars)


def _open_session(jars: list[str], folder: Path) -> Any:
    from lance_core.spark.bridge import configure

    builder = (
        session_builder()
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.jars", ",".join(jars))
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
    )
    if _has(jars, DELTA):
        builder = builder.config("spark.sql.extensions", DELTA).config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
    if _has(jars, THEIRS):  # its paths are tables of a catalog of this name
        builder = builder.config("spark.sql.catalog.lance", "org.lance.spark.LanceCatalog")
    return configure(builder, catalogs={"lake": {"uri": str(folder / "lake")}}).getOrCreate()


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


def _write(spark: Any, folder: Path, rows: int, *, has_theirs: bool) -> Mapping[str, Mapping[str, str]]:
    """The same rows for each contender: name -> kind of table -> place."""
    rng = np.random.default_rng(2)
    table = make_table(rows).append_column("key", pa.array(rng.integers(0, 1_000_000, rows)))
    few = pa.table({"key": pa.array(rng.permutation(1_000_000)[:FEW]), "word": pa.array([f"w{i % 7}" for i in range(FEW)])})
    nested = pa.table(
        {
            "id": pa.array(range(rows // 10), pa.int64()),
            "parts": pa.array([{"x": i, "words": [f"w{i % 100}", "b"]} for i in range(rows // 10)]),
        }
    )
    made = {"table": table, "few": few, "nested": nested}
    for kind, content in made.items():
        source = folder / "source" / kind
        source.mkdir(parents=True, exist_ok=True)
        step = -(-content.num_rows // FILES)
        for number in range(FILES):
            pq.write_table(content.slice(number * step, step), source / f"part-{number}.parquet")
    vectors = spark.range(rows // 25).selectExpr("id", "transform(sequence(1, 128), i -> cast(i * id as float)) v")
    names = {"lance_core": OURS, "parquet": "parquet", **({"lance-spark": THEIRS} if has_theirs else {})}
    places: dict[str, dict[str, str]] = {}
    for name, source_class in names.items():
        for kind in (*made, "vectors"):
            frame = vectors if kind == "vectors" else spark.read.parquet(str(folder / "source" / kind))
            if name == "lance-spark" and kind in ("nested", "vectors"):
                continue
            place = str(folder / f"{kind}.{name}.lance")
            try:
                frame.write.format(source_class).mode(FRESH[name]).save(place)
            except Exception as error:
                if name != "lance-spark":
                    raise
                print(f"{name} is left out: {error}", file=sys.stderr)
                break
            places.setdefault(name, {})[kind] = place
    return places


def _reads(spark: Any, places: Mapping[str, Mapping[str, str]]) -> Iterator[Case]:
    formats = {"lance_core": OURS, "parquet": "parquet", "lance-spark": THEIRS}

    def load(name: str, kind: str) -> Any:
        return spark.read.format(formats[name]).load(places[name][kind])

    def joined(name: str) -> Any:
        return load(name, "table").join(load(name, "few"), "key").groupBy("word").sum("value")

    def nothing(frame: Any) -> None:
        frame.write.format("noop").mode("overwrite").save()

    ways: dict[str, tuple[str, Callable[[str], object]]] = {
        "scan 8 columns": ("table", lambda name: nothing(load(name, "table"))),
        "scan 2 of 8": ("table", lambda name: nothing(load(name, "table").select("id", "name"))),
        "sums over 8": (
            "table",
            lambda name: (
                load(name, "table")
                .selectExpr(
                    "sum(id)",
                    "sum(value)",
                    "sum(small)",
                    "max(name)",
                    "max(category)",
                    "max(time)",
                    "sum(maybe)",
                    "sum(key)",
                )
                .collect()
            ),
        ),
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
            for name in places:
                ways[title][1](name)
    for title, (kind, act) in ways.items():
        yield _case(title, {name: _bound(act, name) for name in places if kind in places[name]})
    yield _case("limit 10, elapsed", {name: _bound(ways["limit 10"][1], name) for name in places}, clock=time.perf_counter)


def _bound(act: Callable[[str], object], name: str) -> Callable[[], object]:
    return lambda: act(name)


def _appends(spark: Any, folder: Path, places: Mapping[str, Mapping[str, str]]) -> Iterator[Case]:
    formats = {"lance_core": OURS, "parquet": "parquet", "lance-spark": THEIRS}

    def place(name: str) -> str:
        return str(folder / f"append.{name}.lance")

    def append(frame: Any, name: str) -> None:
        is_there = Path(place(name)).exists()
        frame.write.format(formats[name]).mode("append" if is_there else FRESH[name]).save(place(name))

    def clean(name: str) -> None:
        shutil.rmtree(place(name), ignore_errors=True)

    def appending(title: str, frame: Any, before: Callable[[str], None] | None = clean) -> Case:
        return _case(title, {name: _bound(lambda it: append(frame, it), name) for name in places}, before=before)

    source = spark.read.parquet(str(folder / "source" / "table"))
    cached = source.cache()
    cached.count()
    yield appending("append a cached DataFrame", source)
    cached.unpersist()
    yield appending("append from Parquet", source)
    small = spark.createDataFrame([(i, f"n{i}") for i in range(100)], "id long, name string").coalesce(1).cache()
    small.count()
    for name in places:
        clean(name)
    yield appending("append 100 rows", small, None)


def _edits(spark: Any, folder: Path, rows: int, *, has_delta: bool) -> Iterator[Case]:
    tables = {"lance_core": "lake.edits", **({"delta": "edits"} if has_delta else {})}
    changes = rows // 100
    spark.range(0, changes).selectExpr(
        f"id * 50 + cast(id % 2 as int) * {rows} as id", "0.5d as value", "7 as small"
    ).createOrReplaceTempView("changes")

    def start(name: str) -> None:
        if name == "delta":
            shutil.rmtree(folder / "warehouse" / "edits", ignore_errors=True)
            spark.sql("DROP TABLE IF EXISTS edits")
            spark.sql(f"CREATE TABLE edits USING delta AS SELECT id, value, small FROM parquet.`{folder}/source/table`")
        else:
            spark.sql("DROP TABLE IF EXISTS lake.edits")
            spark.sql(f"CREATE TABLE lake.edits AS SELECT id, value, small FROM parquet.`{folder}/source/table`")

    statements = {
        "DELETE 5 %": "DELETE FROM {} WHERE id % 20 = 3",
        "DELETE 5 % by a plain filter": "DELETE FROM {} WHERE small < 5",
        "UPDATE 5 %": "UPDATE {} SET value = value + 1 WHERE small < 5",
        "MERGE 1 %": "MERGE INTO {} t USING changes c ON t.id = c.id WHEN MATCHED THEN UPDATE SET t.value = c.value "
        "WHEN NOT MATCHED THEN INSERT (id, value, small) VALUES (c.id, c.value, c.small)",
    }
    for title, statement in statements.items():
        yield _case(
            title,
            {name: _bound(lambda it, text=statement: spark.sql(text.format(tables[it])), name) for name in tables},
            before=start,
        )


def _case(
    title: str,
    contenders: Mapping[str, Callable[[], object]],
    *,
    before: Callable[[str], None] | None = None,
    clock: Callable[[], float] = processor_time,
) -> Case:
    return Case(title, contenders, before=before, repeats=ROUNDS, clock=clock)
