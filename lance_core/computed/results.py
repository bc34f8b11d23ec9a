"""Values that are computed and not published yet, by what they were computed from: a try that died computes none twice.

::

    _lance_core/columns/{id}/results/{definition}-{random}.arrow      digest: binary[16]   value: the column's type

One object for each call of the function; the refresh that published the values removes the objects that it knew of, and one
that finds nothing stale removes those of a refresh that died behind its commit. What is in them counts by its digest alone,
so it does not matter who computed it, on which version, for which row.
"""

from __future__ import annotations

import logging
import secrets
from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, cast

import numpy as np
import pyarrow as pa

from lance_core.commit.naming import COLUMNS
from lance_core.errors import LanceError
from lance_core.io.store import Store, StoreEntry
from lance_core.shortage import ARROW_ERRORS

log = logging.getLogger(__name__)
_MAX_OBJECT = 256 << 20
_MAX_HELD = 1 << 30


def waiting_objects(store: Store, column_id: str = "") -> list[StoreEntry]:
    """The objects of values that wait, of one column or of all of them."""
    prefix = f"{COLUMNS}/{column_id}/results/" if column_id else f"{COLUMNS}/"
    return [entry for entry in store.list(prefix) if "/results/" in entry.path and entry.path.endswith(".arrow")]


class Results:
    """The values of one definition. `store` None: they are kept in memory alone. `waiting`: those that were put aside."""

    def __init__(
        self,
        store: Store | None,
        column_id: str,
        identity: bytes,
        kind: pa.DataType,
        waiting: Iterable[StoreEntry] = (),
    ) -> None:
        self._store, self._kind = store, kind
        self._folder = f"{COLUMNS}/{column_id}/results"
        self._prefix = f"{identity.hex()}-"
        self._places: dict[bytes, int] = {}
        self._values: list[Any] = []
        self._ends: list[int] = []
        self._paths: list[str] = []
        self._held = 0
        self.reused = 0
        if store is not None:
            self._load(store, waiting)

    def find(self, digests: Any) -> tuple[Any, Any]:
        """Which rows have a value (a mask), and the values of those, in order."""
        keys = _keys(digests) if self._places else []
        if self._places.keys().isdisjoint(keys):
            return np.zeros(len(digests), np.bool_), _none(self._kind)
        places = np.array([self._places.get(key, -1) for key in keys], np.int64)
        mask, found = places >= 0, []
        for place in places[mask].tolist():
            number = bisect_right(self._ends, place)
            start = place - (self._ends[number - 1] if number else 0)
            found.append(self._values[number][start : start + 1])
        self.reused += len(found)
        return mask, pa.concat_arrays(found) if found else _none(self._kind)

    def add(self, digests: Any, values: Any) -> None:
        """Keep what one call of the function gave."""
        if self._held > _MAX_HELD or not len(digests):
            return
        self._keep(digests, values)
        if self._store is None:
            return
        path = f"{self._folder}/{self._prefix}{secrets.token_hex(8)}.arrow"
        try:
            self._store.put(path, _encode(digests, values), durable=False)
        except LanceError as error:
            log.warning("%s: computed values were not put aside: %s", self._store.uri, error)
        else:
            self._paths.append(path)

    @property
    def paths(self) -> tuple[str, ...]:
        """The objects that are known here."""
        return tuple(self._paths)

    def _keep(self, digests: Any, values: Any) -> None:
        first = self._ends[-1] if self._ends else 0
        self._values.append(values)
        self._ends.append(first + len(values))
        self._held += values.nbytes + 100 * len(values)
        self._places.update(zip(_keys(digests), range(first, self._ends[-1]), strict=True))

    def _load(self, store: Store, waiting: Iterable[StoreEntry]) -> None:
        for entry in sorted(waiting, key=lambda item: item.path):
            name = entry.path.rpartition("/")[2]
            self._paths.append(entry.path)
            if name.startswith(self._prefix) and entry.size <= _MAX_OBJECT and self._held <= _MAX_HELD:
                self._read(store, entry.path)

    def _read(self, store: Store, path: str) -> None:
        try:
            with pa.ipc.open_file(pa.py_buffer(bytes(store.get(path)))) as reader:
                table = reader.read_all()
            table.validate(full=True)
            digests, values = table.column("digest").combine_chunks(), table.column("value").combine_chunks()
        except (LanceError, *ARROW_ERRORS, KeyError) as error:
            log.warning("%s cannot be read, its values are computed again: %s", path, error)
            return
        if digests.type != pa.binary(16) or values.type != self._kind or digests.null_count:
            return
        rows = np.frombuffer(b"".join(cast("list[bytes]", digests.to_pylist())), np.uint8).reshape(-1, 16)
        self._keep(rows, values)


def remove_results(store: Store, paths: Iterable[str]) -> None:
    """Remove objects whose values are published. Never fails."""
    for path in paths:
        try:
            store.delete(path)
        except LanceError as error:
            log.warning("%s stays behind: %s", path, error)


def _keys(digests: Any) -> list[bytes]:
    keys: list[bytes] = np.ascontiguousarray(digests).view("V16").ravel().tolist()
    return keys


def _none(kind: pa.DataType) -> Any:
    nulls: Any = pa.nulls
    return nulls(0, kind)


def _encode(digests: Any, values: Any) -> bytes:
    keys = pa.Array.from_buffers(pa.binary(16), len(values), [None, pa.py_buffer(np.ascontiguousarray(digests).tobytes())])
    table = pa.table({"digest": keys, "value": values})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()
