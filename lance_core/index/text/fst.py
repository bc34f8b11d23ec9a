"""The token map of a full-text index: a finite state transducer from bytes to numbers, as the `fst` crate lays it out.

::

    u64 version 3, u64 type 0, nodes (children before parents), u64 keys, u64 root address, u32 masked crc32c
    "ab" -> 7, "abc" -> 9        root -a(7)-> . -b-> final -c(2)-> final; the numbers along a path add up

A node's address is that of its last byte, its state byte; what belongs to the node is before it. Address 0 is the final
node without transitions. Written here: one chain for each key behind what it shares with the one before, and equal tails
are shared. (Spec: FORMAT E.4.)

CRC-32C (Castagnoli), masked as the token map's footer has it.

::

    crc32c(b"123456789")  ->  0xE3069283
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from lance_core.errors import CorruptFileError
from lance_core.kernels.fst import walk_transducer
from lance_core.kernels.text import crc32c_of

_VERSION = 3
_UNCHECKED_1, _UNCHECKED_2 = bytes((1,)) + bytes(7), bytes((2,)) + bytes(7)
_HEADER, _FOOTER = 16, 20
_INDEXED = 32
"""A node with more transitions than this has a table of 256 bytes: where the transition for a byte is."""
_FINAL, _ONE, _ONE_NEXT = 0b01_000000, 0b10_000000, 0b11_000000
_COMMON = (
    b"te/oasripcnw.hlm-du012g=:bf3y5&_4v9678k%?xCDASFIBEjPTzRNM+LOqHGWU"
)[:63]  # fmt: skip
"""Input bytes that a node with one transition may name by a number, from 1."""
_DEEPEST = 1 << 16
"""Bytes of a key; of all keys as many as `_MOST_LETTERS`, in a large map 64 for each of its bytes."""
_MOST_LETTERS, _MOST_STANDING = 1 << 26, 1 << 22


def decode_fst(data: bytes, *, what: str = "the token map", most: int | None = None) -> tuple[list[bytes], list[int]]:
    """All keys in order, and their numbers. Raises CorruptFileError for what is no such map of at most `most` keys."""
    letters, offsets, numbers = decode_fst_flat(data, what=what, most=most)
    whole, ends = letters.tobytes(), offsets.tolist()
    return [whole[begin:end] for begin, end in itertools.pairwise(ends)], numbers.tolist()


def decode_fst_flat(data: bytes, *, what: str = "the token map", most: int | None = None) -> tuple[Any, Any, Any]:
    """All keys in order, one after the other (uint8, with 8 bytes to spare), where they begin and the end (int64), and their
    numbers (uint64). Raises CorruptFileError for what is no such map of at most `most` keys."""
    if len(data) < _HEADER + _FOOTER - 4:
        raise CorruptFileError(f"{what} has {len(data)} bytes, which is too short")
    version = int.from_bytes(data[:8], "little")
    if version not in (1, 2, 3):
        raise CorruptFileError(f"{what} has version {version}, expected 1 to 3")
    tail = len(data) - (_FOOTER if version == 3 else _FOOTER - 4)
    count = int.from_bytes(data[tail : tail + 8], "little")
    root = int.from_bytes(data[tail + 8 : tail + 16], "little")
    if root >= tail or (root and root < _HEADER) or count > len(data) * 64:
        raise CorruptFileError(f"{what} has {count} keys and its root at {root} of {tail} bytes, which is impossible")
    if most is not None and count > most:
        raise CorruptFileError(f"{what} has {count} keys, but there are {most} lists")
    nodes, common = np.frombuffer(data, np.uint8, tail), np.frombuffer(_COMMON, np.uint8)
    facts, path = np.array([root, version], np.int64), np.empty(_DEEPEST + 1, np.uint8)
    keys, letters, stack = min(count, tail), 8 * tail + 64, 1 << 12
    while True:
        out, ends, numbers = np.empty(letters, np.uint8), np.empty(keys, np.int64), np.empty(keys, np.uint64)
        standing = np.empty(stack, np.int64), np.empty(stack, np.int64), np.empty(stack, np.uint64)
        found = walk_transducer(nodes, common, facts, *standing, path, out, ends, numbers)
        if found == -2 and keys < count:
            keys = min(4 * keys, count)
        elif found == -3 and letters < max(_MOST_LETTERS, 64 * tail):
            letters *= 4
        elif found == -4 and stack < _MOST_STANDING:
            stack *= 4
        else:
            break
    if found != count:
        raise CorruptFileError(f"{what}: its nodes do not form a map of {count} keys (code {found})")
    used = int(ends[count - 1]) if count else 0
    return np.append(out[:used], np.zeros(8, np.uint8)), np.append(0, ends[:count]), numbers[:count]


def require_checksum(data: bytes, *, what: str = "the token map") -> None:
    """Raises CorruptFileError when the map is not what its checksum says; before version 3 there was none."""
    told = int.from_bytes(data[-4:], "little")
    if data[:8] not in (_UNCHECKED_1, _UNCHECKED_2) and masked_crc32c(data[:-4]) != told:
        raise CorruptFileError(f"{what}: its checksum is not {told:#x}, which the file states", cure="Rebuild the index.")


def find_in_fst(data: bytes, key: bytes, *, what: str = "the token map") -> int | None:
    """The number of one key without reading the others; None when it is not there."""
    version = int.from_bytes(data[:8], "little")
    tail = len(data) - (_FOOTER if version == 3 else _FOOTER - 4)
    address, total = int.from_bytes(data[tail + 8 : tail + 16], "little"), 0
    try:
        for byte in key:
            step = _step(data, address, version, byte)
            if step is None:
                return None
            add, target = step
            if target and target >= address:
                raise CorruptFileError(f"{what}: the node at {address} points at {target}, expected a lower address")
            address, total = target, total + add
        is_final, output, _ = _node(data, address, version)
    except IndexError as error:
        raise CorruptFileError(f"{what}: a node is outside the map") from error
    return total + output if is_final else None


def _node(data: bytes, address: int, version: int) -> tuple[bool, int, list[tuple[int, int, int]]]:
    """(is it final, its own number, its transitions as (byte, number, address))."""
    if address == 0:
        return True, 0, []
    state = data[address]
    if state >> 6 >= 2:
        at = address
        common = state & 0x3F
        if common:
            byte = _COMMON[common - 1]
        else:
            at -= 1
            byte = data[at]
        if state >> 6 == 3:
            return False, 0, [(byte, 0, at - 1)]
        at -= 1
        sizes = data[at]
        at -= sizes >> 4
        delta = _number(data, at, sizes >> 4)
        at -= sizes & 15
        return False, 0, [(byte, _number(data, at, sizes & 15), at - delta if delta else 0)]
    return _wide_node(data, address, state, version)


def _step(data: bytes, address: int, version: int, byte: int) -> tuple[int, int] | None:
    """(number, address) of the transition for a byte, without reading the node's others."""
    state = data[address]
    if address == 0 or state >> 6 >= 2:
        return next(((add, target) for found, add, target in _node(data, address, version)[2] if found == byte), None)
    many, far, wide, at = _wide_shape(data, address, state, version)
    place = data.find(byte, at, at + many)
    if place < 0:
        return None
    place -= at
    at -= many * far
    delta = _number(data, at + place * far, far)
    at -= many * wide
    add = _number(data, at + place * wide, wide)
    at -= wide if state & _FINAL else 0
    if at < _HEADER:
        raise IndexError(at)
    return add, at - delta if delta else 0


