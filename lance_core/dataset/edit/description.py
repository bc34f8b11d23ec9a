"""What people say of a table and of its columns: what they are, whose they are, and how fresh the rows shall be.

::

    describe(snapshot, Description(text="one row an order", owner="shop@example.com", fresh_within="26h"),
             columns={"city": Description(text="where it goes")})
    table metadata      {"comment": "one row an order", "owner": "shop@example.com", "fresh_within": "26h"}
    metadata of city    {"comment": "where it goes"}

The words are kept in the table's own metadata, under the names that catalogs of Spark use (`TableCatalog.PROP_COMMENT` and
`PROP_OWNER`; a column's `comment` is where Delta keeps it): they go where the table goes, and other tools see them.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Mapping
from dataclasses import dataclass

from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.retry import StagedEdit, commit_with_retry
from lance_core.durations import parse_duration
from lance_core.errors import InputError
from lance_core.format.manifest import Manifest
from lance_core.format.schema import Field
from lance_core.table.operations.update_config import MapUpdate, UpdateConfig
from lance_core.table.transaction import Transaction

COMMENT, OWNER, FRESH_WITHIN = "comment", "owner", "fresh_within"
MAX_LETTERS = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Description:
    """What is said of a table or a column; None says nothing. As a change, None leaves what is said, and "" takes it away.

    `fresh_within` is for tables only: rows shall have changed within that time, such as "26h" or "2days".
    """

    text: str | None = None
    owner: str | None = None
    fresh_within: str | None = None

    def entries(self) -> dict[str, str | None]:
        """The keys to set; None deletes one. InputError for a text without an end, and for what is no duration."""
        given = {COMMENT: self.text, OWNER: self.owner, FRESH_WITHIN: self.fresh_within}
        for name, value in given.items():
            if value is not None and len(value) > MAX_LETTERS:
                raise InputError(f"{name} has {len(value):,} letters, at most {MAX_LETTERS:,} are kept", cure="Shorten it.")
        if self.fresh_within:
            parse_duration(self.fresh_within, of="fresh_within")
        return {name: value or None for name, value in given.items() if value is not None}


def description_of(manifest: Manifest) -> Description:
    """What a version says of its table."""
    said = manifest.table_metadata
    return Description(text=said.get(COMMENT), owner=said.get(OWNER), fresh_within=said.get(FRESH_WITHIN))


def description_of_field(field: Field) -> Description:
    """What a version says of a column."""
    said = {name: value.decode("utf-8", "replace") for name, value in field.metadata.items()}
    return Description(text=said.get(COMMENT), owner=said.get(OWNER))


def describe(snapshot: Snapshot, table: Description, columns: Mapping[str, Description]) -> Snapshot:
    """Commit what differs from what is said already, in one version; the same snapshot where nothing does.

    Columns are named by dotted path. InputError for one that is not there, for a column with `fresh_within`; CommitError.
    """
    for path, said in columns.items():
        if said.fresh_within is not None:
            raise InputError(f"column {path!r} cannot have fresh_within", cure="Say it of the table.")
    if not _changes(snapshot, table, columns).touches().keys:
        return snapshot
    return commit_with_retry(
        snapshot,
        lambda current: StagedEdit(
            Transaction(current.version, str(uuids.uuid4()), _changes(current, table, columns)),
        ),
    )[0]


def _changes(snapshot: Snapshot, table: Description, columns: Mapping[str, Description]) -> UpdateConfig:
    manifest = snapshot.manifest
    of_table = {name: value for name, value in table.entries().items() if manifest.table_metadata.get(name) != value}
    fields: dict[int, MapUpdate] = {}
    for path, said in columns.items():
        field = manifest.schema.find(path)
        there = {name: value.decode("utf-8", "replace") for name, value in field.metadata.items()}
        changed = {name: value for name, value in said.entries().items() if there.get(name) != value}
        if changed:
            fields[field.id] = MapUpdate(changed)
    return UpdateConfig(
        table_metadata_updates=MapUpdate(of_table) if of_table else None,
        field_metadata_updates=fields,
    )
