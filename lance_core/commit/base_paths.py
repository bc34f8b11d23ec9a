"""Base paths: further roots of a table's files, listed in its manifest; and the rule for which of them are opened.

::

    /a.lance        base /b.lance              opened: local beside local
    s3://x/a.lance  base s3://x/b.lance        opened with the table's credentials: the same bucket
    s3://x/a.lance  base s3://y/b.lance        refused, unless the caller says so: base_1.region, allowed_bases=s3://y
    az://…/a.lance  base abfss://c@evil…       refused in the same way: another account
    s3://…/a.lance  base /etc                  refused: a table from elsewhere does not read this machine's files
    /a.lance        base ../b                  refused: relative to what?

A manifest is a file that anybody may have written, so what it names is not trusted further than the table itself: neither
the credentials given for the table nor those of the machine go to another account, bucket or host. Paths of files below a
base are checked by the store: they never climb out of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

from lance_core.errors import CorruptFileError, InputError
from lance_core.format.manifest import BasePath
from lance_core.io.options import ALLOWED_BASES, has_own_options, options_of_base
from lance_core.io.resolve import resolve_store, scheme_of
from lance_core.io.scope import HERE, family_of, is_allowed, is_same_scope
from lance_core.io.store import Store


def open_base(
    base: BasePath, *, table_uri: str, storage_options: Mapping[str, str] | None, is_callers: bool = False
) -> Store:
    """The store of a base path. `is_callers`: the caller of this very call named it, so it gets the caller's credentials.

    Raises CorruptFileError for a base that no table may name, InputError for one that the caller has to allow.
    """
    check_base(base.path, table_uri=table_uri)
    near = is_same_scope(base.path, table_uri, storage_options)
    shared = near or is_callers or is_allowed(base.path, storage_options)
    if not shared and not has_own_options(storage_options, base.id, base.path):
        raise InputError(
            f"{table_uri} has the base path {base.path!r} in another account, bucket or host than the table",
            uri=table_uri,
            cure=f"If that place is trusted, open the table with the storage option {ALLOWED_BASES}={base.path!r}, "
            f"or set separate options for it, such as base_{base.id}.region.",
        )
    return resolve_store(base.path, options_of_base(storage_options, base.id, shared=shared, path=base.path))


def check_base(path: str, *, table_uri: str) -> None:
    """CorruptFileError for a path on this machine that a remote table names, or that is not absolute."""
    if family_of(path) in HERE and family_of(table_uri) not in HERE:
        raise CorruptFileError(
            f"{table_uri} is a remote table, but has the base path {path!r} on this machine",
            uri=table_uri,
            cure="Copy the files next to the table, for example with deep_clone.",
        )
    if scheme_of(path) is None and not PurePath(path).is_absolute():
        raise CorruptFileError(f"{table_uri} has the base path {path!r}, which is not absolute", uri=table_uri)
