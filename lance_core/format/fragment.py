"""A fragment: a horizontal slice of a table, its data files, its deletion file, its row identity.

Data files of one fragment hold disjoint fields for the same rows. (Spec: table format, "fragments".)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lance_core.format.version import FileVersion, version_of_numbers


@dataclass(frozen=True, slots=True)
class ExternalFile:
    """Bytes kept in a file of their own instead of inline in the manifest; sizes in bytes."""

    path: str
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class DataFile:
    """One data file (`lance.table.DataFile`).

    `fields[i]` is stored in column `column_indices[i]` of the file; -2 in `fields` marks a dead column, -1 in
    `column_indices` a field without a column of its own. Legacy files leave `column_indices` empty.
    """

    path: str
    fields: tuple[int, ...]
    column_indices: tuple[int, ...]
    file_major_version: int
    file_minor_version: int
    file_size_bytes: int | None = None
    base_id: int | None = None
    unknown: bytes = b""

    @property
    def version(self) -> FileVersion:
        """The storage version of this file."""
        return version_of_numbers(self.file_major_version, self.file_minor_version)


@dataclass(frozen=True, slots=True)
class DeletionFile:
    """Where a fragment's deleted row offsets are (`lance.table.DeletionFile`). `file_type`: "array" | "bitmap"."""

    file_type: str
    read_version: int
    id: int
    num_deleted_rows: int
    base_id: int | None = None


@dataclass(frozen=True, slots=True)
class DataOverlayFile:
    """Cells that override a fragment's base files (unstable; carried, never interpreted). Raw protobuf bytes."""

    raw: bytes


@dataclass(frozen=True, slots=True)
class Fragment:
    """One fragment (`lance.table.DataFragment`).

    `row_ids` and the two version sequences are serialized protobuf messages (see `lance_core.rowids`), inline as bytes or
    an ExternalFile. `unknown` keeps protobuf fields this release does not know, so that a rewrite loses nothing.
    """

    id: int
    files: tuple[DataFile, ...]
    physical_rows: int
    deletion_file: DeletionFile | None = None
    row_ids: bytes | ExternalFile | None = None
    last_updated_at_versions: bytes | ExternalFile | None = None
    created_at_versions: bytes | ExternalFile | None = None
    overlays: tuple[DataOverlayFile, ...] = ()
    clustering_id: int | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    unknown: bytes = b""

    @property
    def num_deleted_rows(self) -> int:
        """Rows the deletion file marks as deleted."""
        return 0 if self.deletion_file is None else self.deletion_file.num_deleted_rows

    @property
    def num_rows(self) -> int:
        """Rows a reader sees."""
        return self.physical_rows - self.num_deleted_rows

    @property
    def num_deletions(self) -> int:
        """`num_deleted_rows` by its other name."""
        return self.num_deleted_rows

    def to_json(self) -> dict[str, Any]:
        """What describes it, as values that JSON has; see `lance_core.format.fragment_json`."""
        from lance_core.format.fragment_json import fragment_to_json

        return fragment_to_json(self)

    @staticmethod
    def from_json(json_data: str | Mapping[str, Any]) -> Fragment:
        """The fragment that `to_json` described, as text or as values. InputError when it is not one."""
        from lance_core.format.fragment_json import fragment_from_json

        return fragment_from_json(json_data)
