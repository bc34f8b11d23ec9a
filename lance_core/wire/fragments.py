"""Fragments and data files on the wire (`lance.table.DataFragment`, `DataFile`, `DeletionFile`).

    08 01             id = 1
    12 ..             a DataFile
    20 e8 07          physical_rows = 1000

Peeking walks only the field headers of a message, because a table may have 100,000 of them and a commit asks for two.

Shapes of serialized messages: two messages of one shape have the same fields at the same bytes.

::

    08 01 12 2f 0a 21 .. 20 02 28 01 20 64      id = 1, one data file of version 2.1, 100 rows
    ff 80 ff ff ff ff 00 ff ff ff ff ff 80      bits that are equal in every message of that shape

Nearly all entries of a manifest have one of a few shapes, so one look at each shape answers a question about all of them.

Walking over the fields of serialized messages, header by header, without building any.

18 07 12 02 08 02       a field ends at byte 2, the next at byte 6
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from lance_core.errors import CorruptFileError
from lance_core.format.fragment import DataFile, DataOverlayFile, DeletionFile, ExternalFile, Fragment
from lance_core.rowids.walk import BYTES, FIXED32, FIXED64, VARINT, damaged, read_varint, walk_fields
from lance_core.wire import new_fragments
from lance_core.wire.pb import table_pb2
from lance_core.wire.peek import join_messages, peek, peek_each, peek_numbers
from lance_core.wire.schema import parse_message, unknown_bytes

_DELETION_TYPES = {0: "array", 1: "bitmap"}
_DELETION_NUMBERS = {name: number for number, name in _DELETION_TYPES.items()}
_EMPTY: dict[str, str] = {}
_FEW = 64
"""So few entries are walked sooner than laid out in columns."""
_PEEKED = {"deletion_file": 3, "overlays": 11}
MAX_FRAGMENT_ID = (1 << 32) - 1
MAX_FRAGMENT_ROWS = (1 << 32) - 1


@lru_cache(maxsize=4096)
def _shared(values: tuple[int, ...]) -> tuple[int, ...]:
    """One tuple for all data files that list the same fields: nearly all of a table's do."""
    return values


def decode_data_file(message: table_pb2.DataFile) -> DataFile:
    """The noun of one DataFile message."""
    return DataFile(
        path=message.path,
        fields=_shared(tuple(message.fields)),
        column_indices=_shared(tuple(message.column_indices)),
        file_major_version=message.file_major_version,
        file_minor_version=message.file_minor_version,
        file_size_bytes=message.file_size_bytes or None,
        base_id=message.base_id if message.HasField("base_id") else None,
        unknown=unknown_bytes(message),
    )


def encode_data_file(file: DataFile) -> table_pb2.DataFile:
    """The message of one data file."""
    message = table_pb2.DataFile(
        path=file.path,
        fields=file.fields,
        column_indices=file.column_indices,
        file_major_version=file.file_major_version,
        file_minor_version=file.file_minor_version,
        file_size_bytes=file.file_size_bytes or 0,
        base_id=file.base_id,
    )
    if file.unknown:
        message.MergeFromString(file.unknown)
    return message


def _decode_deletion_file(message: table_pb2.DeletionFile) -> DeletionFile:
    kind = _DELETION_TYPES.get(int(message.file_type))
    if kind is None:
        raise CorruptFileError(f"deletion file type {int(message.file_type)} is unknown; expected 0 (array) or 1 (bitmap)")
    return DeletionFile(
        file_type=kind,
        read_version=message.read_version,
        id=message.id,
        num_deleted_rows=message.num_deleted_rows,
        base_id=message.base_id if message.HasField("base_id") else None,
    )


def _encode_deletion_file(file: DeletionFile) -> table_pb2.DeletionFile:
    return table_pb2.DeletionFile(
        file_type=_DELETION_NUMBERS[file.file_type],  # type: ignore[arg-type]
        read_version=file.read_version,
        id=file.id,
        num_deleted_rows=file.num_deleted_rows,
        base_id=file.base_id,
    )


def _decode_sequence(message: table_pb2.DataFragment, oneof: Any) -> bytes | ExternalFile | None:
    arm = message.WhichOneof(oneof)
    if arm is None:
        return None
    value = getattr(message, arm)
    if arm.startswith("inline"):
        return bytes(value)
    return ExternalFile(path=value.path, offset=value.offset, size=value.size)


def _encode_sequence(message: table_pb2.DataFragment, name: str, value: bytes | ExternalFile | None) -> None:
    if isinstance(value, ExternalFile):
        external = table_pb2.ExternalFile(path=value.path, offset=value.offset, size=value.size)
        getattr(message, f"external_{name}").CopyFrom(external)
    elif value is not None:
        setattr(message, f"inline_{name}", value)


