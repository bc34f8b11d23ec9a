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

    Args:
        uri: the table's folder, or `folder/tree/branch` for a branch.
        version: a version's number, a tag, or (branch, number) with None for the main line and for the newest; None is the
            newest of the table.
        asof: a time; the newest version that had been committed by then. A time without a zone is UTC.
        storage_options: options of the store, with the official library's names.
        base_store_params: {uri of a base path: its storage options}; other bases take `storage_options`.
        namespace_client: a catalog in which the table has a name; in the place of `uri`, with `table_id`.
        table_id: the table's name there, part by part.
        block_size: accepted, and changes nothing, as sizes of caches and sessions do.
        commit_lock: refused; stores without a conditional put take an external manifest store.

    Raises:
        NotFoundError: there is no such table, version or tag.
        UnsupportedFeatureError: the table needs a newer release.
        CorruptFileError: its manifest is damaged.
        InputError: arguments that contradict each other.
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

    Appending to nothing creates. A column that may hold nulls may be left out of an append.

    Args:
        data_obj: the rows: pyarrow Table, batch, reader, dataset; pandas frame; dict of columns; list of dicts; iterable of
            batches with `schema`; another LanceDataset.
        uri: the table's folder, or a handle on the table.
        schema: of rows that do not tell theirs.
        mode: "create", "append" or "overwrite".
        storage_options: options of the store, with the official library's names.
        max_rows_per_file: rows at which a file is closed; 1,048,576 when left out.
        max_bytes_per_file: bytes at about which a file is closed; 90 GiB when left out.
        data_storage_version: of the files, such as "2.1"; a table that exists keeps its own.
        enable_stable_row_ids: whether a new table's row ids outlive updates and compactions.
        enable_v2_manifest_paths: False lets a new table name its manifests upwards, for stores that list in order.
        auto_cleanup_options: what a new table's commits clean up, and how often.
        commit_message: kept in the version.
        transaction_properties: texts that are kept in the transaction.
        progress: called with what has been written so far.
        initial_bases: further places of a new table's files.
        target_bases: names of the places that the files of this write go to.
        target_all_bases: spread them over all places.
        allow_external_blob_outside_bases: whether uris of blobs may lie outside of the table's places.
        base_store_params: {uri of a place: its storage options}.
        namespace_client: a catalog in which the table has a name; in the place of `uri`, with `table_id`. "create" declares
            a new name, the other modes need one that exists.
        table_id: the table's name there, part by part.

    Raises:
        SchemaMismatchError: the rows do not fit the table; nothing was changed.
        InputError: arguments that contradict each other, or a type that no file can hold; nothing was changed.
        CommitError: others changed the table in the meantime; its kinds tell whether a retry helps.
        StoreError: the store did not answer.
    """
    from lance_core.dataset.edit.insert import write_snapshot

    client, table_id = options.pop("namespace_client", None), options.pop("table_id", None)
    if isinstance(uri, LanceDataset) and client is None and table_id is None:
        return LanceDataset.from_snapshot(write_snapshot(data_obj, uri.snapshot, schema, mode, **options))
    place = uri.uri if isinstance(uri, LanceDataset) else uri
    target, access = located(place, client, table_id, options.get("storage_options"), declare=mode == "create")
    options["storage_options"] = access
    return LanceDataset.from_snapshot(write_snapshot(data_obj, target, schema, mode, **options))
