"""The handle: `LanceDataset` with the official library's names. It only forwards.

::

    ds = lance_core.dataset("/t.lance")
    ds.to_table(columns=["id"], filter="id > 3", limit=10)
    ds.count_rows(), ds.version, ds.take([3, 1])

A handle stands on one version; verbs that write move it to the version they made, `checkout_version` gives another handle.

The methods of a handle that change key/value maps: configuration and metadata.

::

    dataset.update_config({"lance.auto_cleanup.interval": "20"})      dataset.update_field_metadata({"a.b": {"unit": "m"}})
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

import pyarrow as pa

from lance_core.commit.backoff import DEFAULT_MAX_RETRIES
from lance_core.commit.manifests import latest_version
from lance_core.dataset.arguments import check_options, written_out
from lance_core.dataset.handle.commit_options import CommitOptions, access_of, refuse_commit_lock
from lance_core.dataset.handle.edit_verbs import EditingVerbs
from lance_core.dataset.handle.index_verbs import IndexingVerbs
from lance_core.dataset.handle.optimize import DatasetOptimizer
from lance_core.dataset.handle.read_verbs import ExploringVerbs
from lance_core.dataset.handle.ref_verbs import BranchingVerbs
from lance_core.dataset.handle.vector_verbs import VectorVerbs
from lance_core.dataset.query.scan_options import ScanArguments, ScanOptions, ScanRows, plan_request
from lance_core.dataset.scan.postprocess import BlobMode
from lance_core.dataset.scan.projection import Columns
from lance_core.dataset.snapshot.snapshot import AsOf, Snapshot, Version, open_snapshot
from lance_core.errors import InputError
from lance_core.format.fragments import FragmentList
from lance_core.format.schema import Schema
from lance_core.shortage import verbs_tell_shortages

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from lance_core.dataset.edit.metadata import Values
    from lance_core.dataset.handle.fragment import LanceFragment
    from lance_core.dataset.handle.merge_builder import MergeInsertBuilder
    from lance_core.dataset.handle.uncommitted import UncommittedVerbs
    from lance_core.dataset.maintain.statistics import LanceStats
    from lance_core.dataset.query.scanner import LanceScanner
    from lance_core.table.transaction import Transaction


@verbs_tell_shortages
class AnnotatingVerbs:
    """What `LanceDataset` can say about its table. None as a value deletes the key; `replace` drops keys not named."""

    _snapshot: Snapshot

    def config(self) -> dict[str, str]:
        """The configuration of the table at this version: names and values, both text."""
        return dict(self._snapshot.manifest.config)

    @property
    def metadata(self) -> dict[str, str]:
        """The table's own metadata."""
        return dict(self._snapshot.manifest.table_metadata)

    @property
    def schema_metadata(self) -> dict[str, str]:
        """The schema's metadata, as text."""
        return {key: value.decode("utf-8", "replace") for key, value in self._snapshot.manifest.schema.metadata.items()}

    def update_config(self, values: Values, *, replace: bool = False) -> dict[str, str]:
        """Change the configuration; returns all of it."""
        from lance_core.dataset.edit.metadata import update_maps

        self._snapshot = update_maps(self._snapshot, "config", values, replace=replace)
        return self.config()

    def delete_config_keys(self, keys: Sequence[str]) -> None:
        """Remove keys from the configuration; keys it does not have do not matter."""
        from lance_core.dataset.edit.metadata import update_maps

        self._snapshot = update_maps(self._snapshot, "config", dict.fromkeys(keys))

    def update_metadata(self, values: Values, *, replace: bool = False) -> dict[str, str]:
        """Change the table's metadata; returns all of it."""
        from lance_core.dataset.edit.metadata import update_maps

        self._snapshot = update_maps(self._snapshot, "table", values, replace=replace)
        return self.metadata

    def update_schema_metadata(self, values: Values, *, replace: bool = False) -> dict[str, str]:
        """Change the schema's metadata; returns all of it."""
        from lance_core.dataset.edit.metadata import update_maps

        self._snapshot = update_maps(self._snapshot, "schema", values, replace=replace)
        return self.schema_metadata

    def replace_schema_metadata(self, new_metadata: Mapping[str, str]) -> None:
        """Exchange the schema's metadata as a whole."""
        from lance_core.dataset.edit.metadata import update_maps

        self._snapshot = update_maps(self._snapshot, "schema", new_metadata, replace=True)

    def update_field_metadata(self, field_updates: Mapping[str, Values], *, replace: bool = False) -> None:
        """Change the metadata of fields, named by dotted path. InputError for a field that is not there."""
        from lance_core.dataset.edit.metadata import update_fields

        self._snapshot = update_fields(self._snapshot, field_updates, replace=replace)

    def replace_field_metadata(self, field_name: str, new_metadata: Mapping[str, str]) -> None:
        """Exchange the metadata of one field as a whole."""
        from lance_core.dataset.edit.metadata import update_fields

        self._snapshot = update_fields(self._snapshot, {field_name: new_metadata}, replace=True)


