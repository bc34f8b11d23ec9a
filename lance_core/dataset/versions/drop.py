"""Remove a table and everything below its uri.

::

    drop_table("/t.lance")                           NotFoundError when there is no table
    drop_table("/t.lance", ignore_not_found=True)

Only a place that holds a readable manifest is touched, so that a mistyped path costs nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from lance_core.commit.manifests import find_latest_version, load_manifest, not_a_table
from lance_core.commit.naming import VERSIONS, parse_manifest_name
from lance_core.io.parallel import each
from lance_core.io.resolve import resolve_store


def drop_table(
    uri: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None, *, ignore_not_found: bool = False
) -> int:
    """Delete every object below the table's uri; the number of objects. Manifests go last: a killed drop can be repeated."""
    store = resolve_store(uri, storage_options)
    newest = find_latest_version(store)
    if newest is None:
        if ignore_not_found:
            return 0
        raise not_a_table(store)
    load_manifest(store, newest)
    paths = [entry.path for entry in store.list("")]
    manifests = [path for path in paths if path.startswith(f"{VERSIONS}/")]
    others = [path for path in paths if not path.startswith(f"{VERSIONS}/")]
    each(store, others, lambda place, path: place.delete(path))
    # The newest goes last: a manifest store takes a table without its newest version, but with others, for damaged.
    last = [path for path in manifests if (parse_manifest_name(path[len(VERSIONS) + 1 :]) or (0,))[0] == newest]
    each(store, [path for path in manifests if path not in last], lambda place, path: place.delete(path))
    each(store, last, lambda place, path: place.delete(path))
    _remove_folder(store.uri)
    return len(paths)


def _remove_folder(uri: str) -> None:
    """Local folders outlive their files; object stores have none."""
    import shutil

    if os.path.isdir(uri):  # noqa: PTH112 - a uri of another scheme is no folder here
        shutil.rmtree(uri, ignore_errors=True)
