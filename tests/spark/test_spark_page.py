"""The examples of docs/spark.md run as they are written, with a folder in place of the bucket."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lance_core

pytestmark = pytest.mark.spark
PAGE = Path(__file__).resolve().parents[2] / "docs" / "spark.md"


def test_the_examples_of_the_page_run(formats: Any, tmp_path: Path) -> None:
    rows = pa.table({"carrier": ["AA", "UA"], "dep_delay": [61, 4]})
    for _ in range(3):
        flights = lance_core.write_dataset(rows, str(tmp_path / "flights.lance"), mode="append")
    flights.tags.create("golden", 2)
    flights.create_branch("experiments/x")
    (tmp_path / "incoming").mkdir()
    pq.write_table(pa.table({"id": [1, 2], "name": ["a", "b"]}), tmp_path / "incoming" / "a.parquet")
    names: dict[str, Any] = {"__name__": "example", "spark": formats}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    blocks = [text for text in blocks if "catalogs=" not in text]  # which needs the jar: see test_spark_catalog
    for number, text in enumerate(blocks):
        exec(compile(text.replace("s3://lake", str(tmp_path)), f"{PAGE.name}, example {number}", "exec"), names)
    for setting in ("enabled", "pushPartValues.enabled"):
        formats.conf.unset(f"spark.sql.sources.v2.bucketing.{setting}")
    assert sorted(map(tuple, names["visits"].join(names["rain"], "day").groupBy("day").count().collect())) == [
        (f"2024-03-0{day}", 4) for day in (1, 2, 3)
    ]
    counts = [names[name].count() for name in ("flights", "old", "golden", "trial", "late")]
    assert counts == [6, 6, 4, 6, 3]
    assert lance.dataset(tmp_path / "copy.lance").count_rows() == 6
    query = names["query"]
    query.processAllAvailable()
    query.stop()
    assert sorted(lance.dataset(tmp_path / "events.lance").to_table()["id"].to_pylist()) == [1, 2]
