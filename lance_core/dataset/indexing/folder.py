"""The folder of an index segment, its files, and the rows it is trained on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import pyarrow as pa

from lance_core.commit.naming import INDEX_CHECKSUMS, INDEX_CHECKSUMS_HINT
from lance_core.dataset.scan.plan import LARGE_BATCH_ROWS, plan_scan
from lance_core.dataset.scan.projection import plan_projection
from lance_core.dataset.scan.sinks import scan
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import LanceError, UnknownIndexError
from lance_core.format.fragment import Fragment
from lance_core.format.index import IndexMetadata
from lance_core.index.base import ID, VALUE, IndexFolder

INDICES = "_indices"


def folder_of(snapshot: Snapshot, index: IndexMetadata) -> IndexFolder:
    """The folder of a segment, which may be in another table."""
    store, _ = snapshot.store_of(index.base_id)
    sizes = {file.path: file.size_bytes for file in index.files}
    return IndexFolder(store, f"{INDICES}/{index.uuid}", sizes, index.details)


def paths_of(index: IndexMetadata) -> tuple[str, ...]:
    """The files of a segment, below the table."""
    names = [file.path for file in index.files] + [INDEX_CHECKSUMS] * (INDEX_CHECKSUMS_HINT in index.metadata)
    return tuple(f"{INDICES}/{index.uuid}/{name}" for name in names)


def training_batches(
    snapshot: Snapshot, column: str, fragments: Sequence[Fragment], id_column: str
) -> Iterator[pa.RecordBatch]:
    """The live rows of fragments as (value, id)."""
    schema = snapshot.manifest.schema
    plan = plan_scan(schema, fragments, plan_projection(schema, [column, id_column]))
    for batch in scan(snapshot, plan, batch_size=LARGE_BATCH_ROWS):
        yield batch.rename_columns([VALUE, ID])


def remove_folder(snapshot: Snapshot, path: str) -> None:
    """Remove what a failed build left. Never fails: what stays is garbage."""
    with suppress(LanceError, OSError):
        for entry in [*snapshot.store.list(f"{path}/")]:
            with suppress(LanceError, OSError):
                snapshot.store.delete(entry.path)


def segments_named(snapshot: Snapshot, name: str) -> tuple[IndexMetadata, ...]:
    """The segments of an index. Raises InputError naming those there are."""
    found = tuple(index for index in snapshot.manifest.indices if index.name == name)
    if not found:
        names = sorted({index.name for index in snapshot.manifest.indices})
        raise UnknownIndexError(f"there is no index named {name!r}", cure=f"Known indices: {', '.join(names) or 'none'}.")
    return found
