"""Start the loopback object server, ask it what it saw, and say how deep and how wide that was.

::

    with object_server(latency_ms=30, megabytes_per_second=50) as server:
        lance_core.write_dataset(table, "s3://b/t", storage_options=server.options)
        with server.watch() as seen:
            lance_core.dataset("s3://b/t", storage_options=server.options).count_rows()
        seen.requests, seen.depth, seen.width, seen.num_bytes
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_KEYS = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing-secret", "aws_region": "us-east-1"}


@dataclass
class Traffic:
    """What went over the wire while something ran."""

    seen: list[Mapping[str, Any]] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def requests(self) -> int:
        """How many requests were answered."""
        return len(self.seen)

    @property
    def num_bytes(self) -> int:
        """Bytes of bodies, both ways."""
        return sum(item["sent"] + item["received"] for item in self.seen)

    @property
    def operations(self) -> Counter[str]:
        """Requests by kind."""
        return Counter(item["operation"] for item in self.seen)

    @property
    def depth(self) -> int:
        """The longest chain of requests of which each began after the one before had ended."""
        return depth_of([(item["start"], item["end"]) for item in self.seen])

    @property
    def width(self) -> int:
        """The most requests that were under way at once."""
        events = sorted([(item["start"], 1) for item in self.seen] + [(item["end"], -1) for item in self.seen])
        most = now = 0
        for _, step in events:
            now += step
            most = max(most, now)
        return most

    def __str__(self) -> str:
        size = f"{self.num_bytes / 1e6:.2f} MB"
        return f"{self.requests} requests, depth {self.depth}, width {self.width}, {size}, {dict(self.operations)}"


def depth_of(spans: Sequence[tuple[float, float]]) -> int:
    """The most spans that follow one another without overlapping.

    >>> depth_of([(0, 1), (0, 1), (1, 2), (1.5, 3)])
    2
    """
    found, free = 0, float("-inf")
    for start, end in sorted(spans, key=lambda item: item[1]):
        if start >= free:
            found, free = found + 1, end
    return found


@dataclass
class RunningServer:
    """A server in a process of its own."""

    port: int

    @property
    def endpoint(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def options(self) -> dict[str, str]:
        """Storage options that reach it, for this library and the official one."""
        return {**_KEYS, "aws_endpoint": self.endpoint, "allow_http": "true"}

    def set_speed(self, *, latency_ms: float, megabytes_per_second: float) -> None:
        """Answer as late and as slowly as this from now on; 0 MB/s is as fast as it can."""
        self._ask("settings", {"latency_ms": latency_ms, "megabytes_per_second": megabytes_per_second})

    def put_objects(self, uri: str, names: Sequence[str], text: str = "") -> None:
        """Put many small objects below an s3:// uri at once; they are not counted."""
        place = uri.removeprefix("s3://")
        self._ask("objects", {"keys": [f"{place}/{name}" for name in names], "text": text})

    def copy(self, uri: str, target: str) -> None:
        """Copy every object below an s3:// uri to another at once; they are not counted."""
        self._ask("copy", {"from": uri.removeprefix("s3://") + "/", "to": target.removeprefix("s3://") + "/"})

    def fail(self, *faults: Mapping[str, Any]) -> None:
        """Answer the next matching requests with an error: see the server."""
        self._ask("faults", faults)

    @contextlib.contextmanager
    def watch(self) -> Iterator[Traffic]:
        """The traffic of a block, filled in at its end."""
        self._ask("forget", None)
        found, began = Traffic(), time.perf_counter()
        yield found
        found.seconds = time.perf_counter() - began
        found.seen = self._ask("requests")

    def traffic_of(self, action: Callable[[], object], *, latency_ms: float) -> Traffic:
        """What an action sends when every answer is late and nothing is remembered."""
        from lance_core.io.cache import shared_cache  # a process that measures the official library has no use for it

        shared_cache().clear()
        self.set_speed(latency_ms=latency_ms, megabytes_per_second=0)
        try:
            with self.watch() as seen:
                action()
        finally:
            self.set_speed(latency_ms=0, megabytes_per_second=0)
        return seen

    def _ask(self, what: str, given: object = ...) -> Any:
        data = None if given is ... else json.dumps(given).encode()
        with urllib.request.urlopen(f"{self.endpoint}/-/{what}", data, timeout=60) as answer:
            return json.loads(answer.read())


@contextlib.contextmanager
def object_server(*, latency_ms: float = 0.0, megabytes_per_second: float = 0.0) -> Iterator[RunningServer]:
    """A server of its own process, ended with the block."""
    flags = ["--latency-ms", str(latency_ms), "--megabytes-per-second", str(megabytes_per_second)]
    command = [sys.executable, str(Path(__file__).with_name("object_server.py")), *flags]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.strip():
            raise RuntimeError(f"the object server ended with status {process.wait(timeout=20)}")
        yield RunningServer(int(line))
    finally:
        process.terminate()
        process.wait(timeout=20)
