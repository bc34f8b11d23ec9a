"""Object stores through fsspec; nothing outside of this package imports it.

::

    s3://bucket/t      s3fs    put_if_absent = PUT with If-None-Match: *
    gs://bucket/t      gcsfs   put_if_absent = upload with ifGenerationMatch=0
    az://container/t   adlfs   put_if_absent = upload with If-None-Match: *
    hdfs://…, http://… others  no conditional put: readable and stageable, but a commit is refused

fsspec has the same call for the first three, `pipe_file(mode="create")`, and backends that silently ignore it. So only those
three are trusted, and behind a custom endpoint (MinIO, Ceph, an emulator) conditional put is tried out once before it is.

Keep the file systems of fsspec with the host that their options name: no credential goes where an answer points to.

::

    s3fs      a session of aiobotocore that does not follow; botocore would look for the region without end
    gcsfs     aiohttp says what it is about to do, and is refused
    adlfs     azure-core's policy does not allow it

aiohttp takes the session token along in a header, and all three take the address with what signs it. Only behind an
endpoint of the user's: a cloud that is asked at its own address may send to another of its own.
"""

from __future__ import annotations

import os
import secrets
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from importlib import import_module
from inspect import signature
from typing import Any
from urllib.parse import urlsplit

import fsspec

from lance_core.errors import (
    AlreadyExistsError,
    CorruptFileError,
    InputError,
    NotFoundError,
    PreconditionError,
    StoreError,
    StoreRefusedError,
    UnsupportedFeatureError,
)
from lance_core.fetch import Buffer, ByteRange
from lance_core.io.answers import MOVED_CURE, REDIRECTS, TransientError
from lance_core.io.limits import check_size, limit_of
from lance_core.io.paths import checked_path, checked_prefix, is_unfinished
from lance_core.io.ranges import refuse_beyond
from lance_core.io.remote import options as remote_options
from lance_core.io.remote.errors import DEFAULT_RETRIES, Redactor, Retries, put_settled, retrying, typed
from lance_core.io.remote.folders import files_below, put_by_name, read_opened
from lance_core.io.remote.libhdfs import explained
from lance_core.io.remote.probes import probes
from lance_core.io.remote.renewal import renews_keys
from lance_core.io.remote.writer import RemoteWriter
from lance_core.io.store import Store, StoreEntry, plain_tag


@dataclass(frozen=True, slots=True)
class _Backend:
    """How a family of schemes is reached: fsspec protocol, arguments, whether its conditional put is real, what it needs.

    `shows_writes`: an object is seen while it is being written, so it gets its name afterwards.
    `repeats`: its library repeats requests itself and cannot be told not to, so the store does not.
    """

    protocol: str
    arguments: Callable[[Mapping[str, str]], dict[str, Any]]
    conditional: bool
    install: str
    shows_writes: bool = False
    repeats: bool = False


_S3 = _Backend("s3", remote_options.s3_arguments, True, "airflow-provider-lance[s3]")
_GCS = _Backend("gcs", remote_options.gcs_arguments, True, "airflow-provider-lance[gcs]", repeats=True)
_AZURE = _Backend("abfs", remote_options.azure_arguments, True, "airflow-provider-lance[azure]", repeats=True)
_BACKENDS: Mapping[str, _Backend] = {
    **dict.fromkeys(("s3", "s3a", "s3n"), _S3),
    **dict.fromkeys(("gs", "gcs"), _GCS),
    **dict.fromkeys(("az", "azure", "adl", "abfs", "abfss", "wasb", "wasbs"), _AZURE),
    **dict.fromkeys(("hdfs", "viewfs"), _Backend("hdfs", remote_options.hdfs_arguments, False, "", shows_writes=True)),
    "webhdfs": _Backend("webhdfs", remote_options.webhdfs_arguments, False, "requests", shows_writes=True),
    **dict.fromkeys(("http", "https"), _Backend("http", remote_options.no_arguments, False, "")),
    "oss": _Backend("oss", remote_options.oss_arguments, False, ""),
}


