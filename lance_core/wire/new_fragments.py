"""Very many new fragments at once, as bytes: written, checked and numbered without an object for each.

::

    12 .. 20 e8 07            one data file, 1,000 rows, no id yet
    08 07 12 .. 20 e8 07      the same as fragment 7

Only plain entries are treated this way: one data file, a number of rows, every field once. All others are decoded.

The fragments of a serialized manifest, taken out and put back by the protobuf runtime itself, each as bytes.

On the wire a nested message is a length and bytes, so a `lance.table.Manifest` also reads as

    message Parts { repeated bytes fields = 1; repeated bytes fragments = 2; }      what else there is stays unknown

    12 02 08 01 18 07 12 02 08 02       fragments 08 01 and 08 02; left over: 18 07
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from lance_core.arrays import Ints
from lance_core.format.fragment import DataFile, Fragment
from lance_core.rowids.walk import encode_field, encode_varint
from lance_core.wire.pb import table_pb2
from lance_core.wire.peek import Peeked, join_messages, peek, varints
from lance_core.wire.schema import parse_message

MANY = 4096
"""Fewer fragments are objects sooner than laid out in columns."""
_MAX_ROWS = (1 << 32) - 1
_PARSED_AT_ONCE = 1 << 16
_FILE, _ROWS = 0x12, 0x20
_U32, _U64 = 1 << 32, 1 << 64


def encode_plain(fragment: Fragment) -> bytes | None:
    """What the protobuf runtime makes of a fragment that has nothing but one data file; None of any other."""
    if len(fragment.files) != 1 or fragment.deletion_file is not None or fragment.row_ids is not None:
        return None
    if fragment.last_updated_at_versions is not None or fragment.created_at_versions is not None or fragment.overlays:
        return None
    if fragment.clustering_id is not None or fragment.metadata or fragment.unknown:
        return None
    if not 0 <= fragment.id < _U64 or not 0 <= fragment.physical_rows < _U64:
        return None
    file = _encode_file(fragment.files[0])
    if file is None:
        return None
    head = b"\x08" + encode_varint(fragment.id) if fragment.id else b""
    rows = b"\x20" + encode_varint(fragment.physical_rows) if fragment.physical_rows else b""
    return b"".join((head, b"\x12", encode_varint(len(file)), file, rows))


def _encode_file(file: DataFile) -> bytes | None:
    size = file.file_size_bytes or 0
    if file.unknown or not file.path or file.base_id is not None or not 0 <= size < _U64:
        return None
    path = file.path.encode()
    middle = _encode_columns(file.fields, file.column_indices, file.file_major_version, file.file_minor_version)
    return b"".join(
        (b"\x0a", encode_varint(len(path)), path, middle, b"\x30" + encode_varint(size) if size else b""),
    )


@lru_cache(maxsize=256)
def _encode_columns(fields: tuple[int, ...], columns: tuple[int, ...], major: int, minor: int) -> bytes:
    """What lies between path and size: the same for nearly all files of a table."""
    message = table_pb2.DataFile(fields=fields, column_indices=columns, file_major_version=major, file_minor_version=minor)
    return bytes(message.SerializeToString(deterministic=True))


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """Plain entries one behind the other, and where the data file of each is."""

    data: npt.NDArray[np.uint8]
    starts: Ints
    ends: Ints


def _layout(raws: Sequence[bytes]) -> _Layout | None:
    """None unless each entry is a data file and a number of rows, and has no id."""
    data, starts, ends = join_messages(raws)
    if not (starts + 1 < ends).all() or (data[starts] != _FILE).any():
        return None
    sizes, begins, is_long = varints(data, starts + 1)
    behind = begins + sizes
    if is_long.any() or (behind > ends).any():
        return None
    rest = np.flatnonzero(behind < ends)
    if (data[behind[rest]] != _ROWS).any():
        return None
    rows, after, is_long = varints(data, behind[rest] + 1)
    if is_long.any() or (after != ends[rest]).any() or (rows > _MAX_ROWS).any():
        return None
    return _Layout(data, begins, behind)


def are_plain(raws: Sequence[bytes]) -> bool:
    """Whether all entries are plain and new. Raises CorruptFileError for bytes that are no fragments."""
    if _layout(raws) is None:
        return False
    for start in range(0, len(raws), _PARSED_AT_ONCE):
        part = join_fragments(raws[start : start + _PARSED_AT_ONCE])
        parse_message(table_pb2.Manifest, part, what="fragments of a transaction")
    return True


def numbered(raws: Sequence[bytes], first: int) -> tuple[list[bytes], list[int]] | None:
    """The entries with ids from `first` on, and one place for each way in which files name their columns.

    None unless all are plain and new.
    """
    layout = _layout(raws)
    places = None if layout is None else _first_of_each_kind(layout)
    if places is None:
        return None
    made = [b"\x08" + encode_varint(number) + raw for number, raw in enumerate(raws, first)]
    if first == 0:
        made[0] = raws[0]
    return made, places


def paths_of(raws: Sequence[bytes]) -> list[str] | None:
    """The path of the one data file of each entry below `data/`; None unless all are plain and new."""
    layout = _layout(raws)
    if layout is None:
        return None
    found = peek(layout.data, layout.starts, layout.ends, number=0, inner=1)
    if found.is_odd.any() or (found.inner_starts < 0).any():
        return None
    text = layout.data.tobytes()
    spans = zip(found.inner_starts.tolist(), found.inner_ends.tolist(), strict=True)
    return [str(text[start:end], "utf-8", "replace") for start, end in spans]


def _first_of_each_kind(layout: _Layout) -> list[int] | None:
    """Where fields, columns and version of files first are as they are; None where a field of a file occurs twice."""
    path, fields, columns = (_peek(layout, number, inner) for number, inner in ((4, 1), (5, 2), (6, 3)))
    odd = path.is_odd | fields.is_odd | columns.is_odd
    size = np.zeros(len(odd), np.int64)
    for item in (path, fields, columns):
        size += _size_of_bytes(item) + _size_of_number(item.values)
    if odd.any() or not np.array_equal(size, layout.ends - layout.starts):
        return None
    text = layout.data.tobytes()
    spans = (fields.inner_starts, fields.inner_ends, columns.inner_starts, columns.inner_ends)
    kinds: dict[tuple[bytes, bytes, int, int], int] = {}
    numbers = zip(*(item.tolist() for item in (*spans, path.values, fields.values)), strict=True)
    for place, (start, end, other, until, major, minor) in enumerate(numbers):
        kinds.setdefault((text[start:end], text[other:until], major, minor), place)
    return [*kinds.values()]


def _peek(layout: _Layout, number: int, inner: int) -> Peeked:
    return peek(layout.data, layout.starts, layout.ends, number=number, inner=inner)


def _size_of_bytes(found: Peeked) -> Ints:
    length = found.inner_ends - found.inner_starts
    return np.where(found.inner_starts < 0, 0, length + _size_of_number(length, empty=2))


def _size_of_number(values: Ints, *, empty: int = 0) -> Ints:
    """Bytes of a tag and a varint; a zero is left out."""
    size = np.full(len(values), 2)
    for bits in (7, 14, 21, 28):
        size += values >= 1 << bits
    return np.where(values == 0, empty, size)


_APPEND = 100
"""The field of a Transaction that holds an Append."""


def _classes() -> tuple[Any, Any]:
    source = descriptor_pb2.FileDescriptorProto(
        name="lance_core/wire/parts.proto", package="lance_core.wire", syntax="proto3"
    )
    kind = descriptor_pb2.FieldDescriptorProto
    message = source.message_type.add(name="Parts")
    for number, name in enumerate(("fields", "fragments"), start=1):
        message.field.add(name=name, number=number, type=kind.TYPE_BYTES, label=kind.LABEL_REPEATED)
    outer = source.message_type.add(name="Appending")
    outer.field.add(
        name="append", number=_APPEND, type=kind.TYPE_MESSAGE, label=kind.LABEL_OPTIONAL, type_name=".lance_core.wire.Parts"
    )
    found = descriptor_pool.DescriptorPool().AddSerializedFile(source.SerializeToString()).message_types_by_name
    return message_factory.GetMessageClass(found["Parts"]), message_factory.GetMessageClass(found["Appending"])


_PARTS, _APPENDING = _classes()


def split_manifest(data: bytes) -> tuple[list[bytes], list[bytes], bytes]:
    """(the fields of the schema, the fragments, the message without both) of a serialized Manifest.

    A manifest is nearly nothing but these: taken out first they leave little to build. Raises CorruptFileError.
    """
    message = parse_message(_PARTS, data, what="manifest")
    fields, fragments = list(message.fields), list(message.fragments)
    message.ClearField("fields")
    message.ClearField("fragments")
    return fields, fragments, bytes(message.SerializeToString())


def join_fragments(fragments: Iterable[bytes]) -> bytes:
    """Serialized fragments as the field of a Manifest that holds them."""
    return bytes(_PARTS(fragments=fragments).SerializeToString())


def split_append(data: bytes) -> tuple[list[bytes], bytes]:
    """(the fragments of the Append, the message without them) of a serialized Transaction. Raises CorruptFileError."""
    message = parse_message(_APPENDING, data, what="transaction")
    if not message.HasField("append"):
        return [], data
    fragments = list(message.append.fields)
    message.append.ClearField("fields")
    return fragments, bytes(message.SerializeToString())


def join_append(head: bytes, fragments: Iterable[bytes]) -> bytes:
    """A serialized Transaction that had no operation, with an Append of serialized fragments."""
    return head + encode_field(_APPEND, bytes(_PARTS(fields=fragments).SerializeToString()))
