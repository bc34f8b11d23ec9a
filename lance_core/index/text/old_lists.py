"""A full-text index of a release of the official library up to 0.27.

::

    tokens.lance     _token utf8, _token_id u32
    docs.lance       _rowid u64, _num_tokens u32
    invert.lance     _rowid u64, _frequency f32, _position list<i32>; its metadata has `offsets`, where tokens' rows begin

Its lists name row ids, which become numbers of documents here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrow.kinds import as_list
from lance_core.arrow_numpy import numpy_of
from lance_core.errors import CorruptFileError, UnsupportedFeatureError
from lance_core.index.base import IndexFolder, metadata_of, read_all
from lance_core.index.text.partition import Posting, TextPartition, Window, ends_of_windows
from lance_core.index.text.token_map import TokenMap

TOKENS, DOCS, LISTS = "tokens.lance", "docs.lance", "invert.lance"


class FirstPartition(TextPartition):
    """An index of a release up to 0.27, as one partition."""

    def __init__(self, folder: IndexFolder) -> None:
        self._folder, self._number = folder, 0
        self._set_documents(read_all(folder.open(DOCS), ["_rowid", "_num_tokens"]))
        self._order = np.argsort(self.ids, kind="stable")
        self._file = folder.open(LISTS)
        schema = self._file.schema
        ids = {item.name: item.id for item in schema.top_level}
        missing = {"_rowid", "_frequency"} - ids.keys()
        if missing:
            raise CorruptFileError(f"{self._file.path} has the columns {', '.join(ids)}, expected _rowid, _frequency")
        self.has_places = "_position" in ids
        names = ("_rowid", "_frequency", "_position")
        self._lists = schema.project({child.id for name in names[:2] for child in schema.descend(ids[name])})
        self._places = schema.project({child.id for child in schema.descend(ids["_position"])}) if self.has_places else None
        if "offsets" not in self._file.schema.metadata:
            raise UnsupportedFeatureError(
                f"{self._file.path} has the layout of releases up to 0.15", cure="Rebuild the index."
            )
        self._starts = _offsets(metadata_of(self._file, "offsets"), self._file.num_rows, self._file.path)
        self.sizes = np.diff(self._starts).astype(np.uint32)
        self.tokens = TokenMap(folder.open(TOKENS), "arrow", len(self.sizes))

    def windows(self, *, with_places: bool) -> Iterator[Window]:
        """All lists in their order, so many at a time as have about a million documents. Raises CorruptFileError."""
        first = 0
        for end in ends_of_windows(self.sizes):
            documents, counts, order = self._span(first, end)
            places = None
            if with_places:
                places = self._places_of(first, end, counts, order)
            yield Window(first, np.cumsum(self.sizes[first:end], dtype=np.int64), documents, counts, places)
            first = end

    def _read(self, number: int) -> tuple[Posting, int]:
        documents, counts, _ = self._span(number, number + 1)
        return Posting(documents, counts), documents.nbytes * 2 + 200

    def _read_places(self, number: int, found: Posting) -> tuple[Any, int]:
        if self._places is None:
            raise CorruptFileError(f"{self._file.path} has no positions")
        _, counts, order = self._span(number, number + 1)
        places = self._places_of(number, number + 1, counts, order)
        return places, places.nbytes + 200

    def _span(self, first: int, end: int) -> tuple[Any, Any, Any]:
        """(documents, counts, from which stored row each is) of some lists, each list ascending."""
        begin, stop = int(self._starts[first]), int(self._starts[end])
        if begin == stop:
            return np.empty(0, np.uint32), np.empty(0, np.uint32), np.empty(0, np.intp)
        rows = self._read_rows(self._lists, begin, stop)
        row_ids, counts = numpy_of(rows.column(0)), numpy_of(rows.column(1)).astype(np.uint32)
        places = np.minimum(np.searchsorted(self.ids, row_ids, sorter=self._order), max(0, len(self.ids) - 1))
        if not len(self.ids) or not np.array_equal(self.ids[self._order[places]], row_ids):
            raise CorruptFileError(f"{self._file.path}: a list has a row that is not among the documents")
        documents = self._order[places].astype(np.uint32)
        lists = np.repeat(np.arange(end - first), self.sizes[first:end])
        order = np.lexsort((documents, lists))
        documents, counts = documents[order], counts[order]
        same_list = lists[1:] == lists[:-1]
        if (documents[1:][same_list] == documents[:-1][same_list]).any():
            raise CorruptFileError(f"{self._file.path}: a list has a document twice")
        return documents, counts, order

    def _places_of(self, first: int, end: int, counts: Any, order: Any) -> Any:
        assert self._places is not None
        begin, stop = int(self._starts[first]), int(self._starts[end])
        if begin == stop:
            return np.empty(0, np.uint32)
        column = as_list(self._read_rows(self._places, begin, stop).column(0))
        column = column.take(pa.Array.from_buffers(pa.int64(), len(order), [None, pa.py_buffer(order.astype(np.int64))]))
        places = numpy_of(column.flatten()).astype(np.uint32)
        if not np.array_equal(np.diff(numpy_of(column.offsets)), counts):
            raise CorruptFileError(f"{self._file.path}: the positions of a list do not match its counts")
        return places


def _offsets(data: bytes, num_rows: int, what: str) -> Any:
    """Where the rows of each token begin, and the end. Raises CorruptFileError."""
    try:
        found = np.array([*json.loads(data), num_rows], np.int64)
    except (ValueError, TypeError, OverflowError) as error:
        raise CorruptFileError(f"{what}: the offsets of its lists are no list of numbers: {data[:80]!r}") from error
    if found[0] != (0 if len(found) > 1 else num_rows) or (np.diff(found) < 0).any():
        raise CorruptFileError(f"{what}: the offsets of its lists do not ascend from 0 to {num_rows}")
    return found
