"""A fragment: a horizontal slice of a table, its data files, its deletion file, its row identity.

Data files of one fragment hold disjoint fields for the same rows. (Spec: table format, "fragments".)
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lance_core.errors import InputError
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
        """What describes it, as values that JSON has; see `fragment_to_json`."""
        return fragment_to_json(self)

    @staticmethod
    def from_json(json_data: str | Mapping[str, Any]) -> Fragment:
        """The fragment that `to_json` described, as text or as values. InputError when it is not one."""
        return fragment_from_json(json_data)


_FILE_FIELDS = ("path", "file_major_version", "file_minor_version", "file_size_bytes", "base_id")
_DELETION_FIELDS = ("file_type", "read_version", "id", "num_deleted_rows", "base_id")


def fragment_to_json(fragment: Fragment) -> dict[str, Any]:
    """Everything there is to a fragment, as values that JSON has."""
    made: dict[str, Any] = {
        "id": fragment.id,
        "files": [_file_to_json(file) for file in fragment.files],
        "overlays": [{"raw": _text(item.raw)} for item in fragment.overlays],
        "physical_rows": fragment.physical_rows,
        "deletion_file": _deletions_to_json(fragment.deletion_file),
        "row_id_meta": _meta_to_json(fragment.row_ids, inline="Inline", external="External"),
        "created_at_version_meta": _meta_to_json(fragment.created_at_versions),
        "last_updated_at_version_meta": _meta_to_json(fragment.last_updated_at_versions),
    }
    if fragment.clustering_id is not None:
        made["clustering_id"] = fragment.clustering_id
    if fragment.metadata:
        made["metadata"] = dict(fragment.metadata)
    return {**made, "unknown": _text(fragment.unknown)} if fragment.unknown else made


def fragment_from_json(value: str | Mapping[str, Any]) -> Fragment:
    """The fragment that `fragment_to_json`, or the official library, wrote down. InputError when it is not one."""
    try:
        given: Mapping[str, Any] = json.loads(value) if isinstance(value, str) else value
        return Fragment(
            id=int(given["id"]),
            files=tuple(_file_of(item) for item in given["files"]),
            physical_rows=int(given["physical_rows"]),
            deletion_file=_deletions_of(given.get("deletion_file")),
            row_ids=_meta_of(given.get("row_id_meta")),
            created_at_versions=_meta_of(given.get("created_at_version_meta")),
            last_updated_at_versions=_meta_of(given.get("last_updated_at_version_meta")),
            overlays=tuple(DataOverlayFile(base64.b64decode(item["raw"])) for item in given.get("overlays") or ()),
            clustering_id=given.get("clustering_id"),
            metadata=dict(given.get("metadata") or {}),
            unknown=base64.b64decode(given.get("unknown") or ""),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"this JSON does not describe a fragment: {error!r}", cure="Pass the output of to_json.") from error


def _file_to_json(file: DataFile) -> dict[str, Any]:
    made = {name: getattr(file, name) for name in _FILE_FIELDS}
    made |= {"fields": [*file.fields], "column_indices": [*file.column_indices]}
    return {**made, "unknown": _text(file.unknown)} if file.unknown else made


def _file_of(given: Mapping[str, Any]) -> DataFile:
    return DataFile(
        path=str(given["path"]),
        fields=tuple(map(int, given["fields"])),
        column_indices=tuple(map(int, given.get("column_indices") or ())),
        file_major_version=int(given["file_major_version"]),
        file_minor_version=int(given["file_minor_version"]),
        file_size_bytes=given.get("file_size_bytes"),
        base_id=given.get("base_id"),
        unknown=base64.b64decode(given.get("unknown") or ""),
    )


def _deletions_to_json(file: DeletionFile | None) -> dict[str, Any] | None:
    return None if file is None else {name: getattr(file, name) for name in _DELETION_FIELDS}


def _deletions_of(given: Mapping[str, Any] | None) -> DeletionFile | None:
    return None if given is None else DeletionFile(**{name: given.get(name) for name in _DELETION_FIELDS})  # type: ignore[arg-type]


def _meta_to_json(
    value: bytes | ExternalFile | None, *, inline: str = "inline", external: str = "external"
) -> dict[str, Any] | None:
    if value is None:
        return None
    if isinstance(value, bytes):
        return {inline: [*value]}
    return {external: {"path": value.path, "offset": value.offset, "size": value.size}}


def _meta_of(given: Mapping[str, Any] | None) -> bytes | ExternalFile | None:
    if given is None:
        return None
    ((form, value),) = given.items()
    if form.lower() == "inline":
        return bytes(value)
    return ExternalFile(str(value["path"]), int(value["offset"]), int(value["size"]))


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
