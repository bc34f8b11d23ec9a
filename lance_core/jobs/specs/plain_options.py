"""The storage options that are known not to be secrets, and where a spec may contain options. Standard library only.

::

    is_plain_option("region", "eu-west-1")                                   True
    is_plain_option("base_1.region", "eu-west-1")                            True
    is_plain_option("azure_storage_master_key", "...")                       False: not known to be plain
    is_plain_option("manifest_store_url", "postgresql://u:p@db/m")           False: it holds a password
    secret_values({"source": {"options": {"password": "hunter2"}}})          ["hunter2"]

What nobody has listed as plain counts as secret: a new option of a store, or a misspelt one, does not show.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from lance_core.io.options import MANIFEST_STORE_URL, PLAIN_OPTIONS

_OF_BASE = re.compile(r"base(?:_\d+|\[.*\])\.")
_SENSITIVE = re.compile(
    r"passw|secret|token|credential|access_?key|account_?key|master_?key|api_?key|private_?key|\bsas|_sas|signature"
    r"|connection_?string|authorization|^key$",
    re.IGNORECASE,
)
_USER_INFO = re.compile(
    r"[A-Za-z][\w+.\-]*://[^/\s]*:[^/\s@]+@|[?&](?:sig|password|secret|token|sslpassword)=", re.IGNORECASE
)
_NOT_SEARCHED = frozenset({"predicate", "where", "sql", "updates", "columns"})


def is_plain_option(name: str, value: object = "") -> bool:
    """Whether a storage option's value may be shown."""
    bare = _OF_BASE.sub("", str(name).lower(), count=1)
    if bare == MANIFEST_STORE_URL:
        return not has_credentials(str(value)) and "@" not in str(value)
    return bare in PLAIN_OPTIONS and not has_credentials(str(value))


def has_credentials(text: str) -> bool:
    """Whether a uri holds a password or a signature."""
    return bool(_USER_INFO.search(text))


def secret_values(value: Any, *, name: str = "") -> Iterator[str]:
    """Texts in a spec's plain data, or in Spark's configuration, that should not be shown."""
    if isinstance(value, str):
        if value and (has_credentials(value) or (_SENSITIVE.search(name.rsplit(".", 1)[-1]) or _SENSITIVE.search(name))):
            yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if str(key) not in _NOT_SEARCHED:
                yield from secret_values(item, name=str(key))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from secret_values(item, name=name)