def _wide_shape(data: bytes, address: int, state: int, version: int) -> tuple[int, int, int, int]:
    """(transitions, bytes of a distance, bytes of a number, where the input bytes begin)."""
    at, many = address, state & 0x3F
    if many == 0:
        at -= 1
        many = data[at] if data[at] != 1 else 256
    if state & 0x3F == 0 and data[address - 1] == 0:
        many = 0
    at -= 1
    sizes = data[at]
    if version >= 2 and many > _INDEXED:
        at -= 256
    at -= many
    if at < 0:
        raise IndexError(at)
    return many, sizes >> 4, sizes & 15, at


def _wide_node(data: bytes, address: int, state: int, version: int) -> tuple[bool, int, list[tuple[int, int, int]]]:
    is_final = bool(state & _FINAL)
    many, far, wide, at = _wide_shape(data, address, state, version)
    inputs = data[at : at + many]
    at -= many * far
    deltas = [_number(data, at + place * far, far) for place in range(many)]
    at -= many * wide
    outputs = [_number(data, at + place * wide, wide) for place in range(many)]
    own = 0
    if is_final and wide:
        at -= wide
        own = _number(data, at, wide)
    if at < _HEADER:
        raise IndexError(at)
    found = [(byte, add, at - delta if delta else 0) for byte, add, delta in zip(inputs, outputs, deltas, strict=True)]
    return is_final, own, found[::-1]


def _number(data: bytes, at: int, size: int) -> int:
    if at < _HEADER - 1 or size > 8:
        raise IndexError(at)
    return int.from_bytes(data[at : at + size], "little")


def encode_fst(keys: Sequence[bytes], numbers: Iterable[int]) -> bytes:
    """A map of strictly ascending keys to numbers. Raises ValueError when they do not ascend."""
    return _Builder().build(keys, numbers)


class _Open:
    """A node whose transitions are not all known. `byte` is the one that leads to the open node behind it."""

    __slots__ = ("byte", "final", "inputs", "number", "outputs", "targets")

    def __init__(self) -> None:
        self.final = False
        self.number = 0
        self.byte = 0
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self.targets: list[int] = []

    def add(self, byte: int, output: int, target: int) -> None:
        self.inputs.append(byte)
        self.outputs.append(output)
        self.targets.append(target)


