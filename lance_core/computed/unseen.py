"""How much of declared columns no refresh has seen as it is now: from the manifest and the notes alone, nothing is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lance_core.computed.declaration import declaration_of
from lance_core.computed.failures import read_failed
from lance_core.computed.fragments import declared_column
from lance_core.computed.history import RefreshRecord, read_records
from lance_core.computed.signatures import FreshNote
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import LanceError
from lance_core.format.declared import declared_fields, evidence_of, is_column_id
from lance_core.format.schema import Field


@dataclass(frozen=True, slots=True)
class DeclaredFreshness:
    """A declared column: how many rows no refresh has seen as they are now, when the last refresh did all of it (seconds
    since the epoch, None where none is on record), who requested that, how many rows its function failed for."""

    name: str
    kind: str
    function: str
    stale_rows: int
    failed_rows: int = 0
    refreshed_at: float | None = None
    refreshed_by: str = ""


def declared_freshness(snapshot: Snapshot) -> tuple[DeclaredFreshness, ...]:
    """How fresh each declared column is known to be: from the manifest, the notes and the records of refreshes alone."""
    schema = snapshot.manifest.schema
    unseen = unseen_rows(snapshot)
    records = read_records(snapshot.store) if unseen else []
    return tuple(_freshness(snapshot, item, unseen[item.name], records) for item in declared_fields(schema))


def _freshness(snapshot: Snapshot, item: Field, stale: int, records: Sequence[RefreshRecord]) -> DeclaredFreshness:
    try:
        declared = declaration_of(item)
    except LanceError:
        return DeclaredFreshness(item.name, "damaged", "", stale)
    last = next((record for record in records if record.did_all(item.name, declared.id)), None)
    return DeclaredFreshness(
        item.name,
        declared.kind,
        declared.expression,
        stale,
        read_failed(snapshot.store, declared.id).total if is_column_id(declared.id) else 0,
        None if last is None else last.when,
        "" if last is None else last.task,
    )


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