def _decode_overlays(messages: Any) -> tuple[DataOverlayFile, ...]:
    return tuple(DataOverlayFile(raw=item.SerializeToString(deterministic=True)) for item in messages)


def decode_fragment_message(message: table_pb2.DataFragment) -> Fragment:
    """The noun of one DataFragment message. CorruptFileError for claims that no fragment can fulfil."""
    _check_claims(message)
    return Fragment(
        id=message.id,
        files=tuple([decode_data_file(file) for file in message.files]),
        physical_rows=message.physical_rows,
        deletion_file=_decode_deletion_file(message.deletion_file) if message.HasField("deletion_file") else None,
        row_ids=_decode_sequence(message, "row_id_sequence"),
        last_updated_at_versions=_decode_sequence(message, "last_updated_at_version_sequence"),
        created_at_versions=_decode_sequence(message, "created_at_version_sequence"),
        overlays=_decode_overlays(message.overlays) if message.overlays else (),
        clustering_id=message.clustering_id if message.HasField("clustering_id") else None,
        metadata=dict(message.metadata) if message.metadata else _EMPTY,
        unknown=unknown_bytes(message),
    )


def _check_claims(message: table_pb2.DataFragment) -> None:
    """A row's address has 32 bits for the fragment and 32 for the row, so larger numbers are damage or an attack."""
    if message.id > MAX_FRAGMENT_ID or message.physical_rows > MAX_FRAGMENT_ROWS:
        raise CorruptFileError(
            f"fragment {message.id} declares {message.physical_rows} rows; "
            f"the limits are id {MAX_FRAGMENT_ID} and {MAX_FRAGMENT_ROWS} rows"
        )
    if message.deletion_file.num_deleted_rows > message.physical_rows:
        raise CorruptFileError(
            f"fragment {message.id} declares {message.deletion_file.num_deleted_rows} deleted rows, "
            f"but has {message.physical_rows} rows"
        )


def encode_fragment_message(fragment: Fragment) -> table_pb2.DataFragment:
    """The message of one fragment."""
    message = table_pb2.DataFragment(
        id=fragment.id,
        files=[encode_data_file(file) for file in fragment.files],
        physical_rows=fragment.physical_rows,
        overlays=[parse_message(table_pb2.DataOverlayFile, item.raw, what="data overlay") for item in fragment.overlays],
        clustering_id=fragment.clustering_id,
    )
    if fragment.deletion_file is not None:
        message.deletion_file.CopyFrom(_encode_deletion_file(fragment.deletion_file))
    _encode_sequence(message, "row_ids", fragment.row_ids)
    _encode_sequence(message, "last_updated_at_versions", fragment.last_updated_at_versions)
    _encode_sequence(message, "created_at_versions", fragment.created_at_versions)
    if fragment.metadata:
        message.metadata.update(fragment.metadata)
    if fragment.unknown:
        message.MergeFromString(fragment.unknown)
    return message


def decode_fragment(data: bytes) -> Fragment:
    """A fragment from a serialized DataFragment."""
    return decode_fragment_message(parse_message(table_pb2.DataFragment, data, what="fragment entry of the manifest"))


def encode_fragment(fragment: Fragment) -> bytes:
    """A serialized DataFragment."""
    plain = new_fragments.encode_plain(fragment)
    if plain is not None:
        return plain
    return bytes(encode_fragment_message(fragment).SerializeToString(deterministic=True))


def _id(raw: bytes) -> int:
    # Writers put it first, and leave it out when it is 0.
    if raw[:1] == b"\x08":
        return raw[1] if len(raw) > 1 and raw[1] < 0x80 else read_varint(raw, 1)[0]
    return last_values(raw, 1, 0)[0]


def _file_versions(raw: bytes) -> list[tuple[int, int]]:
    return [last_varints(file, 4, 5) for file in all_messages(raw, 2)]


def _num_rows(raw: bytes) -> int:
    rows, deletion_file = last_values(raw, 4, 3)
    return _living(rows, last_values(deletion_file, 4, 3)[0] if deletion_file else 0)


def _living(rows: int, gone: int) -> int:
    if not 0 <= gone <= rows <= MAX_FRAGMENT_ROWS:
        raise CorruptFileError(f"a fragment declares {rows} rows, {gone} of them deleted")
    return rows - gone


