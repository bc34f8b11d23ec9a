"""Appends on YARN in both modes, from HDFS, to a shared disk and to S3: rows exact, by the operators themselves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tests.cluster.conftest import CONNECTIONS
from tests.cluster.yarn_support import append, judge, same_rows

MonthOnHdfs = Callable[[int], tuple[str, pa.Table]]
MODES = [*CONNECTIONS.values()]


@pytest.mark.parametrize("mode", MODES)
def test_a_table_on_the_disk_of_all_nodes(worker: None, month_on_hdfs: MonthOnHdfs, tmp_path: Path, mode: str) -> None:
    uri = f"file://{tmp_path}/t.lance"
    path, rows = month_on_hdfs(1)
    result = append(uri, {"format": "parquet", "paths": [path]}, mode=mode)
    assert result["rows_added"] == rows.num_rows
    assert same_rows(judge(str(tmp_path / "t.lance")), rows)
