"""`write_dataset`: create, append to, or overwrite a table with one commit.

::

    write_dataset(table, "/t.lance")                      version 1; InputError when there is a table already
    write_dataset(more, "/t.lance", mode="append")        version 2
    write_dataset(other, "/t.lance", mode="overwrite")    version 3, its schema may differ

Files are staged first; when anything fails before the commit they are removed and the table is as it was.
"""

from __future__ import annotations

import os
import uuid as uuids
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from lance_core.arrow import check_compatible, schema_from_arrow
from lance_core.commit.backoff import DEFAULT_MAX_RETRIES
from lance_core.commit.loop import commit_transaction
from lance_core.commit.manifests import OpenVersion, open_newest
from lance_core.dataset.arguments import check_options
from lance_core.dataset.columns.declared_rules import refuse_values
from lance_core.dataset.edit.write_options import WriteOptions
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.versions.auto_cleanup import after_commit
from lance_core.dataset.write.base_paths import WriteTarget, as_bases, choose_targets
from lance_core.dataset.write.legacy_dictionaries import with_dictionaries
from lance_core.dataset.write.sources import DataSource, open_source
from lance_core.dataset.write.stage import MAX_ROWS_PER_FILE, discard_fragments, stage_fragments
from lance_core.dataset.write.write_progress import FragmentProgress, Progress
from lance_core.errors import CommitStateUnknownError, InputError, LanceError
from lance_core.file.blob.external import BASES_ONLY, ExternalUris
from lance_core.format.fragment import Fragment
from lance_core.format.manifest import BasePath, Manifest
from lance_core.format.schema import Schema, unusable_name
from lance_core.format.version import FileVersion, parse_storage_version
from lance_core.io.local.deferred_sync import syncing_later
from lance_core.io.options import with_base_params
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.table.draft import TableOptions
from lance_core.table.operations.append import Append
from lance_core.table.operations.overwrite import Overwrite
from lance_core.table.transaction import Transaction

if TYPE_CHECKING:
    from typing_extensions import Unpack

Mode = Literal["create", "append", "overwrite"]
COMMIT_MESSAGE = "__lance_commit_message"
_MODES = ("create", "append", "overwrite")


@dataclass(frozen=True)
class WriteRequest:
    """The arguments of a write, checked as far as that goes without looking at the table."""

    mode: Mode
    max_rows_per_file: int
    max_bytes_per_file: int | None
    version: FileVersion | None
    stable_row_ids: bool
    properties: Mapping[str, str]
    config: Mapping[str, str]
    progress: Progress | None
    initial_bases: tuple[BasePath, ...] = ()
    target_bases: tuple[str, ...] = ()
    target_all_bases: bool | None = None
    v1_names: bool = False
    allow_external_blobs: bool = False


def parse_request(mode: str = "create", **options: Unpack[WriteOptions]) -> WriteRequest:
    """The options of `write_dataset`. Raises InputError for a value that is wrong or an option that is not implemented."""
    check_options("write_dataset", options, WriteOptions)
    if options.get("namespace_client") is not None or options.get("table_id") is not None:
        raise InputError(
            "this write takes no table_id", cure="Open the table with dataset(namespace_client=..., table_id=...) first."
        )
    if mode not in _MODES:
        raise InputError(f"unknown mode {mode!r}", cure=f"Use one of {', '.join(_MODES)}.")
    progress, commit_message = options.get("progress"), options.get("commit_message")
    rows, storage = options.get("max_rows_per_file"), options.get("data_storage_version")
    if progress is not None and not callable(progress) and not isinstance(progress, FragmentProgress):
        raise InputError(
            "progress must be a function of a WriteProgress, or a FragmentWriteProgress", cure="Or leave it out."
        )
    message = {} if commit_message is None else {COMMIT_MESSAGE: commit_message}
    return WriteRequest(
        mode=mode,  # type: ignore[arg-type]
        max_rows_per_file=MAX_ROWS_PER_FILE if rows is None else rows,
        max_bytes_per_file=options.get("max_bytes_per_file"),
        version=None if storage is None else parse_storage_version(storage),
        stable_row_ids=bool(options.get("enable_stable_row_ids")),
        properties={**(options.get("transaction_properties") or {}), **message},
        config=_cleanup_config(options.get("auto_cleanup_options")),
        progress=progress,
        initial_bases=as_bases(options.get("initial_bases")),
        target_bases=tuple(options.get("target_bases") or ()),
        target_all_bases=options.get("target_all_bases"),
        v1_names=options.get("enable_v2_manifest_paths") is False,
        allow_external_blobs=bool(options.get("allow_external_blob_outside_bases")),
    )


def _cleanup_config(options: Mapping[str, Any] | None) -> dict[str, str]:
    """Table configuration that other libraries' auto cleanup heeds."""
    if options is None:
        return {}
    unknown = set(options) - {"interval", "older_than_seconds"}
    if unknown:
        raise InputError(f"unknown auto_cleanup_options {sorted(unknown)}", cure="Known: interval, older_than_seconds.")
    config = {}
    if "interval" in options:
        config["lance.auto_cleanup.interval"] = str(int(options["interval"]))
    if "older_than_seconds" in options:
        config["lance.auto_cleanup.older_than"] = f"{int(options['older_than_seconds'])}s"
    return config


