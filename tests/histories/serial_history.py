"""A serial history: each version is what its transaction makes of the version before.

::

    version 1 --transaction of 2--> 2 --transaction of 3--> 3 …      replayed here, compared with what writers published
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from lance_core.commit.manifests import list_versions, load_manifest
from lance_core.commit.transactions import load_transaction
from lance_core.io.store import Store
from lance_core.table.build import build


def assert_serial(store: Store) -> None:
    """Versions have no gap, and replaying each transaction on the version before gives the version."""
    numbers = [entry.version for entry in list_versions(store)]
    assert numbers == [*range(1, numbers[-1] + 1)]
    for before, after in itertools.pairwise([load_manifest(store, number) for number in numbers]):
        transaction = load_transaction(store, after.version)
        assert transaction is not None
        assert after.writer_version is not None
        replayed = build(
            before,
            transaction,
            timestamp_ns=after.timestamp_ns,
            writer_version=after.writer_version,
            transaction_file=after.transaction_file,
        )
        for name in ("fragments", "max_fragment_id", "config", "indices", "schema", "next_row_id", "table_metadata"):
            assert _plain(getattr(replayed, name)) == _plain(getattr(after, name)), (after.version, name)


def _plain(value: object) -> object:
    return [*value] if isinstance(value, Sequence) else value  # fragments may be a lazy sequence
