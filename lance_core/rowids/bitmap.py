"""Roaring bitmaps in the three serialized forms the format uses; the only file that knows pyroaring.

    portable 32-bit     3a300000 00000000                       the empty set: fragment bitmaps, deletion files
    64-bit treemap      u64 count, then per high word u32 key + portable 32-bit
    address treemap     u32 count, then per fragment u32 fragment, u32 size (0 = the whole fragment), portable 32-bit

All bytes are little-endian. Damaged bytes raise CorruptFileError. (Spec: FORMAT E.2, C.4.)
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap as BitMap

from lance_core.errors import CorruptFileError

_COOKIE, _COOKIE_RUNS = 12346, 12347
_NO_OFFSET_THRESHOLD = 4
_HEAD64 = struct.Struct("<Q")
_HEAD32 = struct.Struct("<I")
_ENTRY = struct.Struct("<II")

UInt32Array = npt.NDArray[np.uint32]


def _damaged(what: str, reason: str) -> CorruptFileError:
    return CorruptFileError(f"{what} is not a valid roaring bitmap: {reason}", cure="The file is damaged.")


def portable_size(data: bytes | memoryview, *, what: str = "bitmap") -> int:
    """Bytes that the portable 32-bit bitmap at the start of `data` takes up, checked against the bytes there are.

    The library below trusts what it is given, so every header and every container is measured here first.
    """
    view = memoryview(data)
    total = len(view)
    if total < 4:
        raise _damaged(what, f"{total} bytes are less than its cookie")
    cookie = int.from_bytes(view[:4], "little")
    if cookie & 0xFFFF == _COOKIE_RUNS:
        count = (cookie >> 16) + 1
        runs, position = bytes(view[4 : 4 + (count + 7) // 8]), 4 + (count + 7) // 8
        has_offsets = count >= _NO_OFFSET_THRESHOLD
    elif cookie == _COOKIE:
        if total < 8:
            raise _damaged(what, "it ends inside its header")
        count = int.from_bytes(view[4:8], "little")
        runs, position, has_offsets = b"", 8, True
    else:
        raise _damaged(what, f"its cookie is {cookie:#x}")
    if count > 1 << 16 or position + 4 * count > total:
        raise _damaged(what, f"{count} containers do not fit in {total} bytes")
    header = np.frombuffer(view, dtype="<u2", count=2 * count, offset=position).reshape(count, 2)
    keys, cardinalities = header[:, 0].astype(np.int64), header[:, 1].astype(np.int64) + 1
    if np.any(keys[1:] <= keys[:-1]):
        raise _damaged(what, "its container keys are not ascending")
    position += 4 * count
    offsets_at = position
    if has_offsets:
        position += 4 * count
    return _containers_end(view, position, cardinalities, runs, offsets_at if has_offsets else None, what=what)


def _containers_end(
    view: memoryview,
    position: int,
    cardinalities: npt.NDArray[np.int64],
    runs: bytes,
    offsets_at: int | None,
    *,
    what: str,
) -> int:
    total = len(view)
    for index, cardinality in enumerate(cardinalities.tolist()):
        if position > total:
            raise _damaged(what, "it ends inside its header")
        if offsets_at is not None:
            stored = int.from_bytes(view[offsets_at + 4 * index : offsets_at + 4 * index + 4], "little")
            if stored != position:
                raise _damaged(what, f"container {index} declares its start at {stored}, but starts at {position}")
        if runs and runs[index // 8] >> (index % 8) & 1:
            position = _check_runs(view, position, what=what)
        elif cardinality <= 4096:
            values = view[position : position + 2 * cardinality]
            if len(values) == 2 * cardinality:
                array = np.frombuffer(values, dtype="<u2")
                if np.any(array[1:] <= array[:-1]):
                    raise _damaged(what, f"array container {index} is not ascending")
            position += 2 * cardinality
        else:
            words = view[position : position + 8192]
            if len(words) == 8192 and int(np.unpackbits(np.frombuffer(words, dtype=np.uint8)).sum()) != cardinality:
                raise _damaged(what, f"bitmap container {index} does not contain {cardinality} values")
            position += 8192
    if position > total:
        raise _damaged(what, f"its containers need {position} bytes, it has {total}")
    return position


def _check_runs(view: memoryview, position: int, *, what: str) -> int:
    if position + 2 > len(view):
        raise _damaged(what, "it ends inside a run container")
    num_runs = int.from_bytes(view[position : position + 2], "little")
    stop = position + 2 + 4 * num_runs
    if stop > len(view):
        raise _damaged(what, "it ends inside a run container")
    runs = np.frombuffer(view, dtype="<u2", count=2 * num_runs, offset=position + 2).astype(np.int64).reshape(num_runs, 2)
    ends = runs[:, 0] + runs[:, 1]
    if np.any(ends > 0xFFFF) or np.any(runs[1:, 0] <= ends[:-1]):
        raise _damaged(what, "runs overlap or exceed their container")
    return stop


def decode_bitmap(data: bytes | memoryview, *, what: str = "bitmap") -> BitMap:
    """The set in a portable 32-bit roaring bitmap; nothing may follow it."""
    size = portable_size(data, what=what)
    if size != len(data):
        raise _damaged(what, f"{len(data) - size} bytes follow it")
    return _read(bytes(data), what=what)


def _read(data: bytes, *, what: str) -> BitMap:
    try:
        return BitMap.deserialize(data)
    except ValueError as error:
        # It refuses more than could hurt it, such as runs that touch.
        raise _damaged(what, str(error)) from error


def encode_bitmap(values: Iterable[int] | BitMap, *, runs: bool = False) -> bytes:
    """Portable 32-bit bytes; `runs` lets containers be runs where that is smaller.

    The official writer uses runs in fragment bitmaps and in reuse indices, never in deletion files.
    """
    bitmap = values if isinstance(values, BitMap) else BitMap(values)
    if runs:
        bitmap = bitmap.copy()
        bitmap.run_optimize()
        return bytes(bitmap.serialize())
    data = bytes(bitmap.serialize())
    if int.from_bytes(data[:2], "little") == _COOKIE_RUNS:
        # The library has no call that undoes run containers; adding the members again never makes any.
        data = bytes(bitmap_of(bitmap_array(bitmap)).serialize())
    return data


def bitmap_of(values: npt.NDArray[np.integer] | Iterable[int]) -> BitMap:
    """A bitmap of unsigned 32-bit numbers, from an array without a Python object per element."""
    if isinstance(values, np.ndarray):
        # array("I") is the one container the library copies as a block; run containers are left to `serialize`.
        return BitMap(array("I", values.astype(np.uint32, copy=False).tobytes()), optimize=False)
    return BitMap(values)


def bitmap_array(bitmap: BitMap) -> UInt32Array:
    """The members in ascending order."""
    return np.frombuffer(bitmap.to_array(), dtype=np.uint32) if len(bitmap) else np.empty(0, dtype=np.uint32)


def decode_treemap(data: bytes | memoryview, *, what: str = "treemap") -> dict[int, BitMap]:
    """The parts of a portable 64-bit roaring treemap, keyed by their upper 32 bits (the fragment, for row addresses)."""
    view = memoryview(data)
    if len(view) < 8:
        raise _damaged(what, f"{len(view)} bytes are less than its count")
    (count,) = _HEAD64.unpack_from(view)
    position, parts = 8, {}
    for _ in range(_plausible(count, len(view) - 8, 12, what=what)):
        if position + 4 > len(view):
            raise _damaged(what, "it ends inside a key")
        (key,) = _HEAD32.unpack_from(view, position)
        size = portable_size(view[position + 4 :], what=what)
        parts[key] = _read(bytes(view[position + 4 : position + 4 + size]), what=what)
        position += 4 + size
    if position != len(view):
        raise _damaged(what, f"{len(view) - position} bytes follow it")
    return parts


def encode_treemap(parts: Mapping[int, BitMap], *, runs: bool = True) -> bytes:
    """A portable 64-bit roaring treemap; the official writer lets containers be runs here."""
    filled = {key: part for key, part in sorted(parts.items()) if len(part)}
    body = [_HEAD32.pack(key) + encode_bitmap(part, runs=runs) for key, part in filled.items()]
    return _HEAD64.pack(len(filled)) + b"".join(body)


def decode_address_map(data: bytes | memoryview, *, what: str = "row address map") -> dict[int, BitMap | None]:
    """fragment -> offsets of an address map (E.2); None stands for the whole fragment."""
    view = memoryview(data)
    if len(view) < 4:
        raise _damaged(what, f"{len(view)} bytes are less than its count")
    (count,) = _HEAD32.unpack_from(view)
    position: int = 4
    parts: dict[int, BitMap | None] = {}
    for _ in range(_plausible(count, len(view) - 4, 8, what=what)):
        if position + 8 > len(view):
            raise _damaged(what, "it ends inside an entry")
        fragment, size = _ENTRY.unpack_from(view, position)
        position += 8
        if size > len(view) - position:
            raise _damaged(what, f"the bitmap of fragment {fragment} declares {size} bytes, which exceeds the map")
        parts[fragment] = decode_bitmap(view[position : position + size], what=what) if size else None
        position += size
    if position != len(view):
        raise _damaged(what, f"{len(view) - position} bytes follow it")
    return parts


def encode_address_map(parts: Mapping[int, BitMap | None]) -> bytes:
    """The bytes of an address map; fragments without offsets are left out."""
    body = []
    for fragment, part in sorted(parts.items()):
        if part is None:
            body.append(_ENTRY.pack(fragment, 0))
        elif len(part):
            data = encode_bitmap(part)
            body.append(_ENTRY.pack(fragment, len(data)) + data)
    return _HEAD32.pack(len(body)) + b"".join(body)


def _plausible(count: int, rest: int, smallest: int, *, what: str) -> int:
    if count * smallest > rest:
        raise _damaged(what, f"{count} entries do not fit in {rest} bytes")
    return count
