"""B-tree: all values sorted, in pages, and a small table with the bounds of each page.

::

    page_data.lance      values T, ids u64                 sorted, nulls first
    page_lookup.lance    min T, max T, null_count, page_idx      page i = rows [4096 i, 4096 (i + 1)) of page_data

Asked something, it picks pages by their bounds and tests their values one by one: any test of the one column will do.
(Spec: FORMAT E.3.)

Check that the pages of a B-tree are sorted and match the bounds in their table.

::

    pages of 4    [null, 1, 1, 2] [3, 5, 5, 9]     table of pages (min, max, null_count): (null, 2, 1) (3, 9, 0)

Pages are passed in as they are read, whole pages at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from lance_core.arrow.buffers import nulls
from lance_core.arrow.shown import shown
from lance_core.arrow_numpy import arrow_of, numpy_of, true_of
from lance_core.errors import CorruptFileError
from lance_core.expr import evaluate
from lance_core.expr.ast import Expr
from lance_core.format.index import IndexFile
from lance_core.format.index_details import PlainDetails
from lance_core.index.base import WRITTEN_ROWS, Answer, IndexFolder, IndexKind, column_batch, gather, number_of, read_all
from lance_core.index.memory import OPTION, memory_bytes
from lance_core.index.scalar.bounds import may_match
from lance_core.index.scalar.external_sort import in_order, is_ordered
from lance_core.index.scalar.id_lookup import STEP, Once, Places
from lance_core.index.scalar.predicates import is_value_test
from lance_core.index.scalar.verify import not_above, null_mask, require, require_bounds, require_same_values
from lance_core.io.cache import shared_cache
from lance_core.rowids.selection import AddressSet, address_set

PAGE_ROWS = 4096
DATA, LOOKUP = "page_data.lance", "page_lookup.lance"
_READ_BYTES = 64 << 20
_CACHED_PAGES = 16
"""Look-ups that touch no more pages than this keep them in the shared cache."""


def train(
    folder: IndexFolder, batches: Iterable[pa.RecordBatch], value_type: pa.DataType, *, memory_limit: int | None = None
) -> tuple[IndexFile, ...]:
    """Sort all values and write both files. What does not fit the memory that may be used is sorted on disk."""
    ordered = in_order(batches, value_type, limit=memory_bytes(memory_limit))
    data = pa.schema([pa.field("values", value_type), pa.field("ids", pa.uint64(), nullable=False)])
    pages = _Pages(value_type)
    first = folder.write(DATA, pages.noted(ordered, data), data)
    metadata = {"batch_size": str(PAGE_ROWS).encode(), "range_partitioned": b"false"}
    lookup = pages.table()
    return first, folder.write(LOOKUP, lookup, lookup.schema, metadata=metadata)


class _Pages:
    """The table of pages, as their rows pass by."""

    def __init__(self, value_type: pa.DataType) -> None:
        self._type = value_type
        self._rest: Any = nulls(0, value_type)
        self._tables: list[pa.Table] = []
        self._num_pages = 0

    def noted(self, parts: Iterable[tuple[Any, Any]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows as batches; whole pages among them are noted."""
        for values, ids in parts:
            table = pa.Table.from_arrays([values, arrow_of(ids)], schema=schema)
            yield from table.to_batches(max_chunksize=WRITTEN_ROWS)
            if len(self._rest):
                lacking = PAGE_ROWS - len(self._rest)
                self._rest = pa.concat_arrays([self._rest, values.slice(0, lacking)])
                if len(self._rest) < PAGE_ROWS:
                    continue
                self._note(self._rest)
                values = values.slice(lacking)
            whole = len(values) // PAGE_ROWS * PAGE_ROWS
            self._note(values.slice(0, whole))
            self._rest = pa.concat_arrays([values.slice(whole)])  # a copy, which does not keep the part
            del table, values, ids
        self._note(self._rest)

    def _note(self, ordered: Any) -> None:
        # An array that was sliced counts its nulls again.
        self._tables.append(_lookup(ordered, first_page=self._num_pages))
        self._num_pages += self._tables[-1].num_rows

    def table(self) -> pa.Table:
        """All pages."""
        return pa.concat_tables(self._tables).combine_chunks()


