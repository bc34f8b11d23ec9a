"""Joins of `read_table` frames are planned by true sizes: a small table is broadcast, a large one never is."""

from __future__ import annotations

from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.spark.frame import read_table
from lance_core.spark.sizes import estimated_size
from tests.spark.conftest import needs_classic

pytestmark = [pytest.mark.spark, needs_classic]

THRESHOLD = "spark.sql.autoBroadcastJoinThreshold"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Rows of 8 + 8 + 20 bytes by Spark's reckoning; and short rows of long vectors, which Spark takes for one number."""
    place = tmp_path_factory.mktemp("sizes")
    rows = {"small": 200, "large": 20_000}
    for name, count in rows.items():
        table = pa.table({"id": np.arange(count), "v": np.zeros(count), "t": ["x"] * count})
        lance.write_dataset(table, str(place / name), max_rows_per_file=max(100, count // 3))
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.random.default_rng(1).random(500 * 256, np.float32)), 256)
    lance.write_dataset(pa.table({"id": np.arange(500), "vector": vectors}), str(place / "vectors"))
    return {name: str(place / name) for name in [*rows, "vectors"]}


def _size(frame: Any) -> int:
    return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


def _join(one: Any, other: Any) -> str:
    return str(one.join(other, "id")._jdf.queryExecution().sparkPlan().toString())


@pytest.mark.parametrize(("name", "least", "most"), [("small", 8_500, 12_000), ("large", 870_000, 1_000_000)])
def test_spark_takes_a_frame_for_as_large_as_it_is(
    spark: Any, tables: dict[str, str], name: str, least: int, most: int
) -> None:
    frame = read_table(spark, tables[name])
    assert least <= _size(frame) <= most
    assert frame.count() == frame.select("id").distinct().count() == lance.dataset(tables[name]).count_rows()
    only = read_table(spark, tables[name], columns="id")
    assert _size(only) < _size(frame) / 2
    assert _size(only) >= lance.dataset(tables[name]).count_rows() * 16


def test_vectors_count_whole(spark: Any, tables: dict[str, str]) -> None:
    assert _size(read_table(spark, tables["vectors"])) >= 500 * 256 * 4


def test_what_is_broadcast(spark: Any, tables: dict[str, str]) -> None:
    before = spark.conf.get(THRESHOLD, None)
    spark.conf.set(THRESHOLD, "100KB")
    try:
        small, large = read_table(spark, tables["small"]), read_table(spark, tables["large"])
        assert "Broadcast" in _join(large, small)
        assert "Broadcast" in _join(small, large)
        assert "Broadcast" not in _join(large, large.withColumnRenamed("v", "w"))
        vectors = read_table(spark, tables["vectors"])
        assert "Broadcast" not in _join(vectors, large)
        assert large.join(small, "id").count() == 200
    finally:
        spark.conf.unset(THRESHOLD) if before is None else spark.conf.set(THRESHOLD, before)


def test_the_size_of_a_part(spark: Any, tables: dict[str, str]) -> None:
    """A filter that an index answers leaves fragments out, and their size with them; counting has an end."""
    whole = lance.dataset(tables["large"])
    assert estimated_size(read=whole.schema, table=whole.schema, fragments=[]) == 0
    spark.conf.set(THRESHOLD, "-1")
    try:
        assert read_table(spark, tables["large"]).count() == 20_000
    finally:
        spark.conf.unset(THRESHOLD)
