"""Find the tables below a folder without opening any of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lance_core.commit import naming
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.maintenance.policy import EVIDENCE_TABLE, ManagedTable

MAX_DEPTH = 8


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


def _tables(store: Store, folder: str, depth: int = 0) -> Iterator[str]:
    names = store.list_folders(folder)
    if naming.VERSIONS in names and folder:
        yield folder.rstrip("/")
        return
    if depth < MAX_DEPTH:
        for name in names:
            yield from _tables(store, f"{folder}{name}/", depth + 1)
