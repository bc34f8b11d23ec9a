"""How much of declared columns no refresh has seen as it is now: from the manifest and the notes alone, nothing is read."""

from __future__ import annotations

from lance_core.computed.fragments import declared_column
from lance_core.computed.signatures import FreshNote
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import LanceError
from lance_core.format.declared import declared_fields, evidence_of


def unseen_rows(snapshot: Snapshot) -> dict[str, int]:
    """For each declared column, the rows of fragments that no refresh found fresh: they may be stale, they need not be.

    A column that cannot be refreshed, because an input is gone or its declaration is damaged, counts with all its rows.
    """
    schema, found = snapshot.manifest.schema, dict[str, int]()
    for item in declared_fields(schema):
        found[item.name] = snapshot.manifest.num_rows
        if evidence_of(schema, item) is None:
            continue
        try:
            column = declared_column(schema, item)
        except LanceError:
            continue
        note = FreshNote(snapshot.store, column.declaration.id, column.declaration.identity)
        ids = column.all_ids(schema)
        found[item.name] = sum(one.num_rows for one in snapshot.manifest.fragments if not note.knows(one, ids))
    return found
