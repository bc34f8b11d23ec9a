"""Base paths: other places where files of a table lie, named by its manifest; and which of them are refused.

::

    /a.lance        base /b.lance              fine: local beside local
    /a.lance        base s3://bucket/b.lance   fine: the table's owner said so, options included
    s3://…/a.lance  base /etc                  refused: a table from elsewhere does not read this machine's files
    s3://…/a.lance  base gs://…/b.lance        opened, but not with the credentials that were given for s3: with those
                                               that are named for it, as base_1.google_service_account
    /a.lance        base ../b                  refused: relative to what?

A manifest is a file that anybody may have written, so what it names is not trusted further than the table itself. Paths of
files below a base are checked by the store: they never climb out of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

from lance_core.errors import CorruptFileError
from lance_core.format.manifest import BasePath
from lance_core.io.options import options_of_base
from lance_core.io.resolve import resolve_store, scheme_of
from lance_core.io.store import Store

_HERE = frozenset({"file", "file-object-store", "memory"})
_SAME = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "azure": "az", "abfs": "az", "abfss": "az", "wasb": "az", "wasbs": "az"}


def open_base(base: BasePath, *, table_uri: str, storage_options: Mapping[str, str] | None) -> Store:
    """The store of a base path. Raises CorruptFileError for one that the table has no business to name."""
    scheme, own = _family(base.path), _family(table_uri)
    if scheme in _HERE and own not in _HERE:
        raise CorruptFileError(
            f"{table_uri} names the base path {base.path!r} on this machine, which a remote table must not",
            uri=table_uri,
            cure="Copy the files next to the table, for example with deep_clone.",
        )
    if scheme == "file" and scheme_of(base.path) is None and not PurePath(base.path).is_absolute():
        raise CorruptFileError(f"{table_uri} names the base path {base.path!r}, which is not absolute", uri=table_uri)
    may_share = own in _HERE or scheme == own
    return resolve_store(base.path, options_of_base(storage_options, base.id, shared=may_share, path=base.path))


def _family(uri: str) -> str:
    scheme = scheme_of(uri)
    return "file" if scheme is None else _SAME.get(scheme, scheme)
