"""Resolve the uri of a table to a store.

::

    "/data/t.lance", "t.lance", "file:///data/t.lance"   -> LocalStore
    "memory://name/t"                                    -> MemoryStore, shared by name within the process
    "s3://bucket/t", "gs://…", "az://…", "abfss://…", …  -> lance_core.io.objects (obstore), imported only then
    "hdfs://…", "https://…", "oss://…", store_engine=fsspec -> lance_core.io.remote (fsspec), imported only then
    "s3+ddb://bucket/t?ddbTableName=manifests"           -> the same, commits through a DynamoDB table
    any of them, option manifest_store_url               -> the same, commits through a SQL database

Credentials are never part of the store's `uri`, and never part of an error.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

from lance_core.errors import InputError
from lance_core.io.local.store import LocalStore, local_path
from lance_core.io.memory import MemoryStore
from lance_core.io.options import MANIFEST_STORE_URL, STORE_ENGINE, STORE_ENGINE_VARIABLE, checked_options
from lance_core.io.store import Store

REMOTE_SCHEMES = frozenset(
    {"s3", "s3a", "s3n", "gs", "gcs", "az", "azure", "adl", "abfs", "abfss", "wasb", "wasbs", "hdfs", "webhdfs", "viewfs"}
    | {"http", "https", "oss", "fsspec"}
)

_SCHEME = re.compile(r"^([a-zA-Z][a-zA-Z0-9+.\-]+):(//)?")


def resolve_store(uri: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> Store:
    """The store a uri names, rooted there. Nothing is read or written.

    Raises InputError for an unknown scheme, a uri with credentials in it, or an unknown storage option.
    """
    options = checked_options(storage_options)
    url = options.pop(MANIFEST_STORE_URL, None)
    if url is None:
        return _resolve(uri, options)
    from lance_core.io.external.sql import SqlRegister
    from lance_core.io.external.store import ExternalStore

    inner = _resolve(uri, options)
    return ExternalStore(inner, SqlRegister(url), base=inner.uri)


def without_folder(uri: str, folder: str) -> str | None:
    """The uri of the place that `folder` is in; None when the uri does not end there. What follows a `?` stays."""
    place, mark, query = uri.partition("?")
    place = place.rstrip("/")
    return f"{place.removesuffix('/' + folder)}{mark}{query}" if place.endswith(f"/{folder}") else None


def _resolve(uri: str | os.PathLike[str], options: dict[str, str]) -> Store:
    text = os.fspath(uri)
    if not isinstance(text, str) or not text.strip():
        raise InputError(
            "the uri of a table must not be empty", cure="Pass a path or a uri such as s3://bucket/table.lance."
        )
    if "\0" in text:
        raise InputError("the uri of a table holds a NUL character", cure="Remove it.")
    scheme = scheme_of(text)
    if scheme is None:
        return LocalStore(local_path(text), durable=_syncs(options))
    if scheme in ("file", "file-object-store"):
        return LocalStore(_file_path(text), durable=_syncs(options))
    if scheme == "memory":
        return _memory_store(text)
    if scheme == "s3+ddb":
        return _dynamodb_store(text, options)
    if scheme in REMOTE_SCHEMES:
        return _remote_store(text, scheme, options)
    raise InputError(
        f"there is no store for uris that begin with {scheme}://",
        cure=f"Use a plain path, or a uri with the scheme file, memory, {', '.join(sorted(REMOTE_SCHEMES))}.",
    )


def _remote_store(uri: str, scheme: str, options: dict[str, str]) -> Store:
    """Through obstore where it knows the scheme and every option, through fsspec elsewhere or when the options say so."""
    engine = options.get(STORE_ENGINE) or os.environ.get(STORE_ENGINE_VARIABLE) or ""
    if engine not in ("", "obstore", "fsspec"):
        raise InputError(f"store_engine={engine!r} is not an engine for remote stores", cure="Use obstore or fsspec.")
    if engine != "fsspec":
        found = _through_obstore(uri, scheme, options, is_asked_for=engine == "obstore")
        if found is not None:
            return found
    from lance_core.io.remote.store import open_remote

    return open_remote(uri, options)


def _through_obstore(uri: str, scheme: str, options: dict[str, str], *, is_asked_for: bool) -> Store | None:
    from lance_core.io.objects.connect import client_pool
    from lance_core.io.objects.open import KINDS, is_googles_stand_in, open_objects

    if scheme not in KINDS:
        if is_asked_for and STORE_ENGINE in options:
            raise InputError(f"obstore has no store for uris that begin with {scheme}://", cure="Use store_engine=fsspec.")
        return None
    if not is_asked_for and (is_googles_stand_in(scheme, options) or not client_pool().is_usable()):
        return None  # a server that speaks another interface; a forked process, where obstore would wait for ever
    return open_objects(uri, options)


def scheme_of(uri: str) -> str | None:
    """The scheme of a uri in lower case; None for a plain path (a Windows drive is no scheme)."""
    found = _SCHEME.match(uri)
    if found is None or found.group(2) is None:
        return None
    return found.group(1).lower()


def _syncs(options: dict[str, str]) -> bool:
    """Whether local writes reach the disk before they count: unless the option says "false"."""
    text = options.get("local_fsync", "true")
    if text not in ("true", "false"):
        raise InputError(f"storage option local_fsync={text!r} is not a boolean", cure='Write "true" or "false".')
    return text == "true"


def _file_path(uri: str) -> str:
    parts = urlsplit(uri)
    if parts.netloc not in ("", "localhost"):
        raise InputError(
            f"{uri!r} refers to a file on another machine", cure="Write file:///absolute/path, with three slashes."
        )
    return local_path(unquote(parts.path) or "/")


def _dynamodb_store(uri: str, options: dict[str, str]) -> Store:
    parts = urlsplit(uri)
    query = parse_qsl(parts.query)
    if [name for name, _ in query] != ["ddbTableName"] or not query[0][1]:
        raise InputError(
            "a uri that begins with s3+ddb:// must name exactly one DynamoDB table",
            cure="Write s3+ddb://bucket/path?ddbTableName=manifests.",
        )
    from lance_core.io.external.dynamodb import DynamoRegister
    from lance_core.io.external.store import ExternalStore

    inner = _remote_store(f"s3://{parts.netloc}{parts.path}", "s3", options)
    # The key is the path within the bucket: the official library's.
    return ExternalStore(inner, DynamoRegister(query[0][1], options), base=parts.path.strip("/"), uri=uri)


def _memory_store(uri: str) -> MemoryStore:
    name, _, folder = uri.split("://", 1)[1].partition("/")
    return MemoryStore(name, folder=folder.strip("/"))
