"""Clients of obstore, created once per bucket and credentials, shared by all stores of a process.

::

    s3://bucket/a.lance, s3://bucket/b.lance, same options    -> one client, one pool of connections
    the same after a fork                                     -> None: obstore's threads stay behind in the parent

A bucket has two clients: one repeats requests, and one never does, for conditional puts (see `store`).

Keep a client of obstore with the host that its options name: an answer that sends it elsewhere is refused.

::

    aws_endpoint=https://minio.example      307 to https://elsewhere.example       StoreRefusedError, nothing is sent there

obstore follows redirects and cannot be told not to: it takes the session token along in a header and, as the referrer, the
address with what signs it, and then reads from wherever it was sent. It can be told of a proxy, and of hosts that are
reached without it. So the hosts of the options are reached without, and everything else by a proxy where nobody can be.
Where the user has a proxy, that one decides. A cloud that is asked at its own address may send to another of its own.
"""

from __future__ import annotations

import datetime as dt
import os
import threading
import urllib.request
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import obstore.store as obstores

from lance_core.errors import InputError
from lance_core.io.aws_role import AssumedRole
from lance_core.io.google_identity import GoogleIdentity
from lance_core.io.objects.options import ClientOptions
from lance_core.io.remote.errors import Retries

_MAX_CLIENTS = 64
_CLASSES: Mapping[str, Callable[..., Any]] = {
    "s3": obstores.S3Store,
    "gs": obstores.GCSStore,
    "az": obstores.AzureStore,
}
_FIRST_WAIT, _LONGEST_WAIT = dt.timedelta(milliseconds=200), dt.timedelta(seconds=3)
_GROWTH = 4
"""Each wait is random, between the first and this times the one before: ten of them outlast a restart of ten seconds."""


@dataclass(frozen=True)
class Clients:
    """The two clients of a bucket."""

    patient: Any
    """Repeats what may be repeated."""
    once: Any
    """Sends each request once."""


class ClientPool:
    """The clients in use, the latest kept."""

    def __init__(self) -> None:
        self._forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget_after_fork)

    def is_usable(self) -> bool:
        """Whether requests can be sent from this process: not when it was forked from one that had sent some."""
        return self._pid == os.getpid()

    def get(self, bucket: str, options: ClientOptions, retries: Retries) -> Clients:
        """The clients of a bucket. Raises InputError for options that obstore refuses."""
        known = options.credentials if isinstance(options.credentials, (AssumedRole, GoogleIdentity)) else None
        key = (options.kind, bucket, _frozen(options.config), _frozen(options.client), retries, known)
        if options.credentials is not None and known is None:
            return self._make(bucket, options, retries)
        with self._lock:
            found = self._clients.pop(key, None) or self._make(bucket, options, retries)
            self._clients[key] = found
            while len(self._clients) > _MAX_CLIENTS:
                self._clients.popitem(last=False)
            return found

    def _make(self, bucket: str, options: ClientOptions, retries: Retries) -> Clients:
        self._used = True
        backoff = {"init_backoff": _FIRST_WAIT, "max_backoff": _LONGEST_WAIT, "base": _GROWTH}
        patient = {"max_retries": retries.times, "retry_timeout": dt.timedelta(seconds=retries.seconds), "backoff": backoff}
        return Clients(_client(bucket, options, patient), _client(bucket, options, {**patient, "max_retries": 0}))

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._clients: OrderedDict[Any, Clients] = OrderedDict()
        self._pid = os.getpid()
        self._used = False

    def _forget_after_fork(self) -> None:
        # The runtime is obstore's own and is not started again: a request would wait for ever.
        if self._used:
            self._lock, self._clients = threading.Lock(), OrderedDict()
        else:
            self._forget()


_POOL = ClientPool()


def client_pool() -> ClientPool:
    """The process's clients."""
    return _POOL


def _client(bucket: str, options: ClientOptions, retry: Mapping[str, Any]) -> Any:
    config = {name: str(value).lower() if isinstance(value, bool) else value for name, value in options.config.items()}
    arguments: dict[str, Any] = {} if options.credentials is None else {"credential_provider": options.credentials}
    try:
        return _CLASSES[options.kind](bucket, config=config, client_options=fenced(options), retry_config=retry, **arguments)
    except Exception as error:
        # Its message may repeat the value of an option.
        raise InputError(f"obstore rejected the storage options: {type(error).__name__}") from None


def _frozen(values: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, str(value)) for name, value in values.items()))


NOWHERE = "127.0.0.1:0"
"""Nobody can listen on port 0, so a connection to it is refused at once."""

_ENDPOINT_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "gs": ("GOOGLE_BASE_URL",),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
_OWN_KEYS: Mapping[str, frozenset[str]] = {
    "s3": frozenset({"access_key_id", "skip_signature"}),
    "gs": frozenset({"bearer_token"}),
    "az": frozenset({"account_key", "sas_key", "token", "skip_signature"}),
}
"""Options with which a client asks nobody for keys."""
_SIGN_IN_HOSTS: Mapping[str, tuple[str, ...]] = {
    "s3": ("amazonaws.com", "amazonaws.com.cn", "169.254.169.254", "169.254.170.2", "169.254.170.23", "fd00:ec2::254"),
    "gs": ("googleapis.com", "metadata.google.internal", "metadata", "169.254.169.254"),
    "az": ("microsoftonline.com", "microsoftonline.us", "microsoftonline.cn", "chinacloudapi.cn", "169.254.169.254"),
}
_SIGN_IN_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "s3": ("AWS_ENDPOINT_URL_STS", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_METADATA_ENDPOINT"),
    "gs": ("GCE_METADATA_HOST", "GCE_METADATA_ROOT", "GCE_METADATA_IP"),
    "az": ("AZURE_AUTHORITY_HOST", "IDENTITY_ENDPOINT", "MSI_ENDPOINT"),
}


def fenced(options: ClientOptions) -> Mapping[str, str]:
    """The options of the HTTP client, with which it reaches the hosts of its own options only."""
    endpoints = [options.endpoint] if options.endpoint else _given(_ENDPOINT_VARIABLES[options.kind])
    if not endpoints or "proxy_url" in options.client or urllib.request.getproxies().keys() - {"no"}:
        return options.client
    hosts = [_host(endpoint) for endpoint in endpoints]
    if options.credentials is None and not _OWN_KEYS[options.kind] & options.config.keys():
        hosts += [*_SIGN_IN_HOSTS[options.kind], *map(_host, _given(_SIGN_IN_VARIABLES[options.kind]))]
    return {**options.client, "proxy_url": f"http://{NOWHERE}", "proxy_excludes": ",".join(filter(None, hosts))}


def is_sent_elsewhere(text: str) -> bool:
    """Whether an error of obstore says that it was sent to a host that its options do not name."""
    return NOWHERE in text


def _given(variables: Iterable[str]) -> list[str]:
    return [found for found in map(os.environ.get, variables) if found]


def _host(address: str) -> str:
    try:
        return urlsplit(address if "//" in address else f"//{address}").hostname or ""
    except ValueError:
        return ""
