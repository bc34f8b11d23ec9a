"""Find the tables that a policy is about, without opening any of them.

::

    find_tables("s3://lake")          every folder below it that holds `_versions/`
    tables_of(policy, ...)            those below the policy's base uri, below the connections that its rules name, and
                                      the assets that its rules name
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from lance_core.commit import naming
from lance_core.errors import LanceError, NotFoundError
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.maintenance.policy import EVIDENCE_TABLE, ManagedTable, Policy

MAX_DEPTH = 8
OptionsOf = Callable[[str | None], Mapping[str, str]]
BaseOf = Callable[[str], str]


def find_tables(
    base_uri: str, *, conn_id: str | None = None, storage_options: Mapping[str, str] | None = None
) -> list[ManagedTable]:
    """Return the tables below a folder, sorted by uri. Raises StoreError.

    A folder that holds `_versions/` is a table; folders inside a table are not searched, so the cost is one listing for each
    folder above the tables and one for each table.
    """
    store = resolve_store(base_uri, storage_options)
    found = [path for path in _tables(store, "") if path != EVIDENCE_TABLE]
    return [ManagedTable(uri=f"{base_uri.rstrip('/')}/{path}", conn_id=conn_id) for path in sorted(found)]


def check_base(base_uri: str) -> None:
    """NotFoundError for a folder of this machine that does not exist. A prefix of an object store is never missing: there
    are no folders, and the listing says whether the bucket is there."""
    scheme, _, rest = base_uri.rpartition("://")
    if scheme not in ("", "file"):
        return
    folder = Path(unquote(rest) if scheme else rest)
    if not folder.is_dir():
        raise NotFoundError(
            f"the base uri {base_uri} is no folder of the machine that reads it",
            uri=base_uri,
            cure="Create the folder, mount it, or correct `base_uri` of the connection.",
        )


def no_base(conn_id: str) -> str:
    """The base uri of a connection where there are no connections: none."""
    return ""


@dataclass(frozen=True)
class FoundTables:
    """The tables of a policy, each once, and connections (base uri, reason) whose tables could not be listed."""

    tables: tuple[ManagedTable, ...]
    unreachable: tuple[tuple[str, str], ...] = ()


def tables_of(
    policy: Policy, *, options_of: OptionsOf, base_of: BaseOf = no_base, conn_id: str | None = None
) -> FoundTables:
    """Return the tables that a policy is about, the policy's own folder first. StoreError when that cannot be listed.

    `conn_id` is the connection of the policy's own folder. `base_of` gives the base uri of a connection that a rule names;
    an empty one has no tables to list. An asset that a rule names is a table whether it exists or not, so that a missing
    one is noticed. One connection that cannot be listed does not keep the others from being maintained.
    """
    found = {
        table.uri.rstrip("/"): table
        for table in find_tables(policy.base_uri, conn_id=conn_id, storage_options=options_of(conn_id))
    }
    unreachable: list[tuple[str, str]] = []
    for other in sorted({rule.conn_id for rule in policy.tables if rule.conn_id is not None} - {conn_id}):
        base = ""
        try:
            base = base_of(other).rstrip("/")
            if base and base != policy.base_uri.rstrip("/"):
                for table in find_tables(base, conn_id=other, storage_options=options_of(other)):
                    found.setdefault(table.uri.rstrip("/"), table)
        except LanceError as error:
            unreachable.append((base or other, f"the tables of connection {other!r} cannot be listed: {error}"))
    for rule in policy.tables:
        if rule.asset is not None:
            found.setdefault(rule.asset.rstrip("/"), ManagedTable(uri=rule.asset, conn_id=rule.conn_id or conn_id))
    return FoundTables(tuple(found.values()), tuple(unreachable))


def _tables(store: Store, folder: str, depth: int = 0) -> Iterator[str]:
    names = store.list_folders(folder)
    if naming.VERSIONS in names and folder:
        yield folder.rstrip("/")
        return
    if depth < MAX_DEPTH:
        for name in names:
            yield from _tables(store, f"{folder}{name}/", depth + 1)
