"""The staging form of every write method: it writes the files, publishes nothing, and returns the transaction.

::

    transaction = ds.uncommitted.delete("id < 100")
    LanceDataset.commit(ds, transaction)                 committed later, elsewhere

The handle keeps its version. Files of a transaction that is never committed belong to no version: cleanup takes them.
A transaction commits once; when it conflicts it is staged again, because only its method knows what to write then.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_core.commit.manifests import latest_version
from lance_core.dataset.arguments import written_out
from lance_core.dataset.columns import evolve
from lance_core.dataset.columns.from_stream import stage_reader
from lance_core.dataset.columns.join import stage_join
from lance_core.dataset.edit import metadata as config
from lance_core.dataset.edit.delete import stage_delete
from lance_core.dataset.edit.insert import external_uris, parse_request, places_for, stage_write
from lance_core.dataset.edit.replace_where import stage_replace
from lance_core.dataset.edit.update import stage_update
from lance_core.dataset.edit.write_options import WriteOptions
from lance_core.dataset.indexing.build import parse_index_request, stage_index
from lance_core.dataset.indexing.folder import segments_named
from lance_core.dataset.maintain.compact import stage_compaction
from lance_core.dataset.maintain.compact_options import CompactionOptions
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.sources import ReaderLike, open_source
from lance_core.format.manifest import BasePath
from lance_core.shortage import verbs_tell_shortages
from lance_core.table.operations.create_index import CreateIndex
from lance_core.table.operations.restore import Restore
from lance_core.table.operations.update_bases import UpdateBases
from lance_core.table.transaction import Transaction

if TYPE_CHECKING:
    from typing_extensions import Unpack


@verbs_tell_shortages
class UncommittedVerbs:
    """`LanceDataset.uncommitted`: the arguments of each verb are those of the verb that commits.

    A merge has its own: `ds.merge_insert("id").when_…().execute_uncommitted(rows)`.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    @written_out(WriteOptions)
    def insert(self, data: ReaderLike, *, mode: str = "append", **options: Unpack[WriteOptions]) -> Transaction:
        """Rows, appended or in the place of all."""
        snapshot, request = self._snapshot, parse_request(mode, **options)
        places = places_for(snapshot.store, snapshot.manifest, request, snapshot.storage_options)
        external = external_uris(snapshot.manifest, request, snapshot.storage_options)
        source = open_source(data)
        return stage_write(snapshot.store, snapshot.manifest, source, request, places=places, external=external)[0]

    def delete(self, predicate: Any) -> Transaction:
        """The rows a filter selects."""
        return stage_delete(self._snapshot, predicate).transaction

    def truncate_table(self) -> Transaction:
        """All rows."""
        return self.delete("true")

    def update(self, updates: Mapping[str, str], where: Any = None) -> Transaction:
        """New values in the rows a filter selects."""
        return stage_update(self._snapshot, updates, where=where).transaction

    def replace_where(self, predicate: Any, data: Any, schema: pa.Schema | None = None) -> Transaction:
        """Other rows in the place of those a filter selects."""
        source = open_source(data, schema)
        rows = pa.Table.from_batches([*source.batches], schema=source.schema)
        return stage_replace(self._snapshot, predicate, rows).transaction

    def add_columns(
        self,
        transforms: Any,
        read_columns: Sequence[str] | None = None,
        reader_schema: pa.Schema | None = None,
        batch_size: int | None = None,
    ) -> Transaction:
        """New columns, computed or given."""
        if evolve.is_rows(transforms):
            return stage_reader(self._snapshot, open_source(transforms, reader_schema)).transaction
        return evolve.stage_add(self._snapshot, transforms, read_columns, batch_size).transaction

    def merge(
        self, data_obj: Any, left_on: str, right_on: str | None = None, schema: pa.Schema | None = None
    ) -> Transaction:
        """The columns of another table, joined by a key."""
        return stage_join(self._snapshot, data_obj, left_on, right_on, schema).transaction

    def drop_columns(self, columns: Sequence[str]) -> Transaction:
        """Fewer columns."""
        return evolve.stage_drop(self._snapshot, [*columns]).transaction

    def alter_columns(self, *alterations: Mapping[str, Any]) -> Transaction:
        """Other names, types or nullability."""
        return evolve.stage_alter(self._snapshot, alterations).transaction

    def compact_files(self, options: CompactionOptions | None = None) -> Transaction:
        """Fewer fragments. Ids for them are reserved in a separate version."""
        return stage_compaction(self._snapshot, options or CompactionOptions()).transaction

    def create_scalar_index(
        self,
        column: str,
        index_type: str,
        name: str | None = None,
        *,
        replace: bool = True,
        train: bool = True,
        **kwargs: Any,
    ) -> Transaction:
        """An index over all fragments."""
        request = parse_index_request(self._snapshot.manifest.schema, column, index_type, name, kwargs)
        return stage_index(self._snapshot, request, replaces=replace, train=train).transaction

    def drop_index(self, name: str) -> Transaction:
        """The table without an index."""
        gone = CreateIndex((), segments_named(self._snapshot, name))
        return Transaction(self._snapshot.version, str(uuids.uuid4()), gone)

    def restore(self) -> Transaction:
        """This version as the newest again."""
        newest = latest_version(self._snapshot.store)
        return Transaction(newest, str(uuids.uuid4()), Restore(self._snapshot.version))

    def update_config(self, values: config.Values, *, replace: bool = False) -> Transaction:
        """Keys of the configuration."""
        return config.stage_maps(self._snapshot, "config", values, replace=replace).transaction

    def update_metadata(self, values: config.Values, *, replace: bool = False) -> Transaction:
        """Keys of the table's metadata."""
        return config.stage_maps(self._snapshot, "table", values, replace=replace).transaction

    def update_schema_metadata(self, values: config.Values, *, replace: bool = False) -> Transaction:
        """Keys of the schema's metadata."""
        return config.stage_maps(self._snapshot, "schema", values, replace=replace).transaction

    def update_field_metadata(self, field_updates: Mapping[str, config.Values], *, replace: bool = False) -> Transaction:
        """Keys of the metadata of fields."""
        return config.stage_fields(self._snapshot, field_updates, replace=replace).transaction

    def add_bases(self, new_bases: Sequence[BasePath]) -> Transaction:
        """Further places for files."""
        return Transaction(self._snapshot.version, str(uuids.uuid4()), UpdateBases(tuple(new_bases)))