class _Builder:
    """Keeps open the nodes that the next key shares; what is behind them is written."""

    def __init__(self) -> None:
        self._data = bytearray(_VERSION.to_bytes(8, "little") + bytes(8))
        self._tails: dict[bytes, int] = {b"": 0}
        """Chains without numbers, by what they spell: their addresses."""
        self._path = [_Open()]

    def build(self, keys: Sequence[bytes], numbers: Iterable[int]) -> bytes:
        shared_before = 0
        for place, (key, number) in enumerate(zip(keys, numbers, strict=True)):
            shared = 0
            if place + 1 < len(keys):
                shared = _shared(key, keys[place + 1])
            self._insert(key, number, max(shared_before, shared))
            self._close(shared)
            shared_before = shared
        root = self._wide(self._path[0])
        self._data += len(keys).to_bytes(8, "little") + root.to_bytes(8, "little")
        self._data += masked_crc32c(bytes(self._data)).to_bytes(4, "little")
        return bytes(self._data)

    def _insert(self, key: bytes, number: int, branch: int) -> None:
        """Nodes up to the last one shared with a neighbour, then one chain."""
        path = self._path
        while len(path) <= branch:
            path[-1].byte = key[len(path) - 1]
            path.append(_Open())
        node = path[branch]
        if branch == len(key):
            node.final, node.number = True, number
        else:
            node.add(key[branch], number, self._chain(key[branch + 1 :]))

    def _close(self, depth: int) -> None:
        while len(self._path) - 1 > depth:
            node = self._path.pop()
            above = self._path[-1]
            above.add(above.byte, 0, self._wide(node))

    def _chain(self, tail: bytes) -> int:
        """The address of a chain of nodes that spells `tail` and ends in a final node."""
        known = len(tail)
        while tail[len(tail) - known :] not in self._tails:
            known -= 1
        address = self._tails[tail[len(tail) - known :]]
        data = self._data
        for place in range(len(tail) - known - 1, -1, -1):
            start = len(data)
            if address == start - 1:
                data += bytes((tail[place], _ONE_NEXT))
            else:
                delta = _packed(start - address if address else 0)
                data += delta + bytes((len(delta) << 4, tail[place], _ONE))
            address = len(data) - 1
            self._tails[tail[place:]] = address
        return address

    def _wide(self, node: _Open) -> int:
        data, start, many = self._data, len(self._data), len(node.inputs)
        if node.final and node.number == 0 and many == 0:
            return 0
        deltas = [start - target if target else 0 for target in node.targets]
        far = max((_size(delta) for delta in deltas), default=1)
        largest = max([node.number, *node.outputs])
        wide = _size(largest) if largest else 0
        if wide:
            if node.final:
                data += node.number.to_bytes(wide, "little")
            for output in reversed(node.outputs):
                data += output.to_bytes(wide, "little")
        for delta in reversed(deltas):
            data += delta.to_bytes(far, "little")
        data += bytes(reversed(node.inputs))
        if many > _INDEXED:
            places = bytearray(b"\xff" * 256)
            for place, byte in enumerate(node.inputs):
                places[byte] = place
            data += places
        data.append(far << 4 | wide)
        state = many if many < 64 else 0
        if not state:
            data.append(many if many < 256 else 1)
        data.append(state | (_FINAL if node.final else 0))
        return len(data) - 1


def _shared(one: bytes, other: bytes) -> int:
    """How many bytes two ascending keys have in common. Raises ValueError when they do not ascend."""
    if one >= other:
        raise ValueError(f"keys must ascend: {one!r} then {other!r}")
    shared = 0
    for first, second in zip(one, other, strict=False):
        if first != second:
            break
        shared += 1
    return shared


def _size(value: int) -> int:
    return max(1, (value.bit_length() + 7) // 8)


def _packed(value: int) -> bytes:
    return value.to_bytes(_size(value), "little")


_MASK = 0xA282EAD8
_POLYNOMIAL = 0x82F63B78


def crc32c(data: bytes) -> int:
    """The checksum of some bytes."""
    return crc32c_of(np.frombuffer(data, np.uint8), _TABLE) & 0xFFFFFFFF


def masked_crc32c(data: bytes) -> int:
    """The checksum, rotated and moved, so that a checksum of checksums is of use."""
    plain = crc32c(data)
    return ((plain >> 15 | plain << 17) + _MASK) & 0xFFFFFFFF


def _table() -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    values = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        values = np.where(values & 1, values >> np.uint32(1) ^ np.uint32(_POLYNOMIAL), values >> np.uint32(1))
    return values.astype(np.uint32)


_TABLE = _table()
