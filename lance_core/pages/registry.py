"""One literal table from layout to page reader, and the entry point for reading pages.

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

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol

from lance_core.codecs.dispatch import Codecs
from lance_core.codecs.registry import CODECS
from lance_core.errors import CorruptFileError, UnsupportedEncodingError
from lance_core.fetch import Fetch
from lance_core.format.layout import BlobLayout, ConstantLayout, FullZipLayout, MiniBlockLayout, Page, SparseLayout
from lance_core.pages.leaf import Leaf
from lance_core.pages.read import blob, constant, fullzip, miniblock, sparse
from lance_core.pages.read.single_row import can_read_row
from lance_core.pages.read.single_zipped import can_read_zipped
from lance_core.pages.rows import RowSelection

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
