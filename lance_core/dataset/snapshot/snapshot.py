"""A snapshot: one manifest opened on a store. Every read of a version starts here.

::

    open_snapshot("/t.lance")                  the newest version
    open_snapshot("/t.lance", version=3)       version 3         version="v1": what the tag v1 points at
    open_snapshot("/t.lance", asof=datetime)   the newest version not younger than that

A snapshot never changes and holds no open files; it is cheap to keep and safe to share between threads.

What is kept with a snapshot: one typed slot for each kind of thing, filled on first use.

::

    _READERS = CacheSlot[Snapshot, ReaderCache](lambda snapshot: ReaderCache())       a constant of the module that fills it
    snapshot.cached(_READERS)        the ReaderCache of this snapshot                 mypy knows its type

A slot is found by being the same object, so no two modules can mean different things by one name.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Generic, TypeVar

import pyarrow as pa

from lance_core.arrow import schema_to_arrow
from lance_core.cached import cached_property
from lance_core.commit.base_paths import open_base
from lance_core.commit.manifests import OpenVersion, load_manifest, open_version, version_numbers
from lance_core.dataset.refs.branches import MAIN, TREE, check_branch_name, place_of
from lance_core.dataset.refs.tags import read_tag
from lance_core.errors import CorruptFileError, InputError, NotFoundError
from lance_core.format.declared import hides_from_all, without_columns
from lance_core.format.manifest import Manifest
from lance_core.format.schema import Schema
from lance_core.io.resolve import resolve_store, without_folder
from lance_core.io.store import Store

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


T = TypeVar("T")
Version = int | str | tuple[str | None, int | None]
"""A number, a tag's name, or (branch, number): None for the main line, None for the newest."""
AsOf = dt.datetime | dt.date | str


@dataclass(frozen=True)
class Snapshot:
    """A version of a table on its store. `storage_options` open further stores (base paths); they may hold credentials."""

    store: Store
    manifest: Manifest
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)
    opened: OpenVersion | None = field(default=None, repr=False, compare=False)
    """What a listing called the newest version: a commit does not read it again where a later listing has the same tag."""
    whole: Manifest | None = field(default=None, repr=False, compare=False)
    """The version this is a part of, or whose deletions it leaves out: rows are counted in it (`_rowoffset`)."""
    noted: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """Properties that the transactions of edits of this snapshot get besides their own, such as who requested them."""

    @property
    def uri(self) -> str:
        """The table's uri, without credentials."""
        return self.store.uri

    @property
    def version(self) -> int:
        """The version's number."""
        return self.manifest.version

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The columns as pyarrow has them, evidence of declared ones too."""
        return schema_to_arrow(self.manifest.schema)

    @cached_property
    def visible_schema(self) -> pa.Schema:
        """The columns that a read of all columns gives."""
        hidden = hides_from_all(self.manifest.schema)
        return self.arrow_schema if not hidden else schema_to_arrow(without_columns(self.manifest.schema, hidden))

    @cached_property
    def _cache(self) -> SlotCache[Snapshot]:
        return SlotCache()

    def cached(self, slot: CacheSlot[Snapshot, T]) -> T:
        """Return what a module keeps with this snapshot (readers, row masks), made on first use. It is never pickled."""
        return self._cache.get(slot, self)

    def part_of_schema(self, field_ids: frozenset[int]) -> Schema:
        """The part of the table's schema with some fields: always the same object, so that what hangs on it is found."""
        return self.cached(_SCHEMAS).get(field_ids, lambda: self.manifest.schema.project(field_ids))

    def __getstate__(self) -> dict[str, Any]:
        # A dataclass without slots pickles its __dict__: the remembered things and their locks stay here.
        return {item.name: getattr(self, item.name) for item in fields(self)} | {"opened": None}

    @cached_property
    def root(self) -> Store:
        """The main table's store: this one, unless the snapshot is of a branch."""
        branch = self.manifest.branch
        if branch is None or branch == MAIN:
            return self.store
        root = without_folder(self.uri, f"{TREE}/{check_branch_name(branch)}")
        # A copied or moved branch is a table of its own.
        return self.store if root is None else resolve_store(root, self.storage_options)

    @cached_property
    def _bases(self) -> dict[int, Store]:
        return {}

    def store_of(self, base_id: int | None) -> tuple[Store, bool]:
        """The store of a base path (None: the table's own) and whether it is laid out like a table (`data/` below it)."""
        if base_id is None:
            return self.store, True
        base = next((item for item in self.manifest.base_paths if item.id == base_id), None)
        if base is None:
            raise CorruptFileError(
                f"{self.uri}: version {self.version} refers to base path {base_id}, which it does not define", uri=self.uri
            )
        if base_id not in self._bases:
            self._bases[base_id] = open_base(base, table_uri=self.uri, storage_options=self.storage_options)
        return self._bases[base_id], base.is_dataset_root

    def at(self, version: Version | None) -> Snapshot:
        """Another version of the same table: a number is of this snapshot's branch, tags and branches are the root's."""
        if version is None or (isinstance(version, int) and not isinstance(version, bool)):
            return snapshot_of(self.store, version=version, storage_options=self.storage_options)
        return snapshot_of(self.root, version=version, storage_options=self.storage_options)


