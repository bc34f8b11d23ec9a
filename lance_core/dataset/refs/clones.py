"""The lines of a table: the main branch, other branches, and external clones that read its files.

::

    _versions/…                        the main line
    tree/exp/_versions/…               branch exp, which reads files of the lines it began from
    _lance_core/clones/{uuid}.json     {"uri": "s3://b/copy", "version": 7, "branch": null}: a shallow clone of version 7

A cleanup of one line asks here what the others hold on to. Clones that the official library made are not written down.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress

from lance_core.commit import naming
from lance_core.commit.base_paths import open_base
from lance_core.commit.manifests import find_latest_version
from lance_core.dataset.refs.branches import TREE, branch_names
from lance_core.errors import CorruptFileError, LanceError
from lance_core.format.manifest import BasePath
from lance_core.io.store import Store, StoreEntry
from lance_core.publish.records import read_records, write_record

CLONES = f"{naming.PRIVATE}/clones"
_GRACE_SECONDS = 600
"""A clone is written down before it is made: so young a note counts even when there is no clone yet."""


def places_of(root: Store) -> Sequence[Store]:
    """Where each line has its versions: the main table, and every folder of a branch, named or not (yet)."""
    marker = f"/{naming.VERSIONS}/"
    folders = {entry.path.split(marker, 1)[0] for entry in root.list(f"{TREE}/") if marker in entry.path}
    return [root, *(root.child(folder) for folder in sorted(folders))]


def unnamed(root: Store) -> Sequence[StoreEntry]:
    """Files below `tree/` that are of no branch with a name: of a branch being made, or that was never finished."""
    owned = tuple(f"{TREE}/{name}/" for name in branch_names(root))
    return [entry for entry in root.list(f"{TREE}/") if not entry.path.startswith(owned)]


def note_clone(source: Store, *, uri: str, version: int) -> None:
    """Write down that the table at `uri` reads files of this line's `version`; not where the source cannot be written."""
    with suppress(LanceError):
        write_record(source, f"{CLONES}/{uuid.uuid4().hex}.json", {"uri": uri, "version": version})


def cloned_versions(store: Store, storage_options: Mapping[str, str] | None = None) -> dict[int, str]:
    """Versions with an external clone: version -> the clone's uri. Removed clones are ignored."""
    entries = [*store.list(f"{CLONES}/")]
    found = {}
    for entry, record in zip(entries, read_records(store, [entry.path for entry in entries]), strict=True):
        if record is None:
            continue
        is_fresh = time.time() < entry.modified + _GRACE_SECONDS
        uri, version = record.get("uri"), record.get("version")
        if not isinstance(uri, str) or not isinstance(version, int) or isinstance(version, bool):
            raise CorruptFileError(
                f"{store.uri}: {entry.path} does not state the location and the source version of a clone",
                uri=store.uri,
                cure="Remove the file if this table has no clones any more.",
            )
        if is_fresh or not _is_gone(uri, store.uri, storage_options):
            found[version] = uri
    return found


def _is_gone(uri: str, table_uri: str, storage_options: Mapping[str, str] | None) -> bool:
    try:
        place = open_base(BasePath(id=0, path=uri), table_uri=table_uri, storage_options=storage_options)
        return find_latest_version(place) is None
    except LanceError:
        return False  # not to be seen from here, which proves nothing
