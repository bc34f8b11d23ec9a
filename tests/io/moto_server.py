"""Moto's server: S3 and DynamoDB on loopback, whose conditions hold.

Moto looks whether an object is there and then writes it, in as many threads as there are clients: two conditional puts may
both win. What changes something is let in one at a time.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest


@contextlib.contextmanager
def moto_server() -> Iterator[str]:
    """The endpoint of a fresh server; skips where moto is not installed."""
    server_module = pytest.importorskip("moto.server", reason="moto is not installed (extra dev)")
    application = pytest.importorskip("moto.moto_server.werkzeug_app").DomainDispatcherApplication
    serve, changing = application.__call__, threading.Lock()

    def one_at_a_time(self: Any, environ: dict[str, Any], start_response: Any) -> Any:
        if environ["REQUEST_METHOD"] in ("GET", "HEAD"):
            return serve(self, environ, start_response)
        with changing:
            return serve(self, environ, start_response)

    with mock.patch.object(application, "__call__", one_at_a_time):
        server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        _, port = server.get_host_and_port()
        yield f"http://127.0.0.1:{port}"
        server.stop()
