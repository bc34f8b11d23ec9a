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

sys.path[:0] = [str(Path(__file__).parents[1] / room) for room in ("io", "commit", "dataset")]

from emulators import AZURITE_KEY, azurite_command  # noqa: E402


@pytest.fixture(scope="session")
def moto_endpoint() -> Iterator[str]:
    """Moto's server: S3 and DynamoDB."""
    pytest.importorskip("s3fs", reason="s3fs is not installed (extra s3)")
    server_module = pytest.importorskip("moto.server", reason="moto is not installed (extra dev)")
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    yield f"http://127.0.0.1:{port}"
    server.stop()


@pytest.fixture(scope="session")
def azurite_options(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Azurite's blob service, from npm; skipped where there is no node."""
    pytest.importorskip("adlfs", reason="adlfs is not installed (extra azure)")
    command = azurite_command()
    if command is None:
        pytest.skip("Azurite needs node and npm, and the npm package azurite: `npm install -g azurite`, or AZURITE=path")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
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


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        if process.poll() is not None:
            pytest.fail(f"azurite ended at once with status {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    pytest.fail("azurite did not answer within 20 s")
