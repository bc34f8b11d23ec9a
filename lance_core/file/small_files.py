"""Flat columns of many small files at once: each file is one read, all of them are parsed and decoded together.

::

    10,000 files of 4 KB     read whole, one behind the other     |file 0|file 1|file 2|…
    footers, column tables   one gather each over all files
    column metadata          decoded once for each distinct bytes: files of one writer repeat them
    values                   one call of the codec for all files whose pages are described alike

A file that is not so simple (several pages, lists, a dictionary, an old version, damage) is left over, to be read
separately.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrays import Ints
from lance_core.errors import CorruptFileError, LanceError
from lance_core.fetch import ByteRange
from lance_core.file.convert.assemble import leaf_array
from lance_core.file.convert.tree import LeafNode
from lance_core.file.error_location import located
from lance_core.file.metadata import FOOTER, MAGIC, TABLE_ENTRY_SIZE
from lance_core.file.to_user_types import finish
from lance_core.format.layout import ConstantLayout, MiniBlockLayout
from lance_core.format.version import FileVersion
from lance_core.io.pool import in_io_pool, io_pool
from lance_core.io.store import Store
from lance_core.pages.read.several_pages import AlikePages, can_join, scan_alike
from lance_core.wire.columns import decode_column

MAX_FILE_SIZE = 64 << 10
"""Larger files are worth opening one by one."""

_VERSIONS = frozenset(version.footer_numbers for version in (FileVersion.V2_1, FileVersion.V2_2))


@dataclass(frozen=True, slots=True)
class SmallFile:
    """A file to read: path, size in bytes, rows, and the column of each wanted field, in the order of the fields."""

    path: str
    size: int
    num_rows: int
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class SmallFilesBatch:
    """Rows of the files at positions `files`, one file after the other: an array for each wanted field."""

    files: Ints
    arrays: tuple[pa.Array[Any], ...]


@dataclass(frozen=True, slots=True)
class _Described:
    """What column metadata says: the layout, without what differs between alike pages, and where the buffers are."""

    layout: MiniBlockLayout | ConstantLayout
    num_rows: int
    buffers: tuple[int, int, int, int]


def read_together(
    store: Store, files: Sequence[SmallFile], leaves: Sequence[LeafNode], types: Sequence[pa.DataType]
) -> tuple[list[SmallFilesBatch], list[int]]:
    """All rows of some flat columns of many files, and the positions of files that have to be read by themselves.

    `leaves` are the wanted fields, `types` what their arrays become. Raises NotFoundError, StoreError; damage is not told
    here: such files are among those left over.
    """
    blob = b"".join(_get_all(store, files))
    data = np.frombuffer(blob, np.uint8)
    sizes = np.array([file.size for file in files], np.int64)
    starts = np.cumsum(sizes) - sizes
    good, metadata = _column_tables(data, starts, sizes, np.array([file.columns for file in files], np.int64))
    known: dict[bytes, _Described | None] = {}
    kinds: dict[Any, int] = {}
    groups: dict[tuple[int, ...], list[int]] = {}
    described: dict[int, list[_Described]] = {}
    for position, ranges in zip(good.tolist(), metadata.tolist(), strict=True):
        found = _describe(blob, ranges, files[position], known)
        if found is not None:
            described[position] = found
            key = tuple([kinds.setdefault(item.layout, len(kinds)) for item in found])
            groups.setdefault(key, []).append(position)
    result = []
    for members in groups.values():
        made = _decode(data, starts, sizes, members, described, leaves, types)
        if made is not None:
            result.append(made)
    done = {position for item in result for position in item.files.tolist()}
    return result, [position for position in range(len(files)) if position not in done]


def _get_all(store: Store, files: Sequence[SmallFile]) -> Sequence[Any]:
    def get(file: SmallFile) -> Any:
        return store.get_ranges(file.path, [ByteRange(0, file.size)])[0]

    if store.is_local or in_io_pool():
        return [get(file) for file in files]
    return list(io_pool(store.uri).map(get, files))


def _column_tables(
    data: npt.NDArray[np.uint8], starts: Ints, sizes: Ints, columns: npt.NDArray[np.int64]
) -> tuple[Ints, npt.NDArray[np.int64]]:
    """Positions of files whose footer and column table make sense; where in `data` each wanted column's metadata is."""
    kept = np.flatnonzero(sizes >= FOOTER.size)
    tails = data[(starts + sizes - FOOTER.size)[kept, None] + np.arange(FOOTER.size)]
    places = np.ascontiguousarray(tails[:, 8:24]).view("<u8")
    num_columns = np.ascontiguousarray(tails[:, 28:32]).view("<u4")[:, 0].astype(np.int64)
    versions = np.ascontiguousarray(tails[:, 32:36]).view("<u2")
    sound = (tails[:, 36:40] == np.frombuffer(MAGIC, np.uint8)).all(axis=1)
    sound &= np.array([tuple(item) in _VERSIONS for item in versions.tolist()], np.bool_)
    ends = (sizes[kept] - FOOTER.size).astype(np.uint64)
    sound &= (places[:, 0] <= places[:, 1]) & (places[:, 1] <= ends)
    room = np.where(sound, places[:, 1] - places[:, 0], np.uint64(0)).astype(np.int64)
    sound &= (num_columns * TABLE_ENTRY_SIZE <= room) & (columns[kept] < num_columns[:, None]).all(axis=1)
    kept, places = kept[sound], places[sound].astype(np.int64)
    entries = (starts[kept] + places[:, 0])[:, None] + columns[kept] * TABLE_ENTRY_SIZE
    stored = np.ascontiguousarray(data[entries[:, :, None] + np.arange(TABLE_ENTRY_SIZE)]).view("<u8")
    limit = sizes[kept].astype(np.uint64)[:, None, None]
    fits = (stored <= limit).all(axis=(1, 2)) & (stored.sum(axis=2, dtype=np.uint64) <= limit[:, :, 0]).all(axis=1)
    kept, ranges = kept[fits], stored[fits].astype(np.int64)
    ranges[:, :, 0] += starts[kept, None]
    ranges[:, :, 1] += ranges[:, :, 0]
    return kept, ranges


