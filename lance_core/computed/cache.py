"""The lasting cache of a column's values: what was computed for inputs once is not computed again, also behind a restore.

::

    _lance_core/columns/{id}/cache/{definition}-{erasures}-{milliseconds}-{rows}-{random}.values
    _lance_core/columns/{id}/cache/erased-{number}

Values that a refresh computed are put here together, when there are enough of them and when it ends. A column's objects have
no more bytes than its declaration allows: the oldest go first, whatever definition they are of. Small ones are put together.

An erasure writes the next `erased-` and removes what is there. Whoever began before it knows another number: what he puts
here afterwards bears that one, counts for nobody, and is removed by himself or by the next one who looks.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.commit.naming import COLUMNS
from lance_core.computed.value_objects import FoundValues, Keys, ValueObject, encode_values
from lance_core.errors import AlreadyExistsError, LanceError
from lance_core.format.declared import is_column_id
from lance_core.io.many import delete_all
from lance_core.io.store import Store, StoreEntry
from lance_core.pick import take

log = logging.getLogger(__name__)
_PACK = re.compile(r"([0-9a-f]{32})-(\d{8})-(\d{13})-(\d{1,9})-[0-9a-f]{16}\.values")
_ERASED = re.compile(r"erased-(\d{8})")
_LEAST_BYTES, _MOST_BYTES, _PARTS = 64 << 10, 64 << 20, 64
_MERGED = 16
"""So many small objects become one."""


@dataclass(frozen=True)
class CachedObject:
    """An object of the cache: of which definition, after how many erasures, and when it was put there (milliseconds)."""

    object: ValueObject
    identity: str
    erasures: int
    when: int


@dataclass(frozen=True)
class CacheListing:
    """What the cache of a column holds. `erasures`: the number of the last one."""

    objects: tuple[CachedObject, ...] = ()
    erasures: int = 0
    marks: tuple[tuple[int, str], ...] = ()
    """Of erasures, with their paths."""

    @classmethod
    def of(cls, entries: Iterable[StoreEntry]) -> CacheListing:
        """From a listing of the column's folder; the oldest object first."""
        found, marks = list[CachedObject](), list[tuple[int, str]]()
        for entry in entries:
            folder, _, name = entry.path.rpartition("/")
            if not folder.endswith("/cache"):
                continue
            if (pack := _PACK.fullmatch(name)) is not None:
                item = ValueObject(entry.path, entry.size, int(pack[4]))
                found.append(CachedObject(item, pack[1], int(pack[2]), int(pack[3])))
            elif (erased := _ERASED.fullmatch(name)) is not None:
                marks.append((int(erased[1]), entry.path))
        objects = sorted(found, key=lambda item: (item.when, item.object.path))
        return cls(tuple(objects), max((number for number, _ in marks), default=0), tuple(marks))

    @property
    def valid(self) -> tuple[CachedObject, ...]:
        """Those that no erasure has met."""
        return tuple(item for item in self.objects if item.erasures == self.erasures)

    @property
    def void(self) -> list[str]:
        """The paths of the others."""
        return [item.object.path for item in self.objects if item.erasures != self.erasures]