_SCHEMAS = CacheSlot[Snapshot, KeyedCache[frozenset[int], Schema]](lambda _: KeyedCache(max_items=64))


def open_snapshot(
    uri: str | os.PathLike[str],
    *,
    version: Version | None = None,
    asof: AsOf | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Snapshot:
    """Open a version of the table at `uri`: the newest, a number, a tag's, or the newest one not younger than `asof`.

    A time without a zone means UTC. Raises NotFoundError (no table, version, tag), UnsupportedFeatureError,
    CorruptFileError, and InputError for an unknown storage option.
    """
    store = resolve_store(uri, storage_options)
    return snapshot_of(store, version=version, asof=asof, storage_options=storage_options)


def snapshot_of(
    store: Store,
    *,
    version: Version | None = None,
    asof: AsOf | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Snapshot:
    """`open_snapshot` on a store that is open already."""
    if version is not None and asof is not None:
        raise InputError("version cannot be combined with asof", cure="Pass only one of them.")
    if asof is not None:
        return Snapshot(store, _manifest_asof(store, asof), storage_options)
    place, number = resolve_version(store, version)
    opened = open_version(place, number)
    # Its transaction is not wanted any more, and may be large.
    known = replace(opened, transaction=None) if opened.tag is not None else None
    return Snapshot(place, opened.manifest, storage_options, known)


def resolve_version(root: Store, version: Version | None) -> tuple[Store, int | None]:
    """Where a version is and its number (None: the newest). Tags and branches are looked up below `root`.

    Raises NotFoundError for an unknown tag, InputError for what is no version.
    """
    if version is None or (isinstance(version, int) and not isinstance(version, bool)):
        return root, version
    if isinstance(version, str):
        tag = read_tag(root, version)
        return place_of(root, tag.branch), tag.version
    if isinstance(version, tuple) and len(version) == 2:
        branch, number = version
        if (branch is None or isinstance(branch, str)) and (number is None or isinstance(number, int)):
            return place_of(root, branch), number
    raise InputError(f"a version must be a number, the name of a tag or (branch, number), got {version!r}")


def _manifest_asof(store: Store, asof: AsOf) -> Manifest:
    limit = _nanoseconds(asof)
    for number in reversed(version_numbers(store)):
        manifest = load_manifest(store, number)
        if manifest.timestamp_ns // 1000 * 1000 <= limit:
            return manifest
    raise NotFoundError(f"{store.uri} has no version from {asof} or before", uri=store.uri)


def _nanoseconds(moment: AsOf) -> int:
    if isinstance(moment, str):
        try:
            moment = dt.datetime.fromisoformat(moment)
        except ValueError:
            raise InputError(f"asof={moment!r} is not a valid time", cure="Write it as 2024-01-31T12:00:00+00:00.") from None
    if not isinstance(moment, dt.datetime):
        moment = dt.datetime.combine(moment, dt.time())
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.timezone.utc)
    # Through whole microseconds: floats of seconds lose the last digits.
    return (aware - dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)) // dt.timedelta(microseconds=1) * 1000
