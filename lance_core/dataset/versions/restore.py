"""Make an old version the newest one again, as a new version.

::

    versions 1 2 3, restore 1 -> version 4 with the rows of version 1
"""

from __future__ import annotations

import uuid as uuids

from lance_core.commit.loop import commit_transaction
from lance_core.commit.manifests import latest_version
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.table.operations.restore import Restore
from lance_core.table.transaction import Transaction


def restore_snapshot(snapshot: Snapshot) -> Snapshot:
    """Commit the snapshot's version as the newest; nothing happens when it is that already."""
    newest = latest_version(snapshot.store)
    if newest == snapshot.version:
        return snapshot
    # Planned on the newest version: what was committed until now is overruled knowingly, what comes in between is not.
    transaction = Transaction(newest, str(uuids.uuid4()), Restore(snapshot.version))
    manifest = commit_transaction(snapshot.store, transaction, strict=True)
    return Snapshot(snapshot.store, manifest, snapshot.storage_options)
