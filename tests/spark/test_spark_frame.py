"""`read_table`: the same rows as `spark.read.format("lance")`, with what it is told to read and no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from lance_core.errors import InputError
from lance_core.spark.frame import read_table

pytestmark = pytest.mark.spark


def test_a_table_as_a_frame(formats: Any, tmp_path: Path) -> None:
    spark = formats
    uri = str(tmp_path / "t.lance")
    rows = pa.table(
        {"id": range(50), "name": [f"n{n}" if n % 7 else None for n in range(50)], "v": [[1.0, n] for n in range(50)]}
    )
    lance.write_dataset(rows, uri, max_rows_per_file=10)
    lance.dataset(uri).delete("id = 3")
    frame = read_table(spark, uri, rowsPerPartition=20)
    through = spark.read.format("lance").load(uri)
    assert frame.schema == through.schema
    assert sorted(frame.collect()) == sorted(through.collect())
    assert frame.count() == 49
    some = read_table(spark, uri, columns="name,id", filter="id > 40 AND name IS NOT NULL")
    assert some.columns == ["name", "id"]
    assert sorted(row.id for row in some.collect()) == [41, 43, 44, 45, 46, 47, 48]
    assert read_table(spark, uri, version=1).count() == 50
    lance.dataset(uri).delete("true")
    assert frame.count() == 49, "the version was fixed"
    assert read_table(spark, uri).collect() == []
    with pytest.raises(InputError, match="batchsize"):
        read_table(spark, uri, batchsizes=3)
