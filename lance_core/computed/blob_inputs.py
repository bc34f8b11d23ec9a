"""Blobs as inputs: what a function gets of them, and what their digest is made of.

::

    blob                           the function gets     the digest sees {held, outside}
    bytes that the table holds     them                  {bytes, null}
    an object of somebody else's   its bytes             {null, "uri position size tag"}
    null, or a row that is not     null                  null
    needed

An object outside of the table is known by its uri, the range in it, its size and its tag (where the store keeps none, the
time of its last change): reading it to see whether it is as it was would cost what computing costs. What is known of it is
requested before its bytes are, so that a change between the two leaves the row stale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrays import Bools, Ints
from lance_core.dataset.scan.blobs import BlobPlace, blob_places, is_blob
from lance_core.dataset.snapshot.fragment_reader import FragmentReader
from lance_core.errors import CorruptFileError, InputError
from lance_core.fetch import Buffer, ByteRange
from lance_core.format.schema import Field, Schema
from lance_core.io.parallel import each
from lance_core.io.store import Store

TOLD = pa.struct([pa.field("held", pa.large_binary()), pa.field("outside", pa.string())])
"""What the digest of a blob is made of."""
_LARGE = 16 << 20
"""Bytes from which on the size of an object is asked before memory is taken for what a descriptor claims."""


def blob_fields(schema: Schema, paths: Sequence[str]) -> tuple[Field, ...]:
    """The blob columns among inputs, by dotted path. InputError for blobs below a struct or a list."""
    found = []
    for path in dict.fromkeys(paths):
        field = schema.find(path)
        if is_blob(field) and "." not in path:
            found.append(field)
            continue
        if any(is_blob(item) for item in schema.descend(field.id)):
            raise InputError(
                f"{path!r} holds blobs below its top level, which cannot be inputs",
                cure="Keep them in a column of their own.",
            )
    return tuple(found)


@dataclass(frozen=True)
class BlobRows:
    """Where the blobs of neighbouring rows are, None for those that are null or not needed."""

    places: Sequence[BlobPlace | None]

    @classmethod
    def of(cls, reader: FragmentReader, field: Field, first: int, needed: Bools) -> BlobRows:
        """Of the rows of a fragment from `first` on. Reads descriptors of those that are needed."""
        places: list[BlobPlace | None] = [None] * len(needed)
        rows = np.flatnonzero(needed)
        if len(rows):
            for row, place in zip(rows.tolist(), blob_places(reader, field, first + rows), strict=True):
                places[row] = place
        return cls(places)

    @property
    def sizes(self) -> Ints:
        """Bytes of each."""
        return np.array([0 if place is None else place.size for place in self.places], np.int64)

    def part(self, first: int, end: int) -> BlobRows:
        """Some neighbours of them."""
        return BlobRows(self.places[first:end])

    def load(self) -> tuple[Any, Any]:
        """The column that a function gets, and what the digest sees. Raises NotFoundError, CorruptFileError, StoreError."""
        outside = _outside_texts(self.places)
        values: Any = pa.array(_bytes_of(self.places), pa.large_binary())
        held = values
        if any(outside):
            held = pa.array([None if far else value.as_py() for far, value in zip(outside, values, strict=True)], held.type)
        mask = pa.array([place is None for place in self.places], pa.bool_())
        texts = pa.array(outside, pa.string())
        return values, pa.StructArray.from_arrays([held, texts], fields=list(TOLD), mask=mask)


def _outside_texts(places: Sequence[BlobPlace | None]) -> list[str | None]:
    """What is known of the objects of somebody else's; None for other rows."""
    found: list[str | None] = [None] * len(places)
    far = [place if place is not None and place.is_outside else None for place in places]
    for store, files in _by_file(far).values():
        entries = each(store, [*files], lambda where, path: where.stat(path))
        for entry, (path, rows) in zip(entries, files.items(), strict=True):
            known = f"tag {entry.tag}" if entry.tag else f"changed {entry.modified!r}"
            for row in rows:
                if (place := places[row]) is not None:
                    found[row] = f"{store.uri}/{path} {place.start} {place.size} {entry.size} {known}"
    return found


def _bytes_of(places: Sequence[BlobPlace | None]) -> list[bytes | None]:
    """The blobs, those of one file by one call, several files at once where that helps."""
    found: list[bytes | None] = [None if place is None else b"" for place in places]

    def read(store: Store, rows: Sequence[int]) -> Sequence[Buffer]:
        mine = [place for row in rows if (place := places[row]) is not None]
        _check(mine)
        return store.get_ranges(mine[0].path, [ByteRange(place.start, place.start + place.size) for place in mine])

    for store, files in _by_file([place if place is not None and place.size else None for place in places]).values():
        for rows, parts in zip(files.values(), each(store, [*files.values()], read), strict=True):
            for row, data in zip(rows, parts, strict=True):
                found[row] = bytes(data)
    return found


def _by_file(places: Sequence[BlobPlace | None]) -> dict[str, tuple[Store, dict[str, list[int]]]]:
    """By store, then by path, the rows whose blobs are there."""
    found = dict[str, tuple[Store, dict[str, list[int]]]]()
    for row, place in enumerate(places):
        if place is not None:
            _, files = found.setdefault(place.store.uri, (place.store, {}))
            files.setdefault(place.path, []).append(row)
    return found


def _check(places: Sequence[BlobPlace]) -> None:
    """CorruptFileError for large blobs of one object that is too small for them."""
    if sum(place.size for place in places) < _LARGE:
        return
    last = max(places, key=lambda place: place.start + place.size)
    size = last.store.size(last.path)
    if last.start + last.size > size:
        raise CorruptFileError(
            f"{last.store.uri}: {last.path} has {size} bytes, a blob should be at {last.start} with {last.size} bytes"
        )
