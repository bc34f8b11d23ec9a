"""Key/value maps of a table: configuration, the table's metadata, the schema's and its fields'.

::

    update_maps(snapshot, "config", {"lance.auto_cleanup.interval": "20", "old": None})    sets one key, deletes another
    update_maps(snapshot, "schema", {"owner": "x"}, replace=True)                          drops every other key

Each is one UpdateConfig; changes of different keys never conflict.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Mapping
from typing import Literal

from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.retry import StagedEdit, commit_with_retry
from lance_core.errors import InputError
from lance_core.table.operations.update_config import MapUpdate, UpdateConfig
from lance_core.table.transaction import Transaction

Kind = Literal["config", "table", "schema"]
Values = Mapping[str, str | None]


def update_maps(snapshot: Snapshot, kind: Kind, values: Values, *, replace: bool = False) -> Snapshot:
    """Set keys of one of the table's maps; None deletes a key; `replace` drops the keys that are not named.

    Raises InputError for keys or values that are not text, CommitError.
    """
    return commit_with_retry(snapshot, lambda current: stage_maps(current, kind, values, replace=replace))[0]


def stage_maps(snapshot: Snapshot, kind: Kind, values: Values, *, replace: bool = False) -> StagedEdit:
    """Describe the commit of such a change."""
    update = MapUpdate(_checked(values), replace)
    operations = {
        "config": UpdateConfig(config_updates=update),
        "table": UpdateConfig(table_metadata_updates=update),
        "schema": UpdateConfig(schema_metadata_updates=update),
    }
    return _edit(snapshot, operations[kind])


def update_fields(snapshot: Snapshot, updates: Mapping[str, Values], *, replace: bool = False) -> Snapshot:
    """Set keys of the metadata of fields, named by dotted path. Raises InputError for a field that is not there."""
    return commit_with_retry(snapshot, lambda current: stage_fields(current, updates, replace=replace))[0]


def stage_fields(snapshot: Snapshot, updates: Mapping[str, Values], *, replace: bool = False) -> StagedEdit:
    """Describe the commit of such a change."""
    schema = snapshot.manifest.schema
    found = {schema.find(path).id: MapUpdate(_checked(values), replace) for path, values in updates.items()}
    return _edit(snapshot, UpdateConfig(field_metadata_updates=found))


def _edit(snapshot: Snapshot, operation: UpdateConfig) -> StagedEdit:
    return StagedEdit(Transaction(snapshot.version, str(uuids.uuid4()), operation))


def _checked(values: Values) -> dict[str, str | None]:
    for key, value in values.items():
        if not isinstance(key, str) or not (value is None or isinstance(value, str)):
            raise InputError(
                f"keys and values of metadata must be strings, got {key!r}: {value!r}", cure="Pass str, or None to delete."
            )
    return dict(values)
