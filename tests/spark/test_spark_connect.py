"""A real Spark Connect server: jobs from a client that has no JVM, lance_core sent along as a zip."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pytest

from lance_core.errors import InputError, RetryableConflictError
from lance_core.jobs.kinds import KINDS
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.edits import AddColumnsSpec, CompactSpec, DeleteSpec, ReplaceWhereSpec, UpdateSpec
from lance_core.jobs.specs.indices import BuildIndexSpec, OptimizeIndicesSpec
from lance_core.jobs.specs.merge import MergeSpec
from lance_core.jobs.specs.spec import AppendSpec, CommitSpec, JobSpec, OverwriteSpec, SourceSpec
from lance_core.spark.archive import write_archive
from lance_core.spark.connect import run_connected
from lance_core.spark.reach import without_token

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pyspark = pytest.importorskip("pyspark")
    home = Path(pyspark.__file__).parent
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = tmp_path_factory.mktemp("connect")
    command = [
        str(home / "bin" / "spark-submit"), "--master", "local[2]",
        "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
        "--conf", f"spark.connect.grpc.binding.port={port}", "--conf", "spark.ui.enabled=false",
        "--conf", f"spark.sql.warehouse.dir={folder}", "--conf", "spark.driver.host=127.0.0.1",
        "spark-internal",
    ]  # fmt: skip
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(HERE.parents[1]), str(HERE)]),
    }
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log)
    try:
        for _ in range(240):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, (folder / "log").read_text()
            time.sleep(0.5)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=60)


def append(uri: str, **kwargs: Any) -> AppendSpec:
    source = SourceSpec(sql="SELECT id, id * 2 AS twice FROM range(0, 1000, 1, 4)")
    return AppendSpec(uri=uri, identity=kwargs.pop("identity", "one"), source=source, **kwargs)


def test_a_job_on_a_server_with_the_package_sent_along(server: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    package = write_archive(str(tmp_path / "lance_core.zip"))
    assert Path(write_archive(str(tmp_path / "again.zip"))).read_bytes() == Path(package).read_bytes()
    staged = run_connected(append(uri), url=server, conf={"spark.sql.shuffle.partitions": "2"}, packages=[package])
    assert run_connected(append(uri), url="sc://127.0.0.1:1", packages=[package]) == staged  # nothing to do, no session
    run_job(CommitSpec(uri=uri, identities=("one",)))
    assert sorted(lance.dataset(uri).to_table()["twice"].to_pylist()) == [*range(0, 2000, 2)]
    run_connected(DeleteSpec(uri=uri, identity="two", predicate="id >= 10"), url=server, packages=[package])
    assert run_job(CommitSpec(uri=uri, identities=("two",))).rows_deleted == 990


def sql(text: str) -> SourceSpec:
    return SourceSpec(sql=text)


# Each is staged on the server and committed before the next one.
JOBS: list[tuple[type[JobSpec], dict[str, Any]]] = [
    (AppendSpec, {"source": sql("SELECT id, id % 10 AS day FROM range(0, 100, 1, 4)"), "max_rows_per_file": 10}),
    (MergeSpec, {"source": sql("SELECT id, 50L AS day FROM range(95, 110)"), "on": ("id",)}),
    (DeleteSpec, {"predicate": "id < 10"}),
    (UpdateSpec, {"updates": {"day": "day + 1"}, "where": "id < 20"}),
    (ReplaceWhereSpec, {"source": sql("SELECT 1000 + id AS id, 50L AS day FROM range(3)"), "predicate": "day = 50"}),
    (AddColumnsSpec, {"columns": {"twice": "id * 2"}}),
    (AddColumnsSpec, {"columns": {"hash": "sha2(string(id), 256)"}, "engine": "spark"}),
    (AddColumnsSpec, {"function": "spark_sources:negative", "reads": ("id",)}),
    (
        AddColumnsSpec,
        {"source": sql("SELECT id AS key, id * 3 AS thrice FROM range(0, 50)"), "on": "id", "source_on": "key"},
    ),
    (BuildIndexSpec, {"column": "id", "index_type": "BTREE"}),
    (CompactSpec, {}),
    (OptimizeIndicesSpec, {}),
]


def test_every_job_on_a_server(server: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    for number, (kind, fields) in enumerate(JOBS):
        run_connected(kind(uri=uri, identity=f"job-{number}", **fields), url=server)
        run_job(CommitSpec(uri=uri, identities=(f"job-{number}",)))
    table = lance.dataset(uri)
    table.validate()
    days = {number: number % 10 + (number < 20) for number in range(10, 95)} | dict.fromkeys(range(1000, 1003), 50)
    rows = {row["id"]: row for row in table.to_table().to_pylist()}
    assert {number: row["day"] for number, row in rows.items()} == days
    for number, row in rows.items():
        assert (row["twice"], row["minus"]) == (number * 2, -number)
        assert row["hash"] == hashlib.sha256(str(number).encode()).hexdigest()
        assert row["thrice"] == (number * 3 if number < 50 else None)
    assert len(table.get_fragments()) == 1
    assert table.stats.index_stats("id_idx")["num_unindexed_rows"] == 0
    run_connected(OverwriteSpec(uri=uri, identity="last", source=sql("SELECT 'x' AS name")), url=server)
    run_job(CommitSpec(uri=uri, identities=("last",)))
    assert lance.dataset(uri).to_table().to_pylist() == [{"name": "x"}]
    at_once = {"branch", "cleanup", "commit", "garbage", "restore", "tag", "validate"}
    assert {kind.kind for kind, _ in JOBS} | {"overwrite"} == {*KINDS} - at_once, "a job is missing here"


def test_what_goes_wrong_is_told(server: str, tmp_path: Path) -> None:
    bad = append(str(tmp_path / "t.lance"))
    from dataclasses import replace

    with pytest.raises(InputError):
        run_connected(replace(bad, source=SourceSpec(sql="SELECT nope FROM range(3)")), url=server)
    assert without_token("sc://host:15002/;token=hush") == "sc://host:15002"


def test_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lance_core.spark import connect

    def refuse(*_: Any) -> Any:
        raise RetryableConflictError("no session on the Spark Connect server sc://nowhere")

    monkeypatch.setattr(connect, "open_session", refuse)
    with pytest.raises(RetryableConflictError, match="no session"):
        run_connected(append(str(tmp_path / "t.lance")), url="sc://nowhere")
