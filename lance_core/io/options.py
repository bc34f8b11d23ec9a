"""Names of storage options: the official library's, mapped to the options of each backend's file system.

::

    {"aws_access_key_id": "...", "region": "eu-west-1"}  on s3://   -> key, client_kwargs.region_name

A name that no backend knows is refused, with the nearest names that exist: a misspelt option must not be ignored, and its
value (which may be a secret) must not be shown. `base_1.region` is the option `region` for the base path with id 1 alone.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

from lance_core.errors import InputError
from lance_core.io.spellings import AWS, AZURE, GOOGLE, names_in

CLIENT_OPTIONS = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "request_timeout",
        "timeout",
        "user_agent",
        "proxy_url",
        "proxy_ca_certificate",
        "proxy_excludes",
        "block_size",
        "local_fsync",
        "download_retry_count",
        "client_max_retries",
        "client_retry_timeout",
        "io_threads",
    }
)

S3_OPTIONS = names_in(AWS)
GCS_OPTIONS = names_in(GOOGLE)
AZURE_OPTIONS = names_in(AZURE)

OSS_OPTIONS = frozenset({"oss_endpoint", "oss_access_key_id", "oss_secret_access_key", "oss_region", "oss_security_token"})

HDFS_OPTIONS = frozenset({"hdfs_user", "user", "kerb_ticket"})

MANIFEST_STORE_URL = "manifest_store_url"
"""Ours: the SQLAlchemy url of a database that manifests are published through, on whatever store the table is."""

STORE_ENGINE = "store_engine"
"""Ours: what speaks to a remote store, `obstore` or `fsspec`; without it obstore where it has the scheme."""
STORE_ENGINE_VARIABLE = "LANCE_STORE_ENGINE"
"""The same for a whole process."""

ALLOWED_BASES = "allowed_bases"
"""Ours: uris, separated by commas or blanks, below which a manifest may name base paths that get the table's credentials."""

ALLOW_EXTERNAL_BLOBS = "allow_external_blob_outside_bases"
"""Ours: "true" reads and stores blobs whose uri is outside of the table's registered base paths."""

EXPIRES_AT = "expires_at_millis"
"""When credentials that a catalog returned end, in milliseconds since the epoch."""

OUR_OPTIONS = frozenset({MANIFEST_STORE_URL, STORE_ENGINE, ALLOWED_BASES, ALLOW_EXTERNAL_BLOBS, EXPIRES_AT})

KNOWN_OPTIONS = OUR_OPTIONS | CLIENT_OPTIONS | S3_OPTIONS | GCS_OPTIONS | AZURE_OPTIONS | OSS_OPTIONS | HDFS_OPTIONS

PLAIN_OPTIONS = (
    CLIENT_OPTIONS - {"proxy_url"}
    | {STORE_ENGINE}
    | {"region", "aws_region", "default_region", "aws_default_region", "project", "google_project", "aws_profile", "profile"}
    | {"endpoint", "endpoint_url", "aws_endpoint", "aws_endpoint_url", "azure_endpoint", "azure_storage_endpoint"}
    | {"google_endpoint", "gcs_endpoint", "oss_endpoint", "oss_region", "dynamodb_endpoint", "aws_provider_scheme"}
    | {"account_name", "azure_storage_account_name", "aws_server_side_encryption", "user", "hdfs_user"}
    | {"aws_role_arn", "aws_role_session_name", "aws_role_seconds", "aws_sts_endpoint"}
    | {"google_identity", "google_impersonate"}
    | {ALLOWED_BASES, ALLOW_EXTERNAL_BLOBS, EXPIRES_AT}
)
"""Options whose values are no secrets: messages without them would say nothing."""

_OF_BASE = re.compile(r"base_(\d+)\.(.+)")
_OF_PATH = re.compile(r"base\[(.+)\]\.([^\].]*)")


def with_base_params(
    options: Mapping[str, str] | None, params: Mapping[str, Mapping[str, str]] | None
) -> Mapping[str, str] | None:
    """Storage options that carry `base_store_params` along: options of base paths, by their exact uris.

    >>> with_base_params({"region": "a"}, {"s3://b/x": {"region": "c"}})
    {'region': 'a', 'base[s3://b/x].region': 'c'}
    """
    if not params:
        return options
    scoped = {f"base[{uri}].{name}": value for uri, given in params.items() for name, value in given.items()}
    return {**(options or {}), **{f"base[{uri}].": "" for uri, given in params.items() if not given}, **scoped}


def options_of_base(
    options: Mapping[str, str] | None, base_id: int, *, shared: bool = True, path: str | None = None
) -> dict[str, str]:
    """What holds for a base path: its own options, over those without a base where they may be `shared` with it.

    What was given for its exact `path` (see `with_base_params`) stands alone.
    """
    found, own, exact = {}, {}, {}
    for name, value in (options or {}).items():
        scoped, by_path = _OF_BASE.fullmatch(str(name)), _OF_PATH.fullmatch(str(name))
        if by_path is not None:
            exact.update({by_path[2]: value} if by_path[1] == path else {})
        elif scoped is not None:
            own.update({scoped[2]: value} if int(scoped[1]) == base_id else {})
        elif shared:
            found[name] = value
    if exact:
        return {name: value for name, value in exact.items() if name}
    return {**found, **own}


def has_own_options(options: Mapping[str, str] | None, base_id: int, path: str) -> bool:
    """Whether the caller named options for exactly this base path, by its number or its uri."""
    for name in options or ():
        scoped, by_path = _OF_BASE.fullmatch(str(name)), _OF_PATH.fullmatch(str(name))
        if (by_path is not None and by_path[1] == path) or (scoped is not None and int(scoped[1]) == base_id):
            return True
    return False


def checked_options(options: Mapping[str, str] | None) -> dict[str, str]:
    """The options with lower-case names; InputError for a name no backend knows, naming near matches, never values.

    Options of base paths are checked, too, and left out.
    """
    if not options:
        return {}
    checked = {}
    for name, value in options.items():
        scoped = _OF_PATH.fullmatch(str(name)) or _OF_BASE.fullmatch(str(name).lower())
        lowered = str(name).lower() if scoped is None else scoped[2].lower()
        if lowered not in KNOWN_OPTIONS and (scoped is None or lowered):
            near = difflib.get_close_matches(lowered, sorted(KNOWN_OPTIONS), n=3, cutoff=0.6)
            cure = (
                f"Did you mean {' or '.join(near)}?"
                if near
                else "Options have the names that the official Lance library uses."
            )
            raise InputError(f"unknown storage option {name!r}", cure=cure)
        text = value if isinstance(value, str) else _as_text(value)
        if "endpoint" in lowered and "@" in text:
            # Backends show an endpoint in their errors and logs, and none sends what stands there.
            raise InputError(
                f"the storage option {name!r} must not contain credentials", cure="Pass them as options of their own."
            )
        if scoped is None:
            checked[lowered] = text
    return checked


def _as_text(value: object) -> str:
    # Connection forms deliver numbers and booleans; the option names are those of a text protocol.
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def is_true(value: str | None) -> bool:
    """Whether an option's text means yes."""
    return value is not None and value.strip().lower() in ("1", "true", "yes", "on")
