"""Computed values in objects of the store, found by 256 bits of what they were computed from.

::

    name        {definition, 32 hex digits}-…-{rows}-{random}
    bytes       "LCV1"  rows x 32 bytes: keys   16 bytes: digest of all before   an Arrow file: values   16 bytes: its digest

Keys come first, so that they are read by one range: values only of objects that have a key which is requested. What is in an
object counts by its keys alone, so it does not matter who computed it, on which version, for which row; where it cannot be
read, its values are computed again.
"""

from __future__ import annotations

import hashlib
import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrays import Bools, Ints
from lance_core.arrow_numpy import arrow_of
from lance_core.errors import LanceError
from lance_core.fetch import ByteRange
from lance_core.io.parallel import each
from lance_core.io.store import Store
from lance_core.pick import take
from lance_core.shortage import ARROW_ERRORS

log = logging.getLogger(__name__)
KEY_SIZE = 32
_MAGIC = b"LCV1"
_CHECK = 16
_SMALL = 1 << 20
"""An object of no more bytes is read as a whole at once."""
_MAX_OBJECT = 512 << 20
_MAX_KEYS = 8 << 20
_MAX_HELD = 256 << 20
Keys = Any
"""(rows, 32) bytes."""


@dataclass(frozen=True)
class ValueObject:
    """An object: its path, its size in bytes, how many values it has."""

    path: str
    size: int
    num_rows: int

    @property
    def head_size(self) -> int:
        """Bytes up to its values."""
        return len(_MAGIC) + self.num_rows * KEY_SIZE + _CHECK

    @property
    def is_possible(self) -> bool:
        """Whether an object of so many bytes can hold so many values, and may be read."""
        return self.num_rows > 0 and self.head_size + _CHECK <= self.size <= _MAX_OBJECT


def encode_values(keys: Keys, values: Any) -> bytes:
    """The bytes of an object."""
    head = _MAGIC + np.ascontiguousarray(keys).tobytes()
    sink = pa.BufferOutputStream()
    table = pa.table({"value": values})
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    body = sink.getvalue().to_pybytes()
    return b"".join([head, _checksum(head), body, _checksum(body)])


