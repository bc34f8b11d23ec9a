"""The versions of a table as people and the official library list them.

::

    {"version": 2, "timestamp": datetime, "metadata": {"total_rows": "10", "total_fragments": "1", …}}
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from lance_core.commit.manifests import load_manifest, version_numbers
from lance_core.commit.records import each
from lance_core.errors import NotFoundError
from lance_core.format.fragment import Fragment
from lance_core.format.fragments import FragmentList
from lance_core.format.manifest import Manifest
from lance_core.io.store import Store

Counts = tuple[int, int, int, int, int]
"""Of one fragment: physical rows, data files, deleted rows, deletion files, bytes of data files."""
_NOTHING: Counts = (0, 0, 0, 0, 0)


def list_history(store: Store) -> list[dict[str, Any]]:
    """An entry per version, oldest first; one listing, then the manifests, many at a time."""
    manifests = each(store, version_numbers(store), _load)
    known: dict[bytes, Counts] = {}
    return [version_entry(manifest, known) for manifest in manifests if manifest is not None]


def _load(store: Store, version: int) -> Manifest | None:
    try:
        return load_manifest(store, version)
    except NotFoundError:
        return None  # cleaned up between the listing and the read


def version_entry(manifest: Manifest, known: dict[bytes, Counts] | None = None) -> dict[str, Any]:
    """One version; the timestamp in local time without a zone, the counts as text, as the official library has them.

    `known` remembers fragments from one version to the next.
    """
    fragments = FragmentList.of(manifest.fragments)
    seen = [*fragments.each(_count, {} if known is None else known)]
    rows, files, deleted, deletion_files, size = (sum(column) for column in zip(_NOTHING, *seen, strict=True))
    counts = {
        "total_data_file_rows": rows,
        "total_data_files": files,
        "total_deletion_file_rows": deleted,
        "total_deletion_files": deletion_files,
        "total_files_size": size,
        "total_fragments": len(fragments),
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
    size = sum(file.file_size_bytes or 0 for file in fragment.files)
    has_deletions = fragment.deletion_file is not None
    return fragment.physical_rows, len(fragment.files), fragment.num_deleted_rows, int(has_deletions), size
