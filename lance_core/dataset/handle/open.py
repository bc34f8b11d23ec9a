"""How a table is opened and written: `dataset()` and `write_dataset()` with the official library's names.

::

    write_dataset(table, "/t.lance")                     create
    write_dataset(more, "/t.lance", mode="append")
    dataset("/t.lance", version=1).count_rows()
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import pyarrow as pa

from lance_core.catalog.interface import TableFinder
from lance_core.dataset.arguments import NotImplementedHere, check_options, written_out
from lance_core.dataset.edit.write_options import WriteOptions
from lance_core.dataset.handle.commit_options import refuse_commit_lock
from lance_core.dataset.handle.dataset import LanceDataset, Uri
from lance_core.dataset.snapshot.snapshot import AsOf, Version
from lance_core.dataset.write.sources import ReaderLike
from lance_core.errors import InputError
from lance_core.io.options import with_base_params
from lance_core.shortage import tells_shortages

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from lance_core.dataset.edit.insert import Mode


class OpenOptions(TypedDict, total=False):
    """Further arguments of `dataset`; sizes of caches and sessions are accepted and change nothing here."""

    base_store_params: Mapping[str, Mapping[str, str]] | None
    metadata_cache_size_bytes: int | None
    index_cache_size_bytes: int | None
    session: Any
    default_scan_options: Annotated[Mapping[str, Any] | None, NotImplementedHere(({},))]
    read_params: Annotated[Mapping[str, Any] | None, NotImplementedHere(({},))]
    namespace_client: TableFinder | None
    table_id: Sequence[str] | None


def located(
    uri: Uri | None,
    client: TableFinder | None,
    table_id: Sequence[str] | None,
    storage_options: Mapping[str, str] | None,
    *,
    declare: bool = False,
) -> tuple[Uri, Mapping[str, str] | None]:
    """A table's uri and options, by its uri or its name in a catalog. InputError for both, for none, and for half a name."""
    if client is None and table_id is None:
        if uri is None:
            raise InputError("no table was named", cure="Pass a uri, or namespace_client and table_id.")
        return uri, storage_options
    if client is None or table_id is None or uri is not None:
        raise InputError(
            "namespace_client and table_id name a table together, in the place of uri",
            cure="Pass either both of them, or uri.",
        )
    from lance_core.catalog.locate import declare_table, find_table

    found = (declare_table if declare else find_table)(client, table_id, storage_options)
    return found.uri, found.storage_options


@tells_shortages
@written_out(OpenOptions)
def dataset(
    uri: Uri | None = None,
    version: Version | None = None,
    asof: AsOf | None = None,
    block_size: int | None = None,
    commit_lock: None = None,
    index_cache_size: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    **options: "Unpack[OpenOptions]",
) -> LanceDataset:
    """Open a table: the newest version, a version or tag, or the newest one not younger than `asof`.

    `base_store_params`: {uri of a base path: its storage options}; other bases take `storage_options`.
    `namespace_client` and `table_id` name the table in a catalog, in the place of `uri`.

    Raises NotFoundError (no table, version or tag), UnsupportedFeatureError, CorruptFileError, InputError.
    """
    refuse_commit_lock("dataset", commit_lock)
    check_options("dataset", options, OpenOptions)
    place, given = located(uri, options.get("namespace_client"), options.get("table_id"), storage_options)
    access = with_base_params(given, options.get("base_store_params"))
    return LanceDataset(place, version, storage_options=access, asof=asof)


@tells_shortages
@written_out(WriteOptions)
def write_dataset(
    data_obj: ReaderLike,
    uri: Uri | LanceDataset | None = None,
    schema: pa.Schema | None = None,
    mode: "Mode" = "create",
    **options: "Unpack[WriteOptions]",
) -> LanceDataset:
    """Create ("create"), extend ("append") or replace ("overwrite") a table with one commit, and open it.

    `data_obj`: pyarrow Table, batch, reader, dataset; pandas frame; dict of columns; list of dicts; iterable of batches with
    `schema`; another LanceDataset. Appending to nothing creates. A column that may hold nulls may be left out of an append.
    A file is closed at `max_rows_per_file` rows or about `max_bytes_per_file` bytes. `namespace_client` and `table_id` name
    the table in a catalog, in the place of `uri`: "create" declares a new name, the other modes need one that exists.

    Raises SchemaMismatchError, InputError (nothing was changed), CommitError (see its kinds), StoreError.
    """
    from lance_core.dataset.edit.insert import write_snapshot

    client, table_id = options.pop("namespace_client", None), options.pop("table_id", None)
    if isinstance(uri, LanceDataset) and client is None and table_id is None:
        return LanceDataset.from_snapshot(write_snapshot(data_obj, uri.snapshot, schema, mode, **options))
    place = uri.uri if isinstance(uri, LanceDataset) else uri
    target, access = located(place, client, table_id, options.get("storage_options"), declare=mode == "create")
    options["storage_options"] = access
    return LanceDataset.from_snapshot(write_snapshot(data_obj, target, schema, mode, **options))
