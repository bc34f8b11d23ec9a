"""The reuse index on the wire (`FragmentReuseIndexDetails`), and its effect on the coverage of the other indices.

A compaction may leave indices as they are and write down instead which fragments became which. Until the indices catch
up, their bitmaps are read through that list, as the official library does when it loads a version:

    i covers {0, 1, 2}    groups: {0, 1} -> {5}    ->    i covers {2, 5}
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lance_core.errors import CorruptFileError
from lance_core.format.fragment import ExternalFile
from lance_core.format.index import IndexMetadata
from lance_core.format.index_details import FragmentDigest, ReuseDetails, ReuseGroup, ReuseVersion
from lance_core.table.coverage import FRAGMENT_REUSE
from lance_core.wire.pb import table_pb2
from lance_core.wire.schema import parse_message

MAX_FRAGMENT_ID = (1 << 32) - 1
"""Of a row address, the upper half."""
_Message = table_pb2.FragmentReuseIndexDetails


def decode_reuse(data: bytes) -> ReuseDetails:
    """The content of a reuse index, or where it is. Raises CorruptFileError."""
    message = parse_message(_Message, data, what="fragment reuse details")
    if message.WhichOneof("content") == "external":
        file = message.external
        return ReuseDetails(external=ExternalFile(file.path, file.offset, file.size))
    return _content_of(message.inline)


def _content_of(inline: Any) -> ReuseDetails:
    versions = tuple(
        ReuseVersion(version.dataset_version, tuple(_group_of(group) for group in version.groups))
        for version in inline.legacy_versions
    )
    return ReuseDetails(versions, tuple(item.SerializeToString(deterministic=True) for item in inline.transitions))


def _group_of(group: Any) -> ReuseGroup:
    return ReuseGroup(group.changed_row_addrs, _digests_of(group.old_fragments), _digests_of(group.new_fragments))


def _digests_of(messages: Any) -> tuple[FragmentDigest, ...]:
    for item in messages:
        if item.id > MAX_FRAGMENT_ID or item.physical_rows > MAX_FRAGMENT_ID + 1:
            raise CorruptFileError(
                f"the fragment reuse index has a fragment {item.id} of {item.physical_rows} rows; "
                "both have 32 bits in an address"
            )
    return tuple(FragmentDigest(item.id, item.physical_rows, item.num_deleted_rows) for item in messages)


def encode_reuse(details: ReuseDetails) -> bytes:
    """A serialized FragmentReuseIndexDetails."""
    message = _Message()
    if details.external is not None:
        file = details.external
        message.external.CopyFrom(table_pb2.ExternalFile(path=file.path, offset=file.offset, size=file.size))
    else:
        message.inline.CopyFrom(_content_message(details))
    return bytes(message.SerializeToString(deterministic=True))


def _content_message(details: ReuseDetails) -> Any:
    content = _Message.InlineContent(transitions=[_Message.Transition.FromString(raw) for raw in details.transitions])
    for version in details.versions:
        groups = [
            _Message.Group(
                changed_row_addrs=group.changed_row_addresses,
                old_fragments=_digest_messages(group.old_fragments),
                new_fragments=_digest_messages(group.new_fragments),
            )
            for group in version.groups
        ]
        content.legacy_versions.append(_Message.Version(dataset_version=version.dataset_version, groups=groups))
    return content


def _digest_messages(digests: tuple[FragmentDigest, ...]) -> list[Any]:
    return [
        _Message.FragmentDigest(id=item.id, physical_rows=item.physical_rows, num_deleted_rows=item.num_deleted_rows)
        for item in digests
    ]


def read_through(indices: tuple[IndexMetadata, ...]) -> tuple[IndexMetadata, ...]:
    """Index entries with their coverage translated by the reuse index among them, if there is one and it is inline."""
    reuse = next((index for index in indices if index.name == FRAGMENT_REUSE and index.details is not None), None)
    if reuse is None or reuse.details is None:
        return indices
    details = decode_reuse(reuse.details.value)
    # The reuse index's own bitmap is read through it as well.
    return tuple(_translated(index, details) for index in indices)


def _translated(index: IndexMetadata, details: ReuseDetails) -> IndexMetadata:
    bitmap = index.fragment_bitmap
    if bitmap is None:
        return index
    for version in details.versions:
        for group in version.groups:
            old = frozenset(item.id for item in group.old_fragments)
            # A group that the index covers in part cannot be followed; planners never make one.
            if old and old <= bitmap:
                bitmap = (bitmap - old) | frozenset(item.id for item in group.new_fragments)
    return index if bitmap == index.fragment_bitmap else replace(index, fragment_bitmap=bitmap)
