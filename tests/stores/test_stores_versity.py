"""A real S3 server (versitygw, over a folder): the store contract, and 300 appends while it is killed and started again.

`make cluster-test` builds the server from its Go module; VERSITYGW=path names another binary. Without one this is skipped.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

import lance_core
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.jobs.kinds import carry_out
from lance_core.jobs.runtime.local_runner import LocalRunner
from lance_core.jobs.specs.spec import AppendSpec, CommitSpec, SourceSpec
from tests.io.store_contract import StoreContract
from tests.jobs.edit_support import identity

ROOT = Path(__file__).resolve().parents[2]
KEY, SECRET = "testing", "testing-secret"
APPENDS = 300
UP_SECONDS, DOWN_SECONDS = 2.5, 4.0
"""How long the server is there, and gone, each time; a retry within ten seconds has to save every append."""


def _binary() -> str | None:
    given = os.environ.get("VERSITYGW") or str(ROOT / ".versitygw" / "versitygw")
    return given if Path(given).is_file() else shutil.which("versitygw")


class Server:
    """The server on loopback, which can be killed and started again at its port."""

    def __init__(self, binary: str, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._folder, self._binary = folder, binary
        (folder / "data").mkdir()
        self.start()

    def start(self) -> None:
        """And wait until it answers."""
        command = [self._binary, "--port", f"127.0.0.1:{self._port}", "--access", KEY, "--secret", SECRET]
        command += ["--region", "us-east-1", "--iam-dir", str(self._folder), "posix", str(self._folder / "data")]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self._port), timeout=1):
                return
            assert self._process.poll() is None, "the server ended as it started"
            time.sleep(0.05)
        raise AssertionError("the server does not answer")

    def kill(self) -> None:
        """As `kill -9` does."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def bucket(self) -> str:
        """A new bucket."""
        name = f"b{uuid.uuid4().hex}"
        (self._folder / "data" / name).mkdir()
        return name

    @property
    def options(self) -> dict[str, str]:
        """Of the store."""
        return {
            "aws_access_key_id": KEY,
            "aws_secret_access_key": SECRET,
            "aws_region": "us-east-1",
            "aws_endpoint": f"http://127.0.0.1:{self._port}",
            "allow_http": "true",
        }


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    binary = _binary()
    if binary is None:
        pytest.skip("no versitygw: `make cluster-test` builds it, VERSITYGW=path names one")
    found = Server(binary, tmp_path_factory.mktemp("versity"))
    yield found
    found.kill()


class TestVersity(StoreContract):
    @pytest.fixture
    def store(self, server: Server) -> Store:
        return resolve_store(f"s3://{server.bucket()}/t", server.options)


@pytest.mark.slow
def test_appends_while_the_server_is_killed(server: Server) -> None:
    """By jobs: staged, committed, exact. No append is run again: a retry within ten seconds is the store's own part."""
    uri = f"s3://{server.bucket()}/t.lance"
    lance_core.write_dataset(pa.table({"id": pa.array([-1], pa.int64())}), uri, storage_options=server.options)
    over = threading.Event()
    kills: list[float] = []

    def breaking() -> None:
        while not over.wait(UP_SECONDS):
            server.kill()
            kills.append(time.monotonic())
            time.sleep(DOWN_SECONDS)
            server.start()

    beside = threading.Thread(target=breaking)
    beside.start()
    failed: dict[int, str] = {}
    try:
        for number in range(APPENDS):
            try:
                _append(uri, server.options, number)
            except Exception as error:
                failed[number] = f"{type(error).__name__}: {error}"
    finally:
        over.set()
        beside.join()
    found = lance_core.dataset(uri, storage_options=server.options).to_table()["id"].to_pylist()
    print(f"{len(kills)} kills, {len(failed)} of {APPENDS} appends failed", *failed.values(), sep="\n")
    assert not failed
    assert sorted(found) == [-1, *range(APPENDS)]
    assert kills


def _append(uri: str, options: dict[str, str], number: int) -> None:
    source = SourceSpec(callable=f"{__name__}:one_row", kwargs={"number": number})
    spec = AppendSpec(uri=uri, storage_options=options, identity=identity(uri, str(number)), source=source)
    runner = LocalRunner()
    carry_out(spec, runner)
    carry_out(CommitSpec(uri=uri, storage_options=options, identities=(spec.identity,)), runner)


def one_row(number: int) -> pa.Table:
    """The row of an append."""
    return pa.table({"id": pa.array([number], pa.int64())})
