"""A table's name, resolved by a catalog to its location and the options to open it with.

::

    find_table(catalog, ["sales", "orders"])        TableLocation("s3://lake/77f3a1c2_sales$orders", options)
    declare_table(catalog, ["sales", "orders"])     the same for a name that may be new

Any client with the specification's methods will do, this library's or another package's. What it returns is checked:
`lance_core.catalog.locate` says which places and options are accepted.

Storage options that a catalog returns, and which of the caller's may be used beside them. Pure.

::

    {"aws_access_key_id": "A", "aws_secret_access_key": "S", "expires_at_millis": "1767225600000"}
                                        the table's own credentials: none of the caller's, or of the machine, are used
    {"aws_region": "eu-west-1"}         a hint: the caller's credentials stay
    {"aws_endpoint": "http://evil"}     refused: it would receive what the caller's credentials sign
    {"aws_profile": "admin"}            refused: it names an identity of this machine

A catalog is another party: it may hand out what it has, but not choose among what this machine has.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from lance_core.catalog import requests as spec
from lance_core.catalog.foreign import ask
from lance_core.catalog.interface import LanceNamespace, TableFinder
from lance_core.catalog.names import as_id, object_id
from lance_core.errors import (
    AlreadyExistsError,
    InputError,
    NotFoundError,
    RetryableConflictError,
    StoreError,
    UnsupportedFeatureError,
)
from lance_core.io.options import EXPIRES_AT, KNOWN_OPTIONS, OUR_OPTIONS, PLAIN_OPTIONS, is_true
from lance_core.io.resolve import scheme_of
from lance_core.io.scope import HERE, family_of, is_allowed
from lance_core.io.spellings import AWS, AZURE, GOOGLE, Spellings, picker


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


_NOTES = frozenset({EXPIRES_AT, "refresh_offset_millis"})
"""Facts about the credentials, not options of a store."""

_CLOUDS: Mapping[str, Spellings] = {"s3": AWS, "gs": GOOGLE, "az": AZURE}
_OWN: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "s3": (("access_key_id", "secret_access_key"),),
    "gs": (("key",), ("token",)),
    "az": (
        ("account_key",),
        ("sas_token",),
        ("token",),
        ("connection_string",),
        ("client_id", "client_secret", "tenant_id"),
    ),
}
"""What suffices to sign requests in each cloud."""


def _spelled(*found: tuple[Spellings, tuple[str, ...]]) -> frozenset[str]:
    return frozenset(name for spellings, options in found for option in options for name in spellings[option])


_OF_THIS_MACHINE = (
    _spelled(
        (
            AWS,
            ("profile", "role_arn", "role_session_name", "external_id", "role_seconds", "sts_endpoint", "dynamodb_endpoint"),
        ),
        (GOOGLE, ("key_file", "identity", "impersonate")),
        (AZURE, ("msi_endpoint", "object_id", "msi_resource_id", "federated_token_file", "use_azure_cli")),
    )
    | OUR_OPTIONS
    | {"proxy_url", "proxy_ca_certificate", "proxy_excludes", "allow_invalid_certificates", "local_fsync", "io_threads"}
    | {"hdfs_user", "user", "kerb_ticket"}
)
"""Identities, files, databases and proxies of the machine, and permissions: only the caller names them."""

_WHERE = _spelled((AWS, ("endpoint", "provider_scheme")), (GOOGLE, ("endpoint",))) | _spelled(
    (AZURE, ("endpoint", "account_name", "use_emulator", "use_fabric_endpoint"))
) | {"oss_endpoint", "allow_http"}  # fmt: skip
"""Options that decide who receives a request."""


def effective_options(
    uri: str, given: Mapping[str, str] | None, vended: Mapping[str, str] | None, *, is_trusted: bool
) -> dict[str, str]:
    """The options to open a table with. `is_trusted`: the caller named this place, so that its credentials may go there.

    InputError for an option that a catalog must not choose, and where neither party gives credentials for the place;
    StoreError for credentials that have expired.
    """
    mine, theirs = dict(given or {}), _checked(uri, vended or {})
    if has_credentials(uri, theirs):
        end = {EXPIRES_AT: str(vended[EXPIRES_AT])} if vended and expires_at(vended) is not None else {}
        return {**_impersonal(mine), **theirs, **end}
    chosen = sorted(name for name in theirs.keys() & _WHERE if mine.get(name) != theirs[name])
    if chosen:
        raise InputError(
            f"{uri}: the catalog returned {', '.join(chosen)} without credentials, so the caller's would be sent there",
            uri=uri,
            cure="Pass the same value as a storage option.",
        )
    if not is_trusted:
        raise InputError(
            f"the catalog refers to {uri}, which the caller did not name, and returned no credentials for it",
            uri=uri,
            cure="If the place is right, add it to the storage option allowed_bases.",
        )
    return {**mine, **theirs}


def has_credentials(uri: str, options: Mapping[str, str]) -> bool:
    """Whether options suffice to open a place without any credential of this machine."""
    family = family_of(uri)
    if family not in _CLOUDS:
        return False
    pick = picker(options, _CLOUDS[family])
    return is_true(pick("unsigned")) or any(all(pick(option) for option in needed) for needed in _OWN[family])


def expires_at(vended: Mapping[str, str] | None) -> float | None:
    """When the credentials expire, in seconds since the epoch; None when the catalog does not say."""
    text = str((vended or {}).get(EXPIRES_AT, ""))
    return int(text) / 1000 if text.isdecimal() else None


def _checked(uri: str, vended: Mapping[str, str]) -> dict[str, str]:
    options = {str(name).lower(): str(value) for name, value in vended.items() if str(name).lower() not in _NOTES}
    _refuse(uri, options.keys() & _OF_THIS_MACHINE, "only the caller may choose")
    _refuse(uri, options.keys() - KNOWN_OPTIONS, "no store has")
    end = expires_at(vended)
    if end is not None and end <= time.time():
        raise StoreError(f"{uri}: the credentials that the catalog returned have expired", uri=uri)
    return options


def _refuse(uri: str, names: Iterable[str], why: str) -> None:
    found = sorted(names)
    if found:
        raise InputError(f"{uri}: the catalog returned the storage option {', '.join(found)}, which {why}", uri=uri)


def _impersonal(options: Mapping[str, str]) -> dict[str, str]:
    """Of the caller's options those that say how to send requests, not who sends them."""
    personal = _spelled((AWS, ("profile", "role_arn", "role_session_name", "external_id", "role_seconds", "sts_endpoint")))
    personal |= _spelled((GOOGLE, ("identity", "impersonate")), (AZURE, ("account_name",)))
    kept = (PLAIN_OPTIONS | OUR_OPTIONS | {"proxy_url"}) - personal - {"user", "hdfs_user"}
    return {name: value for name, value in options.items() if name.lower() in kept}
