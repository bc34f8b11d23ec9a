"""Sync streamed files while the commit that refers to them is prepared, so that both wait for the disk at once.

::

    data/a.lance       written, named    fsync ----+            a file nobody refers to yet may have its name early
    5.manifest                 written     fsync --+-> link, fsync of the folder        the link waits for both
    hint                                                  write
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from lance_core.io.local.store import LocalStore
from lance_core.io.local.writer import Syncs
from lance_core.io.store import Store


@contextlib.contextmanager
def syncing_later(store: Store) -> Iterator[Store]:
    """The store to stream to and to commit through, within one block; any other store than a local one is its own.

    What is streamed is durable before a `put_if_absent` through the same store publishes anything; that is durable when the
    block has ended.
    """
    if not isinstance(store, LocalStore):
        yield store
        return
    syncs = Syncs()
    try:
        yield store.syncing_later(syncs)
    finally:
        with contextlib.suppress(OSError):
            syncs.wait()
