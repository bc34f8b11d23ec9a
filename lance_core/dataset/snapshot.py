"""A snapshot: one manifest opened on a store. Everything a reader asks of a table's version starts here.

::

    open_snapshot("/t.lance")                  the newest version
    open_snapshot("/t.lance", version=3)       version 3         version="v1": what the tag v1 points at
    open_snapshot("/t.lance", asof=datetime)   the newest version not younger than that

A snapshot never changes and holds no open files; it is cheap to keep and safe to share between threads.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, TypeVar

import pyarrow as pa

from lance_core.arrow import schema_to_arrow
from lance_core.commit.manifests import load_manifest, version_numbers
from lance_core.dataset.tags import read_tag
from lance_core.errors import CorruptFileError, InputError, NotFoundError
from lance_core.format.manifest import Manifest
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store

T = TypeVar("T")
Version = int | str
AsOf = dt.datetime | dt.date | str


@dataclass(frozen=True)
class Snapshot:
    """A version of a table on its store. `storage_options` open further stores (base paths); they may hold credentials."""

    store: Store
    manifest: Manifest
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)

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
        """The columns as pyarrow has them."""
        return schema_to_arrow(self.manifest.schema)

    @cached_property
    def _memory(self) -> dict[str, Any]:
        return {}

    def remember(self, name: str, make: Callable[[], T]) -> T:
        """What one room keeps with this snapshot (readers, open indices), made on first use. Never pickled."""
        found: T = self._memory.setdefault(name, make())
        return found

    def __getstate__(self) -> dict[str, Any]:
        # A dataclass without slots pickles its __dict__: the remembered things and their locks stay here.
        return {item.name: getattr(self, item.name) for item in fields(self)}

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
                f"{self.uri}: version {self.version} names base path {base_id}, which it does not define", uri=self.uri
            )
        if base_id not in self._bases:
            self._bases[base_id] = resolve_store(base.path, self.storage_options)
        return self._bases[base_id], base.is_dataset_root


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
        raise InputError("version and asof were both given", cure="Give one of them.")
    if asof is not None:
        return Snapshot(store, _manifest_asof(store, asof), storage_options)
    return Snapshot(store, load_manifest(store, resolve_version(store, version)), storage_options)


def resolve_version(store: Store, version: Version | None) -> int | None:
    """The number a version, or a tag's name, stands for; None stays None (the newest)."""
    if version is None or (isinstance(version, int) and not isinstance(version, bool)):
        return version
    if isinstance(version, str):
        return read_tag(store, version).version
    raise InputError(f"a version is a number or the name of a tag, got {type(version).__name__}")


def _manifest_asof(store: Store, asof: AsOf) -> Manifest:
    limit = _nanoseconds(asof)
    for number in reversed(version_numbers(store)):
        manifest = load_manifest(store, number)
        if manifest.timestamp_ns // 1000 * 1000 <= limit:
            return manifest
    raise NotFoundError(f"{store.uri} has no version as old as {asof}", uri=store.uri)


def _nanoseconds(moment: AsOf) -> int:
    if isinstance(moment, str):
        try:
            moment = dt.datetime.fromisoformat(moment)
        except ValueError:
            raise InputError(f"asof={moment!r} is not a time", cure="Write it as 2024-01-31T12:00:00+00:00.") from None
    if not isinstance(moment, dt.datetime):
        moment = dt.datetime.combine(moment, dt.time())
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.timezone.utc)
    # Through whole microseconds: floats of seconds lose the last digits.
    return (aware - dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)) // dt.timedelta(microseconds=1) * 1000
