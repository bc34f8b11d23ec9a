"""One process of the race. A module of its own: it imports no reader, so that eight of them start quickly."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from lance_core.commit import naming
from lance_core.commit.loop import commit_transaction
from lance_core.format.fragment import DataFile, Fragment
from lance_core.io.local.store import LocalStore
from lance_core.table.operations import Append
from lance_core.table.transaction import Transaction


def race(arguments: tuple[str, Sequence[bytes]]) -> None:
    """Append each content (a data file with one row), every time planned on version 1."""
    uri, contents = arguments
    store = LocalStore(uri)
    for data in contents:
        name = naming.data_file_name()
        store.put(naming.data_path(name), data)
        fragment = Fragment(0, (DataFile(name, (0,), (0,), 2, 2, len(data)),), 1)
        commit_transaction(store, Transaction(1, str(uuid.uuid4()), Append((fragment,))))