def _describe(
    blob: bytes, ranges: Sequence[Sequence[int]], file: SmallFile, known: dict[bytes, _Described | None]
) -> list[_Described] | None:
    """The pages of one file's wanted columns; None when it must be read separately."""
    found = []
    for start, end in ranges:
        raw = blob[start:end]
        try:
            one = known[raw]
        except KeyError:
            one = known[raw] = _described(raw)
        if one is None or one.num_rows != file.num_rows:
            return None
        found.append(one)
    return found


def _described(raw: bytes) -> _Described | None:
    try:
        with located("small files"):
            column = decode_column(raw)
    except LanceError:
        return None
    if len(column.pages) != 1 or column.encoding is not None:
        return None
    page = column.pages[0]
    layout = page.layout
    if not can_join(layout, len(page.buffers)) or not isinstance(layout, (MiniBlockLayout, ConstantLayout)):
        return None
    if isinstance(layout, ConstantLayout):
        return _Described(layout, page.num_rows, (0, 0, 0, 0))
    if layout.num_items != page.num_rows or page.num_rows < 1:
        return None
    words, chunks = page.buffers
    buffers = (words.start, words.size, chunks.start, chunks.size)
    return _Described(replace(layout, num_items=0), page.num_rows, buffers)


def _decode(
    data: npt.NDArray[np.uint8],
    starts: Ints,
    sizes: Ints,
    members: Sequence[int],
    described: Mapping[int, Sequence[_Described]],
    leaves: Sequence[LeafNode],
    types: Sequence[pa.DataType],
) -> SmallFilesBatch | None:
    """The columns of files that are described alike; None when anything is wrong with any of them."""
    positions = np.array(members, np.int64)
    num_rows = np.array([described[position][0].num_rows for position in members], np.int64)
    arrays = []
    try:
        with located("small files"):
            for number, (leaf, target) in enumerate(zip(leaves, types, strict=True)):
                places = np.array([described[position][number].buffers for position in members], np.int64)
                pages = _placed(places, starts[positions], sizes[positions], num_rows)
                decoded = scan_alike(described[members[0]][number].layout, pages, data)
                arrays.append(finish(leaf_array(decoded, leaf), target))
    except LanceError:
        return None
    return SmallFilesBatch(positions, tuple(arrays))


def _placed(places: npt.NDArray[np.int64], starts: Ints, sizes: Ints, num_rows: Ints) -> AlikePages:
    words, word_sizes, chunks, chunk_sizes = places.T
    if (places < 0).any() or (words + word_sizes > sizes).any() or (chunks + chunk_sizes > sizes).any():
        raise CorruptFileError("a buffer is outside its file")
    return AlikePages(words + starts, word_sizes, chunks + starts, chunk_sizes, num_rows)
