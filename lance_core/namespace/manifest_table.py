"""The table `__manifest` of a directory catalog: one row for each namespace and table.

::

    object_id      object_type  location                metadata      base_objects
    sales          namespace    null                    {"team":"a"}  null
    sales$orders   table        77f3a1c2_sales$orders   null          null

Every change writes all rows again as the next version, and is refused where another writer was faster: it is decided again
on the newest rows then, so that an id exists once however many writers there are. Columns that others added are kept.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from lance_core.cached import cached_property
from lance_core.catalog.names import MANIFEST_TABLE
from lance_core.commit.backoff import Backoff
from lance_core.commit.loop import commit_transaction
from lance_core.commit.manifests import open_newest
from lance_core.dataset.edit.insert import parse_request, stage_write, table_options
from lance_core.dataset.handle.dataset import LanceDataset
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.sources import open_source
from lance_core.dataset.write.stage import discard_fragments
from lance_core.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    CorruptFileError,
    LanceError,
    RetryableConflictError,
    UnsupportedFeatureError,
)
from lance_core.io.resolve import resolve_store

NAMESPACE, TABLE = "namespace", "table"
MAX_TRIES = 20

_KEY = {b"lance-schema:unenforced-primary-key:position": b"0"}
SCHEMA = pa.schema(
    [
        pa.field("object_id", pa.string(), nullable=False, metadata=_KEY),
        pa.field("object_type", pa.string(), nullable=False),
        pa.field("location", pa.string()),
        pa.field("metadata", pa.string()),
        pa.field("base_objects", pa.list_(pa.field("object_id", pa.string()))),
    ]
)
_TEXTS = ("object_id", "object_type", "location", "metadata")
_STORAGE_VERSION = "2.2"
_FLAGS = "lance.namespace.manifest.{}_feature_flags"
_MANAGED = "table_version_management"


@dataclass(frozen=True)
class CatalogEntry:
    """One namespace or table."""

    object_id: str
    object_type: str
    location: str | None = None
    metadata: str | None = None

    @property
    def properties(self) -> dict[str, str] | None:
        """What the metadata says, where it is a mapping of texts."""
        try:
            found = json.loads(self.metadata) if self.metadata else None
        except ValueError:
            found = None
        return {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else None


@dataclass(frozen=True)
class CatalogEntries:
    """The rows of one version; none where there is no such table yet."""

    rows: pa.Table
    version: int = 0

    @staticmethod
    def none() -> CatalogEntries:
        """Of a catalog without such a table."""
        return CatalogEntries(SCHEMA.empty_table())

    @cached_property
    def by_id(self) -> Mapping[str, CatalogEntry]:
        """The entries that are namespaces or tables. CorruptFileError for an id that occurs twice."""
        columns = [self.rows[name].to_pylist() for name in _TEXTS]
        found = {}
        for row in zip(*columns, strict=True):
            if row[0] in found:
                raise CorruptFileError(f"{MANIFEST_TABLE}: the id {row[0]!r} occurs twice in version {self.version}")
            found[row[0]] = CatalogEntry(*row)
        return {name: entry for name, entry in found.items() if entry.object_type in (NAMESPACE, TABLE)}

    def with_entry(self, entry: CatalogEntry) -> pa.Table:
        """All rows and one more."""
        row = {"object_id": entry.object_id, "object_type": entry.object_type, "location": entry.location}
        ours = {field.name: field for field in SCHEMA}
        schema = pa.schema([ours.get(field.name, field.with_nullable(True)) for field in self.rows.schema])
        more = pa.Table.from_pylist([{**row, "metadata": entry.metadata}], schema=schema)
        return pa.concat_tables([self.rows.cast(schema), more])

    def without(self, object_id: str) -> pa.Table:
        """All rows but one."""
        keep = [name != object_id for name in self.rows["object_id"].to_pylist()]
        return self.rows.filter(pa.array(keep, pa.bool_()))


class ManifestTable:
    """The rows of a catalog, read and changed."""

    def __init__(self, root: str, storage_options: Mapping[str, str] | None) -> None:
        self.uri = f"{root.rstrip('/')}/{MANIFEST_TABLE}"
        self._options = dict(storage_options or {})

    def read(self) -> CatalogEntries:
        """The newest rows. UnsupportedFeatureError for features of the catalog that are not known here."""
        snapshot = self._open()
        if snapshot is None:
            return CatalogEntries.none()
        self._require_known(snapshot, "reader")
        return _rows_of(snapshot)

    def change(self, decide: Callable[[CatalogEntries], pa.Table]) -> None:
        """Write what `decide` makes of the newest rows; it is asked again where another writer came first, and may raise."""
        backoff = Backoff()
        for tries_left in reversed(range(MAX_TRIES)):
            began = time.monotonic()
            snapshot = self._open()
            if snapshot is not None:
                self._require_known(snapshot, "writer")
            rows = decide(CatalogEntries.none() if snapshot is None else _rows_of(snapshot))
            try:
                return self._write(rows, snapshot)
            except CommitConflictError:
                if not tries_left:
                    raise RetryableConflictError(
                        f"{self.uri}: {MAX_TRIES} changes in a row were overtaken by other writers", uri=self.uri
                    ) from None
                backoff.wait(try_seconds=time.monotonic() - began)
        return None

    def _open(self) -> Snapshot | None:
        store = resolve_store(self.uri, self._options)
        newest = open_newest(store)
        return None if newest is None else Snapshot(store, newest.manifest, self._options)

    def _write(self, rows: pa.Table, current: Snapshot | None) -> None:
        store = resolve_store(self.uri, self._options) if current is None else current.store
        mode = "create" if current is None else "overwrite"
        request = parse_request(mode, data_storage_version=None if current else _STORAGE_VERSION)
        manifest = None if current is None else current.manifest
        transaction, fragments = stage_write(store, manifest, open_source(rows, None), request)
        try:
            commit_transaction(store, transaction, options=table_options(request), strict=True)
        except CommitStateUnknownError:
            raise
        except LanceError:  # anything else may have come behind the put
            discard_fragments(store, fragments, ())
            raise

    def _require_known(self, snapshot: Snapshot, side: str) -> None:
        facts = snapshot.manifest.table_metadata
        flags = str(facts.get(_FLAGS.format(side), "0"))
        if not flags.isdecimal() or int(flags):
            raise UnsupportedFeatureError(f"{self.uri}: the catalog uses an unknown feature (flags {flags!r})")
        if str(facts.get(_MANAGED, "")).lower() == "true":
            raise UnsupportedFeatureError(
                f"{self.uri}: the catalog manages the versions of its tables, which is not implemented"
            )


def _rows_of(snapshot: Snapshot) -> CatalogEntries:
    rows = LanceDataset.from_snapshot(snapshot).to_table()
    kinds = {field.name: field.type for field in rows.schema}
    wrong = [name for name in _TEXTS if kinds.get(name) != pa.string()]
    if wrong:
        raise CorruptFileError(f"{snapshot.uri}: not the table of a catalog: {', '.join(wrong)} are missing, or not texts")
    return CatalogEntries(rows, snapshot.version)