def _lookup(ordered: Any, *, first_page: int) -> pa.Table:
    starts = np.arange(0, len(ordered), PAGE_ROWS)
    ends = np.minimum(starts + PAGE_ROWS, len(ordered))
    null_before = np.minimum(ends, ordered.null_count) - np.minimum(starts, ordered.null_count)
    schema = pa.schema(
        [
            pa.field("min", ordered.type),
            pa.field("max", ordered.type),
            pa.field("null_count", pa.uint32(), nullable=False),
            pa.field("page_idx", pa.uint32(), nullable=False),
        ]
    )
    numbers = arrow_of(np.arange(first_page, first_page + len(starts), dtype=np.uint32))
    counts = arrow_of(null_before.astype(np.uint32))
    return pa.Table.from_arrays(
        [ordered.take(arrow_of(starts)), ordered.take(arrow_of(ends - 1)), counts, numbers], schema=schema
    )


class BTree:
    """An open B-tree: the table of pages is in memory, pages are read on request."""

    streams: ClassVar[bool] = False

    def __init__(self, folder: IndexFolder, value_type: pa.DataType, path: tuple[str, ...]) -> None:
        lookup = folder.open(LOOKUP)
        self._page_rows = number_of(lookup, "batch_size", PAGE_ROWS)
        self._pages = read_all(lookup, ["min", "max", "null_count", "page_idx"])
        self._data = folder.open(DATA)
        self.num_rows = self._data.num_rows
        self._path = path
        self._type = value_type
        self._folder = folder
        require(not any(self._pages.column(place).null_count for place in (2, 3)), "a page has no number")
        numbers = numpy_of(self._pages.column(3))
        num_pages = -(-self.num_rows // self._page_rows)
        if len(numbers) != num_pages or (num_pages and int(numbers.max()) >= num_pages):
            raise CorruptFileError(
                f"{folder.path}: {len(numbers)} pages are listed, {self.num_rows} rows need {num_pages}",
                cure="Rebuild the index.",
            )

    def search(self, part: Expr) -> Answer | None:
        """The rows whose value passes the test, exactly."""
        mask = may_match(part, self._pages)
        numbers = np.sort(numpy_of(self._pages.column(3))[mask]).astype(np.int64)
        found = []
        for values, ids in self._read(numbers):
            known: Any = evaluate(part, column_batch(self._path, values))
            found.append(ids[true_of(known)])
        rows = address_set(np.concatenate(found)) if found else AddressSet()
        return Answer(rows, is_exact=True)

    def _read(self, numbers: Any) -> Iterable[tuple[Any, Any]]:
        if len(numbers) <= _CACHED_PAGES:
            for number in numbers.tolist():
                key = (*self._folder.key, "page", number)
                yield shared_cache().get_or_make(key, partial(self._page, number))
            return
        ranges = [(int(n) * self._page_rows, min((int(n) + 1) * self._page_rows, self.num_rows)) for n in numbers]
        for batch in self._data.read(ranges=ranges, batch_size=1 << 18):
            yield _columns(batch)

    def _page(self, number: int) -> tuple[tuple[Any, Any], int]:
        start = number * self._page_rows
        end = min(start + self._page_rows, self.num_rows)
        batches = [*self._data.read(ranges=[(start, end)], batch_size=end - start)]
        table = pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
        values, ids = _columns(table)
        if not self._folder.is_sealed:
            self._check_page(number, values, ids)
        return (values, ids), table.nbytes

    def _check_page(self, number: int, values: Any, ids: Any) -> None:
        """What can be seen without the column: order, bounds, and no row twice."""
        row = int(np.flatnonzero(numpy_of(self._pages.column(3)) == number)[0])
        nulls, ends = values.null_count, np.array([0, len(values) - 1])
        present = values.slice(nulls)
        require(nulls == self._pages.column(2)[row].as_py() and present.null_count == 0, "nulls are not first in a page")
        require(not_above(present.slice(0, max(len(present) - 1, 0)), present.slice(1)).all(), "a page is not sorted")
        told = pa.concat_arrays([self._pages.column(place).slice(row, 1) for place in (0, 1)])
        require_same_values(told, values.take(arrow_of(ends)))
        require(len(np.unique(ids)) == len(ids), "a page contains a row twice")

    def verify_rows(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Each row is there once with its value; pages are in order, and the table of pages allows for their values."""
        values, ids = gather(batches, self._type)
        rows, once = Places(ids), Once(len(ids))
        pages = PageEnds(self._pages, self._page_rows)
        # Whole pages, so that each is in one batch.
        most = min(STEP, _READ_BYTES // (values.nbytes // max(1, len(values)) + 1))
        step = max(1, most // self._page_rows) * self._page_rows
        for batch in self._data.read(batch_size=min(step, max(1, self.num_rows))):
            stored, stored_ids = _columns(batch)
            require(stored.type == self._type or len(stored) == 0, "its values have another type than the column")
            pages.note(stored)
            found = rows.of(stored_ids)
            is_here = found >= 0
            if not is_here.all():
                found, stored = found[is_here], stored.filter(arrow_of(is_here))
            once.note(found)
            require_same_values(stored, values.take(arrow_of(found)))
        require(pages.num_rows == self.num_rows, "the file declares a number of rows that it does not have")
        once.require_all()
        pages.require_bounds()

    def statistics(self) -> dict[str, Any]:
        """Bounds as text, and the number of pages."""
        pages = self._pages
        if pages.num_rows == 0:
            return {"min": "NULL", "max": "NULL", "num_pages": 0}
        low, high = shown(pages.column(0)[0], _text), shown(pages.column(1)[-1], _text)
        return {"min": low, "max": high, "num_pages": pages.num_rows}


def _text(value: object) -> str:
    return "NULL" if value is None else str(value)


def _columns(batch: pa.RecordBatch) -> tuple[Any, Any]:
    names = batch.schema.names
    # Releases up to 0.36 called the ids row_ids.
    ids = "ids" if "ids" in names else "row_ids"
    if "values" not in names or ids not in names:
        raise CorruptFileError(f"{DATA} has the columns {', '.join(names)}, expected values, ids")
    return batch.column("values"), numpy_of(batch.column(ids))


KIND = IndexKind(
    name="BTREE",
    title="BTree",
    details="BTreeIndexDetails",
    version=1,
    written_version=0,
    stable_version=1,
    accepts=is_ordered,
    can_answer=is_value_test,
    train=train,
    open=BTree,
    describe=lambda _type, _parameters: PlainDetails("BTreeIndexDetails"),
    parameters=frozenset({OPTION}),
)


class PageEnds:
    """The ends of all pages read so far, against the table `pages` (min, max, null_count, page_idx)."""

    def __init__(self, pages: pa.RecordBatch, page_rows: int) -> None:
        self._pages, self._page_rows = pages, page_rows
        self.num_rows = 0
        self._rows_of = np.full(pages.num_rows, -1, np.int64)
        self._rows_of[numpy_of(pages.column(3))] = np.arange(pages.num_rows)
        require((self._rows_of >= 0).all(), "a page is not listed")
        self._nulls = numpy_of(pages.column(2))
        self._found: list[tuple[Any, Any, Any]] = []

    def note(self, values: Any) -> None:
        """Take in pages (all but the last of the file are full). CorruptFileError: they are not in order."""
        count = len(values)
        if count == 0:
            return
        starts = np.arange(0, count, self._page_rows)
        numbers = self.num_rows // self._page_rows + np.arange(len(starts))
        self.num_rows += count
        require(numbers[-1] < len(self._rows_of), "the index has more pages than it declares")
        ends, rows = np.minimum(starts + self._page_rows, count), self._rows_of[numbers]
        if values.null_count:
            is_null = null_mask(values)
            nulls = np.add.reduceat(is_null.astype(np.int64), starts)
            places = np.arange(count) - np.repeat(starts, ends - starts)
            require(np.array_equal(is_null, places < np.repeat(nulls, ends - starts)), "nulls are not first in a page")
            require((nulls <= self._nulls[rows]).all(), "a page has more nulls than it declares")
            self._require_order(values.drop_null(), np.cumsum(ends - starts - nulls))
        else:
            nulls = np.zeros(len(starts), np.int64)
            self._require_order(values, ends)
        has_values = starts + nulls < ends
        firsts, lasts = (starts + nulls)[has_values], ends[has_values] - 1
        if len(firsts):
            self._found.append((rows[has_values], values.take(arrow_of(firsts)), values.take(arrow_of(lasts))))

    def _require_order(self, present: Any, ends: Any) -> None:
        """Values that are not null, and where those of each page end."""
        if len(present) < 2:
            return
        follows = not_above(present.slice(0, len(present) - 1), present.slice(1))
        borders = ends[(ends > 0) & (ends < len(present))] - 1
        follows[borders] = True
        require(follows.all(), "a page is not sorted")

    def require_bounds(self) -> None:
        """CorruptFileError: the table of pages does not allow for a value."""
        if self._found:
            rows, lows, highs = zip(*self._found, strict=True)
            require_bounds(self._pages, np.concatenate(rows), pa.concat_arrays(lows), pa.concat_arrays(highs))
