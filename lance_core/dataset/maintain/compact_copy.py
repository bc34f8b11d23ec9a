"""A compaction that copies pages: for groups of fragments that need no decoding.

::

    compact_files(compaction_mode="try_binary_copy")     copies where it can, encodes the rest again
    compact_files(compaction_mode="force_binary_copy")   InputError where it cannot

It cannot where rows are deleted, where files are of several versions or of 2.0, where a fragment lacks a column (it reads
as null), and where there are blobs. Pages stay as small as they were: many tiny fragments are better encoded again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from lance_core.commit.naming import data_file_name, data_path
from lance_core.dataset.maintain.compact_options import CompactionOptions
from lance_core.dataset.maintain.compact_plan import bytes_of
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.stage import discard_fragments
from lance_core.errors import InputError, LanceError, UnsupportedFeatureError
from lance_core.file.copy_pages import COPYABLE, FilePart, RowRun, copy_pages
from lance_core.format.fragment import Fragment
from lance_core.format.version import FileVersion, parse_storage_version


def copy_group(
    snapshot: Snapshot, group: Sequence[Fragment], options: CompactionOptions, *, attempt: str | None = None
) -> list[Fragment] | None:
    """The group's rows in as few fragments as there can be; None when they have to be encoded again."""
    if options.compaction_mode == "reencode":
        return None
    written: list[Fragment] = []
    try:
        _require_plain(snapshot, group, options)
        for part in _cut(group, options):
            path = data_path(data_file_name(attempt))
            runs = [_run_of(snapshot, fragment) for fragment in part]
            file = copy_pages(runs, snapshot.store, path, snapshot.manifest.schema, snapshot.manifest.file_version)
            written.append(Fragment(0, (file.data_file,), file.num_rows))
    except UnsupportedFeatureError as error:
        discard_fragments(snapshot.store, written)
        if options.compaction_mode == "force_binary_copy":
            raise InputError(
                f"fragments cannot be copied: {error}", cure='Pass compaction_mode="try_binary_copy".'
            ) from error
        return None
    except BaseException:
        with suppress(LanceError, OSError):
            discard_fragments(snapshot.store, written)
        raise
    return written


def _require_plain(snapshot: Snapshot, group: Sequence[Fragment], options: CompactionOptions) -> None:
    version: FileVersion = snapshot.manifest.file_version
    if options.data_storage_version is not None and parse_storage_version(options.data_storage_version) is not version:
        raise UnsupportedFeatureError(f"the table has version {version.text}, not {options.data_storage_version}")
    if version not in COPYABLE:
        raise UnsupportedFeatureError(f"the table has version {version.text}")
    for fragment in group:
        if fragment.deletion_file is not None:
            raise UnsupportedFeatureError(f"fragment {fragment.id} has deleted rows")
        if fragment.overlays:
            raise UnsupportedFeatureError(f"fragment {fragment.id} has overlays")


def _cut(group: Sequence[Fragment], options: CompactionOptions) -> Iterator[list[Fragment]]:
    """Whole fragments, as many as make a file of the target's size."""
    rows = sum(fragment.physical_rows for fragment in group)
    per_file = -(-rows // max(1, rows // options.target_rows_per_fragment))
    part: list[Fragment] = []
    num_rows = size = 0
    for fragment in group:
        if part and options.max_bytes_per_file is not None and size + bytes_of(fragment) > options.max_bytes_per_file:
            yield part
            part, num_rows, size = [], 0, 0
        part.append(fragment)
        num_rows, size = num_rows + fragment.physical_rows, size + bytes_of(fragment)
        if num_rows >= per_file:
            yield part
            part, num_rows, size = [], 0, 0
    if part:
        yield part


def _run_of(snapshot: Snapshot, fragment: Fragment) -> RowRun:
    live = snapshot.manifest.schema.by_id
    parts = []
    for file in fragment.files:
        store, is_root = snapshot.store_of(file.base_id)
        columns = tuple(
            (field, column)
            for field, column in zip(file.fields, file.column_indices, strict=False)
            if field in live and column >= 0
        )
        path = data_path(file.path) if is_root else file.path
        parts.append(FilePart(store, path, file.file_size_bytes or None, columns))
    return RowRun(tuple(parts), fragment.physical_rows)