class WireFragments:
    """How a FragmentList reads its bytes (a `FragmentDecoder`)."""

    def decode(self, raw: bytes) -> Fragment:
        """The whole fragment."""
        return decode_fragment(raw)

    def peek_ids(self, raws: Sequence[bytes]) -> Sequence[int]:
        """Field 1 of all entries."""
        if len(raws) < _FEW:
            return [_id(raw) for raw in raws]
        data, starts, ends = join_messages(raws)
        found = peek(data, starts, ends, number=1, inner=0, first_only=True)
        ids: list[int] = found.values.tolist()
        for number in np.flatnonzero(found.is_odd).tolist():
            ids[number] = _id(raws[number])
        return ids

    def peek_num_rows(self, raws: Sequence[bytes]) -> Sequence[int]:
        """Field 4 less the deletion file's count, of each entry."""
        if len(raws) < _FEW:
            return [*map(_num_rows, raws)]
        data, starts, ends = join_messages(raws)
        rows = peek(data, starts, ends, number=4, inner=3)
        deleting = np.flatnonzero((rows.inner_starts >= 0) & ~rows.is_odd)
        gone = peek(data, rows.inner_starts[deleting], rows.inner_ends[deleting], number=4, inner=3)
        odd = rows.is_odd
        odd[deleting[gone.is_odd]] = True
        lacking = np.zeros(len(raws), np.int64)
        lacking[deleting[~gone.is_odd]] = gone.values[~gone.is_odd]
        for number in np.flatnonzero(~odd & ((lacking > rows.values) | (rows.values > MAX_FRAGMENT_ROWS))).tolist():
            _living(int(rows.values[number]), int(lacking[number]))
        counts: list[int] = (rows.values - lacking).tolist()
        for number in np.flatnonzero(odd).tolist():
            counts[number] = _num_rows(raws[number])
        return counts

    def peek_versions(self, raws: Sequence[bytes]) -> frozenset[tuple[int, int]]:
        """Fields 4 and 5 of every field 2."""
        if len(raws) < _FEW:
            return frozenset(version for raw in raws for version in _file_versions(raw))
        shapes = one_of_each_shape(raws, inner=2, numbers=(4, 5))
        if shapes is not None:
            return frozenset(version for raw in shapes for version in _file_versions(raw))
        data, starts, ends = join_messages(raws)
        files, file_ends, is_odd = peek_each(data, starts, ends, inner=2)
        (major, minor), is_odd_file = peek_numbers(data, files, file_ends, numbers=(4, 5))
        if is_odd.any() or is_odd_file.any():
            return frozenset(version for raw in raws for version in _file_versions(raw))
        numbers = set((major << 32 | minor).tolist())
        return frozenset((number >> 32, number & 0xFFFFFFFF) for number in numbers)

    def peek_row_ids(self, raws: Sequence[bytes]) -> bool:
        """Whether field 5 or 12 occurs in all."""
        return all(any(number in (5, 12) for number, _ in walk_fields(raw)) for raw in raws)

    def peek_paths(self, raws: Sequence[bytes]) -> Sequence[str] | None:
        """Field 1 of the only field 2."""
        return new_fragments.paths_of(raws)

    def number(self, raws: Sequence[bytes], first: int) -> tuple[Sequence[bytes], Sequence[int]] | None:
        """Field 1 in front."""
        return new_fragments.numbered(raws, first)

    def peek_any(self, raws: Sequence[bytes], name: str) -> bool:
        """Whether field 3 or 11 occurs in any."""
        wanted = _PEEKED[name]
        if len(raws) < _FEW:
            return any(_has(raw, wanted) for raw in raws)
        data, starts, ends = join_messages(raws)
        found = peek(data, starts, ends, number=0, inner=wanted)
        odd = np.flatnonzero(found.is_odd).tolist()
        return bool((found.inner_starts >= 0).any()) or any(_has(raws[number], wanted) for number in odd)


def _has(raw: bytes, wanted: int) -> bool:
    return any(number == wanted for number, _ in walk_fields(raw))


_MOST = 16
"""Messages of more shapes are sooner walked all at once."""
_WHOLE, _CONTINUES = 0xFF, 0x80


def one_of_each_shape(raws: Sequence[bytes], *, inner: int, numbers: tuple[int, ...]) -> list[bytes] | None:
    """Some of the messages, so that every message equals one of them in varint fields `numbers` of its messages in field
    `inner`, and in how often these occur; None when that would be very many.

    Raises CorruptFileError for one that is no message.
    """
    found: list[bytes] = []
    rest = raws
    while rest:
        if len(found) == _MOST:
            return None
        one = rest[-1]
        found.append(one)
        rest = _of_other_shapes(rest, one, _fixed_bits(one, inner, (), numbers))
    return found


def _of_other_shapes(raws: Sequence[bytes], one: bytes, fixed: bytes) -> list[bytes]:
    size = len(one)
    others = [raw for raw in raws if len(raw) != size]
    same = [raw for raw in raws if len(raw) == size] if others else raws
    rows = np.frombuffer(b"".join(same), np.uint8).reshape(len(same), size)
    differs = (rows ^ np.frombuffer(one, np.uint8)) & np.frombuffer(fixed, np.uint8)
    if differs.any():
        others += [same[place] for place in np.flatnonzero(differs.any(axis=1)).tolist()]
    return others


