"""What is read together: the pages of a column whose rows one request and one pass over their bytes find.

::

    rows 3, 900 of page 0, row 12 of page 1, ...

    lists, all chunks known          one table of the chunks of the whole column (`few_lists`)
    lists, chunks of these known     one walk over their levels (`lists`)
    flat, chunks of these known      each value by itself (`several_pages`)
    zipped, whatever is known        row indices of all pages, then rows of all pages (`fullzip`)
    every row of neighbours          one decode of all, for lists (`several_pages`)
    anything else                    a page by itself

A column is cut into as many pages as its writer liked, and what Python does for each page is what a read of some rows costs.
Pages are read together when their descriptions are the same but for what they count.

One literal table from layout to page reader, and the entry point for reading pages.

Reading (sans-IO; drive with `fetch.run_fetch` or `io.drive`)::

    index = yield from load(page)                       chunk table, repetition index, dictionary; immutable, cacheable
    leaf  = yield from read(page, index, rows)          rows: RowSelection within the page
    leaf  = yield from scan(page)                       load + read of every row in one round, one range per buffer

`read` asks once (mini-block, constant) or at most twice (full-zip with lists or variable width: row index entries, then
rows). A reader that wants nothing yields nothing. Errors are CorruptFileError / UnsupportedEncodingError without the
file's name; the caller adds file, column and page.

Writing is in `encode`::

    built  = repdef.build_levels(steps, num_rows)       levels, layers and which leaf slots are visible
    leaf   = Leaf(values of the visible slots, built.rep, built.def_, built.layers, built.num_rows)
    pages  = encode.encode_pages(leaf, options)         list of EncodedPage(layout, buffers, num_rows)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from lance_core.arrays import Ints
from lance_core.cached import cached_property
from lance_core.codecs.dispatch import Codecs
from lance_core.codecs.registry import CODECS
from lance_core.errors import CorruptFileError, UnsupportedEncodingError
from lance_core.fetch import Fetch
from lance_core.format.layout import BlobLayout, ConstantLayout, FullZipLayout, MiniBlockLayout, Page, SparseLayout
from lance_core.pages.chunks import ChunkTable
from lance_core.pages.leaf import Leaf
from lance_core.pages.read import blob, constant, fullzip, miniblock, sparse
from lance_core.pages.read.few_lists import FEW_ROWS, ColumnChunks, column_chunks, few_of_pages, read_column
from lance_core.pages.read.few_values import RowValues, can_read_row, can_read_zipped, read_row_values, read_zipped_values
from lance_core.pages.read.lists import PageRows, are_alike, can_join, read_lists
from lance_core.pages.read.several_pages import are_pickable, groups, read_picked, scan_lists
from lance_core.pages.rows import RowSelection, cut_at, row_parts, scale

FEW_PAGES = 3
"""Rows of lists of so many pages are read page by page."""
_MANY_PAGES = 16
"""For each range of rows so many pages are checked, whether all of them are known."""
_FEW_IN_ALL = 8
"""One row among this many of a column is one of few."""
_FEW = 64
"""One row among this many values of its pages is one of few."""
_FEW_ZIPPED = 64
"""Up to so many rows of each zipped page are read with those of others; of more, each page keeps a thread busy."""

_WHOLE = object()

Part = tuple[int, RowSelection]
"""A page, and rows of it as it counts them."""


class IndexCache(Protocol):
    """Where what random access needs is kept."""

    def get(self, key: Hashable) -> Any | None:
        """What was put, or None."""
        ...

    def put(self, key: Hashable, value: Any, size: int) -> None:
        """Keep a value of so many bytes."""
        ...


class PageRead(NamedTuple):
    """A reader of some pages; `numbers` says which, for errors."""

    numbers: Callable[[], Sequence[int]]
    fetch: Fetch[list[Leaf]]


class ValueRead(NamedTuple):
    """The same of a few rows, each value by itself."""

    numbers: Callable[[], Sequence[int]]
    fetch: Fetch[RowValues]


@dataclass(frozen=True, eq=False)
class ColumnPages:
    """The pages of one column. `scale` items of the column make one row of the file.

    `starts[i]` is the first row of page i; the last entry is the number of rows. Indices of pages are kept in `cache`
    under (*key, page).
    """

    pages: Sequence[Page]
    starts: Ints
    scale: int
    cache: IndexCache
    key: tuple[object, ...]

    def parts(self, window: RowSelection) -> Iterator[Part]:
        """Every page with selected rows, in order."""
        if not len(window.starts):
            return
        first = int(np.searchsorted(self.starts, window.starts[0], side="right")) - 1
        last = int(np.searchsorted(self.starts, window.ends[-1], side="left"))
        for number, rows in cut_at(window, self.starts[first : last + 1]):
            yield first + number, scale(rows, self.scale)

    def reads(self, window: RowSelection) -> Iterator[PageRead]:
        """Readers of the window's rows, in order; all may run at once."""
        column = self._known_column(window)
        if column is not None:
            numbers = partial(_numbers_of, self.parts(window))
            yield PageRead(numbers, self._one(read_column(column, scale(window, self.scale), CODECS)))
            return
        parts = [*self.parts(window)]
        together = self._together(parts) if len(parts) > 1 else None
        if together is not None:
            yield PageRead(partial(_numbers_of, parts), self._one(together))
            return
        for kind, run in groupby(parts, key=self._kind_of_part):
            if kind is _WHOLE:
                yield from map(self._whole, self._whole_groups([number for number, _ in run]))
            elif kind is None:
                yield from (PageRead(partial(_numbers_of, [part]), self._one(self._some(*part))) for part in run)
            else:
                yield self._zipped([*run])

    def value_reads(self, rows: Sequence[int]) -> list[ValueRead] | None:
        """Readers of few ascending rows value by value; None where a page has no such way, or is read whole."""
        parts = row_parts(self.starts, rows)
        for number, own in parts:
            page = self.pages[number]
            if len(own) == page.num_rows or not has_row_values(page.layout):
                return None
        if len(parts) == 1:
            return [ValueRead(partial(_just, number), self._values(number, own)) for number, own in parts]
        reads: list[ValueRead] = []
        for kind, run in groupby(parts, key=lambda part: self._zipped_kinds[part[0]]):
            if kind is None:
                reads += (ValueRead(partial(_just, number), self._values(number, own)) for number, own in run)
            else:
                numbers, rows_of = zip(*run, strict=True)
                pages = [self.pages[number] for number in numbers]
                reads.append(ValueRead(partial(list, numbers), read_zipped_values(pages, rows_of, CODECS)))
        return reads

    def _one(self, fetch: Fetch[Leaf]) -> Fetch[list[Leaf]]:
        leaf = yield from fetch
        return [leaf]

    def _some(self, number: int, rows: RowSelection) -> Fetch[Leaf]:
        """Some rows of one page."""
        page = self.pages[number]
        index = yield from self._index(number, page)
        return (yield from read(page, index, rows))

    def _whole(self, numbers: Sequence[int]) -> PageRead:
        """Every row of some neighbouring pages."""
        pages = [self.pages[number] for number in numbers]
        fetch = self._one(scan(pages[0])) if len(pages) == 1 else scan_lists(pages, CODECS)
        return PageRead(lambda: numbers, fetch)

    def _values(self, number: int, rows: Sequence[int]) -> Fetch[RowValues]:
        page = self.pages[number]
        if isinstance(page.layout, FullZipLayout):
            return (yield from read_zipped_values([page], [rows], CODECS))
        table = cast("ChunkTable", (yield from self._index(number, page)))
        return (yield from read_row_values(cast("MiniBlockLayout", page.layout), page, table, rows, CODECS))

    def _together(self, parts: Sequence[Part]) -> Fetch[Leaf] | None:
        """One reader of some rows of several pages, where there is one."""
        pages = [self.pages[number] for number, _ in parts]
        num_rows = sum(rows.num_rows for _, rows in parts)
        if self._are_alike:
            if len(parts) <= FEW_PAGES or 2 * num_rows > sum(page.num_rows for page in pages):
                return None
            tables = self._tables([number for number, _ in parts])
            return None if tables is None or not can_join(tables) else self._joined(self._picked_lists, parts, tables)
        if self._are_pickable:
            tables = self._tables([number for number, _ in parts])
            if tables is None or _FEW * num_rows > sum(int(table.values[-1]) for table in tables):
                return None
            return self._joined(read_picked, parts, tables)
        return None

    def _kind_of_part(self, part: Part) -> object:
        """Neighbours of one kind are read together; None is read by itself."""
        number, rows = part
        if rows.covers(self.pages[number].num_rows):
            return _WHOLE
        return self._zipped_kinds[number] if rows.num_rows <= _FEW_ZIPPED else None

    def _zipped(self, parts: Sequence[Part]) -> PageRead:
        """Few rows of some zipped pages of one kind."""
        pages, rows = [self.pages[number] for number, _ in parts], [own for _, own in parts]
        return PageRead(partial(_numbers_of, parts), self._one(fullzip.read_together(pages, rows, CODECS)))

    def _picked_lists(self, layout: MiniBlockLayout, parts: Sequence[PageRows], codecs: Codecs) -> Fetch[Leaf]:
        num_rows = sum(part.rows.num_rows for part in parts)
        few = few_of_pages(layout, parts, codecs) if num_rows <= FEW_ROWS else None
        return (yield from few or read_lists(layout, parts, codecs))

    def _joined(
        self,
        reader: Callable[[MiniBlockLayout, Sequence[PageRows], Any], Fetch[Leaf]],
        parts: Sequence[Part],
        tables: Sequence[ChunkTable],
    ) -> Fetch[Leaf]:
        joined = []
        for (number, rows), table in zip(parts, tables, strict=True):
            rows.check(self.pages[number].num_rows)
            joined.append(PageRows(self.pages[number], table, rows))
        return (yield from reader(cast("MiniBlockLayout", joined[0].page.layout), joined, CODECS))

    def _known_column(self, window: RowSelection) -> ColumnChunks | None:
        """One table of the chunks of all pages, if all are known and the window is a few of their rows, here and there."""
        num_ranges = len(window.starts)
        if num_ranges <= FEW_PAGES or len(self.pages) < 2 or _FEW_IN_ALL * window.num_rows > int(self.starts[-1]):
            return None
        if not self._are_alike:
            return None
        key = (*self.key, "all pages")
        found: ColumnChunks | None = self.cache.get(key)
        if found is not None or len(self.pages) > _MANY_PAGES * num_ranges:
            return found
        tables = self._tables(range(len(self.pages)))
        if tables is None or not can_join(tables):
            return None
        found = column_chunks(self.pages, tables)
        self.cache.put(key, found, found.num_bytes)
        return found

    def _whole_groups(self, numbers: Sequence[int]) -> Iterator[Sequence[int]]:
        """The pages, those that are scanned together in one group."""
        if len(numbers) < 2 or not self._are_alike:
            return iter([[number] for number in numbers])
        items = [cast("MiniBlockLayout", self.pages[number].layout).num_items for number in numbers]
        return (numbers[start:end] for start, end in groups(items))

    def _tables(self, numbers: Sequence[int]) -> list[ChunkTable] | None:
        """The chunk tables of some pages, if all are known."""
        tables = []
        for number in numbers:
            table = self.cache.get((*self.key, number))
            if not isinstance(table, ChunkTable):
                return None
            tables.append(table)
        return tables

    @cached_property
    def _are_alike(self) -> bool:
        return are_alike([page.layout for page in self.pages])

    @cached_property
    def _zipped_kinds(self) -> Sequence[int | None]:
        """A number for each page: the same for zipped pages that can be read together, None for others."""
        known: dict[object, int] = {}
        kinds = [fullzip.kind_of(page, CODECS) for page in self.pages]
        return [None if kind is None else known.setdefault(kind, len(known)) for kind in kinds]

    @cached_property
    def _are_pickable(self) -> bool:
        return are_pickable([page.layout for page in self.pages])

    def _index(self, number: int, page: Page) -> Fetch[object]:
        key = (*self.key, number)
        found = self.cache.get(key)
        if found is None:
            found = yield from load(page)
            if found is not None:
                self.cache.put(key, found, _index_size(page))
        return found


