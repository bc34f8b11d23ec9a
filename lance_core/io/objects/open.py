"""The store of an s3://, gs:// or az:// uri through obstore.

::

    s3://bucket/a/t.lance                         bucket "bucket", folder "a/t.lance/"
    abfss://c@account.dfs.core.windows.net/t      container "c" of that account, folder "t/"
"""

from __future__ import annotations

import os
import urllib.request
from collections.abc import Mapping
from dataclasses import replace
from urllib.error import HTTPError
from urllib.parse import urlsplit

from lance_core.errors import InputError, StoreError
from lance_core.io.objects.connect import Clients, client_pool
from lance_core.io.objects.options import ClientOptions, Kind, azure_client, gcs_client, s3_client
from lance_core.io.objects.store import ObjectStore
from lance_core.io.remote.errors import Redactor, Retries
from lance_core.io.remote.options import max_retries, retry_seconds
from lance_core.io.remote.probes import probes
from lance_core.io.remote.renewal import renews_keys

KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "gs"),
    **dict.fromkeys(("az", "azure", "adl", "abfs", "abfss", "wasb", "wasbs"), "az"),
}
"""The schemes that obstore has, and the cloud of each."""

_REGION_SECONDS = 5.0


def open_objects(uri: str, options: Mapping[str, str]) -> ObjectStore:
    """The store of a uri. Raises InputError for credentials in the uri, and for options that make no sense."""
    parts = urlsplit(uri)
    if parts.query or parts.fragment:
        raise InputError("the uri of a table must not have a query or a fragment", cure="Pass options as storage_options.")
    kind = KINDS[parts.scheme.lower()]
    bucket, account = _bucket(kind, parts.netloc)
    client = _client_options(kind, options, account)
    place = (kind, client.endpoint or "", str(client.config.get("account_name", "")), bucket)
    if client.endpoint is None:
        probes().know(place, True)
    folder = parts.path.strip("/")
    retries = Retries(max_retries(options), retry_seconds(options))
    return ObjectStore(
        lambda: _clients(bucket, client, retries),
        folder=f"{folder}/" if folder else "",
        uri=uri.rstrip("/"),
        place=place,
        probes=probes(),
        redact=Redactor(options),
        retries=retries,
        renews=renews_keys(uri, options),
        is_sorted=not (client.config.get("s3_express") or bucket.endswith("--x-s3")),
    )


def is_googles_stand_in(scheme: str, options: Mapping[str, str]) -> bool:
    """Whether a Google uri is served by somebody else: emulators speak the JSON interface, and obstore the XML one."""
    return KINDS[scheme] == "gs" and any(options.get(name) for name in ("google_endpoint", "gcs_endpoint"))


def _client_options(kind: Kind, options: Mapping[str, str], account: str | None) -> ClientOptions:
    if kind == "s3":
        return s3_client(options)
    return gcs_client(options) if kind == "gs" else azure_client(options, account=account)


def _clients(bucket: str, options: ClientOptions, retries: Retries) -> Clients:
    pool = client_pool()
    if not pool.is_usable():
        raise StoreError(
            "this process was forked from a process that had used obstore, which does not survive a fork",
            cure='Start workers with "spawn" or "forkserver", or pass the storage option store_engine="fsspec".',
        )
    return pool.get(bucket, _with_region(bucket, options), retries)


def _with_region(bucket: str, options: ClientOptions) -> ClientOptions:
    """S3 answers only in the region of a bucket, and says which that is to anybody who asks."""
    named = options.config.get("region") or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if options.kind != "s3" or options.endpoint is not None or named or os.environ.get("AWS_ENDPOINT_URL"):
        return options
    key = ("region", "", "", bucket)
    found = probes().remembered(key, lambda: _region_of(bucket))
    return options if found is None else replace(options, config={**options.config, "region": found})


def _region_of(bucket: str) -> str | None:
    request = urllib.request.Request(f"https://s3.amazonaws.com/{bucket}", method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=_REGION_SECONDS) as answer:
            found = answer.headers.get("x-amz-bucket-region")
    except HTTPError as error:
        found = error.headers.get("x-amz-bucket-region")
    except OSError:
        return None
    return None if found is None else str(found)


def _bucket(kind: Kind, netloc: str) -> tuple[str, str | None]:
    user, at, host = netloc.rpartition("@")
    if at and kind == "az" and ":" not in user:
        # abfss://container@account.dfs.core.windows.net/path
        return user, host.split(".", 1)[0]
    if at:
        raise InputError("the uri of a table must not contain credentials", cure="Pass them as storage_options.")
    if not netloc:
        raise InputError("the uri has no bucket", cure="Write scheme://bucket/path.")
    return netloc, None
