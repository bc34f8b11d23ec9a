"""HDFS over HTTP, by Hadoop's WebHDFS interface: fsspec's file system, with what the answers mean. Imports requests.

::

    GET  name node  ?op=OPEN&offset=5&length=10   307 -> a data node, which sends the bytes
    PUT  name node  ?op=CREATE                    307 -> PUT data node, with the first bytes; APPEND for those that follow
    PUT  name node  ?op=RENAME&renameoptions=OVERWRITE   one step of the name node's, also onto what is there

fsspec's own takes a data node's error for the bytes of a file, a rename that was refused (`{"boolean": false}`) for one that
was done, a folder for an empty file, tells no time of change where others tell it, and waits without end.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from fsspec.implementations.webhdfs import WebHDFile, WebHDFS

PORT = 9870
"""Where a name node of Hadoop 3 answers."""
CONNECT_SECONDS, REQUEST_SECONDS = 10.0, 60.0


class HadoopError(OSError):
    """What a node refused. `error_code`: the class of the error there, "" where it said none; `status_code`: of HTTP."""

    def __init__(self, error_code: str, status_code: int, message: str) -> None:
        super().__init__(f"{error_code or 'HTTP'} {status_code}: {message}")
        self.error_code, self.status_code = error_code, status_code


class WebHdfs(WebHDFS):  # type: ignore[misc]
    """The file system of a name node. Thread-safe, as far as a session of requests is."""

    protocol = "webhdfs"

    def __init__(
        self,
        host: str,
        port: int = PORT,
        *,
        connect_seconds: float = CONNECT_SECONDS,
        request_seconds: float = REQUEST_SECONDS,
        **arguments: Any,
    ) -> None:
        self._seconds = (connect_seconds, request_seconds)
        super().__init__(host, port, **arguments)

    def info(self, path: str) -> dict[str, Any]:
        """Of a file or a folder. FileNotFoundError where there is none."""
        return _told(self._call("GETFILESTATUS", path=path).json()["FileStatus"], path)

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """What is directly in a folder; nothing for a file. FileNotFoundError where there is none."""
        statuses = self._call("LISTSTATUS", path=path).json()["FileStatuses"]["FileStatus"]
        inside = [_told(status, f"{path.rstrip('/')}/{status['pathSuffix']}") for status in statuses if status["pathSuffix"]]
        return inside if detail else [found["name"] for found in inside]

    def mv(self, path1: str, path2: str, **_: Any) -> None:
        """Rename, also onto what is there. OSError where it was not done: a gateway (HttpFS) does not replace."""
        answer = self._call("RENAME", "put", path1, destination=path2, renameoptions="OVERWRITE")
        if answer.content and not answer.json()["boolean"]:
            raise OSError(f"{path1} was not renamed to {path2}")

    def _open(self, path: str, mode: str = "rb", block_size: int | None = None, **_: Any) -> _File:
        # Ranges are joined by the reader's own rule: nothing is read ahead.
        size = block_size or self.blocksize
        return _File(self, path, mode=mode, block_size=size, cache_type="none", tempdir="", autocommit=True)

    def _call(
        self,
        op: str,
        method: str = "get",
        path: str | None = None,
        data: bytes | None = None,
        redirect: bool = True,
        **parameters: Any,
    ) -> Any:
        url = self.url + quote(self._strip_protocol(path or ""), safe="/")
        return self.send(method, url, data, redirect=redirect, params={**parameters, **self.pars, "op": op})

    def send(self, method: str, url: str, data: bytes | None, *, redirect: bool = False, params: Any = None) -> Any:
        """One request. FileNotFoundError, HadoopError, or what requests raises."""
        headers = None if data is None else {"content-type": "application/octet-stream"}
        answer = self.session.request(
            method.upper(),
            url,
            params=params,
            data=data,
            headers=headers,
            allow_redirects=redirect,
            timeout=self._seconds,
        )
        if answer.status_code >= 400:
            raise _error_of(answer)
        return answer


class _File(WebHDFile):  # type: ignore[misc]
    """A file that is read by ranges, or created with its first bytes and appended to."""

    def __init__(self, fs: WebHdfs, path: str, **arguments: Any) -> None:
        super().__init__(fs, path, **arguments)
        if self.mode == "rb" and self.details["type"] == "directory":
            raise IsADirectoryError(path)

    def _fetch_range(self, start: int, end: int) -> bytes:
        if start >= end:
            return b""
        found: bytes = self.fs._call("OPEN", path=self.path, offset=start, length=end - start).content
        if len(found) != end - start:
            raise ConnectionError(f"{len(found)} of {end - start} bytes came from {self.path}")
        return found

    def _initiate_upload(self) -> None:
        self.location = None

    def _upload_chunk(self, final: bool = False) -> bool:
        op, method = ("CREATE", "put") if self.location is None else ("APPEND", "post")
        self.location = self.fs._call(op, method, self.path, overwrite="true", redirect=False).headers["Location"]
        self.fs.send(method, self.location, self.buffer.getvalue())
        return True


def _told(status: dict[str, Any], path: str) -> dict[str, Any]:
    """As fsspec's file systems tell it; Hadoop's times are in milliseconds."""
    kind, time = status["type"].lower(), status["modificationTime"] / 1000
    return {**status, "name": path, "type": kind, "size": status["length"], "mtime": time}


def _error_of(answer: Any) -> OSError:
    try:
        told = answer.json()["RemoteException"]
        name, message = str(told["exception"]), str(told["message"])
    except (ValueError, KeyError, TypeError):
        name, message = "", " ".join(answer.text.split())[:200]
    if name == "FileNotFoundException":
        return FileNotFoundError(message)
    return HadoopError(name, answer.status_code, message)
