"""A table's name, resolved by a catalog to its location and the options to open it with.

::

    find_table(catalog, ["sales", "orders"])        TableLocation("s3://lake/77f3a1c2_sales$orders", options)
    declare_table(catalog, ["sales", "orders"])     the same for a name that may be new

Any client with the specification's methods will do, this library's or another package's. What it returns is checked:
`lance_core.catalog.vended` says which places and options are accepted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from lance_core.catalog import requests as spec
from lance_core.catalog.foreign import ask
from lance_core.catalog.interface import LanceNamespace, TableFinder
from lance_core.catalog.names import as_id, object_id
from lance_core.catalog.vended import effective_options, expires_at
from lance_core.errors import (
    AlreadyExistsError,
    InputError,
    NotFoundError,
    RetryableConflictError,
    UnsupportedFeatureError,
)
from lance_core.io.resolve import scheme_of
from lance_core.io.scope import HERE, family_of, is_allowed


@dataclass(frozen=True)
class TableLocation:
    """Where a named table is, and the options to open it with, which may hold credentials."""

    uri: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    is_new: bool = False
    expires_at: float | None = None


def find_table(
    client: TableFinder, table_id: Sequence[str], storage_options: Mapping[str, str] | None = None
) -> TableLocation:
    """The location of a name. NotFoundError when there is none, InputError for a place that may not be opened."""
    parts = as_id(table_id)
    return _accepted(
        client, parts, _asked(client, "describe_table", spec.DescribeTableRequest(id=list(parts))), storage_options
    )


def declare_table(
    client: TableFinder, table_id: Sequence[str], storage_options: Mapping[str, str] | None = None
) -> TableLocation:
    """The location of a name, which is reserved if it is new.

    Of two tasks that do so at once, both get the same location; a task that was killed after it may do so again.
    """
    parts = as_id(table_id)
    try:
        answer = _asked(client, "declare_table", spec.DeclareTableRequest(id=list(parts)))
    except (AlreadyExistsError, RetryableConflictError) as error:
        # A server may call the loser of a race either; a namespace of this name is no table.
        try:
            return find_table(client, parts, storage_options)
        except NotFoundError:
            raise error from None
    return _accepted(client, parts, answer, storage_options, is_new=True)


def find_or_declare(
    client: TableFinder, table_id: Sequence[str], storage_options: Mapping[str, str] | None = None
) -> TableLocation:
    """The location of a name: one request where it exists, and a reservation where it does not."""
    try:
        return find_table(client, table_id, storage_options)
    except NotFoundError:
        return declare_table(client, table_id, storage_options)


def _asked(client: TableFinder, method: str, request: Any) -> Any:
    return getattr(client, method)(request) if isinstance(client, LanceNamespace) else ask(client, method, request)


def _accepted(
    client: TableFinder,
    parts: tuple[str, ...],
    answer: Any,
    given: Mapping[str, str] | None,
    *,
    is_new: bool = False,
) -> TableLocation:
    name, location = object_id(parts), getattr(answer, "location", None)
    if not isinstance(location, str) or not location.strip():
        raise InputError(f"the catalog returned no location for the table {name!r}")
    if getattr(answer, "managed_versioning", None) is True:
        raise UnsupportedFeatureError(
            f"the catalog manages the versions of the table {name!r} itself, which is not implemented",
            cure="Disable managed versioning in the catalog, or use the official library for this table.",
        )
    uri = plain_location(location)
    vended = getattr(answer, "storage_options", None)
    trusted = isinstance(client, LanceNamespace) and client.vouches_for(uri)
    options = effective_options(uri, given, vended, is_trusted=trusted or is_allowed(uri, _plain_bases(given)))
    return TableLocation(uri, options, is_new, expires_at(vended))


def plain_location(location: str) -> str:
    """A location in one spelling: a plain path on this machine, else a uri without credentials. InputError otherwise."""
    scheme = scheme_of(location)
    if scheme in ("file", "file-object-store"):
        parts = urlsplit(location)
        if parts.netloc not in ("", "localhost"):
            raise InputError(f"{location!r} refers to a file on another machine", uri=location)
        location = unquote(parts.path)
        scheme = None
    if scheme is None and not location.startswith("/") and location[1:3] not in (":\\", ":/"):
        raise InputError(f"the catalog returned the relative location {location!r}", uri=location)
    if scheme is not None and ("@" in urlsplit(location).netloc and family_of(location) != "az"):
        raise InputError("the catalog returned a location with credentials in it")
    if ".." in location.replace("\\", "/").split("/") or any(ord(char) < 32 for char in location):
        raise InputError(f"the catalog returned the location {location!r}, which is not in its simplest form", uri=location)
    return location.rstrip("/") or location


def _plain_bases(given: Mapping[str, str] | None) -> Mapping[str, str]:
    """The options, with local places among the allowed ones as plain paths."""
    found = dict(given or {})
    for name in found.keys() & {"allowed_bases"}:
        words = found[name].replace(",", " ").split()
        found[name] = " ".join(plain_location(word) if family_of(word) in HERE and "://" in word else word for word in words)
    return found