def write_snapshot(
    data: Any,
    target: str | os.PathLike[str] | Snapshot,
    schema: pa.Schema | None = None,
    mode: str = "create",
    **options: Unpack[WriteOptions],
) -> Snapshot:
    """Write and commit; the new version. `target` as a snapshot is the version the write is planned on."""
    request = parse_request(mode, **options)
    params, storage_options = options.get("base_store_params"), options.get("storage_options")
    opened = None
    if isinstance(target, Snapshot):
        store: Store = target.store
        current: Manifest | None = target.manifest
        access = with_base_params(target.storage_options if storage_options is None else storage_options, params)
    else:
        store = resolve_store(target, storage_options)
        access = with_base_params(storage_options, params)
        opened = open_newest(store)
        current = None if opened is None else opened.manifest
    places = places_for(store, current, request, access)
    with syncing_later(store) as place:
        external = external_uris(current, request, access)
        source = open_source(data, schema)
        transaction, fragments = stage_write(place, current, source, request, places=places, external=external)
        created = table_options(request)
        manifest = commit_or_discard(place, transaction, fragments, options=created, places=places, opened=opened)
    return after_commit(Snapshot(store, manifest, access))


def table_options(request: WriteRequest) -> TableOptions:
    """What a table that this write creates is born with."""
    return TableOptions(
        data_storage_version=None if request.version is None else request.version.text,
        stable_row_ids=request.stable_row_ids,
        v1_manifest_names=request.v1_names,
    )


def places_for(
    store: Store, current: Manifest | None, request: WriteRequest, storage_options: Mapping[str, str] | None
) -> tuple[WriteTarget, ...]:
    """Where the files of a write go. InputError for new bases on an existing table, and for unknown targets."""
    if current is not None and request.initial_bases:
        raise InputError(
            "initial_bases can only be passed when a table is created", cure="Register further bases with add_bases."
        )
    return choose_targets(
        store,
        request.initial_bases if current is None else current.base_paths,
        targets=request.target_bases,
        target_all=request.target_all_bases,
        storage_options=storage_options,
        is_new=current is None,
    )


def external_uris(
    current: Manifest | None, request: WriteRequest, storage_options: Mapping[str, str] | None
) -> ExternalUris:
    """Which uris of blobs this write may store."""
    bases = request.initial_bases if current is None else current.base_paths
    return ExternalUris.of(bases, storage_options, allow=request.allow_external_blobs)


def stage_write(
    store: Store,
    current: Manifest | None,
    source: DataSource,
    request: WriteRequest,
    *,
    places: tuple[WriteTarget, ...] = (),
    external: ExternalUris = BASES_ONLY,
) -> tuple[Transaction, list[Fragment]]:
    """Write the data as unseen files and describe the commit. `current` is the version it is planned on, None: no table."""
    if current is not None and request.mode == "create":
        raise InputError(
            f"there is already a table at {store.uri}", uri=store.uri, cure='Use mode="append" or mode="overwrite".'
        )
    read_version = 0 if current is None else current.version
    schema, version = _plan(current, source.schema, request)
    fragments = stage_fragments(
        store,
        _checked(source.batches),
        schema,
        version=version,
        max_rows_per_file=request.max_rows_per_file,
        max_bytes_per_file=request.max_bytes_per_file,
        progress=request.progress,
        places=places,
        external=external,
    )
    operation: Append | Overwrite
    if version.is_legacy and (current is None or request.mode != "append"):
        try:
            schema = with_dictionaries(store, fragments, schema)
        except BaseException:
            discard_fragments(store, fragments, places)
            raise
    if current is not None and request.mode == "append":
        operation = Append(tuple(fragments))
    else:
        operation = Overwrite(
            tuple(fragments), schema, config_upsert_values=request.config, initial_bases=request.initial_bases
        )
    return Transaction(read_version, str(uuids.uuid4()), operation, properties=request.properties), fragments


def _plan(current: Manifest | None, data: pa.Schema, request: WriteRequest) -> tuple[Schema, FileVersion]:
    """The schema to write with, and the storage version."""
    kept = None if current is None else current.file_version
    version = request.version or kept or parse_storage_version(None)
    found = schema_from_arrow(data, version=version)
    if current is None or request.mode == "overwrite":
        for item in found.top_level:
            if why := unusable_name(item.name):
                raise InputError(why, cure="Rename it in the rows.")
        return found, version
    if kept is not None and kept.is_legacy != version.is_legacy:
        raise InputError(
            f"the table has storage version {kept.text}, which cannot be mixed with {version.text}",
            cure="Omit data_storage_version.",
        )
    refuse_values(current.schema, (item.name for item in found.top_level))
    return check_compatible(current.schema, found), version


def _checked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if not isinstance(batch, pa.RecordBatch):
            raise InputError(f"expected record batches, got {type(batch).__name__}")
        yield batch


def commit_or_discard(
    store: Store,
    transaction: Transaction,
    fragments: list[Fragment],
    *,
    options: TableOptions | None = None,
    max_retries: int = DEFAULT_MAX_RETRIES,
    places: tuple[WriteTarget, ...] = (),
    opened: OpenVersion | None = None,
) -> Manifest:
    """Commit what was staged; when it certainly was not committed its files are removed."""
    try:
        return commit_transaction(store, transaction, options=options, max_retries=max_retries, opened=opened)
    except CommitStateUnknownError:
        raise
    except LanceError:  # anything else may have come behind the put
        discard_fragments(store, fragments, places)
        raise