def _numbers_of(parts: Iterator[Part] | Sequence[Part]) -> list[int]:
    return [number for number, _ in parts]


def _just(number: int) -> list[int]:
    return [number]


def _index_size(page: Page) -> int:
    """About what an index holds in memory: everything of the page but its largest buffer, which is the values."""
    sizes = sorted(item.size for item in page.buffers)
    return 512 + 4 * sum(sizes[:-1])


Index = Any
"""What `load` returns: opaque to callers, immutable, safe to share between threads."""


class PageReader(Protocol):
    """What a module of one structural encoding offers."""

    def load(self, layout: Any, page: Page, codecs: Codecs) -> Fetch[Any]:
        """What random access needs."""
        ...

    def read(self, layout: Any, page: Page, index: Any, rows: RowSelection, codecs: Codecs) -> Fetch[Leaf]:
        """Some rows."""
        ...

    def scan(self, layout: Any, page: Page, codecs: Codecs) -> Fetch[Leaf]:
        """Every row in one round."""
        ...


READERS: Mapping[type, PageReader] = MappingProxyType(
    {
        MiniBlockLayout: miniblock,
        FullZipLayout: fullzip,
        ConstantLayout: constant,
        SparseLayout: sparse,
    }
)


def load(page: Page, *, codecs: Codecs = CODECS) -> Fetch[Index]:
    """What random access to the page needs; fetches nothing for full-zip and constants without buffers."""
    inner = _inner(page)
    return (yield from _find(inner).load(inner.layout, inner, codecs))


