"""How a table is opened and written: `dataset()` and `write_dataset()` with the official library's names.

::

    write_dataset(table, "/t.lance")                     create
    write_dataset(more, "/t.lance", mode="append")
    dataset("/t.lance", version=1).count_rows()
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from lance_core.dataset.edit.insert import write_snapshot
from lance_core.dataset.handle.dataset import LanceDataset, Uri
from lance_core.dataset.options import OPEN_HINTS, OPEN_REFUSED, check_options
from lance_core.dataset.snapshot.snapshot import AsOf, Version
from lance_core.dataset.write.stage import MAX_ROWS_PER_FILE
from lance_core.io.options import with_base_params


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

    `base_store_params`: {uri of a base path: its storage options}; other bases take `storage_options`.

    Raises NotFoundError (no table, version or tag), UnsupportedFeatureError, CorruptFileError, InputError.
    """
    check_options("dataset", {"commit_lock": commit_lock, **options}, hints=OPEN_HINTS, refused=OPEN_REFUSED)
    access = with_base_params(storage_options, options.get("base_store_params"))
    return LanceDataset(uri, version, storage_options=access, asof=asof)


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
    target = uri.snapshot if isinstance(uri, LanceDataset) else uri
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
