"""An object server on loopback, in memory, of S3's interface and Google's XML one; it notes every request.

::

    python -m bench.object_server --latency-ms 30 --megabytes-per-second 50      prints its port, runs until it is ended
    GET  /-/requests                    [{"operation": "GET", "key": "b/t/data/x.lance", "start": 1.25, …}, …]
    POST /-/settings                    {"latency_ms": 30, "megabytes_per_second": 50}
    POST /-/faults                      [{"operation": "PUT", "contains": "_versions/", "status": 503, "times": 1}]
    POST /-/objects                     {"keys": ["b/t/a", "b/t/b"], "text": ""}, put without a request for each
    POST /-/copy                        {"from": "b/t/", "to": "b/u/"}, every object, without a request for each
    POST /-/forget                      the requests so far are forgotten

Buckets exist as soon as they are named; signatures are not checked. Conditional puts are real: one loop answers one
request at a time. A fault with `"after": true` does what was asked and then fails, as a lost reply does. One with
`"skip": 3` lets three matching requests pass first, one with `"times": -1` never ends, and status 0 closes the connection.
"""

from __future__ import annotations

import argparse
import asyncio
import bisect
import hashlib
import json
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from email.utils import formatdate
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

PAGE = 1000
_STEP = 256 << 10


@dataclass(frozen=True)
class Request:
    """One request as read from a connection."""

    method: str
    key: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Reply:
    """An answer; `length` is what a HEAD says of a body that it leaves out."""

    status: int = 200
    body: bytes | memoryview = b""
    headers: tuple[tuple[str, str], ...] = ()
    length: int | None = None


@dataclass(frozen=True)
class Seen:
    """A request that was answered."""

    operation: str
    key: str
    range: str
    start: float
    end: float
    received: int
    sent: int
    status: int


@dataclass(frozen=True)
class _Object:
    data: bytes
    tag: str
    modified: float


@dataclass
class _Fault:
    operation: str
    contains: str
    status: int
    times: int
    after: bool = False
    code: str = "SlowDown"
    skip: int = 0


