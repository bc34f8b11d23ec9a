"""Shapes of serialized messages: two messages of one shape have the same fields at the same bytes.

::

    08 01 12 2f 0a 21 .. 20 02 28 01 20 64      id = 1, one data file of version 2.1, 100 rows
    ff 80 ff ff ff ff 00 ff ff ff ff ff 80      bits that are equal in every message of that shape

Nearly all entries of a manifest have one of a few shapes, so one look at each shape answers a question about all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lance_core.rowids.walk import BYTES, FIXED32, FIXED64, VARINT, damaged, read_varint

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