Uri = str | os.PathLike[str]


@verbs_tell_shortages
class LanceDataset(EditingVerbs, AnnotatingVerbs, BranchingVerbs, ExploringVerbs, IndexingVerbs, VectorVerbs):
    """One version of a Lance table."""

    def __init__(
        self,
        uri: Uri,
        version: Version | None = None,
        *,
        storage_options: Mapping[str, str] | None = None,
        asof: AsOf | None = None,
    ) -> None:
        self._snapshot = open_snapshot(uri, version=version, asof=asof, storage_options=storage_options)

    def __reduce__(self) -> Any:
        return _reopen, (self.uri, self.version, self._snapshot.storage_options)

    def __repr__(self) -> str:
        return f"LanceDataset(uri={self.uri!r}, version={self.version})"

    def __len__(self) -> int:
        return self.count_rows()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """All rows, for any library that speaks the Arrow C stream interface (DuckDB, Polars, pandas)."""
        return self.scanner().__arrow_c_stream__(requested_schema)

    @property
    def snapshot(self) -> Snapshot:
        """The current version of this handle."""
        return self._snapshot

    @property
    def uri(self) -> str:
        """Where the table is, without credentials."""
        return self._snapshot.uri

    @property
    def schema(self) -> pa.Schema:
        """The columns as pyarrow has them."""
        return self._snapshot.visible_schema

    @property
    def lance_schema(self) -> Schema:
        """The columns as the format has them, with field ids."""
        return self._snapshot.manifest.schema

    @property
    def version(self) -> int:
        """The current version of this handle."""
        return self._snapshot.version

    @property
    def latest_version(self) -> int:
        """The newest version of the table now."""
        return latest_version(self._snapshot.store)

    @property
    def data_storage_version(self) -> str:
        """The version of the file format new data is written in."""
        return self._snapshot.manifest.data_storage_version

    @property
    def has_stable_row_ids(self) -> bool:
        """Whether `_rowid` stays with a row when compaction moves it."""
        return self._snapshot.manifest.uses_stable_row_ids

    @property
    def max_field_id(self) -> int:
        """The largest field id of the schema."""
        return self._snapshot.manifest.schema.max_field_id

    def move_to(self, snapshot: Snapshot) -> None:
        """Stand on another version of the same table: what verbs do that write."""
        self._snapshot = snapshot

    @property
    def optimize(self) -> DatasetOptimizer:
        """Verbs that change how rows are stored: `compact_files`."""
        return DatasetOptimizer(self)

    @property
    def uncommitted(self) -> UncommittedVerbs:
        """Every verb that writes, staged: it returns a transaction for `commit`, and publishes nothing. (Ours.)"""
        from lance_core.dataset.handle.uncommitted import UncommittedVerbs

        return UncommittedVerbs(self._snapshot)

    @property
    def stats(self) -> LanceStats:
        """Figures about the fragments."""
        from lance_core.dataset.maintain.statistics import LanceStats

        return LanceStats(self._snapshot)

    # Reading

    @written_out(ScanOptions)
    def scanner(
        self,
        columns: Columns = None,
        filter: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Mapping[str, Any] | None = None,
        batch_size: int | None = None,
        **options: Unpack[ScanOptions],
    ) -> LanceScanner:
        """Plan a scan. Options that only steer the official scanner's speed are accepted and change nothing.

        Args:
            columns: a list of names (dotted for fields of structs), or a dict of name to SQL expression; None is all.
            filter: SQL text, or a pyarrow expression.
            limit: rows at most.
            offset: rows that are passed over first.
            nearest: {"column", "q", "k", "metric", "nprobes", "refine_factor", "ef", "distance_range", "use_index"}: the
                rows whose vectors are nearest to `q` come nearest first, with their `_distance`.
            batch_size: rows of a batch at most.
            full_text_query: words, {"query": words, "columns": [...]} or a query of `lance_core.query`: rows whose texts
                fit come best first, with their `_score`. `full_text_search` is another name for it.
            prefilter: test the filter before a search, not on what it found.
            fast_search: search only what indices cover.
            fragments: the only ones that are read.
            with_row_id: add the column `_rowid`.
            with_row_address: add the column `_rowaddr`.
            use_scalar_index: False lets no index answer the filter.
            strict_index: an index that cannot be read, or does not say what its column says, is an error; otherwise it is
                left out with a warning.
            unsealed_indices: of indices without checksums (the official library's, until `seal_indices()`): None uses those
                whose structure is right, and tests the rows they find again; "compare" compares them with all their rows
                first, once in a process; "skip" leaves large ones out.
            order_by: columns to sort by, names or `ColumnOrdering`.
            include_deleted_rows: add deleted rows, whose `_rowid` is null.
            blob_handling: "all_binary" or "blobs_descriptions"; None gives blobs as they were written.
            strict_batch_size: make all batches but the last of `batch_size` rows.
            batch_size_bytes: bytes of a batch at most.
            scan_stats_callback: gets the `ScanStatistics` when the scan is over.

        Raises:
            InputError: no such column, or an option that would change the result and is not implemented.
            FilterError: a filter that cannot be read, or does not fit the columns.
        """
        from lance_core.dataset.query.scanner import LanceScanner

        request = plan_request(
            columns=columns,
            filter=filter,
            limit=limit,
            offset=offset,
            nearest=nearest,
            batch_size=batch_size,
            **options,
        )
        return LanceScanner(self._snapshot, request)

    @written_out(ScanOptions)
    def to_table(
        self,
        columns: Columns = None,
        filter: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Mapping[str, Any] | None = None,
        batch_size: int | None = None,
        **options: Unpack[ScanOptions],
    ) -> pa.Table:
        """Rows as a table; options as for `scanner`."""
        return self.scanner(columns, filter, limit, offset, nearest, batch_size, **options).to_table()

    @written_out(ScanOptions)
    def to_batches(
        self,
        columns: Columns = None,
        filter: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Mapping[str, Any] | None = None,
        batch_size: int | None = None,
        **options: Unpack[ScanOptions],
    ) -> Iterator[pa.RecordBatch]:
        """Rows as a stream of batches of at most `batch_size` rows, memory bounded; options as for `scanner`."""
        return self.scanner(columns, filter, limit, offset, nearest, batch_size, **options).to_batches()

    @written_out(ScanArguments)
    def to_reader(self, **arguments: Unpack[ScanArguments]) -> pa.RecordBatchReader:
        """Rows as a reader for other Arrow libraries; arguments as for `scanner`."""
        return self.scanner(**arguments).to_reader()

    @written_out(ScanOptions)
    def to_pandas(
        self,
        columns: Columns = None,
        filter: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Mapping[str, Any] | None = None,
        batch_size: int | None = None,
        *,
        blob_mode: BlobMode | None = None,
        **options: Unpack[ScanOptions],
    ) -> Any:
        """Rows as a pandas frame; options as for `scanner`, `blob_mode` as for its `to_pandas`."""
        scanner = self.scanner(columns, filter, limit, offset, nearest, batch_size, **options)
        return scanner.to_pandas(blob_mode=blob_mode)

    @written_out(ScanRows)
    def count_rows(self, filter: Any = None, **options: Unpack[ScanRows]) -> int:
        """Rows, all of them (nothing but the manifest is read) or those a filter selects."""
        arguments: ScanRows = {"columns": [], **options}  # planning thousands of columns would outlast the count
        return self.scanner(filter=filter, **arguments).count_rows()

    def take(self, indices: Any, columns: Columns = None) -> pa.Table:
        """Rows by position (list, numpy or Arrow array), in the order given, repeats included. InputError beyond the end."""
        from lance_core.dataset.scan.take import projection_of, take_rows

        return take_rows(self._snapshot, indices, projection_of(self._snapshot, columns))

    @written_out(ScanArguments)
    def head(self, num_rows: int, **arguments: Unpack[ScanArguments]) -> pa.Table:
        """The first rows; arguments as for `scanner`."""
        first: ScanArguments = {**arguments, "limit": num_rows}
        return self.scanner(**first).to_table()

    def slice(self, start: int, end: int, columns: Columns = None) -> pa.Table:
        """Rows `start` to `end`, the end excluded."""
        return self.to_table(columns, offset=start, limit=max(end - start, 0))

    @written_out(ScanOptions)
    def sample(
        self, num_rows: int, columns: Columns = None, randomize_order: bool = True, **options: Unpack[ScanOptions]
    ) -> pa.Table:
        """Random rows, each at most once; options are accepted and change nothing."""
        from lance_core.dataset.scan.take import sample_indices

        check_options("sample", options, ScanOptions)
        indices = sample_indices(self.count_rows(), num_rows, randomize_order=randomize_order)
        return self.take(indices, columns)

    # Fragments

    def get_fragments(self, filter: Any = None) -> list[LanceFragment]:
        """Return the fragments of this version. InputError for a `filter`, which is not implemented."""
        from lance_core.dataset.handle.fragment import LanceFragment

        if filter is not None:
            raise InputError("get_fragments(filter=...) is not implemented", cure="Filter the list yourself.")
        fragments = self._snapshot.manifest.fragments
        return [LanceFragment._at(self._snapshot, fragments, index) for index in range(len(fragments))]

    def get_fragment(self, fragment_id: int) -> LanceFragment | None:
        """The fragment of an id, None when there is none."""
        from lance_core.dataset.handle.fragment import LanceFragment

        found = FragmentList.of(self._snapshot.manifest.fragments).get(fragment_id)
        return None if found is None else LanceFragment(self._snapshot, fragment=found)

    def validate(self, *, deep: bool = False) -> None:
        """Open every file; `deep` also reads every page and compares indices. Raises CorruptFileError, NotFoundError."""
        from lance_core.dataset.maintain.validate import check_snapshot

        check_snapshot(self._snapshot, deep=deep or None)

    def merge_insert(self, on: str | Iterable[str] | None = None) -> MergeInsertBuilder:
        """Begin a merge by key columns, by default those of the primary key: see `MergeInsertBuilder`."""
        from lance_core.dataset.handle.merge_builder import MergeInsertBuilder

        return MergeInsertBuilder(self, on)

    @staticmethod
    @written_out(CommitOptions)
    def commit(
        base_uri: Uri | LanceDataset,
        operation: Any,
        read_version: int | None = None,
        commit_lock: None = None,
        storage_options: Mapping[str, str] | None = None,
        enable_v2_manifest_paths: bool | None = None,
        detached: bool | None = False,
        max_retries: int = DEFAULT_MAX_RETRIES,
        *,
        commit_message: str | None = None,
        enable_stable_row_ids: bool | None = None,
        **options: Unpack[CommitOptions],
    ) -> LanceDataset:
        """Publish an operation of `LanceOperation`, or a transaction, as a new version.

        Args:
            base_uri: the table's folder, or a handle on it.
            operation: what changes.
            read_version: the version that the operation was planned on; an overwrite needs none.
            commit_lock: refused; stores without a conditional put take an external manifest store.
            storage_options: options of the store.
            enable_v2_manifest_paths: False lets a table that this creates name its manifests upwards.
            detached: publish a version beside the history, found only by its number (`checkout_version`).
            max_retries: how often the operation is judged again behind versions of others; 0 lets nobody come between.
            commit_message: kept in the version.
            enable_stable_row_ids: whether a table that this creates has row ids that outlive updates.

        Raises:
            CommitError: others changed what the operation read or writes; its kinds tell whether a retry helps.
            InputError: an operation that does not fit the table.
        """
        from lance_core.dataset.edit.commit_operation import commit_operation

        refuse_commit_lock("commit", commit_lock)
        snapshot = commit_operation(
            base_uri.snapshot if isinstance(base_uri, LanceDataset) else base_uri,
            operation,
            read_version=read_version,
            storage_options=access_of("commit", base_uri, storage_options, options),
            max_retries=max_retries,
            commit_message=commit_message,
            stable_row_ids=bool(enable_stable_row_ids),
            v1_names=enable_v2_manifest_paths is False,
            detached=bool(detached),
        )
        return LanceDataset.from_snapshot(snapshot)

    @staticmethod
    @written_out(CommitOptions)
    def commit_batch(
        dest: Uri | LanceDataset,
        transactions: Iterable[Transaction],
        commit_lock: None = None,
        storage_options: Mapping[str, str] | None = None,
        enable_v2_manifest_paths: bool | None = None,
        detached: bool | None = False,
        max_retries: int = DEFAULT_MAX_RETRIES,
        **options: Unpack[CommitOptions],
    ) -> BulkCommitResult:
        """Publish several appends as one version: {"dataset": the handle on it, "merged": its transaction}.

        The table already exists, so `enable_v2_manifest_paths` has no say; options as for `commit`, `detached` too.
        """
        from lance_core.dataset.edit.commit_operation import commit_batch

        refuse_commit_lock("commit_batch", commit_lock)
        snapshot, merged = commit_batch(
            dest.snapshot if isinstance(dest, LanceDataset) else dest,
            transactions,
            storage_options=access_of("commit_batch", dest, storage_options, options),
            max_retries=max_retries,
            detached=bool(detached),
        )
        return {"dataset": LanceDataset.from_snapshot(snapshot), "merged": merged}

    @staticmethod
    def drop(base_uri: Uri, storage_options: Mapping[str, str] | None = None, ignore_not_found: bool | None = None) -> None:
        """Delete the table and everything below its uri."""
        from lance_core.dataset.versions.drop import drop_table

        drop_table(base_uri, storage_options, ignore_not_found=bool(ignore_not_found))


class BulkCommitResult(TypedDict):
    """What `LanceDataset.commit_batch` did: the handle on the new version, and its transaction."""

    dataset: LanceDataset
    merged: Transaction


def _reopen(uri: str, version: int, storage_options: Mapping[str, str] | None) -> LanceDataset:
    return LanceDataset(uri, version, storage_options=storage_options)
