"""Further methods of a handle: blobs, changes, SQL, files, columns joined from elsewhere.

::

    ds.take_blobs("video", indices=[7])[0].read_range(0, 16)      ds.delta(compared_against=3).get_inserted_rows()
    ds.merge(table, "id")                                         ds.sql("SELECT count(*) FROM dataset").build()
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from lance_core.commit.manifests import version_numbers
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.format.fragments import FragmentList
from lance_core.format.manifest import BasePath
from lance_core.shortage import verbs_tell_shortages

if TYPE_CHECKING:
    from lance_core.dataset.query.change_feed import DatasetDelta
    from lance_core.dataset.query.sql import SqlQueryBuilder
    from lance_core.dataset.scan.blobs import BlobFile
    from lance_core.dataset.versions.files import Progress
    from lance_core.table.transaction import Transaction


@verbs_tell_shortages
class ExploringVerbs:
    """What else `LanceDataset` can do; each verb loads its room when it is first used."""

    _snapshot: Snapshot

    def versions(self) -> list[dict[str, Any]]:
        """Every version: {"version", "timestamp" (local time), "metadata" (counts as text)}, oldest first."""
        from lance_core.dataset.versions import history

        return history.list_history(self._snapshot.store)

    def get_version(self) -> dict[str, Any]:
        """The entry of `versions()` for this version."""
        from lance_core.dataset.versions import history

        return history.version_entry(self._snapshot.manifest)

    def read_transaction(self, version: int) -> Transaction | None:
        """What made a version; None when the version does not tell."""
        from lance_core.commit.transactions import load_transaction

        return load_transaction(self._snapshot.store, version)

    def get_transactions(self, recent_transactions: int = 10) -> list[Transaction | None]:
        """What made the newest versions up to this one, newest first."""
        from lance_core.dataset.versions.transaction_log import read_transactions

        newest = self._snapshot.version
        numbers = range(newest, max(newest - recent_transactions, 0), -1)
        return read_transactions(self._snapshot.store, numbers)

    def take_blobs(
        self,
        blob_column: str,
        ids: Any = None,
        addresses: Any = None,
        indices: Any = None,
        *,
        buffer_size: int = 512 << 10,
    ) -> list[BlobFile | None]:
        """Blobs of rows as files that read lazily, None for null.

        Args:
            blob_column: its name.
            ids: row ids; exactly one of this and the next two names the rows.
            addresses: row addresses.
            indices: positions among the living rows, in order.
            buffer_size: bytes that a small read of a file fetches.

        Raises:
            InputError: a column without blobs, rows that are not there, or not exactly one way to name them.
        """
        from lance_core.dataset.scan.blobs import open_blobs
        from lance_core.dataset.scan.take import addresses_of

        rows = addresses_of(self._snapshot, ids=ids, indices=indices, addresses=addresses)
        return open_blobs(self._snapshot, blob_column, rows, buffer_size=buffer_size)

    def read_blobs(
        self, blob_column: str, ids: Any = None, addresses: Any = None, indices: Any = None
    ) -> list[tuple[int, bytes | None]]:
        """(row address, bytes) of the blobs of rows, in the order asked; arguments as for `take_blobs`."""
        from lance_core.dataset.scan.blobs import open_blobs
        from lance_core.dataset.scan.take import addresses_of

        rows = addresses_of(self._snapshot, ids=ids, indices=indices, addresses=addresses)
        files = open_blobs(self._snapshot, blob_column, rows)
        return [(row, None if file is None else file.readall()) for row, file in zip(rows.tolist(), files, strict=True)]

    def delta(
        self, compared_against: int | None = None, *, begin_version: int | None = None, end_version: int | None = None
    ) -> DatasetDelta:
        """What changed since a version, or between two (the first excluded)."""
        from lance_core.dataset.query.change_feed import open_delta

        return open_delta(self._snapshot, compared_against=compared_against, begin=begin_version, end=end_version)

    def sql(self, sql: str) -> SqlQueryBuilder:
        """A query over this version, called `dataset` in it; needs DuckDB."""
        from lance_core.dataset.query.sql import SqlQueryBuilder

        return SqlQueryBuilder(self._snapshot, sql)

    def merge(self, data_obj: Any, left_on: str, right_on: str | None = None, schema: pa.Schema | None = None) -> None:
        """Add the columns of another table, joined by a key; rows without a partner get nulls.

        Args:
            data_obj: rows, as for `write_dataset`; keys must be unique.
            left_on: this table's key column.
            right_on: the other's; None is `left_on`.
            schema: of rows that do not tell theirs.

        Raises:
            InputError: no such column, a key twice, or a column that this table has.
            CommitError: others changed the same columns.
        """
        from lance_core.dataset.columns.join import join_columns

        self._snapshot = join_columns(self._snapshot, data_obj, left_on, right_on, schema)

    def sort_by(self, sorting: str | Sequence[tuple[str, str]]) -> pa.Table:
        """All rows, sorted by a column or by (column, "ascending" or "descending") pairs. Held in memory."""
        from lance_core.dataset.query.scanner import LanceScanner
        from lance_core.dataset.scan.request import ScanRequest

        return LanceScanner(self._snapshot, ScanRequest()).to_table().sort_by(cast("Any", sorting))

    def all_files(self) -> pa.RecordBatchReader:
        """Every file below the table: base_uri, path, size_bytes, last_modified."""
        from lance_core.dataset.versions.files import all_files

        return all_files(self._snapshot)

    def tracked_files(self, *, min_version: int | None = None, progress: Progress | None = None) -> pa.RecordBatchReader:
        """Every file that a version names: version, base_uri, path, type. `progress(done, total)` after each version."""
        from lance_core.dataset.versions.files import tracked_files

        return tracked_files(self._snapshot, min_version=min_version, progress=progress)

    def version_refs(self) -> list[dict[str, int]]:
        """[{"version": number}] of every version of this line, oldest first; no manifest is read."""
        return [{"version": number} for number in version_numbers(self._snapshot.store)]

    def fragment_ids(self) -> list[int]:
        """Ids of all fragments of this version, ascending."""
        return [*FragmentList.of(self._snapshot.manifest.fragments).ids]

    @property
    def initial_storage_options(self) -> dict[str, str] | None:
        """The storage options this handle was opened with."""
        options = self._snapshot.storage_options
        return None if options is None else dict(options)

    def latest_storage_options(self) -> dict[str, str] | None:
        """The storage options in use: nothing here renews them."""
        return self.initial_storage_options

    def migrate_manifest_paths_v2(self) -> None:
        """Give all manifests names that count down. No writer may be at work in the meantime."""
        from lance_core.commit.manifests import migrate_manifest_names

        migrate_manifest_names(self._snapshot.store)

    def base_paths(self) -> Mapping[int, BasePath]:
        """Other places where files of this table are, by id."""
        return {base.id: base for base in self._snapshot.manifest.base_paths}

    def add_bases(self, new_bases: Sequence[BasePath], transaction_properties: Mapping[str, str] | None = None) -> None:
        """Register further places; id 0 takes the next free one. InputError when name, path or id is taken."""
        from lance_core.commit.loop import commit_transaction
        from lance_core.table.operations.update_bases import UpdateBases
        from lance_core.table.transaction import Transaction

        transaction = Transaction(
            self._snapshot.version,
            str(uuids.uuid4()),
            UpdateBases(tuple(new_bases)),
            properties=dict(transaction_properties or {}),
        )
        manifest = commit_transaction(self._snapshot.store, transaction)
        self._snapshot = Snapshot(self._snapshot.store, manifest, self._snapshot.storage_options)
