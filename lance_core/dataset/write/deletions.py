"""Write deletion files for the rows that an edit removes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from lance_core.arrays import Ints
from lance_core.commit.deletion_files import deletion_file_path, write_deletions
from lance_core.dataset.snapshot.deletion_vectors import read_deleted
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.base_paths import WriteTarget
from lance_core.dataset.write.retry import remove_files
from lance_core.dataset.write.stage import discard_fragments
from lance_core.errors import (
    LanceError,
)
from lance_core.format.fragment import Fragment
from lance_core.format.fragments import FragmentList
from lance_core.io.pool import in_io_pool, io_pool
from lance_core.io.threads import Threads, settled


@dataclass(frozen=True)
class Deletions:
    """Fragments with new deletion files, ids of those that lose their last row, files written, rows deleted."""

    updated: tuple[Fragment, ...]
    removed: tuple[int, ...]
    files: tuple[str, ...]
    num_rows: int


def stage_deletions(snapshot: Snapshot, gone: Mapping[int, Ints], *, attempt: str | None = None) -> Deletions:
    """Write the deletion files that delete `gone` (physical offsets of live rows, by fragment id)."""
    touched = FragmentList.of(snapshot.manifest.fragments).pick({number for number, found in gone.items() if len(found)})
    merged = {number: _joined(read_deleted(snapshot, item), gone[number]) for number, item in touched.items()}
    emptied = tuple(number for number, item in touched.items() if len(merged[number]) == item.physical_rows)
    left = [item for number, item in touched.items() if number not in emptied]

    def write(fragment: Fragment) -> Fragment:
        rows = merged[fragment.id]
        file = write_deletions(snapshot.store, fragment.id, rows, read_version=snapshot.version, attempt=attempt)
        return replace(fragment, deletion_file=file)

    updated = _at_once(snapshot.store.uri, write, left)
    files = tuple(deletion_file_path(item.id, item.deletion_file) for item in updated if item.deletion_file is not None)
    return Deletions(tuple(updated), emptied, files, sum(len(offsets) for offsets in gone.values()))


def stage_both(
    snapshot: Snapshot,
    gone: Mapping[int, Ints],
    write: Callable[[], list[Fragment]],
    *,
    attempt: str | None = None,
    places: Sequence[WriteTarget] = (),
) -> tuple[Deletions, list[Fragment]]:
    """`stage_deletions` while `write` writes new fragments: both mostly wait. When one fails, both are undone."""
    with Threads(max_workers=1, thread_name_prefix="lance-delete") as beside:
        marking = beside.submit(stage_deletions, snapshot, gone, attempt=attempt)
        try:
            fragments = write()
        except BaseException:
            with suppress(LanceError, OSError):
                remove_files(snapshot, marking.result().files)
            raise
        try:
            return marking.result(), fragments
        except BaseException:
            discard_fragments(snapshot.store, fragments, places)
            raise


def _at_once(uri: str, write: Callable[[Fragment], Fragment], fragments: Sequence[Fragment]) -> list[Fragment]:
    """`write` of each, at once: making a file durable is waiting. None is being written any more when this returns."""
    if len(fragments) < 2 or in_io_pool():
        return [write(fragment) for fragment in fragments]
    futures = [io_pool(uri).submit(write, fragment) for fragment in fragments]
    settled(futures)
    return [future.result() for future in futures]


def _joined(deleted: Ints, offsets: Ints) -> Ints:
    """Both, sorted; rows that were deleted are not deleted again, so nothing is in both."""
    if len(deleted) == 0:
        return offsets
    return np.sort(np.concatenate([deleted, offsets]), kind="stable")
