"""Catalogs for tests: each kind over an empty folder, and a loopback server that answers what a test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa

from lance_core.namespace import DirectoryNamespace, ForeignNamespace, LanceNamespace, RestNamespace

ROWS = pa.table({"id": [1, 2], "name": ["a", "b"]})

Answer = tuple[int, Any]


@contextmanager
def rest_over(root: Path) -> Iterator[RestNamespace]:
    """Our client, in front of the official server over a folder."""
    from lance.namespace import RestAdapter

    with RestAdapter("dir", {"root": str(root)}, host="127.0.0.1", port=0) as server:
        yield RestNamespace(uri=f"http://127.0.0.1:{server.port}")


@contextmanager
def catalog_of(kind: str, root: Path) -> Iterator[tuple[LanceNamespace, dict[str, str]]]:
    """A catalog and the storage options that its tables need."""
    if kind == "dir":
        yield DirectoryNamespace(root=str(root)), {}
        return
    if kind == "foreign":
        from lance.namespace import DirectoryNamespace as Official

        yield ForeignNamespace(Official(root=str(root))), {"allowed_bases": str(root)}
        return
    with rest_over(root) as client:
        yield client, {"allowed_bases": str(root)}


@contextmanager
def server(answer: Callable[[str, str, Mapping[str, str], Any], Answer]) -> Iterator[str]:
    """The address of a server: `answer` gets method, path, headers and body, and gives status and JSON, or raw bytes."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size)) if size else None
            status, found = answer(self.command, self.path, dict(self.headers.items()), body)
            data = found if isinstance(found, bytes) else json.dumps(found).encode()
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", found["location"])
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _answer

        def log_message(self, format: str, *args: Any) -> None:
            """Be silent."""

    found = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=found.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{found.server_address[1]}"
    finally:
        found.shutdown()
        found.server_close()
        thread.join()