def _fixed_bits(raw: bytes, inner: int, kept: tuple[int, ...], kept_within: tuple[int, ...]) -> bytes:
    """The bits that say where the fields of a message are, and those of the varint fields `kept`."""
    parts: list[bytes] = []
    position, total = 0, len(raw)
    while position < total:
        start = position
        tag, position = read_varint(raw, position)
        number, kind = tag >> 3, tag & 7
        if kind == VARINT:
            begin, position = position, read_varint(raw, position)[1]
            bits = _WHOLE if number in kept else _CONTINUES
            parts.append(bytes([_WHOLE]) * (begin - start) + bytes([bits]) * (position - begin))
            continue
        if kind == BYTES:
            size, position = read_varint(raw, position)
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
        else:
            raise damaged(start, total)
        if size > total - position or tag < 8:
            raise damaged(start, total)
        parts.append(bytes([_WHOLE]) * (position - start))
        is_inner = kind == BYTES and number == inner
        value = raw[position : position + size]
        parts.append(_fixed_bits(value, 0, kept_within, ()) if is_inner else bytes(size))
        position += size
    return b"".join(parts)


def entry_end(data: bytes, position: int) -> int:
    """The position behind the length-delimited field whose one-byte tag is at `position`."""
    size, start = _size(data, position + 1)
    if start + size > len(data):
        raise damaged(position, len(data))
    return start + size


def _size(data: bytes, position: int) -> tuple[int, int]:
    if position < len(data) and data[position] < 0x80:
        return data[position], position + 1
    return read_varint(data, position)


def field_end(data: bytes, position: int) -> int:
    """The position behind the field whose header is at `position`."""
    start, total = position, len(data)
    if position + 1 < total and 8 <= (tag := data[position]) < 0x80 and (value := data[position + 1]) < 0x80:
        # Both are one byte, as in nearly all fields.
        if tag & 7 == VARINT:
            return position + 2
        if tag & 7 == BYTES and position + 2 + value <= total:
            return position + 2 + value
    tag, position = read_varint(data, position)
    kind = tag & 7
    if kind == VARINT:
        return read_varint(data, position)[1]
    if kind == BYTES:
        size, position = read_varint(data, position)
    elif kind == FIXED64:
        size = 8
    elif kind == FIXED32:
        size = 4
    else:
        raise damaged(start, total)
    if size > total - position or tag < 8:
        raise damaged(start, total)
    return position + size


def last_values(data: bytes, number: int, message: int) -> tuple[int, bytes]:
    """(varint field `number`, length-delimited field `message`) of a message, 0 and empty where absent; both numbers < 16.

    Called for each fragment of a table, hence one loop without calls for the headers that occur.
    """
    wanted, nested = number << 3 | VARINT, message << 3 | BYTES
    value, inner = 0, b""
    position, total = 0, len(data)
    while position < total:
        tag = data[position]
        if tag >= 0x80 or tag & 7 not in (VARINT, BYTES) or tag < 8:
            position = field_end(data, position)
            continue
        found, stop = _size(data, position + 1)
        if tag & 7 == BYTES:
            stop += found
            if stop > total:
                raise damaged(position, total)
            if tag == nested:
                inner = data[stop - found : stop]
        elif tag == wanted:
            value = found
        position = stop
    return value, inner


def last_varints(data: bytes, first: int, second: int) -> tuple[int, int]:
    """Varint fields `first` and `second` of a message, 0 where absent; both numbers < 16. One loop, as `last_values`."""
    one, other = first << 3 | VARINT, second << 3 | VARINT
    found, another = 0, 0
    position, total = 0, len(data)
    while position < total:
        tag = data[position]
        if tag >= 0x80 or tag & 7 not in (VARINT, BYTES) or tag < 8:
            position = field_end(data, position)
            continue
        value, stop = _size(data, position + 1)
        if tag & 7 == BYTES:
            stop += value
            if stop > total:
                raise damaged(position, total)
        elif tag == one:
            found = value
        elif tag == other:
            another = value
        position = stop
    return found, another


def all_messages(data: bytes, number: int) -> list[bytes]:
    """The contents of each length-delimited field `number` of a message; the number is < 16."""
    wanted = number << 3 | BYTES
    found = []
    position, total = 0, len(data)
    while position < total:
        tag = data[position]
        if tag >= 0x80 or tag & 7 != BYTES or tag < 8:
            position = field_end(data, position)
            continue
        size, start = _size(data, position + 1)
        position = start + size
        if position > total:
            raise damaged(start, total)
        if tag == wanted:
            found.append(data[start:position])
    return found
