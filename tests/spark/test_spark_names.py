"""The source under another name, where a jar has `lance` already; and tables whose path has no scheme on a cluster."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lance
import pyarrow as pa
import pytest

from lance_core.errors import InputError
from lance_core.spark.places import check_place
from tests.spark.conftest import WITH_BRIDGE, needs_classic, needs_sources

pytestmark = pytest.mark.spark


@needs_sources
def test_a_name_of_ones_own(spark: Any, tmp_path: Path) -> None:
    from lance_core.spark.source import register

    uri = str(tmp_path / "t.lance")
    register(spark, name="lance_py")
    spark.range(5).write.format("lance_py").mode("append").save(uri)
    assert sorted(row.id for row in spark.read.format("lance_py").load(uri).collect()) == [0, 1, 2, 3, 4]
    assert lance.dataset(uri).count_rows() == 5
    register(spark, name="lance_pushing", push_filters=True)
    try:
        assert spark.read.format("lance_pushing").load(uri).where("id > 2").count() == 2
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_the_name_is_there_with_the_bridge_and_registered_without(spark: Any, tmp_path: Path) -> None:
    from lance_core.spark.bridge import is_enabled
    from lance_core.spark.source import register

    assert is_enabled(spark) == WITH_BRIDGE
    if not WITH_BRIDGE and not hasattr(spark, "dataSource"):
        with pytest.raises(InputError, match=r"no Python data sources.*bridge.*read_table"):
            register(spark)
        return
    for _ in range(2):
        register(spark)
        assert is_enabled(spark) == WITH_BRIDGE
    spark.range(5).write.format("lance").mode("append").save(str(tmp_path / "t.lance"))
    assert spark.read.format("lance").load(str(tmp_path / "t.lance")).count() == 5


@needs_sources
@pytest.mark.parametrize("name", ["parquet", "csv"])
def test_a_name_that_the_class_path_has(spark: Any, name: str) -> None:
    """As `lance` is with lance-spark's jar: whoever went on would read with the other source, which ignores our options."""
    from lance_core.spark.source import register

    with pytest.raises(InputError, match=rf"data source '{name}' of its own.*register\(spark, name="):
        register(spark, name=name)


@pytest.mark.parametrize("name", ["", "a b", "a.b", "1x", "é-"])
def test_what_is_no_name(spark: Any, name: str) -> None:
    from lance_core.spark.source import register

    with pytest.raises(InputError, match="is not a name"):
        register(spark, name=name)


def _session(default: str) -> Any:
    return SimpleNamespace(_jsc=SimpleNamespace(hadoopConfiguration=lambda: {"fs.defaultFS": default}))


def _connected(**conf: str) -> Any:
    return SimpleNamespace(conf=SimpleNamespace(get=lambda name, default=None: conf.get(name, default)))


@pytest.mark.parametrize("session", [_session("hdfs://nn:8020"), _connected(**{"spark.hadoop.fs.defaultFS": "s3a://lake"})])
def test_a_table_without_a_scheme_on_a_cluster(session: Any) -> None:
    with pytest.raises(InputError, match="file:///lake/t"):
        check_place(session, "/lake/t")
    for uri in ("file:///lake/t", "s3://lake/t", "hdfs://nn/lake/t", "memory://t"):
        check_place(session, uri)


@pytest.mark.parametrize("session", [_session("file:///"), _session(""), _connected()])
def test_a_table_without_a_scheme_on_one_machine(session: Any) -> None:
    check_place(session, "/lake/t")
    check_place(session, "lake/t")


@needs_classic
def test_a_source_without_a_scheme_is_refused_before_it_is_read(spark: Any, tmp_path: Path) -> None:
    from lance_core.spark.lance_tables import LanceTables

    lance.write_dataset(pa.table({"id": [1]}), str(tmp_path / "t"))
    hadoop = spark._jsc.hadoopConfiguration()
    before = hadoop.get("fs.defaultFS")
    hadoop.set("fs.defaultFS", "hdfs://nowhere:8020")
    try:
        with pytest.raises(InputError, match="disk of each container"):
            LanceTables().open(spark, [str(tmp_path / "t")], {})
    finally:
        hadoop.set("fs.defaultFS", before)
    assert LanceTables().open(spark, [str(tmp_path / "t")], {}).count() == 1


def test_a_worker_of_spark_35_begins() -> None:
    """Which has no Python data sources: nothing that the bridge's worker imports may ask for them."""
    program = "import sys; sys.modules['pyspark.sql.datasource'] = None; import lance_core.spark.bridge.worker"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