def open_remote(uri: str, options: Mapping[str, str]) -> Store:
    """The store of a remote uri. Raises InputError for credentials in the uri, or when the backend's package is missing."""
    parts = urlsplit(uri)
    backend = _BACKENDS.get(parts.scheme.lower())
    if backend is None:
        raise InputError(f"there is no store for uris that begin with {parts.scheme}://")
    arguments = backend.arguments(options)
    bucket, arguments = _bucket(backend, parts.scheme.lower(), parts.netloc, arguments)
    if parts.query or parts.fragment:
        raise InputError("the uri of a table must not have a query or a fragment", cure="Pass options as storage_options.")
    root = f"{bucket}{parts.path}".rstrip("/")
    if backend.protocol == "http":
        root = uri.rstrip("/")
    has_own_endpoint = any(name in arguments for name in ("endpoint_url", "account_host"))
    arguments = _of_one_bucket(backend, bucket or parts.netloc, arguments)
    once = remote_options.sent_once(arguments) if backend is _S3 else arguments
    return RemoteStore(
        lambda: _connect(backend, once, uri=uri),
        root=root,
        uri=uri.rstrip("/"),
        conditional=None if backend.conditional and has_own_endpoint else backend.conditional,
        place=(backend.protocol, str(arguments.get("endpoint_url") or arguments.get("account_host")), bucket),
        redact=Redactor(options),
        shows_writes=backend.shows_writes,
        retries=Retries(
            0 if backend.repeats else remote_options.max_retries(options), remote_options.retry_seconds(options)
        ),
        renews=renews_keys(uri, options),
        connect_uploads=lambda: _connect(backend, arguments, uri=uri),
    )


