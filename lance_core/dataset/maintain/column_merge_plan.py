"""Plan a merge of small column files without IO: which data files of a fragment become one, and why the others stay.

::

    files of fragment 3, in MB        900  8  4  2  2  1        at most 4 of them may be left
    merged into one file of 5 MB                 2  2  1        the smallest first; the large ones are not read
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lance_core.dataset.scan.blobs import is_blob
from lance_core.dataset.snapshot.fragment_reader import stored_part
from lance_core.errors import InputError
from lance_core.format.fragment import DataFile, Fragment
from lance_core.format.schema import NO_PARENT, TOMBSTONE, Schema
from lance_core.format.version import FileVersion

MAX_FILES = 16
LARGE_SHARE = 4
"""A file with more than one of so many parts of a fragment's bytes is large."""


@dataclass(frozen=True, slots=True)
class ColumnMergeOptions:
    """A fragment with more data files than `max_files_per_fragment` is due; its smallest files are merged until
    `enough_files` are left (None: as many as it may have)."""

    max_files_per_fragment: int = MAX_FILES
    enough_files: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_files_per_fragment", "enough_files"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} must be at least 1, got {value}")

    @property
    def files_left(self) -> int:
        """How many files a fragment that is due should have afterwards."""
        most = self.max_files_per_fragment
        return most if self.enough_files is None else min(self.enough_files, most)


@dataclass(frozen=True, slots=True)
class ColumnMerge:
    """Some files of a fragment that become one."""

    fragment: Fragment
    files: tuple[DataFile, ...]

    @property
    def num_bytes(self) -> int:
        """Recorded bytes of the files that are read."""
        return sum(file.file_size_bytes or 0 for file in self.files)


@dataclass(frozen=True, slots=True)
class ColumnMergePlan:
    """The merges of version `read_version`, and why fragments with too many files are left alone."""

    read_version: int
    merges: tuple[ColumnMerge, ...]
    skipped: tuple[tuple[int, str], ...] = ()

    @property
    def num_bytes(self) -> int:
        """Recorded bytes of all files that are read; about as many are written."""
        return sum(merge.num_bytes for merge in self.merges)

    @property
    def num_files(self) -> int:
        """Files that are replaced."""
        return sum(len(merge.files) for merge in self.merges)


def plan_column_merges(
    fragments: Sequence[Fragment], schema: Schema, options: ColumnMergeOptions, *, read_version: int
) -> ColumnMergePlan:
    """Choose files for each fragment that has too many. Fragments that have few enough are not mentioned."""
    blobs = frozenset(item.id for item in schema.fields if is_blob(item))
    merges: list[ColumnMerge] = []
    skipped: list[tuple[int, str]] = []
    for fragment in fragments:
        if len(fragment.files) <= options.max_files_per_fragment:
            continue
        reason = _why_left_alone(fragment)
        chosen = () if reason else _choose(fragment, _mergeable(fragment, schema, blobs), options)
        if len(chosen) > 1:
            merges.append(ColumnMerge(fragment, chosen))
        else:
            skipped.append((fragment.id, reason or "its other files hold blobs, or parts of one column"))
    return ColumnMergePlan(read_version, tuple(merges), tuple(skipped))


def _why_left_alone(fragment: Fragment) -> str:
    if any(file.version.is_legacy for file in fragment.files):
        return "its files have version 0.1"
    return "it has overlays" if fragment.overlays else ""


def _mergeable(fragment: Fragment, schema: Schema, blobs: frozenset[int]) -> list[DataFile]:
    """Files without blobs. In files of version 2.0, which list parents, a column must be in one file as a whole."""
    parts = {file.path: stored_part(schema, file) for file in fragment.files}
    holders = _holders(parts)
    return [
        file
        for file in fragment.files
        if blobs.isdisjoint(parts[file.path].ids)
        and (file.version > FileVersion.V2_0 or all(holders[number] == 1 for number in _columns(parts[file.path])))
    ]


def _holders(parts: Mapping[str, Schema]) -> dict[int, int]:
    """Column -> how many files hold some of it."""
    found: dict[int, int] = {}
    for part in parts.values():
        for number in _columns(part):
            found[number] = found.get(number, 0) + 1
    return found


def _columns(part: Schema) -> list[int]:
    return [item.id for item in part.fields if item.parent_id == NO_PARENT]


def _choose(fragment: Fragment, files: Sequence[DataFile], options: ColumnMergeOptions) -> tuple[DataFile, ...]:
    """The smallest files, as many as have to become one; a large one only if the fragment keeps too many without it."""
    total = sum(file.file_size_bytes or 0 for file in fragment.files)
    by_size = sorted(files, key=lambda file: _size(file, total))
    there = len(fragment.files)
    wanted = by_size[: there - options.files_left + 1]
    needed = there - options.max_files_per_fragment + 1
    while len(wanted) > max(needed, 2) and _size(wanted[-1], total) * LARGE_SHARE > total:
        wanted.pop()
    chosen = {file.path for file in wanted}
    return tuple(file for file in fragment.files if file.path in chosen)


def _size(file: DataFile, total: int) -> int:
    """Recorded bytes; a file without a record may be large, unless nothing in it is alive."""
    if all(number == TOMBSTONE for number in file.fields):
        return 0
    return total + 1 if file.file_size_bytes is None else file.file_size_bytes
