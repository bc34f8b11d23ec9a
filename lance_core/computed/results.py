"""Values that are computed and not published yet, by what they were computed from: a try that died computes none twice.

::

    _lance_core/columns/{id}/results/{definition}-{erasures}-{rows}-{random}.values      see `value_objects`

One object for each call of the function; the refresh that published the values removes the objects that it knew of, and one
that finds nothing stale removes those of a refresh that died behind its commit. Of a column with a lasting cache
(`cache`) the values move there before, also those of tries that died. `erasures`: as in the names of that cache.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrays import Bools
from lance_core.arrow_numpy import arrow_of
from lance_core.commit.naming import COLUMNS
from lance_core.computed.cache import ValueCache
from lance_core.computed.value_objects import FoundValues, Keys, ValueObject, encode_values
from lance_core.errors import LanceError
from lance_core.io.many import delete_all
from lance_core.io.store import Store, StoreEntry
from lance_core.pick import take

log = logging.getLogger(__name__)
_WAITING = re.compile(r"([0-9a-f]{32}-\d{8})-(\d{1,9})-[0-9a-f]{16}\.values")


def is_waiting(entry: StoreEntry) -> bool:
    """Whether an object of a column's folder holds values that wait."""
    return "/results/" in entry.path


class Results:
    """The values of one definition. `store` None: they are kept in memory alone. `waiting`: objects that were put aside
    before. `cache`: where values stay, None for a column that keeps none."""

    def __init__(
        self,
        store: Store | None,
        column_id: str,
        identity: bytes,
        kind: pa.DataType,
        waiting: Iterable[StoreEntry] = (),
        *,
        erasures: int = 0,
        cache: ValueCache | None = None,
    ) -> None:
        self._store, self._kind, self._cache = store, kind, cache
        self._folder, self._prefix = f"{COLUMNS}/{column_id}/results", f"{identity.hex()}-{erasures:08d}"
        self._made, self._waits, self._stays = (FoundValues(store, kind) for _ in range(3))
        self._moved = set[bytes]()
        self._paths, self._own = list[str](), list[str]()
        self._of_others = list[ValueObject]()
        self._unsealed = list[tuple[Keys, Any]]()
        self._unsealed_bytes = 0
        self._has_put = False
        self._load(waiting)
        if cache is not None:
            self._stays.read(cache.objects())

    @property
    def is_lasting(self) -> bool:
        """Whether values stay, so that equal inputs are computed once."""
        return self._cache is not None

    @property
    def paths(self) -> tuple[str, ...]:
        """The objects with values that wait, as far as they are known here."""
        return (*self._paths, *self._own)

    def find(self, keys: Keys) -> tuple[Bools, Any]:
        """Which rows have a value (a mask), and the values of those, in order. `keys`: of `evidence.input_keys`."""
        mask, values = self._made.find(keys)
        for look in (self._find_waiting, self._find_lasting):
            rest = np.flatnonzero(~mask)
            found, others = look(keys[rest])
            if len(others):
                order = np.argsort(np.concatenate([np.flatnonzero(mask), rest[found]]))
                mask[rest[found]] = True
                values = take(pa.concat_arrays([values, others]), arrow_of(order))
        return mask, values

    def _find_waiting(self, keys: Keys) -> tuple[Bools, Any]:
        """Of a try that died. What is of use now is kept as what is computed now."""
        mask, values = self._waits.find(keys)
        if self._cache is not None and len(values):
            self._move(keys[mask], values)
        return mask, values

    def _move(self, keys: Keys | None, values: Any) -> None:
        """Keep what waited, once."""
        if keys is not None:
            told = [row.tobytes() for row in keys]
            new = [place for place, key in enumerate(told) if key not in self._moved]
            self._moved.update(told)
            self._keep(keys[new], take(values, pa.array(new, pa.int64())))

    def _find_lasting(self, keys: Keys) -> tuple[Bools, Any]:
        found = self._stays.find(keys)
        if not self._stays.has_lost:
            return found
        self._stays.has_lost = False
        self._stays.read(self._look_again())
        return self._stays.find(keys)

    def add(self, keys: Keys, values: Any) -> None:
        """Keep what one call of the function gave."""
        if not len(keys):
            return
        if self._store is None:
            self._made.add(ValueObject("", 0, len(keys)), keys, values)
            return
        path = f"{self._folder}/{self._prefix}-{len(keys)}-{secrets.token_hex(8)}.values"
        data = encode_values(keys, values)
        try:
            self._store.put_if_absent(path, data, durable=False)
        except LanceError as error:
            log.warning("%s: computed values were not put aside: %s", self._store.uri, error)
        else:
            self._own.append(path)
            self._made.add(ValueObject(path, len(data), len(keys)), keys, values)
        if self._cache is not None:
            self._keep(keys, values)

    @property
    def own_paths(self) -> tuple[str, ...]:
        """Those of them that were put aside here."""
        return tuple(self._own)

    def close(self, *, merges: bool, takes_over: bool) -> None:
        """Put what is computed into the cache, and keep it within its bound. `merges`: and its objects few. `takes_over`:
        also what tries that died put aside, because all is published and nothing waits any more. Never fails."""
        if takes_over and self._cache is not None:
            for item in self._of_others:
                self._move(*(self._waits.all_of(item) or (None, None)))
        self._seal()
        if self._cache is not None and (self._has_put or merges):
            self._cache.tidy(self._kind, merges=merges)

    def _keep(self, keys: Keys, values: Any) -> None:
        """For the cache; put there when there are enough. The objects that wait stay until all is published."""
        if not len(keys):
            return
        self._unsealed.append((keys, values))
        self._unsealed_bytes += keys.nbytes + values.nbytes
        if self._cache is not None and self._unsealed_bytes >= self._cache.pack_bytes:
            self._seal()

    def _seal(self) -> None:
        if self._cache is None or not self._unsealed:
            return
        keys = np.concatenate([keys for keys, _ in self._unsealed])
        values = pa.concat_arrays([values for _, values in self._unsealed])
        self._unsealed, self._unsealed_bytes = [], 0
        try:
            self._cache.put(keys, values)
        except LanceError as error:
            log.warning("%s: computed values were not put into the cache: %s", self._folder, error)
        self._has_put = True

    def _look_again(self) -> list[ValueObject]:
        try:
            return [] if self._cache is None else self._cache.look_again()
        except LanceError as error:
            log.warning("%s: the cache of computed values cannot be listed: %s", self._folder, error)
            return []

    def _load(self, waiting: Iterable[StoreEntry]) -> None:
        found = []
        for entry in sorted(waiting, key=lambda item: item.path):
            self._paths.append(entry.path)
            name = _WAITING.fullmatch(entry.path.rpartition("/")[2])
            if name is not None and name[1] == self._prefix:
                found.append(ValueObject(entry.path, entry.size, int(name[2])))
        self._of_others = found
        self._waits.read(found)


def remove_results(store: Store, paths: Iterable[str]) -> None:
    """Remove objects whose values are published. Never fails."""
    try:
        delete_all(store, list(paths))
    except LanceError as error:
        log.warning("%s: computed values stay behind: %s", store.uri, error)
