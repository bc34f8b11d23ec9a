"""Keep a client of obstore with the host that its options name: an answer that sends it elsewhere is refused.

::

    aws_endpoint=https://minio.example      307 to https://elsewhere.example       StoreRefusedError, nothing is sent there

obstore follows redirects and cannot be told not to: it takes the session token along in a header and, as the referrer, the
address with what signs it, and then reads from wherever it was sent. It can be told of a proxy, and of hosts that are
reached without it. So the hosts of the options are reached without, and everything else by a proxy where nobody can be.
Where the user has a proxy, that one decides. A cloud that is asked at its own address may send to another of its own.
"""

from __future__ import annotations

import os
import urllib.request
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from lance_core.io.objects.options import ClientOptions

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
