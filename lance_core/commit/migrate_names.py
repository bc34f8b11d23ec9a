"""Rename manifests to the V2 naming scheme, whose numbers descend, so that a listing begins with the newest version.

::

    _versions/1.manifest   _versions/2.manifest     ->     _versions/18446744073709551614.manifest, …613.manifest

The newest goes first: from then on writers take the new names. Killed at any point, it is finished by the next call.
"""

from __future__ import annotations

from contextlib import suppress

from lance_core.commit import naming
from lance_core.commit.manifests import list_versions
from lance_core.errors import AlreadyExistsError
from lance_core.io.store import Store


def migrate_manifest_names(store: Store) -> int:
    """Give every manifest its V2 name; how many got one. No writer may be at work: two could win one version."""
    moved = 0
    for entry in reversed(list_versions(store)):
        target = naming.manifest_path(entry.version, naming.NamingScheme.V2)
        if entry.path == target:
            continue
        with suppress(AlreadyExistsError):  # copied by a call that was killed before it could delete
            store.copy_if_absent(entry.path, target)
        store.delete(entry.path)
        moved += 1
    return moved