class RemoteStore:
    """A folder of an fsspec file system. `conditional` None: find out whether conditional put works before trusting it."""

    is_local = False
    is_wide = False

    def __init__(
        self,
        connect: Callable[[], Any],
        *,
        root: str,
        uri: str,
        conditional: bool | None,
        place: tuple[str, ...] = (),
        redact: Redactor | None = None,
        shows_writes: bool = False,
        retries: Retries = DEFAULT_RETRIES,
        renews: bool = True,
        connect_uploads: Callable[[], Any] | None = None,
    ) -> None:
        self._connect = connect
        self._connect_uploads = connect_uploads
        self._root = root.rstrip("/")
        self._uri = uri
        self._conditional = conditional
        self._place = place
        self._redact = redact or Redactor({})
        self._shows_writes = shows_writes
        self._retries = retries
        self._renews = renews
        self._connected: tuple[int, Any] | None = None

    def __repr__(self) -> str:
        return f"RemoteStore({self._uri!r})"

    @property
    def uri(self) -> str:
        """The uri as it was given; credentials never were part of it."""
        return self._uri

    @property
    def has_put_if_absent(self) -> bool:
        """Whether the backend's conditional put is real. Behind a custom endpoint this asks the endpoint, once."""
        if self._conditional is None:
            self._conditional = probes().is_conditional(self._place, self._try_out) if self._place else self._try_out()
        return self._conditional

    def get(self, path: str) -> Buffer:
        """A whole object, one request, if it is not larger than its kind may be."""
        return self._whole(path, most=limit_of(path))

    def _whole(self, path: str, *, most: int) -> Buffer:
        """One ranged read of at most that much and a byte, which shows an object that is larger."""
        full = self._full(path)
        upto = ByteRange(0, most + 1)
        try:
            data: bytes = self._again(path, lambda: self._fetch(full, [upto])[0])
        except (TransientError, StoreRefusedError):
            raise
        except StoreError as error:
            # 416, InvalidRange; of a file system with folders whatever it says of one.
            is_about_range = self._shows_writes or any(word in str(error) for word in ("416", "Range"))
            if is_about_range and self._is_empty(path):
                return b""
            raise
        if len(data) > most:
            check_size(path, max(self.size(path), len(data)), most=most, uri=self._uri)
        return data

    def _is_empty(self, path: str) -> bool:
        """Whether a range was refused because there is no first byte. NotFoundError for a folder."""
        try:
            return self.size(path) == 0
        except StoreError:
            return False

    def get_ranges(self, path: str, ranges: Sequence[ByteRange]) -> Sequence[Buffer]:
        """One request per range, all at once where the backend can."""
        full = self._full(path)
        wanted = [item for item in ranges if item.end > item.start]
        if any(item.start < 0 for item in wanted):
            raise CorruptFileError(f"{path!r}: a requested range begins before the file")
        try:
            found = self._again(path, lambda: self._fetch(full, wanted)) if wanted else []
        except StoreError:
            refuse_beyond(path, wanted, size=self.size(path), uri=self._uri)
            raise
        if any(len(data) != item.size for data, item in zip(found, wanted, strict=True)):
            refuse_beyond(path, wanted, size=self.size(path), uri=self._uri)
            raise StoreError(f"{path!r}: the store returned fewer bytes than requested")
        answers = iter(found)
        return [next(answers) if item.end > item.start else b"" for item in ranges]

    def size(self, path: str) -> int:
        """Bytes in an object."""
        return int(self._info(path)["size"])

    def stat(self, path: str) -> StoreEntry:
        """One request, which tells the object's tag where the file system does."""
        info = self._info(path)
        tag = next((info[name] for name in ("ETag", "etag", "e_tag") if isinstance(info.get(name), str)), None)
        return StoreEntry(path, int(info["size"]), _modified(info), plain_tag(tag))

    def _info(self, path: str) -> Mapping[str, Any]:
        full = self._full(path)
        info: Mapping[str, Any] = self._again(path, lambda: self._fs.info(full))
        if info.get("type") == "directory":
            raise NotFoundError(f"no object {path!r} in {self._uri}", uri=self._uri)
        return info

    def put(self, path: str, data: Buffer, *, durable: bool = True) -> None:
        """One request, or a multipart upload that becomes visible at its end."""
        full = self._full(path)
        if self._shows_writes:
            self._again(path, lambda: put_by_name(self._fs, full, bytes(data)))
        else:
            self._again(path, lambda: self._fs.pipe_file(full, bytes(data)))

    def put_if_absent(self, path: str, data: Buffer, *, durable: bool = True) -> None:
        """The backend's conditional put; after a failure that may have been only the reply's, what is there is compared."""
        full = self._full(path)
        if not self.has_put_if_absent:
            raise PreconditionError(
                f"{self._uri}: this store has no conditional put",
                uri=self._uri,
                cure="Use a store with conditional put, a newer release of its server, or an external manifest store.",
            )
        sent = bytes(data)
        create = partial(self._once, path, lambda: self._fs.pipe_file(full, sent, mode="create"))
        put_settled(create, lambda: self.get(path), sent, self._retries)

    def copy_if_absent(self, source: str, target: str) -> None:
        """Read, then conditional put."""
        full = self._full(source)
        self.put_if_absent(target, self._again(source, lambda: self._fs.cat_file(full)))

    def open_writer(self, path: str) -> RemoteWriter:
        """A multipart upload; small objects go in one request."""
        connect, full = (lambda: self._fs), self._full(path)
        return RemoteWriter(
            connect,
            full,
            uploads=self._connect_uploads or connect,
            path=path,
            redact=self._redact,
            shows_writes=self._shows_writes,
            retries=self._retries,
        )

    def list(self, prefix: str) -> Iterator[StoreEntry]:
        """Objects below a folder."""
        return (entry for entry in self._find(prefix) if not is_unfinished(entry.path))

    def list_unfinished(self, prefix: str) -> Iterator[StoreEntry]:
        """Temporary files, on file systems that have them; unfinished uploads are ended by the bucket's lifecycle rules."""
        return (entry for entry in self._find(prefix) if is_unfinished(entry.path))

    def _find(self, prefix: str) -> Iterator[StoreEntry]:
        folder = self._full_prefix(prefix)
        try:
            found = self._walked(folder) if self._shows_writes else self._again(prefix, lambda: self._listed(folder))
        except NotFoundError:
            return iter(())
        return iter([self._entry(name, info) for name, info in found.items() if self._is_below(name, folder)])

    def _listed(self, folder: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._fs.find(folder, detail=True, refresh=True)
        return found

    def _walked(self, folder: str) -> Mapping[str, Any]:
        return files_below(folder, lambda here: self._again(here, lambda: self._fs.ls(here, detail=True)))

    def list_names(self, folder: str) -> Sequence[str]:
        """Names directly in a folder."""
        full = self._full_prefix(folder)
        try:
            found = self._again(folder, lambda: self._fs.ls(full, detail=True, refresh=True))
        except NotFoundError:
            return []
        files = [self._strip(info["name"]) for info in found if info.get("type") != "directory"]
        below = [name.rsplit("/", 1)[-1] for name in files if name.rsplit("/", 1)[0] == self._strip(full)]
        return [name for name in below if not is_unfinished(name)]

    def list_folders(self, folder: str) -> Sequence[str]:
        """Names of the folders directly in a folder, sorted; [] when there is no such folder."""
        full = self._full_prefix(folder)
        try:
            found = self._again(folder, lambda: self._fs.ls(full, detail=True, refresh=True))
        except NotFoundError:
            return []
        names = [self._strip(info["name"]).rstrip("/") for info in found if info.get("type") == "directory"]
        return sorted(name.rsplit("/", 1)[-1] for name in names if name != self._strip(full).rstrip("/"))

    def delete(self, path: str) -> None:
        """Remove an object."""
        full = self._full(path)
        try:
            self._again(path, lambda: self._fs.rm_file(full))
        except NotFoundError:
            return

    def child(self, path: str) -> RemoteStore:
        """A store rooted at a sub-folder, over the same connection."""
        below = checked_path(path.rstrip("/"))
        return RemoteStore(
            lambda: self._fs,
            root=f"{self._root}/{below}",
            uri=f"{self._uri}/{below}",
            conditional=self._conditional,
            place=self._place,
            redact=self._redact,
            shows_writes=self._shows_writes,
            retries=self._retries,
            renews=self._renews,
            connect_uploads=self._connect_uploads,
        )

    @property
    def _fs(self) -> Any:
        # fsspec's event loop does not survive a fork: a child connects again.
        connected = self._connected
        if connected is None or connected[0] != os.getpid():
            connected = self._connected = (os.getpid(), self._connect())
        return connected[1]

    def _full(self, path: str) -> str:
        return f"{self._root}/{checked_path(path)}"

    def _full_prefix(self, prefix: str) -> str:
        return f"{self._root}/{checked_prefix(prefix)}".rstrip("/")

    def _strip(self, name: str) -> str:
        # Some file systems name what they list with a slash in front, and some without.
        return str(self._fs._strip_protocol(name)).lstrip("/")

    def _is_below(self, name: str, folder: str) -> bool:
        return self._strip(name).startswith(f"{self._strip(folder)}/")

    def _entry(self, name: str, info: Mapping[str, Any]) -> StoreEntry:
        path = self._strip(name)[len(self._strip(self._root)) + 1 :]
        return StoreEntry(path=path, size=int(info.get("size") or 0), modified=_modified(info))

    def _fetch(self, full: str, ranges: Sequence[ByteRange]) -> Sequence[bytes]:
        fs = self._fs
        if self._shows_writes:
            return read_opened(fs, full, ranges)
        if len(ranges) == 1:
            return [fs.cat_file(full, start=ranges[0].start, end=ranges[0].end)]
        starts, ends = [item.start for item in ranges], [item.end for item in ranges]
        found: Sequence[bytes] = fs.cat_ranges([full] * len(ranges), starts, ends, on_error="raise")
        return found

    def _try_out(self) -> bool:
        full = f"{self._root}/_lance_core/probe/{secrets.token_hex(8)}"
        self._again("probe", lambda: self._fs.pipe_file(full, b"1", mode="create"))
        try:
            self._again("probe", lambda: self._fs.pipe_file(full, b"2", mode="create"))
            return False
        except AlreadyExistsError:
            return True
        finally:
            self._again("probe", lambda: self._fs.rm_file(full))

    def _once(self, path: str, action: Callable[[], Any]) -> Any:
        with typed(path, uri=self._uri, redact=self._redact, renews=self._renews):
            return action()

    def _again(self, path: str, action: Callable[[], Any]) -> Any:
        return retrying(lambda: self._once(path, action), self._retries)


def _connect(backend: _Backend, arguments: Mapping[str, Any], *, uri: str) -> Any:
    try:
        _refuse_greenlets(backend)
        arguments = with_fence(backend.protocol, arguments)
        # Listings must be those of now: a cached one would hide other writers' versions.
        if backend.protocol == "gcs" and "endpoint_url" in arguments:
            # gcsfs asks Google over gRPC what kind of bucket this is; its core speaks to the endpoint only.
            return import_module("gcsfs.core").GCSFileSystem(use_listings_cache=False, **arguments)
        if backend.protocol == "webhdfs":
            return import_module("lance_core.io.remote.webhdfs").WebHdfs(use_listings_cache=False, **arguments)
        found = fsspec.filesystem(backend.protocol, use_listings_cache=False, **arguments)
        if backend.protocol == "s3":
            found.retries = 1  # how often each request is sent
        fence_in(backend.protocol, arguments, found)
        return found
    except ImportError as error:
        raise InputError(
            f"the package for {backend.protocol} is not installed: {error}",
            cure=f"Install {backend.install}." if backend.install else None,
        ) from error
    except OSError as error:
        refusal = explained(error, uri=uri) if backend.protocol == "hdfs" else None
        if refusal is None:
            raise
        raise refusal from None


def _refuse_greenlets(backend: _Backend) -> None:
    """fsspec waits in one thread for a loop in another; gevent makes one thread of both, and nothing can be asked."""
    patched = sys.modules.get("gevent.monkey")
    if patched is not None and patched.is_module_patched("threading") and _has_a_loop(backend.protocol):
        raise UnsupportedFeatureError(
            f"fsspec's file system for {backend.protocol} does not work in a process that gevent has patched",
            cure="Leave out store_engine=fsspec, so that obstore is used, or run workers whose pool is not gevent.",
        )


def _has_a_loop(protocol: str) -> bool:
    return bool(fsspec.get_filesystem_class(protocol).async_impl)


def _of_one_bucket(backend: _Backend, bucket: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments that differ by bucket.

    fsspec shares one client, with its few dozens of connections, among all whose arguments are equal, and a bucket that
    hangs would keep them from the others. Nothing else depends on `max_paths`, as no listing is kept.
    """
    if backend.protocol not in ("s3", "gcs", "abfs", "http"):
        return arguments
    return {**arguments, "max_paths": 1 + zlib.crc32(bucket.encode())}


def _bucket(backend: _Backend, scheme: str, netloc: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    if backend.protocol in ("hdfs", "webhdfs"):
        return "", {**_name_node(scheme, netloc), **arguments}
    user, at, host = netloc.rpartition("@")
    if at and backend.protocol == "abfs" and ":" not in user:
        # abfss://container@account.dfs.core.windows.net/path
        return user, {"account_name": host.split(".", 1)[0], **arguments}
    if at:
        raise InputError("the uri of a table must not contain credentials", cure="Pass them as storage_options.")
    if not netloc:
        raise InputError("the uri has no bucket", cure="Write scheme://bucket/path.")
    return netloc, arguments


def _name_node(scheme: str, netloc: str) -> dict[str, Any]:
    """The server: the host of the uri, else the one that Hadoop's own configuration names."""
    try:
        parts = urlsplit(f"//{netloc}")
        host, port, user = parts.hostname, parts.port, parts.username
    except ValueError as error:
        raise InputError(f"{scheme}://{netloc.rpartition('@')[2]} has no valid host: {error}") from None
    if parts.password:
        raise InputError("the uri of a table must not contain credentials", cure="Pass them as storage_options.")
    found: dict[str, Any] = {} if host is None else {"host": f"viewfs://{host}" if scheme == "viewfs" else host}
    if port is not None:
        found["port"] = port
    if user is not None:
        found["user"] = user
    return found


def _modified(info: Mapping[str, Any]) -> float:
    for name in ("LastModified", "last_modified", "mtime", "updated", "modified", "created"):
        value = info.get(name)
        if isinstance(value, datetime):
            return value.timestamp()
        if isinstance(value, (int, float)):
            return float(value)
        if isinstance(value, str):
            return _parse_time(value)
    return 0.0


def _parse_time(text: str) -> float:
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0


def with_fence(protocol: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a file system with which it does not follow redirects, where arguments can say so.

    Raises InputError where the library in use cannot be told, ImportError where it is not installed.
    """
    if protocol == "s3":
        session = _s3_session(refuses=bool(arguments.get("endpoint_url")))
        return {**arguments, "config_kwargs": {**arguments.get("config_kwargs", {}), "http_session_cls": session}}
    if protocol == "gcs" and "endpoint_url" in arguments:
        return {**arguments, "session_kwargs": {"trace_configs": [_refusing_trace()]}}
    return dict(arguments)


def fence_in(protocol: str, arguments: Mapping[str, Any], system: Any) -> None:
    """The same for a file system that no argument can tell it."""
    if protocol != "abfs" or not {"account_host", "connection_string"} & arguments.keys():
        return
    kinds = import_module("azure.core.pipeline.policies")
    for policy in system.service_client._pipeline._impl_policies:
        if isinstance(policy, (kinds.RedirectPolicy, kinds.AsyncRedirectPolicy)):
            policy.allow = False


def _s3_session(*, refuses: bool) -> type:
    kinds: Any = import_module("aiobotocore.httpsession")
    config: Any = import_module("aiobotocore.config")
    if "http_session_cls" not in signature(config.AioConfig.__init__).parameters:
        raise InputError("this aiobotocore follows redirects with credentials", cure="Install a newer aiobotocore.")

    class Session(kinds.AIOHTTPSession):  # type: ignore[misc]
        async def _get_session(self, proxy_url: Any) -> Any:
            return _Still(await super()._get_session(proxy_url), refuses=refuses)

    return Session


class _Still:
    """A session of aiohttp whose requests go where they are sent. Without `refuses`, botocore sees where else to go."""

    def __init__(self, session: Any, *, refuses: bool) -> None:
        self._session = session
        self._refuses = refuses
        self._sending: dict[str, Any] = {"allow_redirects": False}
        if "ClientHandlerType" in vars(import_module("aiohttp")):  # since 3.12
            self._sending["middlewares"] = (_sent_once,)

    async def request(self, *given: Any, headers: Any, **named: Any) -> Any:
        """As aiohttp's. Raises StoreRefusedError for an answer that is a redirect."""
        # For "100 Continue" aiohttp waits without end; the header is not among those that are signed.
        headers.pop("Expect", None)
        answer = await self._session.request(*given, headers=headers, **{**named, **self._sending})
        if self._refuses and answer.status in REDIRECTS:
            answer.release()
            raise _refused()
        return answer


async def _sent_once(request: Any, handler: Callable[[Any], Any]) -> Any:
    """aiohttp sends a PUT once more where it lost the connection, also one that may not be: it would meet its own object."""
    kinds: Any = import_module("aiohttp")
    try:
        return await handler(request)
    except (kinds.ClientOSError, kinds.ServerDisconnectedError) as error:
        raise kinds.ClientConnectionError(str(error)) from error


def _refused() -> StoreRefusedError:
    return StoreRefusedError("the store redirects to another address", cure=MOVED_CURE)


def _refusing_trace() -> Any:
    trace = import_module("aiohttp").TraceConfig()

    async def refuse(session: object, context: object, seen: Any) -> None:
        # Google answers the parts of an upload with 308 and no address: go on.
        if {"Location", "URI"} & {*seen.response.headers}:
            raise _refused()

    trace.on_request_redirect.append(refuse)
    return trace
