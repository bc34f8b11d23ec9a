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
from lance_core.format.manifest import Manifest
from lance_core.io.store import Store


def list_history(store: Store) -> list[dict[str, Any]]:
    """An entry per version, oldest first; one listing, then the manifests, many at a time."""
    manifests = each(store, version_numbers(store), _load)
    return [version_entry(manifest) for manifest in manifests if manifest is not None]


def _load(store: Store, version: int) -> Manifest | None:
    try:
        return load_manifest(store, version)
    except NotFoundError:
        return None  # cleaned up between the listing and the read


def version_entry(manifest: Manifest) -> dict[str, Any]:
    """One version; the timestamp in local time without a zone, the counts as text, as the official library has them."""
    fragments = manifest.fragments
    files = [file for fragment in fragments for file in fragment.files]
    deletions = [fragment for fragment in fragments if fragment.deletion_file is not None]
    counts = {
        "total_data_file_rows": sum(fragment.physical_rows for fragment in fragments),
        "total_data_files": len(files),
        "total_deletion_file_rows": sum(fragment.num_deleted_rows for fragment in deletions),
        "total_deletion_files": len(deletions),
        "total_files_size": sum(file.file_size_bytes or 0 for file in files),
        "total_fragments": len(fragments),
        "total_rows": manifest.num_rows,
    }
    seconds, rest = divmod(manifest.timestamp_ns, 10**9)
    moment = dt.datetime.fromtimestamp(seconds) + dt.timedelta(microseconds=rest // 1000)
    return {
        "version": manifest.version,
        "timestamp": moment,
        "metadata": {name: str(value) for name, value in counts.items()},
    }
