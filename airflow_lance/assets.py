"""Assets: one `lance://` uri per table, whatever store it lives on.

::

    s3://lake/flights.lance      <->  lance://s3/lake/flights.lance
    /data/flights.lance          <->  lance://file/data/flights.lance

A DAG that waits for an asset of ours is not woken by some other writer's `s3://` asset with the same path.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

if TYPE_CHECKING:
    from airflow_lance.compat import Asset

_STORE = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*)://(.*)$")


def asset_uri(table_uri: str | os.PathLike[str]) -> str:
    """The asset uri of a table. ValueError for a relative path, which has no location."""
    if not isinstance(table_uri, str):
        from airflow_lance.connection import plain_uri

        table_uri = str(plain_uri(table_uri))
    if table_uri.startswith("lance://"):
        return table_uri.rstrip("/")
    match = _STORE.match(table_uri)
    scheme, rest = match.groups() if match else ("file", table_uri)
    if scheme == "file" and not rest.startswith("/"):
        raise ValueError(f"expected a table's full uri or absolute path, got {table_uri!r}")
    return f"lance://{scheme.lower()}/{rest.strip('/')}"


def table_uri(uri: str) -> str:
    """The table's uri of an asset uri: the inverse of `asset_uri`."""
    parts = urlsplit(uri)
    if parts.scheme != "lance" or not parts.netloc or not parts.path.strip("/"):
        raise ValueError(f"expected lance://STORE/PATH, got {uri!r}")
    return parts.path if parts.netloc == "file" else f"{parts.netloc}://{parts.path.lstrip('/')}"


def sanitize_uri(uri: SplitResult) -> SplitResult:
    """Airflow's hook into asset creation: refuse uris without a table, drop other parts."""
    if not uri.netloc:
        raise ValueError(
            "uri format lance:// must name a store: lance://s3/bucket/table.lance or lance://file/path/table.lance"
        )
    if not uri.path.strip("/"):
        raise ValueError("uri format lance:// must name a table below the store")
    path = re.sub("/{2,}", "/", uri.path).rstrip("/")
    return uri._replace(netloc=uri.netloc.lower(), path=path, query="", fragment="")


def create_asset(*, uri: str | os.PathLike[str], extra: dict[str, Any] | None = None, **kwargs: Any) -> Asset:
    """Airflow's factory for `lance://` assets, and ours: `uri` may be a table's own uri."""
    from airflow_lance.compat import Asset

    return Asset(uri=asset_uri(uri), extra=extra, **kwargs)


def event_facts(event: Any) -> dict[str, Any]:
    """What an asset event says of its table, in one shape: `uri`, `version`, `rows`, `table_id`, and more.

    A commit says it in the event's `extra`; of a watcher's event Airflow keeps the same under `payload` in there.
    """
    extra = dict(getattr(event, "extra", event) or {})
    payload = extra.get("payload")
    return dict(payload) if extra.get("from_trigger") and isinstance(payload, Mapping) else extra
