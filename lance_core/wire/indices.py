"""Index sections on the wire (`lance.table.IndexSection`): the manifest's metadata of each index segment.

0a 12 0a 10 <16 bytes>     one IndexMetadata, its uuid ...
2a 12 3a 30 ..             fragment_bitmap: portable roaring; absent means "coverage unknown"
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from lance_core.errors import CorruptFileError
from lance_core.format.index import IndexDetails, IndexFile, IndexMetadata
from lance_core.rowids.bitmap import decode_bitmap, encode_bitmap
from lance_core.wire.pb import table_pb2
from lance_core.wire.schema import parse_message, unknown_bytes

MAX_COVERED = 1 << 22
"""Fragments in the coverage of indices, 270 MB as a set; more only in tables that have very many."""
MAX_COVERED_SHARE = 16


def decode_uuid(message: table_pb2.UUID, *, what: str) -> str:
    """The canonical text of a UUID message."""
    if len(message.uuid) != 16:
        raise CorruptFileError(f"the uuid of {what} has {len(message.uuid)} bytes, expected 16")
    return str(uuid.UUID(bytes=message.uuid))


def encode_uuid(text: str) -> table_pb2.UUID:
    """The message of a uuid's text."""
    return table_pb2.UUID(uuid=uuid.UUID(text).bytes)


def decode_index_files(files: Iterable[table_pb2.IndexFile]) -> tuple[IndexFile, ...]:
    """The files of a segment."""
    return tuple(IndexFile(path=file.path, size_bytes=file.size_bytes) for file in files)


def encode_index_files(files: Iterable[IndexFile]) -> list[table_pb2.IndexFile]:
    """The messages of a segment's files."""
    return [table_pb2.IndexFile(path=file.path, size_bytes=file.size_bytes) for file in files]


class Coverages:
    """The fragments that the indices of one message cover, each set once however many indices have it.

    A bitmap of runs stands for 65,536 fragments in eight bytes, so what is claimed is counted before a set is made of it.
    """

    def __init__(self, *, num_fragments: int = 0) -> None:
        self._room = max(MAX_COVERED, MAX_COVERED_SHARE * num_fragments)
        self._known: dict[bytes, frozenset[int]] = {}

    def of(self, data: bytes, *, what: str) -> frozenset[int]:
        """The set of a bitmap. CorruptFileError when it is none, or all of them together are too large."""
        known = self._known.get(data)
        if known is None:
            bitmap = decode_bitmap(data, what=what)
            self._room -= len(bitmap)
            if self._room < 0:
                raise CorruptFileError(
                    f"{what} claims to cover {len(bitmap)} fragments; different bitmaps of one list of indices may cover "
                    f"{MAX_COVERED} in sum, or {MAX_COVERED_SHARE} times the fragments of the table"
                )
            known = self._known[data] = frozenset(bitmap)
        return known


def decode_index_message(message: table_pb2.IndexMetadata, coverages: Coverages) -> IndexMetadata:
    """The noun of one index segment."""
    bitmap = None
    if message.fragment_bitmap:
        bitmap = coverages.of(message.fragment_bitmap, what=f"the fragment bitmap of index {message.name!r}")
    details = None
    if message.HasField("index_details"):
        details = IndexDetails(type_url=message.index_details.type_url, value=message.index_details.value)
    return IndexMetadata(
        uuid=decode_uuid(message.uuid, what=f"index {message.name!r}"),
        name=message.name,
        fields=tuple(message.fields),
        dataset_version=message.dataset_version,
        fragment_bitmap=bitmap,
        details=details,
        index_version=message.index_version if message.HasField("index_version") else None,
        created_at=message.created_at if message.HasField("created_at") else None,
        base_id=message.base_id if message.HasField("base_id") else None,
        files=decode_index_files(message.files),
        covering_fields=tuple(message.covering_fields),
        clustering_id=message.clustering_id if message.HasField("clustering_id") else None,
        metadata=dict(message.metadata),
        unknown=unknown_bytes(message),
    )


def encode_index_message(index: IndexMetadata) -> table_pb2.IndexMetadata:
    """The message of one index segment."""
    message = table_pb2.IndexMetadata(
        uuid=encode_uuid(index.uuid),
        fields=index.fields,
        name=index.name,
        dataset_version=index.dataset_version,
        fragment_bitmap=b"" if index.fragment_bitmap is None else encode_bitmap(index.fragment_bitmap, runs=True),
        index_version=index.index_version,
        created_at=index.created_at,
        base_id=index.base_id,
        files=encode_index_files(index.files),
        covering_fields=index.covering_fields,
        clustering_id=index.clustering_id,
    )
    if index.details is not None:
        message.index_details.type_url = index.details.type_url
        message.index_details.value = index.details.value
    message.metadata.update(index.metadata)
    if index.unknown:
        message.MergeFromString(index.unknown)
    return message


def decode_index_section(data: bytes, *, num_fragments: int = 0) -> tuple[IndexMetadata, ...]:
    """All index segments of a version of a table with so many fragments, in stored order."""
    section = parse_message(table_pb2.IndexSection, data, what="index section")
    coverages = Coverages(num_fragments=num_fragments)
    return tuple(decode_index_message(message, coverages) for message in section.indices)


def encode_index_section(indices: Iterable[IndexMetadata]) -> bytes:
    """A serialized IndexSection."""
    section = table_pb2.IndexSection(indices=[encode_index_message(index) for index in indices])
    return bytes(section.SerializeToString(deterministic=True))
