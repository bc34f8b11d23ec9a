"""An endpoint with OpenAI's interface on loopback: what it was asked is kept, and it refuses what a test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Endpoint:
    """`refuses`: statuses for the next requests, one each. `silent`: nothing is answered until it is set free."""

    uri: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    refuses: list[int] = field(default_factory=list)
    spoils: str = ""
    silent: threading.Event | None = None


def vector_of(text: str, size: int = 4) -> list[float]:
    """The vector of a text at this endpoint."""
    return [float(len(text))] + [float(ord(text[0])) if text else 0.0] * (size - 1)


def _answer(endpoint: Endpoint, path: str, body: dict[str, Any]) -> dict[str, Any]:
    usage = {"prompt_tokens": 5, "total_tokens": 7}
    if path.endswith("/embeddings"):
        size = body.get("dimensions", 4)
        data = [
            {"object": "embedding", "index": number, "embedding": vector_of(text, size)}
            for number, text in enumerate(body["input"])
        ]
        if endpoint.spoils:
            data = data[:-1]
        # The last first: an answer has its own order.
        return {"object": "list", "data": data[::-1], "model": body["model"], "usage": usage}
    text = body["messages"][-1]["content"].upper()
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return {
        "id": "1", "object": "chat.completion", "created": 1, "model": body["model"], "choices": [choice],
        "usage": {**usage, "completion_tokens": 2},
    }  # fmt: skip


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has given up is no news."""


@contextmanager
def openai_server() -> Iterator[Endpoint]:
    """The endpoint, and its base uri."""
    endpoint = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            endpoint.asked.append(body)
            endpoint.keys.append(self.headers.get("Authorization", ""))
            if endpoint.silent is not None:
                endpoint.silent.wait(30)
            status = endpoint.refuses.pop(0) if endpoint.refuses else 200
            told = _answer(endpoint, self.path, body) if status == 200 else {"error": {"message": "very secret text"}}
            data = json.dumps(told).encode()
            self.send_response(status)
            if status == 429:
                self.send_header("Retry-After", "0")
            if status == 307:
                self.send_header("Location", "http://127.0.0.1:9/elsewhere")
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    endpoint.uri = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
