"""The handle: `LanceDataset`, `dataset()`, `write_dataset()` with the official library's names. It only forwards.

::

    ds = lance_core.write_dataset(table, "/t.lance")
    ds.to_table(columns=["id"], filter="id > 3", limit=10)
    ds.count_rows(), ds.version, ds.take([3, 1])

A handle stands on one version; verbs that write move it to the version they made, `checkout_version` gives another handle.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from lance_core.commit.manifests import latest_version
from lance_core.dataset import history, sampling
from lance_core.dataset.create import write_snapshot
from lance_core.dataset.fragment import LanceFragment
from lance_core.dataset.options import OPEN_HINTS, OPEN_REFUSED, SCAN_HINTS, SCAN_REFUSED, check_options
from lance_core.dataset.projection import Columns, plan_projection
from lance_core.dataset.scanner import LanceScanner, ScanRequest
from lance_core.dataset.snapshot import AsOf, Snapshot, Version, open_snapshot, snapshot_of
from lance_core.dataset.stats import LanceStats
from lance_core.dataset.take import take_rows
from lance_core.dataset.write import MAX_ROWS_PER_FILE
from lance_core.errors import InputError
from lance_core.format.schema import Schema

Uri = str | os.PathLike[str]


class LanceDataset:
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

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> LanceDataset:
        """The handle on a snapshot."""
        handle = cls.__new__(cls)
        handle._snapshot = snapshot
        return handle

    def __reduce__(self) -> Any:
        return dataset, (self.uri, self.version, None, None, None, None, self._snapshot.storage_options)

    def __repr__(self) -> str:
        return f"LanceDataset(uri={self.uri!r}, version={self.version})"

    def __len__(self) -> int:
        return self.count_rows()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """All rows, for any library that speaks the Arrow C stream interface (DuckDB, Polars, pandas)."""
        return self.scanner().__arrow_c_stream__(requested_schema)

    @property
    def snapshot(self) -> Snapshot:
        """The version this handle stands on."""
        return self._snapshot

    @property
    def uri(self) -> str:
        """Where the table is, without credentials."""
        return self._snapshot.uri

    @property
    def schema(self) -> pa.Schema:
        """The columns as pyarrow has them."""
        return self._snapshot.arrow_schema

    @property
    def lance_schema(self) -> Schema:
        """The columns as the format has them, with field ids."""
        return self._snapshot.manifest.schema

    @property
    def version(self) -> int:
        """The version this handle stands on."""
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

    @property
    def stats(self) -> LanceStats:
        """Figures about the fragments."""
        return LanceStats(self._snapshot)

    def config(self) -> dict[str, str]:
        """The table's configuration."""
        return dict(self._snapshot.manifest.config)

    @property
    def metadata(self) -> dict[str, str]:
        """The table's own metadata."""
        return dict(self._snapshot.manifest.table_metadata)

    # Versions

    def versions(self) -> list[dict[str, Any]]:
        """Every version: {"version", "timestamp" (local time), "metadata" (counts as text)}, oldest first."""
        return history.list_history(self._snapshot.store)

    def get_version(self) -> dict[str, Any]:
        """The entry of `versions()` for this version."""
        return history.version_entry(self._snapshot.manifest)

    def checkout_version(self, version: Version) -> LanceDataset:
        """Another handle, on a version or a tag."""
        found = snapshot_of(self._snapshot.store, version=version, storage_options=self._snapshot.storage_options)
        return LanceDataset.from_snapshot(found)

    def checkout_latest(self) -> None:
        """Move this handle to the newest version."""
        self._snapshot = snapshot_of(self._snapshot.store, storage_options=self._snapshot.storage_options)

    # Reading

    def scanner(
        self,
        columns: Columns = None,
        filter: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Any = None,
        batch_size: int | None = None,
        *,
        with_row_id: bool | None = None,
        with_row_address: bool | None = None,
        fragments: Sequence[LanceFragment] | None = None,
        **options: Any,
    ) -> LanceScanner:
        """Plan a scan.

        `columns` is a list of names (dotted for fields of structs) or a dict of name to SQL expression; `filter` is SQL text
        or a pyarrow expression; `fragments` restricts the scan. Options that only steer the official scanner's speed are
        accepted; what would change the result and is not implemented is refused by name.

        Raises InputError, FilterError.
        """
        check_options("scanner", {"nearest": nearest, **options}, hints=SCAN_HINTS, refused=SCAN_REFUSED)
        chosen = None if fragments is None else [fragment.metadata for fragment in fragments]
        request = ScanRequest(
            columns=columns,
            filter=filter,
            limit=limit,
            offset=offset,
            batch_size=batch_size,
            with_row_id=bool(with_row_id),
            with_row_address=bool(with_row_address),
            fragments=chosen,
        )
        return LanceScanner(self._snapshot, request)

    def to_table(
        self,
        columns: Columns = None,
        filter: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Any = None,
        batch_size: int | None = None,
        **options: Any,
    ) -> pa.Table:
        """Rows as a table; options as for `scanner`."""
        return self.scanner(columns, filter, limit, offset, nearest, batch_size, **options).to_table()

    def to_batches(
        self,
        columns: Columns = None,
        filter: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        nearest: Any = None,
        batch_size: int | None = None,
        **options: Any,
    ) -> Iterator[pa.RecordBatch]:
        """Rows as a stream of batches of at most `batch_size` rows, memory bounded; options as for `scanner`."""
        return self.scanner(columns, filter, limit, offset, nearest, batch_size, **options).to_batches()

    def to_reader(self, **options: Any) -> pa.RecordBatchReader:
        """Rows as a reader for other Arrow libraries; options as for `scanner`."""
        return self.scanner(**options).to_reader()

    def to_pandas(
        self,
        columns: Columns = None,
        filter: Any = None,
        limit: int | None = None,
        offset: int | None = None,
        **options: Any,
    ) -> Any:
        """Rows as a pandas frame; options as for `scanner`."""
        return self.scanner(columns, filter, limit, offset, **options).to_pandas()

    def count_rows(self, filter: Any = None, **options: Any) -> int:
        """Rows, all of them (nothing but the manifest is read) or those a filter selects."""
        return self.scanner(filter=filter, **options).count_rows()

    def take(self, indices: Any, columns: Columns = None) -> pa.Table:
        """Rows by position (list, numpy or Arrow array), in the order given, repeats included. InputError beyond the end."""
        return take_rows(self._snapshot, indices, plan_projection(self.lance_schema, columns))

    def head(self, num_rows: int, **options: Any) -> pa.Table:
        """The first rows; options as for `scanner`."""
        return self.to_table(**{**options, "limit": num_rows})

    def slice(self, start: int, end: int, columns: Columns = None) -> pa.Table:
        """Rows `start` to `end`, the end excluded."""
        return self.to_table(columns, offset=start, limit=max(end - start, 0))

    def sample(self, num_rows: int, columns: Columns = None, randomize_order: bool = True, **options: Any) -> pa.Table:
        """Random rows, each at most once."""
        check_options("sample", options, hints=SCAN_HINTS, refused=SCAN_REFUSED)
        indices = sampling.sample_indices(self.count_rows(), num_rows, randomize_order=randomize_order)
        return self.take(indices, columns)

    # Fragments

    def get_fragments(self, filter: Any = None) -> list[LanceFragment]:
        """The fragments of this version."""
        if filter is not None:
            raise InputError("get_fragments(filter=...) is not implemented", cure="Filter the list yourself.")
        return [LanceFragment(self._snapshot, fragment) for fragment in self._snapshot.manifest.fragments]

    def get_fragment(self, fragment_id: int) -> LanceFragment | None:
        """The fragment of an id, None when there is none."""
        return next((fragment for fragment in self.get_fragments() if fragment.fragment_id == fragment_id), None)

    def validate(self) -> None:
        """Open every file and compare it with the manifest. Raises CorruptFileError, NotFoundError."""
        from lance_core.dataset.validate import check_snapshot

        check_snapshot(self._snapshot)

    # Writing

    def insert(self, data: Any, *, mode: str = "append", **options: Any) -> None:
        """Write rows to this table and move to the new version; options as for `write_dataset`."""
        self._snapshot = write_snapshot(data, self._snapshot, mode=mode, **options)


