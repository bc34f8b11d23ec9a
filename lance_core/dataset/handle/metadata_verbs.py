"""The methods of a handle that change key/value maps: configuration and metadata.

::

    dataset.update_config({"lance.auto_cleanup.interval": "20"})      dataset.update_field_metadata({"a.b": {"unit": "m"}})
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.shortage import verbs_tell_shortages

if TYPE_CHECKING:
    from lance_core.dataset.edit.metadata import Values


@verbs_tell_shortages
class AnnotatingVerbs:
    """What `LanceDataset` can say about its table. None as a value deletes the key; `replace` drops keys not named."""

    _snapshot: Snapshot

    def config(self) -> dict[str, str]:
        """The configuration of the table at this version: names and values, both text."""
        return dict(self._snapshot.manifest.config)

    @property
    def metadata(self) -> dict[str, str]:
        """The table's own metadata."""
        return dict(self._snapshot.manifest.table_metadata)

    @property
    def schema_metadata(self) -> dict[str, str]:
        """The schema's metadata, as text."""
        return {key: value.decode("utf-8", "replace") for key, value in self._snapshot.manifest.schema.metadata.items()}

    def update_config(self, values: Values, *, replace: bool = False) -> dict[str, str]:
        """Change the configuration; returns all of it."""
        from lance_core.dataset.edit.metadata import update_maps

        self._snapshot = update_maps(self._snapshot, "config", values, replace=replace)
        return self.config()

    def delete_config_keys(self, keys: Sequence[str]) -> None:
        """Remove keys from the configuration; keys it does not have do not matter."""
        from lance_core.dataset.edit.metadata import update_maps

        self._snapshot = update_maps(self._snapshot, "config", dict.fromkeys(keys))

    def update_metadata(self, values: Values, *, replace: bool = False) -> dict[str, str]:
        """Change the table's metadata; returns all of it."""
        from lance_core.dataset.edit.metadata import update_maps

        self._snapshot = update_maps(self._snapshot, "table", values, replace=replace)
        return self.metadata

    def update_schema_metadata(self, values: Values, *, replace: bool = False) -> dict[str, str]:
        """Change the schema's metadata; returns all of it."""
        from lance_core.dataset.edit.metadata import update_maps

        self._snapshot = update_maps(self._snapshot, "schema", values, replace=replace)
        return self.schema_metadata

    def replace_schema_metadata(self, new_metadata: Mapping[str, str]) -> None:
        """Exchange the schema's metadata as a whole."""
        from lance_core.dataset.edit.metadata import update_maps

        self._snapshot = update_maps(self._snapshot, "schema", new_metadata, replace=True)

    def update_field_metadata(self, field_updates: Mapping[str, Values], *, replace: bool = False) -> None:
        """Change the metadata of fields, named by dotted path. InputError for a field that is not there."""
        from lance_core.dataset.edit.metadata import update_fields

        self._snapshot = update_fields(self._snapshot, field_updates, replace=replace)

    def replace_field_metadata(self, field_name: str, new_metadata: Mapping[str, str]) -> None:
        """Exchange the metadata of one field as a whole."""
        from lance_core.dataset.edit.metadata import update_fields

        self._snapshot = update_fields(self._snapshot, {field_name: new_metadata}, replace=True)
