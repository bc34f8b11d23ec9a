"""Edits on executors: their tasks are fragments, and a replacement has two passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lance_core.errors import InputError
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.edits import CompactSpec, DeleteSpec, ReplaceWhereSpec
from lance_core.jobs.specs.spec import CommitSpec, SourceSpec
from lance_core.spark.runner import SparkRunner

pytestmark = pytest.mark.spark


def test_a_replacement_a_delete_and_a_compaction_on_executors(spark: Any, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    for number in range(4):
        table = pa.table({"id": pa.array(range(10 * number, 10 * number + 10), pa.int64()), "day": [number] * 10})
        lance.write_dataset(table, uri, mode="append" if number else "create")
    raw = tmp_path / "raw.parquet"
    pq.write_table(pa.table({"id": pa.array([100, 101], pa.int64()), "day": pa.array([1, 1], pa.int64())}), raw)
    runner = SparkRunner(lambda: spark)
    source = SourceSpec(format="parquet", paths=(str(raw),))
    replaced = run_job(ReplaceWhereSpec(uri=uri, predicate="day = 1", source=source, rows_per_task=10), runner=runner)
    deleted = run_job(DeleteSpec(uri=uri, predicate="id % 10 = 3", rows_per_task=10), runner=runner)
    assert (replaced.num_rows, replaced.num_deleted_rows, deleted.num_deleted_rows) == (2, 10, 4)
    # Both took row 13: the second is staged again when they land together.
    run_job(CommitSpec.of([replaced, deleted], uri=uri))
    compacted = run_job(CompactSpec(uri=uri, target_rows_per_fragment=15), runner=runner)
    run_job(CommitSpec.of([compacted], uri=uri))
    found = lance.dataset(uri)
    found.validate()
    expected = [i for i in range(40) if i // 10 != 1 and i % 10 != 3] + [100, 101]
    assert sorted(found.to_table()["id"].to_pylist()) == expected
    with pytest.raises(InputError, match="does not satisfy day = 2"):
        run_job(ReplaceWhereSpec(uri=uri, predicate="day = 2", source=source), runner=runner)
