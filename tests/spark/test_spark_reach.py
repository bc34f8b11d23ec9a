"""A Spark Connect server that is down, or that says nothing: an error within the limit, and a first line at once."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from lance_core.errors import InputError, RetryableConflictError
from lance_core.jobs.specs.spec import AppendSpec, SourceSpec
from lance_core.spark.connect import run_connected
from lance_core.spark.reach import answering, wait_for_port

LIMIT = 1.5


@pytest.fixture
def closed_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def black_hole() -> Iterator[int]:
    """A server that takes connections and never says a word."""
    with closing(socket.socket()) as server:
        server.bind(("127.0.0.1", 0))
        server.listen(16)
        yield int(server.getsockname()[1])


@pytest.fixture
def full_queue() -> Iterator[int]:
    """A port that drops what comes: its queue is full, and nobody takes from it."""
    with closing(socket.socket()) as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        port = int(server.getsockname()[1])
        waiting = [socket.socket() for _ in range(3)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        yield port
        for one in waiting:
            one.close()


@pytest.mark.parametrize("kind", ["closed_port", "full_queue"])
def test_a_server_that_is_down(kind: str, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> None:
    port = request.getfixturevalue(kind)
    with caplog.at_level(logging.INFO), pytest.raises(RetryableConflictError, match=r"in 1\.5 seconds") as caught:
        wait_for_port(f"sc://127.0.0.1:{port}/;token=hush", shown="sc://spark", seconds=LIMIT)
    assert "hush" not in str(caught.value) + caplog.text
    assert caplog.messages[0].startswith("Connecting to the Spark Connect server sc://spark")


def test_a_server_that_starts_meanwhile_is_found(closed_port: int, caplog: pytest.LogCaptureFixture) -> None:
    with closing(socket.socket()) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

        def start() -> None:
            while not any("does not answer" in text for text in caplog.messages):
                time.sleep(0.01)
            server.bind(("127.0.0.1", closed_port))
            server.listen()

        starter = threading.Thread(target=start)
        starter.start()
        with caplog.at_level(logging.INFO):
            wait_for_port(f"sc://127.0.0.1:{closed_port}", shown="sc://spark", seconds=30)
        starter.join()


@pytest.mark.parametrize("url", ["sc://", "sc:///;token=x", "sc://h:port", "spark"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(InputError, match="not the address"):
        wait_for_port(url, shown="x")


def test_a_server_that_says_nothing(black_hole: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """pyspark's own client asks for more than ten minutes."""
    pytest.importorskip("pyspark.sql.connect.session", exc_type=ImportError)
    monkeypatch.setattr(run_connected.__globals__["open_session"], "__kwdefaults__", {"seconds": LIMIT})
    spec = AppendSpec(uri="memory://t", source=SourceSpec(sql="SELECT 1"))
    with pytest.raises(RetryableConflictError, match="takes connections, but does not answer"):
        run_connected(spec, url=f"sc://127.0.0.1:{black_hole}")


def test_answers_and_errors_come_through() -> None:
    assert answering(lambda: 3, shown="x", give_up=lambda: None) == 3
    with pytest.raises(ZeroDivisionError):
        answering(lambda: 1 // 0, shown="x", give_up=lambda: None)