@dataclass
class ObjectServer:
    """What the server holds and how fast it answers."""

    latency: float = 0.0
    bytes_per_second: float = 0.0
    objects: dict[str, _Object] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    faults: list[_Fault] = field(default_factory=list)

    def answer(self, operation: str, request: Request) -> Reply:
        """Do what a request asks."""
        fault = self._fault(operation, request.key)
        if fault is not None and not fault.after:
            return _error(fault.status, fault.code)
        reply = _OPERATIONS[operation](self, request)
        return reply if fault is None else _error(fault.status, fault.code)

    def put(self, key: str, data: bytes) -> _Object:
        """Hold an object."""
        if key not in self.objects:
            bisect.insort(self.names, key)
        made = _Object(data, f'"{hashlib.blake2b(data, digest_size=16).hexdigest()}"', time.time())
        self.objects[key] = made
        return made

    def remove(self, key: str) -> None:
        """Hold it no longer."""
        if self.objects.pop(key, None) is not None:
            del self.names[bisect.bisect_left(self.names, key)]

    def _fault(self, operation: str, key: str) -> _Fault | None:
        for fault in self.faults:
            if fault.times and fault.operation in ("", operation) and fault.contains in key:
                if fault.skip > 0:
                    fault.skip -= 1
                    continue
                fault.times -= 1
                return fault
        return None

    def get_object(self, request: Request) -> Reply:
        found = self.objects.get(request.key)
        if found is None:
            return _error(404, "NoSuchKey")
        size = len(found.data)
        headers = (("ETag", found.tag), ("Last-Modified", formatdate(found.modified, usegmt=True)))
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", request.headers.get("range", ""))
        if asked is None or request.method == "HEAD":
            return Reply(200, memoryview(found.data), headers, size)
        first, last = asked.groups()
        start = int(first) if first else max(0, size - int(last))
        end = min(size, int(last) + 1) if first and last else size
        if start >= size:
            return _error(416, "InvalidRange")
        headers += (("Content-Range", f"bytes {start}-{end - 1}/{size}"),)
        return Reply(206, memoryview(found.data)[start:end], headers, end - start)

    def put_object(self, request: Request) -> Reply:
        if _is_conditional(request) and request.key in self.objects:
            return _error(412, "PreconditionFailed")
        return Reply(200, headers=(("ETag", self.put(request.key, request.body).tag),))

    def put_part(self, request: Request) -> Reply:
        number = int(request.query["partNumber"])
        self.uploads[request.query["uploadId"]][number] = request.body
        return Reply(200, headers=(("ETag", f'"part-{number}"'),))

    def begin_upload(self, request: Request) -> Reply:
        name = secrets.token_hex(8)
        self.uploads[name] = {}
        bucket, _, key = request.key.partition("/")
        text = f"<Bucket>{bucket}</Bucket><Key>{escape(key)}</Key><UploadId>{name}</UploadId>"
        return _xml(f"<InitiateMultipartUploadResult>{text}</InitiateMultipartUploadResult>")

    def end_upload(self, request: Request) -> Reply:
        parts = self.uploads.pop(request.query["uploadId"])
        made = self.put(request.key, b"".join(parts[number] for number in sorted(parts)))
        bucket, _, key = request.key.partition("/")
        text = f"<Bucket>{bucket}</Bucket><Key>{escape(key)}</Key><ETag>{escape(made.tag)}</ETag>"
        return _xml(f"<CompleteMultipartUploadResult>{text}</CompleteMultipartUploadResult>")

    def give_up_upload(self, request: Request) -> Reply:
        self.uploads.pop(request.query["uploadId"], None)
        return Reply(204)

    def delete_object(self, request: Request) -> Reply:
        self.remove(request.key)
        return Reply(204)

    def delete_objects(self, request: Request) -> Reply:
        bucket = request.key.partition("/")[0]
        keys = [unescape(item) for item in re.findall(r"<Key>(.*?)</Key>", request.body.decode())]
        for key in keys:
            self.remove(f"{bucket}/{key}")
        done = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
        return _xml(f"<DeleteResult>{done}</DeleteResult>")

    def list_objects(self, request: Request) -> Reply:
        bucket, query = request.key.partition("/")[0], request.query
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        most = min(PAGE, int(query.get("max-keys", PAGE)))
        after = query.get("continuation-token") or query.get("start-after") or ""
        begin, whole = len(bucket) + 1, f"{bucket}/{prefix}"
        at = bisect.bisect_left(self.names, whole)
        if after:
            at = max(at, bisect.bisect_right(self.names, f"{bucket}/{after}"))
        found: list[str] = []
        folders: list[str] = []
        last = ""
        while at < len(self.names) and self.names[at].startswith(whole) and len(found) + len(folders) < most:
            key = self.names[at][begin:]
            cut = key.find(delimiter, len(prefix)) if delimiter else -1
            if cut >= 0:
                folder = key[: cut + len(delimiter)]
                folders.append(folder)
                last = f"{folder}\U0010ffff"
                at = bisect.bisect_left(self.names, f"{bucket}/{last}")
            else:
                found.append(key)
                last, at = key, at + 1
        more = at < len(self.names) and self.names[at].startswith(whole)
        return _xml(self._listing(bucket, query, found, folders, last if more else None))

    def _listing(
        self, bucket: str, query: Mapping[str, str], found: list[str], folders: list[str], token: str | None
    ) -> str:
        write = quote if query.get("encoding-type") == "url" else escape
        parts = [f"<Name>{bucket}</Name><KeyCount>{len(found) + len(folders)}</KeyCount><MaxKeys>{PAGE}</MaxKeys>"]
        parts.append(
            f"<Prefix>{write(query.get('prefix', ''))}</Prefix><IsTruncated>{str(bool(token)).lower()}</IsTruncated>"
        )
        if query.get("encoding-type") == "url":
            parts.append("<EncodingType>url</EncodingType>")
        if token:
            parts.append(f"<NextContinuationToken>{escape(token)}</NextContinuationToken>")
        for key in found:
            item = self.objects[f"{bucket}/{key}"]
            moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(item.modified)) + ".000Z"
            facts = f"<LastModified>{moment}</LastModified><ETag>{escape(item.tag)}</ETag><Size>{len(item.data)}</Size>"
            parts.append(f"<Contents><Key>{write(key)}</Key>{facts}<StorageClass>STANDARD</StorageClass></Contents>")
        parts += [f"<CommonPrefixes><Prefix>{write(item)}</Prefix></CommonPrefixes>" for item in folders]
        return f"<ListBucketResult>{''.join(parts)}</ListBucketResult>"

    def control(self, request: Request) -> Reply:
        """What a test or a measurement asks of the server itself."""
        what = request.key.removeprefix("-/")
        if what == "requests":
            return Reply(200, json.dumps([asdict(item) for item in self.seen]).encode())
        given = json.loads(request.body or b"null")
        if what == "settings":
            self.latency = given["latency_ms"] / 1000
            self.bytes_per_second = given["megabytes_per_second"] * 1e6
        elif what == "objects":
            for key in given["keys"]:
                self.put(key, given.get("text", "").encode())
        elif what == "copy":
            for key in [name for name in self.names if name.startswith(given["from"])]:
                self.put(given["to"] + key.removeprefix(given["from"]), self.objects[key].data)
        elif what == "faults":
            self.faults = [_Fault(**{"contains": "", "times": 1, **item}) for item in given]
        self.seen.clear()
        return Reply(200, b"{}")


_OPERATIONS: Mapping[str, Callable[[ObjectServer, Request], Reply]] = {
    "GET": ObjectServer.get_object,
    "HEAD": ObjectServer.get_object,
    "LIST": ObjectServer.list_objects,
    "PUT": ObjectServer.put_object,
    "PUT-IF-ABSENT": ObjectServer.put_object,
    "PART": ObjectServer.put_part,
    "UPLOAD": ObjectServer.begin_upload,
    "COMPLETE": ObjectServer.end_upload,
    "ABORT": ObjectServer.give_up_upload,
    "DELETE": ObjectServer.delete_object,
    "DELETE-MANY": ObjectServer.delete_objects,
}


