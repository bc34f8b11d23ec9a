"""Parquet that executors read by themselves: the same rows as through Spark, and Spark's way wherever they might differ."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lance_core.jobs.run import run_job
from lance_core.jobs.specs.spec import AppendSpec, CommitSpec, SourceSpec
from lance_core.spark.direct_parquet import Piece, group_pieces
from lance_core.spark.runner import SparkRunner

NOON = datetime(2013, 7, 1, 12, tzinfo=timezone.utc)


def _table(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "maybe": pa.array([None if n % 3 == 0 else n for n in numbers], pa.int32()),
            "name": pa.array([f"row {n}" for n in numbers]),
            "at": pa.array([NOON] * count, pa.timestamp("us", "UTC")),
            "many": pa.array([[n, None] if n % 2 else None for n in numbers], pa.list_(pa.field("element", pa.int64()))),
            "price": pa.array([n % 90 for n in numbers], pa.int64()).cast(pa.decimal128(30, 2)),
        }
    )


def _source(*paths: object, **options: str) -> SourceSpec:
    return SourceSpec(format="parquet", paths=tuple(str(path) for path in paths), options=options)


def _append(spark: Any, source: SourceSpec, uri: Path, **arguments: Any) -> Any:
    staged = run_job(AppendSpec(uri=str(uri), source=source, **arguments), runner=SparkRunner(lambda: spark))
    run_job(CommitSpec(uri=str(uri), identities=(staged.identity,)))  # type: ignore[union-attr]
    table = lance.dataset(uri)
    table.validate()
    return table


def test_the_same_rows_as_through_spark(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "a folder of 100%"
    folder.mkdir()
    for number in range(3):
        pq.write_table(_table(number * 1000, 1000), folder / f"part {number}.parquet", row_group_size=300)
    (folder / "_SUCCESS").touch()
    source = _source(folder)
    direct = SparkRunner(lambda: spark).open_source(source).direct
    assert direct is not None
    assert sum(piece.end - piece.start for task in direct.tasks for piece in task) == 12
    ours = _append(spark, source, tmp_path / "direct.lance")
    options = _source(folder, mergeSchema="false")
    assert SparkRunner(lambda: spark).open_source(options).direct is None
    through = _append(spark, options, tmp_path / "through.lance")
    assert ours.schema == through.schema
    assert ours.to_table().sort_by("id").equals(through.to_table().sort_by("id"))
    assert ours.count_rows() == 3000


def test_partitions_as_asked_for(spark: Any, tmp_path: Path) -> None:
    for number in range(4):
        pq.write_table(_table(number * 10, 10), tmp_path / f"{number}.parquet")
    source = _source(*(tmp_path / f"{number}.parquet" for number in range(4)))
    one = _append(spark, source, tmp_path / "one.lance", num_partitions=1)
    three = _append(spark, source, tmp_path / "three.lance", num_partitions=3, partitioning="repartition")
    assert (len(one.get_fragments()), len(three.get_fragments())) == (1, 3)
    assert one.to_table().sort_by("id").equals(three.to_table().sort_by("id"))


@pytest.mark.parametrize("case", ["partition column", "int96", "a column less", "two schemas"])
def test_what_goes_through_spark(spark: Any, tmp_path: Path, case: str) -> None:
    table, folder = _table(0, 20), tmp_path / "raw"
    place = folder / ("day=3" if case == "partition column" else ".")
    place.mkdir(parents=True)
    pq.write_table(table, place / "a.parquet", use_deprecated_int96_timestamps=case == "int96")
    if case == "a column less":
        pq.write_table(table.drop_columns(["name"]), place / "b.parquet")
    if case == "two schemas":
        pq.write_table(table.set_column(1, "maybe", table["maybe"].cast(pa.int16())), place / "b.parquet")
    opened = SparkRunner(lambda: spark).open_source(_source(folder))
    assert opened.direct is None
    if case != "two schemas":  # Spark reads what its own schema fits
        assert _append(spark, _source(folder), tmp_path / "t.lance").count_rows() == (40 if case == "a column less" else 20)


def test_pieces_are_grouped_by_size() -> None:
    pieces = [Piece("a", number, number + 1, size) for number, size in enumerate([5, 5, 5, 100, 1, 1])]
    groups = group_pieces(pieces, most=10)
    assert [[piece.size for piece in group] for group in groups] == [[5, 5], [5], [100], [1, 1]]
    assert group_pieces([], most=10) == ()