class ValueCache:
    """The cache of one column, as one refresh (or one task of it) sees it. `erasures`: as it was before any row was read."""

    def __init__(self, store: Store, column_id: str, identity: bytes, most_bytes: int, listing: CacheListing) -> None:
        self._store, self._identity, self._most = store, identity.hex(), most_bytes
        self._folder = f"{COLUMNS}/{column_id}/cache"
        self._erasures, self._seen = listing.erasures, listing
        self._written = dict[str, int]()
        self.pack_bytes = min(_MOST_BYTES, max(_LEAST_BYTES, most_bytes // _PARTS))
        """Values are put together until they have so many bytes."""

    def objects(self) -> list[ValueObject]:
        """Those of this definition, the newest first."""
        return [item.object for item in reversed(self._seen.valid) if item.identity == self._identity]

    def look_again(self) -> list[ValueObject]:
        """Those that came since: others put objects together in the meantime."""
        before = {item.object.path for item in self._seen.objects}
        self._seen = self._listing()
        if self._seen.erasures != self._erasures:
            return []
        return [item for item in self.objects() if item.path not in before and item.path not in self._written]

    def put(self, keys: Keys, values: Any, *, when: int | None = None) -> None:
        """Put values here, of what this refresh put no more than the bound. Raises LanceError."""
        rows = max(1, len(values) * self.pack_bytes // max(1, values.nbytes + keys.nbytes))
        for first in range(0, len(values), rows):
            part, some = values.slice(first, rows), keys[first : first + rows]
            # A slice keeps the buffers that it is of: its own rows are written, and held.
            part = part if len(part) == len(values) else take(part, pa.array(np.arange(len(part))))
            data = encode_values(some, part)
            moment = int(time.time() * 1000) if when is None else when
            name = f"{self._identity}-{self._erasures:08d}-{moment:013d}-{len(part)}-{secrets.token_hex(8)}.values"
            path = f"{self._folder}/{name}"
            self._store.put_if_absent(path, data, durable=False)
            self._written[path] = len(data)
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        while sum(self._written.values()) > self._most:
            path = next(iter(self._written))
            self._store.delete(path)
            del self._written[path]

    def tidy(self, kind: pa.DataType, *, merges: bool) -> None:
        """Remove what an erasure met and what is beyond the bound, and put small objects together. Never fails."""
        try:
            self._seen = self._listing()
            self._remove([*self._seen.void, *self._beyond()])
            if merges and self._seen.erasures == self._erasures and self._merge(kind):
                self._seen = self._listing()
                self._remove(self._seen.void)
        except LanceError as error:
            log.warning("%s: the cache of computed values was not tidied: %s", self._store.uri, error)

    def _listing(self) -> CacheListing:
        return CacheListing.of(self._store.list(f"{self._folder}/"))

    def _remove(self, paths: Sequence[str]) -> None:
        if paths:
            delete_all(self._store, paths)

    def _beyond(self) -> list[str]:
        """The oldest ones, so that the others are within the bound."""
        total, gone = 0, list[str]()
        for item in reversed(self._seen.valid):
            total += item.object.size
            if total > self._most:
                gone.append(item.object.path)
        return gone

    def _merge(self, kind: pa.DataType) -> bool:
        """Put the oldest small objects of this definition together; whether there were enough of them."""
        chosen, size, gone = list[CachedObject](), 0, {*self._beyond()}
        for item in self._seen.valid:
            is_small = item.object.size <= self.pack_bytes // 2 and item.object.path not in gone
            if is_small and item.identity == self._identity and size + item.object.size <= self.pack_bytes:
                chosen.append(item)
                size += item.object.size
        if len(chosen) < _MERGED:
            return False
        reader = FoundValues(self._store, kind)
        found = [pair for item in chosen if (pair := reader.all_of(item.object)) is not None]
        if found:
            keys, values = np.concatenate([keys for keys, _ in found]), pa.concat_arrays([values for _, values in found])
            _, first = np.unique(np.ascontiguousarray(keys).view("S32").ravel(), return_index=True)
            kept = np.sort(first)
            self.put(keys[kept], take(values, pa.array(kept)), when=chosen[-1].when)
        self._remove([item.object.path for item in chosen])
        return True


def cached_columns(entries: Iterable[StoreEntry]) -> set[str]:
    """The ids of columns that have a cache, from a listing of all columns' folders."""
    parts = (entry.path.split("/") for entry in entries)
    return {part[-3] for part in parts if len(part) > 2 and part[-2] == "cache" and is_column_id(part[-3])}


def remove_cached(store: Store, column_ids: Iterable[str]) -> int:
    """Remove all cached values of columns, so that no refresh that began before puts any of them back; how many objects.

    Raises LanceError.
    """
    removed = 0
    for column_id in column_ids:
        folder = f"{COLUMNS}/{column_id}/cache"
        listing, number = CacheListing.of(store.list(f"{folder}/")), -1
        while listing.erasures != number:
            number = listing.erasures + 1
            # One that is there came behind the listing, so it is as good as this one.
            with suppress(AlreadyExistsError):
                store.put_if_absent(f"{folder}/erased-{number:08d}", b"")
            listing = CacheListing.of(store.list(f"{folder}/"))
        gone = [item.object.path for item in listing.objects]
        delete_all(store, [*gone, *(path for at, path in listing.marks if at < number)])
        removed += len(gone)
    return removed