def _operation(request: Request) -> str:
    has_key = bool(request.key.partition("/")[2])
    if request.method == "GET":
        return "GET" if has_key else "LIST"
    if request.method == "PUT":
        if "partNumber" in request.query:
            return "PART"
        return "PUT-IF-ABSENT" if _is_conditional(request) else "PUT"
    if request.method == "POST":
        return "DELETE-MANY" if "delete" in request.query else "UPLOAD" if "uploads" in request.query else "COMPLETE"
    if request.method == "DELETE" and "uploadId" in request.query:
        return "ABORT"
    return request.method


def _is_conditional(request: Request) -> bool:
    """Whether a put asks to be the first: in the words of S3, or in those of Google's XML interface."""
    return request.headers.get("if-none-match") == "*" or request.headers.get("x-goog-if-generation-match") == "0"


def _xml(text: str, status: int = 200) -> Reply:
    return Reply(status, f'<?xml version="1.0" encoding="UTF-8"?>\n{text}'.encode(), (("Content-Type", "application/xml"),))


def _error(status: int, code: str) -> Reply:
    return _xml(f"<Error><Code>{code}</Code><Message>{code}</Message></Error>", status)


class Connection:
    """One client's connection: requests one after the other, each late by the latency and no faster than the bandwidth."""

    def __init__(self, server: ObjectServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._server = server
        self._reader = reader
        self._writer = writer

    async def run(self) -> None:
        """Answer until the client goes away."""
        try:
            while True:
                head = await self._reader.readuntil(b"\r\n\r\n")
                start = time.monotonic()
                request = await self._read(head.decode("latin1"))
                if request.key.startswith("-/"):
                    await self._send(self._server.control(request), request, paced=False)
                    continue
                await self._answer(request, start)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            self._writer.close()

    async def _answer(self, request: Request, start: float) -> None:
        server, operation = self._server, _operation(request)
        body_seconds = len(request.body) / server.bytes_per_second if server.bytes_per_second else 0.0
        await asyncio.sleep(server.latency + max(0.0, body_seconds - (time.monotonic() - start)))
        reply = server.answer(operation, request)
        if not reply.status:
            raise ConnectionResetError
        await self._send(reply, request, paced=True)
        sent = 0 if request.method == "HEAD" else len(reply.body)
        asked, received, end = request.headers.get("range", ""), len(request.body), time.monotonic()
        server.seen.append(Seen(operation, request.key, asked, start, end, received, sent, reply.status))

    async def _read(self, head: str) -> Request:
        first, *lines = head.split("\r\n")
        method, target, _ = first.split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
        if headers.get("expect", "").lower() == "100-continue":
            self._writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await self._reader.readexactly(int(headers.get("content-length", "0")))
        if headers.get("content-encoding", "").startswith("aws-chunked"):
            body = _without_chunks(body)
        parts = urlsplit(target)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        return Request(method, unquote(parts.path).lstrip("/"), query, headers, body)

    async def _send(self, reply: Reply, request: Request, *, paced: bool) -> None:
        length = len(reply.body) if reply.length is None else reply.length
        lines = [f"HTTP/1.1 {reply.status} {'OK' if reply.status < 300 else 'No'}", f"Content-Length: {length}"]
        lines += [f"{name}: {value}" for name, value in reply.headers]
        self._writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        if request.method != "HEAD":
            await self._send_body(memoryview(reply.body), self._server.bytes_per_second if paced else 0)
        await self._writer.drain()

    async def _send_body(self, body: memoryview, rate: float) -> None:
        began = time.monotonic()
        for at in range(0, len(body), _STEP):
            self._writer.write(body[at : at + _STEP])
            await self._writer.drain()
            ahead = (at + _STEP) / rate - (time.monotonic() - began) if rate and len(body) > _STEP else 0
            if ahead > 0.002:
                await asyncio.sleep(ahead)


def _without_chunks(body: bytes) -> bytes:
    found, at = bytearray(), 0
    while True:
        end = body.index(b"\r\n", at)
        size = int(body[at:end].split(b";")[0], 16)
        if not size:
            return bytes(found)
        found += body[end + 2 : end + 2 + size]
        at = end + 4 + size


async def serve(server: ObjectServer, port: int) -> None:
    """Answer on loopback until the process ends; the port is printed."""
    listening = await asyncio.start_server(lambda *pair: Connection(server, *pair).run(), "127.0.0.1", port, limit=1 << 20)
    print(listening.sockets[0].getsockname()[1], flush=True)
    async with listening:
        await listening.serve_forever()


def main() -> None:
    """Run the server."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency-ms", type=float, default=0.0)
    parser.add_argument("--megabytes-per-second", type=float, default=0.0)
    given = parser.parse_args()
    asyncio.run(serve(ObjectServer(given.latency_ms / 1000, given.megabytes_per_second * 1e6), given.port))


if __name__ == "__main__":
    main()
