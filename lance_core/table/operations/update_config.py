"""UpdateConfig: key/value maps change: configuration, table metadata, schema metadata, metadata of fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from lance_core.errors import InputError
from lance_core.format.schema import Field, Schema, column_of, primary_key
from lance_core.table.touches import Touches

if TYPE_CHECKING:
    from lance_core.table.draft import ManifestDraft


@dataclass(frozen=True, slots=True)
class MapUpdate:
    """New values by key, None to delete the key; `replace` drops all keys that are not named."""

    entries: Mapping[str, str | None] = field(default_factory=dict)
    replace: bool = False

    @property
    def keys(self) -> frozenset[str] | None:
        """The keys it decides about, None for all."""
        return None if self.replace else frozenset(self.entries)


@dataclass(frozen=True, slots=True)
class UpdateConfig:
    """Change any of the four kinds of maps; None leaves one alone."""

    name: ClassVar[str] = "UpdateConfig"
    config_updates: MapUpdate | None = None
    table_metadata_updates: MapUpdate | None = None
    schema_metadata_updates: MapUpdate | None = None
    field_metadata_updates: Mapping[int, MapUpdate] = field(default_factory=dict)

    def touches(self) -> Touches:
        """Keys of maps."""
        keys: dict[str, frozenset[str] | None] = {}
        for name, update in (
            ("config", self.config_updates),
            ("table", self.table_metadata_updates),
            ("schema", self.schema_metadata_updates),
        ):
            if update is not None:
                keys[name] = update.keys
        for field_id, update in self.field_metadata_updates.items():
            keys[f"field:{field_id}"] = update.keys
        return Touches(keys=keys)

    def apply(self, draft: ManifestDraft) -> None:
        """Apply each update to its map."""
        if self.config_updates is not None:
            draft.config = merged(draft.config, self.config_updates)
        if self.table_metadata_updates is not None:
            draft.table_metadata = merged(draft.table_metadata, self.table_metadata_updates)
        if self.schema_metadata_updates is not None:
            metadata = _merged_bytes(draft.schema.metadata, self.schema_metadata_updates)
            draft.schema = replace(draft.schema, metadata=metadata)
        before = draft.schema
        for field_id, update in self.field_metadata_updates.items():
            metadata = _merged_bytes(draft.field(field_id).metadata, update)
            draft.set_field_metadata(field_id, metadata)
        if primary_key(draft.schema) != primary_key(before):
            _check_key(before, draft.schema)


def _check_key(before: Schema, after: Schema) -> None:
    """A primary key is set once, and of plain columns without nulls: all libraries hold to that."""

    def places(schema: Schema) -> list[tuple[int, int]]:
        return [(item.id, item.unenforced_primary_key_position) for item in primary_key(schema)]

    if places(before) == places(after):
        return
    if places(before):
        names = ", ".join(column_of(before, item.id) for item in primary_key(before))
        raise InputError(f"the primary key of the table is ({names}) and cannot be changed", cure="Write a new table.")
    for item in primary_key(after):
        if after.children(item.id):
            raise InputError(f"field {column_of(after, item.id)!r} has fields below it and cannot be of a primary key")
        above: Field | None = item
        while above is not None:
            if above.nullable:
                raise InputError(
                    f"field {column_of(after, above.id)!r} may be null, and the primary key cannot",
                    cure="Make it NOT NULL first.",
                )
            above = after.by_id.get(above.parent_id)


def _merged_bytes(current: Mapping[str, bytes], update: MapUpdate) -> dict[str, bytes]:
    """Metadata of schemas and fields: text to the caller, bytes in the format."""
    result: dict[str, bytes] = {} if update.replace else dict(current)
    for key, value in update.entries.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = value.encode()
    return result


def merged(current: Mapping[str, str], update: MapUpdate) -> dict[str, str]:
    """The map after an update."""
    result: dict[str, str] = {} if update.replace else dict(current)
    for key, value in update.entries.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = value
    return result
