"""The tests of the source once more with the bridge, and those of the bridge itself, in a JVM of their own: a jar that an
application has stays in it. And `enable`, in one that begins without."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import lance
import pyarrow as pa
import pytest

pytestmark = pytest.mark.spark
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MODULES = (
    "test_spark_source.py",
    "test_spark_types.py",
    "test_spark_names.py",
    "test_spark_frame.py",
    "test_spark_bridge.py",
    "test_spark_catalog.py",
    "test_spark_worker_kills.py",
)
APART = ("test_spark_top.py", "test_spark_clustered.py")
"""Of many queries: in a JVM of its own, beside that of the others."""

ENABLE = """
import sys, threading
from pyspark.sql import SparkSession
from lance_core.spark.bridge import enable, is_enabled
from lance_core.spark.source import register
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
register(spark)
uri = sys.argv[1]
assert not is_enabled(spark)
assert spark.read.format("lance").load(uri).where("id > 9").count() == 90
enable(spark)
enable(spark)
counts = []
def count(session):
    frame = session.read.format("lance").load(uri).where("id > 9")
    assert "ColumnarToRow" in frame._jdf.queryExecution().executedPlan().toString()
    counts.append(frame.count())
count(spark)
count(spark.newSession())
other = threading.Thread(target=count, args=(spark,))
other.start()
other.join()
spark.read.format("lance").load(uri).write.format("lance").mode("append").save(uri)
counts.append(spark.read.format("lance").load(uri).count())
print("COUNTS", counts)
spark.stop()
"""


@pytest.mark.parametrize("modules", [MODULES, APART], ids=["source", "top"])
def test_the_source_and_the_bridge_in_a_session_that_has_it(modules: tuple[str, ...]) -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-m",
        "not slow",
        "-p",
        "no:cacheprovider",
        *(str(HERE / name) for name in modules),
    ]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "LANCE_TEST_BRIDGE": "1"}, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5_000:]
    print(done.stdout.strip().splitlines()[-1])


def test_enabled_in_an_application_that_began_without(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"id": pa.array(range(100))}), uri, max_rows_per_file=40)
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run([sys.executable, "-c", ENABLE, uri], env=env, capture_output=True, text=True, timeout=600)
    assert "COUNTS [90, 90, 90, 200]" in done.stdout, done.stdout[-3_000:] + done.stderr[-10_000:]
