"""Appends on YARN in both modes, from HDFS, to a shared disk and to S3: rows exact, by the operators themselves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_lance.compat import AirflowFailException
from lance_core.spark.argument import MOST_ARGUMENT_SIZE
from tests.cluster.conftest import CONNECTIONS, bare_python
from tests.cluster.hadoop import MiniHadoop
from tests.cluster.yarn_support import append, judge, same_rows
from tests.io.moto_server import moto_server
from tests.stores.emulators import new_bucket, s3_options

MonthOnHdfs = Callable[[int], tuple[str, pa.Table]]
MODES = [*CONNECTIONS.values()]
ODD = "{{x}} }} {{ $(id) $HOME %d 'one' \"two\" \\ `three` äöü 雪 \n<CPS>"


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    with moto_server() as endpoint:
        yield endpoint


@pytest.mark.parametrize("mode", MODES)
def test_a_table_on_the_disk_of_all_nodes(worker: None, month_on_hdfs: MonthOnHdfs, tmp_path: Path, mode: str) -> None:
    path, rows = month_on_hdfs(1)
    result = append(f"file://{tmp_path}/t.lance", {"format": "parquet", "paths": [path]}, mode=mode)
    assert result["rows_added"] == rows.num_rows
    assert same_rows(judge(str(tmp_path / "t.lance")), rows)


@pytest.mark.parametrize("mode", MODES)
def test_a_table_on_s3_and_a_spec_of_odd_texts(
    worker: None,
    month_on_hdfs: MonthOnHdfs,
    s3: str,
    hadoop: MiniHadoop,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
) -> None:
    """YARN replaces `{{` and `}}` in the commands of containers, and a shell reads them. The keys are in none of them."""
    path, rows = month_on_hdfs(2)
    uri, options = f"s3://{new_bucket(s3)}/ünder/t.lance", s3_options(s3)
    options.pop("dynamodb_endpoint")
    odd = ODD.replace("\\", "\\\\").replace("'", "\\'")
    source = {
        "sql": f"SELECT month, day, flight, tailnum, '{odd}' AS `{{{{x}}}} ü` FROM flights",
        "views": {"flights": {"format": "parquet", "paths": [path]}},
    }
    lance = {"conn_type": "lance", "extra": {"storage_options": {**options, "allow_http": "true"}}}
    monkeypatch.setenv("AIRFLOW_CONN_LANCE_S3", json.dumps(lance))
    append(uri, source, mode=mode, lance_conn_id="lance_s3")
    expected = rows.select(["month", "day", "flight", "tailnum"]).append_column(
        "{{x}} ü", pa.array([ODD] * rows.num_rows, pa.string())
    )
    assert same_rows(judge(uri, {**options, "allow_http": "true"}), expected)
    scripts = [path.read_text(errors="replace") for path in hadoop.folder.rglob("launch_container.sh")]
    assert scripts
    assert not [script for script in scripts if options["aws_secret_access_key"] in script]


def test_a_spec_that_travels_as_a_file(worker: None, month_on_hdfs: MonthOnHdfs, tmp_path: Path) -> None:
    path, rows = month_on_hdfs(1)
    text = "".join(f"{{{{{number}}}}} 雪" for number in range(MOST_ARGUMENT_SIZE // 8))
    source = {
        "sql": f"SELECT day, flight, length('{text}') AS size FROM flights",
        "views": {"flights": {"format": "parquet", "paths": [path]}},
    }
    append(f"file://{tmp_path}/t.lance", source, mode="cluster")
    expected = rows.select(["day", "flight"]).append_column("size", pa.array([len(text)] * rows.num_rows, pa.int32()))
    assert same_rows(judge(str(tmp_path / "t.lance")), expected)


@pytest.mark.parametrize("mode", MODES)
def test_the_package_is_sent_along(worker: None, month_on_hdfs: MonthOnHdfs, tmp_path: Path, mode: str) -> None:
    """To nodes whose Python has what lance_core depends on, but not lance_core."""
    path, rows = month_on_hdfs(1)
    python: dict[str, Any] = {"spark.pyspark.python": bare_python(tmp_path)}
    source = {"format": "parquet", "paths": [path]}
    append(f"file://{tmp_path}/t.lance", source, mode=mode, conf=python, packaging="archive")
    assert same_rows(judge(str(tmp_path / "t.lance")), rows)


def test_a_driver_on_the_cluster_says_why_it_refuses(worker: None, hadoop: MiniHadoop, tmp_path: Path) -> None:
    """YARN would run it again, as it does with what fails."""
    once = {"spark.yarn.maxAppAttempts": "1"}
    source = {"format": "parquet", "paths": [f"{hadoop.root}/raw/not-there.parquet"]}
    with pytest.raises(Exception, match=r"not-there\.parquet does not exist"):
        append(f"file://{tmp_path}/t.lance", source, mode="cluster", conf=once)
    with pytest.raises(AirflowFailException, match=r"no scheme.*hdfs://"):
        append(str(tmp_path / "t.lance"), {"sql": "SELECT 1 AS id"}, mode="cluster", run_id="other", conf=once)


def test_a_table_on_hdfs(worker: None, hadoop: MiniHadoop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused where nothing is submitted yet: the task looks for finished work first."""
    for name in ("HADOOP_HOME", "CLASSPATH", "ARROW_LIBHDFS_DIR"):
        monkeypatch.delenv(name, raising=False)
    before = hadoop.applications()
    with pytest.raises(AirflowFailException, match=r"this machine lacks libhdfs\.so \(HADOOP_HOME is not set\)"):
        append(f"{hadoop.root}/lake/t.lance", {"sql": "SELECT 1 AS id"}, mode="client")
    assert hadoop.applications() == before
