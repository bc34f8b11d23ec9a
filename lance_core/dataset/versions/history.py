"""The versions of a table in the form of the official library.

::

    {"version": 2, "timestamp": datetime, "metadata": {"total_rows": "10", "total_fragments": "1", …}}
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

from lance_core.commit.manifests import manifest_paths
from lance_core.errors import FormatError, NotFoundError
from lance_core.format.fragment import Fragment
from lance_core.format.manifest import Manifest
from lance_core.io.parallel import each
from lance_core.io.store import Store
from lance_core.table.features import check_readable
from lance_core.wire.versions import Counts, VersionReader

_NOTHING = (0, 0, 0, 0, 0)
_AT_ONCE = 32
"""Manifests held at a time; that of a table of 100,000 fragments has 10 MB."""


def list_history(store: Store) -> list[dict[str, Any]]:
    """An entry per version, oldest first; one listing, then the manifests."""
    reader = VersionReader(_count, width=len(_NOTHING))
    history = []
    for version, path, data in _manifests(store):
        try:
            manifest, num_fragments, counts = reader.read(data)
        except FormatError as error:
            raise type(error)(f"{store.uri}: {path}: {error}", uri=store.uri, version=version) from error
        check_readable(manifest, uri=store.uri)
        history.append(_entry(manifest, num_fragments, counts))
    return history


def _manifests(store: Store) -> Iterator[tuple[int, str, bytes]]:
    """(version, path, bytes) of every manifest, a handful at a time; those that vanish in the meantime are left out."""
    entries = manifest_paths(store)
    for start in range(0, len(entries), _AT_ONCE):
        some = entries[start : start + _AT_ONCE]
        read = [_read(store, path) for _, path in some] if store.is_local else each(store, [path for _, path in some], _read)
        yield from ((version, path, data) for (version, path), data in zip(some, read, strict=True) if data is not None)


def _read(store: Store, path: str) -> bytes | None:
    try:
        return bytes(store.get(path))
    except NotFoundError:
        return None  # cleaned up between the listing and the read


def version_entry(manifest: Manifest) -> dict[str, Any]:
    """One version; the timestamp in local time without a zone, the counts as text, as the official library has them."""
    counts = [_count(fragment) for fragment in manifest.fragments]
    return _entry(manifest, len(counts), tuple(sum(column) for column in zip(_NOTHING, *counts, strict=True)))


def _entry(manifest: Manifest, num_fragments: int, totals: Counts) -> dict[str, Any]:
    rows, files, deleted, deletion_files, size = totals
    counts = {
        "total_data_file_rows": rows,
        "total_data_files": files,
        "total_deletion_file_rows": deleted,
        "total_deletion_files": deletion_files,
        "total_files_size": size,
        "total_fragments": num_fragments,
        "total_rows": rows - deleted,
    }
    seconds, rest = divmod(manifest.timestamp_ns, 10**9)
    moment = dt.datetime.fromtimestamp(seconds) + dt.timedelta(microseconds=rest // 1000)
    return {
        "version": manifest.version,
        "timestamp": moment,
        "metadata": {name: str(value) for name, value in counts.items()},
    }


def _count(fragment: Fragment) -> Counts:
    """Physical rows, data files, deleted rows, deletion files, bytes of data files."""
    size = sum(file.file_size_bytes or 0 for file in fragment.files)
    has_deletions = fragment.deletion_file is not None
    return fragment.physical_rows, len(fragment.files), fragment.num_deleted_rows, int(has_deletions), size
