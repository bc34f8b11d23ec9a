"""The scope of credentials: the account, bucket or host of a uri, and the other uris that a caller allows. Pure.

::

    scope_of("s3://lake/a/t.lance")                        -> ("s3", "lake")
    scope_of("abfss://c@acct.dfs.core.windows.net/t")      -> ("az", "acct")
    scope_of("az://c/t", {"account_name": "acct"})         -> ("az", "acct")
    scope_of("/data/t.lance")                              -> ("file", "")
    is_allowed("s3://media/x", {"allowed_bases": "s3://media"})   -> True
    is_below("file:///lake/%2e%2e/etc", "file:///lake")           -> False
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from lance_core.io.options import ALLOWED_BASES
from lance_core.io.spellings import AZURE, picker

HERE = frozenset({"file", "memory"})
"""Families of places on this machine, which take no credentials."""

_SAME = {
    "file-object-store": "file", "s3a": "s3", "s3n": "s3", "s3+ddb": "s3", "gcs": "gs", "azure": "az", "abfs": "az",
    "abfss": "az", "wasb": "az", "wasbs": "az", "adl": "az",
}  # fmt: skip
_SCHEME = re.compile(r"^([a-zA-Z][a-zA-Z0-9+.\-]+)://")
_ACCOUNT_OF_CONNECTION = re.compile(r"(?:^|;)\s*AccountName=([^;]+)", re.IGNORECASE)


def family_of(uri: str) -> str:
    """The kind of place that a uri names: "file" for plain paths, else its scheme, one name for all spellings."""
    found = _SCHEME.match(uri)
    scheme = "file" if found is None else found.group(1).lower()
    return _SAME.get(scheme, scheme)


def scope_of(uri: str, options: Mapping[str, str] | None = None) -> tuple[str, str]:
    """Within which credentials may be shared: family, and account (Azure), bucket, or host with its port."""
    family = family_of(uri)
    if family in HERE:
        return family, ""
    netloc = _netloc(uri)
    if family != "az":
        return family, netloc.lower()
    host = netloc.rpartition("@")[2] if "@" in netloc else ""
    return family, host.split(".", 1)[0].lower() or _account(options or {})


def is_same_scope(uri: str, other: str, options: Mapping[str, str] | None = None) -> bool:
    """Whether two uris are of one account, bucket or host; `options` say the account where a uri does not."""
    if family_of(uri) in HERE and family_of(other) in HERE:
        return True
    return scope_of(uri, options) == scope_of(other, options)


def is_allowed(uri: str, options: Mapping[str, str] | None) -> bool:
    """Whether the caller's `allowed_bases` name this uri or a place that it is below."""
    prefixes = re.split(r"[,\s]+", str((options or {}).get(ALLOWED_BASES, "")))
    return any(is_below(uri, prefix) or (prefix and is_below(f"{uri.rstrip('/')}/-", prefix)) for prefix in prefixes)


def is_below(uri: str, base: str) -> bool:
    """Whether a uri names a place below `base`, in the form in which it is opened: a file uri with its `%2e` decoded.

    A uri with a step upwards is below nothing, however the step is written: some stores decode it, others resolve it.
    """
    place, above = _as_opened(uri), _as_opened(base).rstrip("/")
    steps = {step for text in (uri, place, unquote(place)) for step in re.split(r"[/\\]", text)}
    return bool(above) and not steps & {".", ".."} and place.startswith(f"{above}/") and place.rstrip("/") != above


def _as_opened(uri: str) -> str:
    """A plain path where the uri names a local file; others as they are."""
    if not uri.lower().startswith("file://"):
        return uri
    try:
        parts = urlsplit(uri)
    except ValueError:  # a bracket that is never closed; whoever opens it says so
        return uri
    return unquote(parts.path) if parts.netloc in ("", "localhost") else uri


def _netloc(uri: str) -> str:
    try:
        return urlsplit(uri).netloc
    except ValueError:  # a bracket that is never closed; whoever opens it says so
        return uri


def _account(options: Mapping[str, str]) -> str:
    pick = picker(options, AZURE)
    named = pick("account_name")
    if named:
        return named.lower()
    found = _ACCOUNT_OF_CONNECTION.search(pick("connection_string") or "")
    return "" if found is None else found.group(1).strip().lower()