def dataset(
    uri: Uri,
    version: Version | None = None,
    asof: AsOf | None = None,
    block_size: int | None = None,
    commit_lock: Any = None,
    index_cache_size: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    **options: Any,
) -> LanceDataset:
    """Open a table: the newest version, a version or tag, or the newest one not younger than `asof`.

    Raises NotFoundError (no table, version or tag), UnsupportedFeatureError, CorruptFileError, InputError.
    """
    check_options("dataset", {"commit_lock": commit_lock, **options}, hints=OPEN_HINTS, refused=OPEN_REFUSED)
    return LanceDataset(uri, version, storage_options=storage_options, asof=asof)


def write_dataset(
    data_obj: Any,
    uri: Uri | LanceDataset,
    schema: pa.Schema | None = None,
    mode: str = "create",
    *,
    max_rows_per_file: int = MAX_ROWS_PER_FILE,
    max_bytes_per_file: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    data_storage_version: str | None = None,
    enable_stable_row_ids: bool = False,
    commit_message: str | None = None,
    transaction_properties: Mapping[str, str] | None = None,
    **options: Any,
) -> LanceDataset:
    """Create ("create"), extend ("append") or replace ("overwrite") a table with one commit, and open it.

    `data_obj`: pyarrow Table, batch, reader, dataset; pandas frame; dict of columns; list of dicts; iterable of batches with
    `schema`; another LanceDataset. Appending to nothing creates. A column that may hold nulls may be left out of an append.
    A file is closed at `max_rows_per_file` rows or about `max_bytes_per_file` bytes.

    Raises SchemaMismatchError, InputError (nothing was changed), CommitError (see its kinds), StoreError.
    """
    target = uri._snapshot if isinstance(uri, LanceDataset) else uri
    snapshot = write_snapshot(
        data_obj,
        target,
        schema,
        storage_options=storage_options,
        mode=mode,
        max_rows_per_file=max_rows_per_file,
        max_bytes_per_file=max_bytes_per_file,
        data_storage_version=data_storage_version,
        enable_stable_row_ids=enable_stable_row_ids,
        commit_message=commit_message,
        transaction_properties=transaction_properties,
        **options,
    )
    return LanceDataset.from_snapshot(snapshot)