class FoundValues:
    """The values of some objects, by key; of one definition and type. `store` None: they are in memory alone."""

    def __init__(self, store: Store | None, kind: pa.DataType) -> None:
        self._store, self._kind = store, kind
        self._objects: list[ValueObject] = []
        self._keys: list[Keys] = []
        self._levels: list[_Heads] = []
        self._values = OrderedDict[int, Any]()
        self._held = 0
        self._gone = set[int]()
        self.has_lost = False
        """Whether an object was not there any more when its values were requested; who sees it takes it back."""

    @property
    def num_keys(self) -> int:
        """How many are known."""
        return sum(len(level.heads) for level in self._levels)

    def read(self, objects: Sequence[ValueObject]) -> None:
        """Look at objects; what cannot be read counts as absent, as do keys beyond eight million."""
        room, chosen = _MAX_KEYS - self.num_keys, list[ValueObject]()
        for item in objects:
            if item.is_possible and item.num_rows <= room:
                chosen.append(item)
                room -= item.num_rows
        looks = [] if self._store is None else each(self._store, chosen, self._first_look)
        for item, (keys, values) in zip(chosen, looks, strict=True):
            if keys is not None:
                self._enter(item, keys, values)

    def add(self, item: ValueObject, keys: Keys, values: Any) -> None:
        """An object that was written here."""
        if (item.is_possible or self._store is None) and self.num_keys + item.num_rows <= _MAX_KEYS:
            self._enter(item, keys, values)

    def find(self, keys: Keys) -> tuple[Bools, Any]:
        """Which keys have a value (a mask), and the values of those, in order."""
        if not self._levels:
            return np.zeros(len(keys), np.bool_), self._none()
        number, row = np.full(len(keys), -1, np.int64), np.zeros(len(keys), np.int64)
        heads = _heads(keys)
        for level in self._levels:
            level.look_up(heads, number, row)
        pieces, places = list[Any](), list[Ints]()
        for wanted in np.unique(number[number >= 0]).tolist():
            at = np.flatnonzero(number == wanted)
            is_same = (self._keys[wanted][row[at]] == keys[at]).all(axis=1)
            number[at[~is_same]] = -1
            at = at[is_same]
            values = self._values_of(wanted) if len(at) else None
            if values is None:
                number[at] = -1
                continue
            pieces.append(take(values, arrow_of(row[at])))
            places.append(at)
        if not pieces:
            return np.zeros(len(keys), np.bool_), self._none()
        order = np.argsort(np.concatenate(places), kind="stable")
        return number >= 0, take(pa.concat_arrays(pieces), arrow_of(order))

    def _none(self) -> Any:
        nulls: Any = pa.nulls
        return nulls(0, self._kind)

    def all_of(self, item: ValueObject) -> tuple[Keys, Any] | None:
        """The keys and values of an object; None where it cannot be read."""
        if self._store is None or not item.is_possible:
            return None
        keys, values = self._first_look(self._store, item)
        values = self._read_values(item) if keys is not None and values is None else values
        return None if keys is None or values is None else (keys, values)

    def _enter(self, item: ValueObject, keys: Keys, values: Any | None) -> None:
        number = len(self._objects)
        self._objects.append(item)
        if values is not None:
            self._hold(number, values)
        self._keys.append(keys)
        self._levels.append(_Heads.of(keys, number))
        while len(self._levels) > 1 and 2 * len(self._levels[-1].heads) >= len(self._levels[-2].heads):
            last = self._levels.pop()
            self._levels[-1] = self._levels[-1].with_others(last)

    def _hold(self, number: int, values: Any) -> None:
        self._values[number] = values
        self._held += values.nbytes
        while self._held > _MAX_HELD and len(self._values) > 1 and self._store is not None:
            self._held -= self._values.popitem(last=False)[1].nbytes

    def _values_of(self, number: int) -> Any | None:
        if number in self._values:
            self._values.move_to_end(number)
        elif number not in self._gone:
            values = self._read_values(self._objects[number])
            if values is None:
                self._gone.add(number)
                self.has_lost = True
            else:
                self._hold(number, values)
        return self._values.get(number)

    def _first_look(self, store: Store, item: ValueObject) -> tuple[Keys | None, Any | None]:
        """The keys of an object, and its values where it is small."""
        is_small = item.size <= _SMALL
        try:
            (found,) = store.get_ranges(item.path, [ByteRange(0, item.size if is_small else item.head_size)])
        except LanceError as error:
            log.warning("%s cannot be read, its values are computed again: %s", item.path, error)
            return None, None
        data = memoryview(found)
        end = item.head_size - _CHECK
        if data[: len(_MAGIC)] != _MAGIC or data[end : item.head_size] != _checksum(data[:end]):
            log.warning("%s is damaged, its values are computed again", item.path)
            return None, None
        keys = np.frombuffer(data[len(_MAGIC) : end], np.uint8).reshape(-1, KEY_SIZE).copy()
        if not is_small:
            return keys, None
        values = self._decoded(item, data[item.head_size :])
        return (None, None) if values is None else (keys, values)

    def _read_values(self, item: ValueObject) -> Any | None:
        if self._store is None:
            return None
        try:
            (data,) = self._store.get_ranges(item.path, [ByteRange(item.head_size, item.size)])
        except LanceError as error:
            log.warning("%s cannot be read, its values are computed again: %s", item.path, error)
            return None
        return self._decoded(item, memoryview(data))

    def _decoded(self, item: ValueObject, data: memoryview) -> Any | None:
        """The values of an object, which are of the column's type, or None."""
        body = data[:-_CHECK]
        if data[-_CHECK:] != _checksum(body):
            log.warning("%s is damaged, its values are computed again", item.path)
            return None
        try:
            with pa.ipc.open_file(pa.py_buffer(bytes(body))) as reader:
                table = reader.read_all()
            table.validate(full=True)
            values = table.column("value").combine_chunks()
            values = pa.concat_arrays(values.chunks) if isinstance(values, pa.ChunkedArray) else values
        except (*ARROW_ERRORS, KeyError) as error:
            log.warning("%s cannot be read, its values are computed again: %s", item.path, error)
            return None
        return values if values.type == self._kind and len(values) == item.num_rows else None


@dataclass(frozen=True)
class _Heads:
    """The first eight bytes of keys, in order, and where the keys are: in which object, at which row."""

    heads: Any
    numbers: Ints
    rows: Ints

    @classmethod
    def of(cls, keys: Keys, number: int) -> _Heads:
        return cls._sorted(_heads(keys), np.full(len(keys), number, np.int32), np.arange(len(keys), dtype=np.int32))

    @classmethod
    def _sorted(cls, heads: Any, numbers: Any, rows: Any) -> _Heads:
        order = np.argsort(heads, kind="stable")
        return cls(heads[order], numbers[order], rows[order])

    def with_others(self, other: _Heads) -> _Heads:
        return self._sorted(
            np.concatenate([self.heads, other.heads]),
            np.concatenate([self.numbers, other.numbers]),
            np.concatenate([self.rows, other.rows]),
        )

    def look_up(self, heads: Any, numbers: Ints, rows: Ints) -> None:
        """Fill in where the key with each head may be, where it is here and has no place yet."""
        if not len(self.heads):
            return
        at = np.minimum(np.searchsorted(self.heads, heads), len(self.heads) - 1)
        found = np.flatnonzero((numbers < 0) & (self.heads[at] == heads))
        numbers[found], rows[found] = self.numbers[at[found]], self.rows[at[found]]


def _heads(keys: Keys) -> Any:
    return np.ascontiguousarray(keys[:, :8]).view("<u8").ravel()


def _checksum(data: Any) -> bytes:
    return hashlib.blake2b(data, digest_size=_CHECK, person=b"lance:values").digest()
