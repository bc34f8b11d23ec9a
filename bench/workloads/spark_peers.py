"""Whose sources are timed in one Spark session beside ours: Spark's Parquet, and those whose jars are there.

`LANCE_BENCH_JARS` (comma-separated) brings them: lance-spark's, delta-spark's, iceberg-spark's runtime. Each is known by a
class that only it has; ours is asked by its class, because with lance-spark's jar the name `lance` is that of its source.
"""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.workloads.spark import session_builder

OURS, PARQUET, LANCE_SPARK, DELTA, ICEBERG = "lance_core", "parquet", "lance-spark", "delta", "iceberg"


@dataclass(frozen=True)
class Peer:
    """A source: its format, a class of its jar, the extension of its statements, how its first rows are saved."""

    format: str
    known_by: str | None = None
    extension: str | None = None
    first_mode: str = "append"


PEERS: Mapping[str, Peer] = {
    OURS: Peer("lance.DefaultSource"),
    PARQUET: Peer("parquet"),
    LANCE_SPARK: Peer("org.lance.spark.LanceSparkDataSource", "org.lance.spark.LanceSparkDataSource", None, "errorifexists"),
    DELTA: Peer("delta", "io.delta.sql.DeltaSparkSessionExtension", "io.delta.sql.DeltaSparkSessionExtension"),
    ICEBERG: Peer(
        "iceberg",
        "org.apache.iceberg.spark.SparkCatalog",
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    ),
}


@dataclass(frozen=True)
class Peers:
    """A session with the sources that are there, and where each keeps its tables."""

    spark: Any
    folder: Path
    names: Sequence[str]

    def place(self, name: str, kind: str) -> str:
        """Of a table of this kind of rows: a path, or a name in the catalog that Iceberg's tables are in."""
        return f"ice.bench.{kind}" if name == ICEBERG else str(self.folder / f"{kind}.{name}.lance")

    def table(self, name: str, kind: str) -> str:
        """As statements name it; not of sources whose tables are in no catalog here."""
        return {OURS: f"lake.{kind}", DELTA: kind, ICEBERG: self.place(name, kind)}[name]

    def load(self, name: str, kind: str) -> Any:
        """Its rows."""
        return self.spark.read.format(PEERS[name].format).load(self.place(name, kind))

    def save(self, frame: Any, name: str, kind: str, *, is_there: bool) -> None:
        """The rows of a frame behind those of a table, or as a new one."""
        place = self.place(name, kind)
        if name == ICEBERG:
            writer = frame.writeTo(place)
            (writer.append if is_there else writer.create)()
            return
        mode = "append" if is_there else PEERS[name].first_mode
        frame.write.format(PEERS[name].format).mode(mode).save(place)

    def clean(self, name: str, kind: str) -> None:
        """No such table any more."""
        if name == ICEBERG:
            self.spark.sql(f"DROP TABLE IF EXISTS {self.place(name, kind)} PURGE")
        else:
            shutil.rmtree(self.place(name, kind), ignore_errors=True)

    def create_as(self, name: str, kind: str, query: str) -> None:
        """The rows of a query as a new table, by a statement."""
        table = self.table(name, kind)
        self.spark.sql(f"DROP TABLE IF EXISTS {table}")
        if name == DELTA:
            shutil.rmtree(self.folder / "warehouse" / kind, ignore_errors=True)
        using = "" if name == OURS else f"USING {name}"
        self.spark.sql(f"CREATE TABLE {table} {using} AS {query}")


def open_peers(folder: Path) -> Peers:
    """A session of two cores with all jars that are named."""
    from lance_core.spark.bridge import configure

    jars = [jar for jar in os.environ.get("LANCE_BENCH_JARS", "").split(",") if jar]
    names = [name for name, peer in PEERS.items() if peer.known_by is None or _has(jars, peer.known_by)]
    settings = {
        "spark.ui.showConsoleProgress": "false",
        "spark.jars": ",".join(jars),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.extensions": ",".join(PEERS[name].extension or "" for name in names if PEERS[name].extension),
    }
    if DELTA in names:
        settings["spark.sql.catalog.spark_catalog"] = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    if LANCE_SPARK in names:  # its paths are tables of a catalog of this name
        settings["spark.sql.catalog.lance"] = "org.lance.spark.LanceCatalog"
    if ICEBERG in names:
        settings["spark.sql.catalog.ice"] = "org.apache.iceberg.spark.SparkCatalog"
        settings["spark.sql.catalog.ice.type"] = "hadoop"
        settings["spark.sql.catalog.ice.warehouse"] = str(folder / "ice")
    builder = session_builder()
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = configure(builder, catalogs={"lake": {"uri": str(folder / "lake")}}).getOrCreate()
    return Peers(spark, folder, names)


def _has(jars: Sequence[str], name: str) -> bool:
    entry = name.replace(".", "/") + ".class"
    return any(entry in zipfile.ZipFile(jar).namelist() for jar in jars)
