"""The files of a table: existing ones, and those that its versions need.

::

    all_files       base_uri, path, size_bytes, last_modified       everything below the table
    tracked_files   version, base_uri, path, type                   what each version's manifest names
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator

import pyarrow as pa

from lance_core.commit import naming
from lance_core.commit.manifests import list_versions, load_manifest
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.format.manifest import Manifest

Progress = Callable[[int, int | None], None]
_TEXT32 = pa.dictionary(pa.int32(), pa.string())
_TEXT8 = pa.dictionary(pa.int8(), pa.string())
_ALL = pa.schema(
    [
        pa.field("base_uri", _TEXT32, nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("last_modified", pa.timestamp("us", "UTC"), nullable=False),
    ]
)
_TRACKED = pa.schema(
    [
        pa.field("version", pa.int64(), nullable=False),
        pa.field("base_uri", _TEXT32, nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("type", _TEXT8, nullable=False),
    ]
)
_BATCH_ROWS = 8192


def all_files(snapshot: Snapshot) -> pa.RecordBatchReader:
    """Every file below the table, without base paths. `last_modified` is UTC."""

    def batches() -> Iterator[pa.RecordBatch]:
        found = [*snapshot.store.list("")]
        for start in range(0, len(found), _BATCH_ROWS):
            part = found[start : start + _BATCH_ROWS]
            times = [dt.datetime.fromtimestamp(item.modified, dt.timezone.utc) for item in part]
            columns = [
                pa.array([snapshot.uri] * len(part), pa.string()).dictionary_encode().cast(_TEXT32),
                pa.array([item.path for item in part], pa.string()),
                pa.array([item.size for item in part], pa.int64()),
                pa.array(times, _ALL.field("last_modified").type),
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=_ALL)

    return pa.RecordBatchReader.from_batches(_ALL, batches())


def tracked_files(
    snapshot: Snapshot, *, min_version: int | None = None, progress: Progress | None = None
) -> pa.RecordBatchReader:
    """Every file that any version (from `min_version` on) names, one row for each version and file."""
    entries = [item for item in list_versions(snapshot.store) if min_version is None or item.version >= min_version]

    def batches() -> Iterator[pa.RecordBatch]:
        for number, entry in enumerate(entries, 1):
            manifest = load_manifest(snapshot.store, entry.version)
            rows = [(snapshot.uri, entry.path, "manifest"), *_files_of(snapshot.uri, manifest)]
            rows.extend(_index_files(Snapshot(snapshot.store, manifest, snapshot.storage_options)))
            bases, paths, kinds = zip(*rows, strict=True)
            columns = [
                pa.array([entry.version] * len(rows), pa.int64()),
                pa.array(bases, pa.string()).dictionary_encode(),
                pa.array(paths, pa.string()),
                pa.array(kinds, pa.string()).dictionary_encode().cast(_TEXT8),
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=_TRACKED)
            if progress is not None:
                progress(number, len(entries))

    return pa.RecordBatchReader.from_batches(_TRACKED, batches())


def _files_of(uri: str, manifest: Manifest) -> Iterator[tuple[str, str, str]]:
    bases = {base.id: base for base in manifest.base_paths}
    if manifest.transaction_file:
        yield uri, naming.transaction_path(manifest.transaction_file), "transaction file"
    for fragment in manifest.fragments:
        for file in fragment.files:
            base = None if file.base_id is None else bases.get(file.base_id)
            path = naming.data_path(file.path) if base is None or base.is_dataset_root else file.path
            yield uri if base is None else base.path, path, "data file"
        deletion = fragment.deletion_file
        if deletion is not None:
            base = None if deletion.base_id is None else bases.get(deletion.base_id)
            path = naming.deletion_path(fragment.id, deletion.read_version, deletion.id, deletion.file_type)
            yield uri if base is None else base.path, path, "deletion file"


def _index_files(snapshot: Snapshot) -> Iterator[tuple[str, str, str]]:
    for index in snapshot.manifest.indices:
        store, _ = snapshot.store_of(index.base_id)
        for entry in store.list(f"{naming.INDICES}/{index.uuid}/"):
            yield store.uri, entry.path, "index file"
