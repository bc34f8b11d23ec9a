"""`write_fragments`: fragments for a separate commit, like the official library's `lance.fragment.write_fragments`.

::

    fragments = write_fragments(table, "/t.lance")                          unseen files, nothing committed
    LanceDataset.commit("/t.lance", Append(tuple(fragments)), read_version=3)
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_core.commit.manifests import open_newest
from lance_core.dataset.arguments import written_out
from lance_core.dataset.edit.insert import external_uris, parse_request, places_for, stage_write
from lance_core.dataset.edit.write_options import WriteOptions
from lance_core.dataset.handle.protocol import TableHandle
from lance_core.dataset.write.sources import ReaderLike, open_source
from lance_core.errors import InputError
from lance_core.format.fragment import Fragment
from lance_core.format.manifest import Manifest
from lance_core.io.options import with_base_params
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.table.transaction import Transaction

if TYPE_CHECKING:
    from typing_extensions import Unpack

_ALL = 1 << 62


@written_out(WriteOptions)
def write_fragments(
    data: ReaderLike,
    dataset_uri: str | os.PathLike[str] | TableHandle,
    schema: pa.Schema | None = None,
    *,
    return_transaction: bool = False,
    mode: str = "append",
    **options: Unpack[WriteOptions],
) -> list[Fragment] | Transaction:
    """Write rows as fragments with id 0 that no version has yet; with `return_transaction` the transaction to commit.

    Options as for `write_dataset`. Files that are never committed are garbage: they belong to no version.
    Raises SchemaMismatchError, InputError.
    """
    request = parse_request(mode, **options)
    params, storage_options = options.get("base_store_params"), options.get("storage_options")
    if isinstance(dataset_uri, TableHandle):
        store: Store = dataset_uri.snapshot.store
        current: Manifest | None = dataset_uri.snapshot.manifest
        access = dataset_uri.snapshot.storage_options if storage_options is None else storage_options
    else:
        store, access = resolve_store(dataset_uri, storage_options), storage_options
        newest = open_newest(store)
        current = None if newest is None else newest.manifest
    places = places_for(store, current, request, with_base_params(access, params))
    external = external_uris(current, request, access)
    source = open_source(data, schema)
    transaction, fragments = stage_write(store, current, source, request, places=places, external=external)
    return transaction if return_transaction else fragments


def write_one_fragment(
    data: ReaderLike,
    dataset_uri: str | os.PathLike[str],
    schema: pa.Schema | None = None,
    *,
    fragment_id: int | None = None,
    mode: str = "append",
    **options: Unpack[WriteOptions],
) -> Fragment:
    """Write all rows as one fragment that no version has yet. InputError when there are none."""
    mode = "append" if mode == "append" else "overwrite"
    whole: WriteOptions = {**options, "max_rows_per_file": _ALL, "max_bytes_per_file": _ALL}
    made = write_fragments(data, dataset_uri, schema, mode=mode, **whole)
    if not isinstance(made, list) or len(made) != 1:
        raise InputError("the data has no rows, so no fragment can be written")
    return made[0] if fragment_id is None else replace(made[0], id=fragment_id)
