"""The oldest form of a directory catalog: its tables are the folders `NAME.lance` below its root.

::

    /data/orders.lance/                       the table orders
    /data/new.lance/.lance-reserved           declared, not written yet
    /data/old.lance/.lance-deregistered       not a table of the catalog any more
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping

from lance_core.commit.naming import VERSIONS
from lance_core.dataset.versions.drop import drop_table
from lance_core.errors import AlreadyExistsError
from lance_core.io.store import Store

SUFFIX = ".lance"
RESERVED = ".lance-reserved"
DEREGISTERED = ".lance-deregistered"
_CONTENT = b"reserved"


def folder_of(name: str) -> str:
    """The folder of a table of the root."""
    return f"{name}{SUFFIX}"


def listed_tables(store: Store) -> list[str]:
    """The names of all tables."""
    folders = (folder for folder in store.list_folders("") if folder.endswith(SUFFIX) and folder != SUFFIX)
    return [folder.removesuffix(SUFFIX) for folder in folders if is_listed(store, folder)]


def is_listed(store: Store, folder: str) -> bool:
    """Whether a folder holds anything, and was not deregistered."""
    names = store.list_names(f"{folder}/")
    return DEREGISTERED not in names and bool(names or store.list_folders(f"{folder}/"))


def is_deregistered(store: Store, folder: str) -> bool:
    """Whether a folder holds a table that the catalog forgot."""
    return DEREGISTERED in store.list_names(f"{folder}/")


def is_written(store: Store, folder: str) -> bool:
    """Whether a table has a version."""
    return bool(store.list_names(f"{folder}/{VERSIONS}/"))


def mark(store: Store, folder: str, marker: str) -> bool:
    """Write a marker; False where it exists."""
    try:
        store.put_if_absent(f"{folder}/{marker}", _CONTENT)
    except AlreadyExistsError:
        return False
    return True


def remove_all(store: Store, folder: str, storage_options: Mapping[str, str]) -> None:
    """Delete a table, then whatever else is in its folder: markers, and files of writes that were never published."""
    place = store.child(f"{folder}/")
    drop_table(place.uri, storage_options, ignore_not_found=True)
    for path in [entry.path for entry in place.list("")]:
        place.delete(path)
    if place.is_local:
        shutil.rmtree(place.uri, ignore_errors=True)
