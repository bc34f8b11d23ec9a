"""A fragment as JSON, the way the official library writes it: how fragments travel between processes.

::

    {"id": 5, "files": [{"path": "0101….lance", "fields": [0], "column_indices": [0], "file_major_version": 2, …}],
     "physical_rows": 10, "deletion_file": null, "row_id_meta": {"Inline": [10, 4, …]}, …}

Bytes (messages of row ids and of versions) are lists of numbers there, and so they are here. What only this library keeps
(protobuf fields it does not know, overlays it does not interpret) comes under names of its own, in base64, if there is any.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from lance_core.errors import InputError
from lance_core.format.fragment import DataFile, DataOverlayFile, DeletionFile, ExternalFile, Fragment

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
        raise InputError(f"this JSON does not describe a fragment: {error!r}", cure="Pass what to_json gave.") from error


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