def read(page: Page, index: Index, rows: RowSelection, *, codecs: Codecs = CODECS) -> Fetch[Leaf]:
    """The rows of the page that are selected (rows as the page counts them), in order.

    Raises InputError for rows the page does not have.
    """
    rows.check(page.num_rows)
    inner = _inner(page)
    leaf = yield from _find(inner).read(inner.layout, inner, index, rows, codecs)
    return _outer(page, leaf)


def scan(page: Page, *, codecs: Codecs = CODECS) -> Fetch[Leaf]:
    """Every row of the page in one round of requests, one range per buffer."""
    inner = _inner(page)
    leaf = yield from _find(inner).scan(inner.layout, inner, codecs)
    return _outer(page, leaf)


def has_row_values(layout: object, *, codecs: Codecs = CODECS) -> bool:
    """Whether few rows of a page of this layout can be read value by value."""
    if isinstance(layout, MiniBlockLayout):
        return can_read_row(layout, codecs)
    return isinstance(layout, FullZipLayout) and can_read_zipped(layout)


def _inner(page: Page) -> Page:
    if page.num_rows < 0:
        raise CorruptFileError(f"a page declares {page.num_rows} rows, which is impossible")
    return blob.inner_page(page.layout, page) if isinstance(page.layout, BlobLayout) else page


def _outer(page: Page, leaf: Leaf) -> Leaf:
    return blob.from_descriptors(page.layout, leaf) if isinstance(page.layout, BlobLayout) else leaf


def _find(page: Page) -> PageReader:
    reader = READERS.get(type(page.layout))
    if reader is None:
        raise UnsupportedEncodingError(
            f"the page layout {type(page.layout).__name__} is not supported",
            cure="Rewrite the data with storage version 2.2, or read it with a newer release of this library.",
        )
    return reader
