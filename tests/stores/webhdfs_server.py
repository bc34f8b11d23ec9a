"""A name node and a data node in one small HTTP server, over a dictionary: what WebHDFS answers, and how it fails.

::

    with WebHdfsServer() as server:
        server.files                       path -> bytes, and when they were written
        server.answers["OPEN"] = (...)     what the data node (`OPEN`, `CREATE`, `APPEND`) or the name node answers instead
        server.is_gateway = True           as HttpFS: it takes no `renameoptions`, so it does not rename over what is there
"""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

PREFIX = "/webhdfs/v1"
BY_DATA_NODE = ("OPEN", "CREATE", "APPEND")


class WebHdfsServer(ThreadingHTTPServer):
    """Serves from enter to exit."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, tuple[bytes, int]] = {}
        self.answers: dict[str, tuple[int, bytes]] = {}
        self.asked: list[str] = []
        self.is_gateway = False
        self.lock = threading.Lock()

    def __enter__(self) -> WebHdfsServer:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.server_address[1]}"

    def write(self, path: str, data: bytes) -> None:
        """A file of now."""
        self.files[path] = (data, int(time.time() * 1000))

    def is_folder(self, path: str) -> bool:
        return any(name.startswith(f"{path.rstrip('/')}/") for name in self.files)

    def status(self, path: str) -> dict[str, Any]:
        """KeyError where there is nothing."""
        name = path.rpartition("/")[2]
        if self.is_folder(path):
            return {"pathSuffix": name, "type": "DIRECTORY", "length": 0, "modificationTime": 0}
        data, time_ms = self.files[path]
        return {"pathSuffix": name, "type": "FILE", "length": len(data), "modificationTime": time_ms}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: WebHdfsServer

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        query = dict(parse_qsl(url.query))
        op, path = query["op"], unquote(url.path).removeprefix(PREFIX)
        if op in BY_DATA_NODE and "on" not in query:
            self._send(307, b"", f"http://{self.server.address}{PREFIX}{quote(path)}?{url.query}&on=data")
            return
        self.server.asked.append(op)
        if op in self.server.answers:
            self._send(*self.server.answers[op])
            return
        with self.server.lock:
            try:
                found = getattr(self, f"_{op.lower()}")(path, query, body)
            except KeyError:
                self._send(404, error("FileNotFoundException", f"File does not exist: {path}"))
                return
        self._send(200, found if isinstance(found, bytes) else json.dumps(found).encode())

    do_GET = do_PUT = do_POST = do_DELETE = _answer

    def _send(self, status: int, body: bytes, location: str = "") -> None:
        self.send_response(status)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _getfilestatus(self, path: str, query: dict[str, str], body: bytes) -> Any:
        return {"FileStatus": {**self.server.status(path), "pathSuffix": ""}}

    def _liststatus(self, path: str, query: dict[str, str], body: bytes) -> Any:
        if not self.server.is_folder(path):
            return {"FileStatuses": {"FileStatus": [{**self.server.status(path), "pathSuffix": ""}]}}
        inside = {name[len(path.rstrip("/")) + 1 :].split("/")[0] for name in self.server.files if self._is_in(name, path)}
        statuses = [self.server.status(f"{path.rstrip('/')}/{name}") for name in sorted(inside)]
        return {"FileStatuses": {"FileStatus": statuses}}

    @staticmethod
    def _is_in(name: str, folder: str) -> bool:
        return name.startswith(f"{folder.rstrip('/')}/")

    def _open(self, path: str, query: dict[str, str], body: bytes) -> bytes:
        start = int(query["offset"])
        return self.server.files[path][0][start : start + int(query["length"])]

    def _create(self, path: str, query: dict[str, str], body: bytes) -> bytes:
        assert query["overwrite"] == "true"
        self.server.write(path, body)
        return b""

    def _append(self, path: str, query: dict[str, str], body: bytes) -> bytes:
        self.server.write(path, self.server.files[path][0] + body)
        return b""

    def _rename(self, path: str, query: dict[str, str], body: bytes) -> Any:
        target, replaces = query["destination"], query.get("renameoptions") == "OVERWRITE" and not self.server.is_gateway
        if target in self.server.files and not replaces:
            return {"boolean": False}
        self.server.files[target] = self.server.files.pop(path)
        return b"" if replaces else {"boolean": True}

    def _delete(self, path: str, query: dict[str, str], body: bytes) -> Any:
        return {"boolean": self.server.files.pop(path, None) is not None}

    def log_message(self, *_: object) -> None:
        pass


def error(name: str, message: str) -> bytes:
    """The body of a refusal."""
    return json.dumps({"RemoteException": {"exception": name, "javaClassName": name, "message": message}}).encode()
