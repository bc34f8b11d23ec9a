"""Spark knows the same files of a source as a listing does, from the plan that it made anyway."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lance_core.jobs.sources.source_files import fingerprint, list_source_files
from lance_core.jobs.specs.spec import SourceSpec
from lance_core.spark.runner import SparkRunner

pytestmark = pytest.mark.spark


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "in put"
    for name in ("a.parquet", "deep/b.parquet", "_tmp/c.parquet"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": [1, 2]}), root / name)
    (root / "plain.csv").write_text("id\n1\n")
    return root


def test_spark_and_a_listing_know_the_same_files(spark, folder: Path) -> None:
    runner = SparkRunner(lambda: spark)
    parquet = SourceSpec(format="parquet", paths=(str(folder / "a.parquet"), str(folder / "deep" / "*.parquet")))
    csv = SourceSpec(format="csv", paths=(f"file://{folder}/plain.csv",), options={"header": "true"})
    query = SourceSpec(sql="SELECT a.id FROM a JOIN b ON a.id = b.id", views={"a": parquet, "b": csv})
    for spec, count in ((parquet, 2), (csv, 1), (query, 3)):
        files = runner.open_source(spec).files
        assert len(files) == count
        assert fingerprint(files) == fingerprint(list_source_files(spec) or ())


def test_what_comes_from_no_file_has_none(spark) -> None:
    runner = SparkRunner(lambda: spark)
    assert runner.open_source(SourceSpec(callable="spark_sources:numbers")).files == ()
    assert runner.open_source(SourceSpec(sql="SELECT 1 AS id")).files == ()
