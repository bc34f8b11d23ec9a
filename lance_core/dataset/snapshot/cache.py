"""What is kept with a snapshot: one typed slot for each kind of thing, filled on first use.

::

    _READERS = CacheSlot[Snapshot, ReaderCache](lambda snapshot: ReaderCache())       a constant of the module that fills it
    snapshot.cached(_READERS)        the ReaderCache of this snapshot                 mypy knows its type

A slot is found by being the same object, so no two modules can mean different things by one name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

_Owner = TypeVar("_Owner")
_Kept = TypeVar("_Kept")
_Key = TypeVar("_Key")
_MISSING: Any = object()


class CacheSlot(Generic[_Owner, _Kept]):
    """A place for one value of each owner; `make` fills it."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[_Owner], _Kept]) -> None:
        self.make = make


class SlotCache(Generic[_Owner]):
    """The filled slots of one owner. Threads that fill a slot at once all get the value of the first of them."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[CacheSlot[_Owner, Any], Any] = {}

    def get(self, slot: CacheSlot[_Owner, _Kept], owner: _Owner) -> _Kept:
        """Return what the slot keeps, and fill it first where it is empty."""
        found: _Kept = self._kept.get(slot, _MISSING)
        return found if found is not _MISSING else self._kept.setdefault(slot, slot.make(owner))


class KeyedCache(Generic[_Key, _Kept]):
    """Values by key, at most `max_items` of them: one more, and all are dropped, because keys repeat or are few."""

    __slots__ = ("_items", "_max")

    def __init__(self, *, max_items: int) -> None:
        self._max = max_items
        self._items: dict[_Key, _Kept] = {}

    def get(self, key: _Key, make: Callable[[], _Kept]) -> _Kept:
        """Return the value of a key, and make it first where there is none."""
        found: _Kept = self._items.get(key, _MISSING)
        if found is not _MISSING:
            return found
        made = make()
        if len(self._items) >= self._max:
            self._items.clear()
        return self._items.setdefault(key, made)

    def __len__(self) -> int:
        return len(self._items)
