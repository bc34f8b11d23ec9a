"""An open partition: its documents in memory, posting lists read when a token is asked for.

::

    partition.list_of("run")     Posting(documents=[0, 7], counts=[1, 3])         places only when asked for
    partition.ids[documents]     row addresses, or stable row ids
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.errors import CorruptFileError
from lance_core.index.base import IndexFolder, read_all
from lance_core.index.text.parts import DOCS, LISTS, TOKENS, part_file
from lance_core.index.text.token_map import TokenMap
from lance_core.io.cache import shared_cache
from lance_core.kernels.postings import decode_positions, decode_postings


@dataclass(frozen=True, eq=False)
class Posting:
    """The documents of a token, ascending, how often each has it, and where (one document after the other)."""

    documents: Any
    counts: Any
    places: Any | None = None


_BATCH_LISTS = 4096
_NOTHING = Posting(np.empty(0, np.uint32), np.empty(0, np.uint32), np.empty(0, np.uint32))


class Partition:
    """One of the parts of a full text index."""

    def __init__(self, folder: IndexFolder, number: int, token_format: str) -> None:
        self._folder, self._number = folder, number
        docs = read_all(folder.open(part_file(number, DOCS)), ["_rowid", "_num_tokens"])
        self.ids = docs.column(0).to_numpy()
        self.lengths = docs.column(1).to_numpy()
        self.num_documents = len(self.ids)
        self.total_tokens = int(self.lengths.sum(dtype=np.uint64))
        self._file = folder.open(part_file(number, LISTS))
        schema = self._file.schema
        ids = {item.name: item.id for item in schema.top_level}
        missing = {"_posting", "_length"} - ids.keys()
        if missing:
            raise CorruptFileError(f"{self._file.path} has the columns {', '.join(ids)}, expected _posting, _length")
        self.has_places = "_compressed_position" in ids
        if self.has_places and "_position_block_offset" not in ids:
            raise CorruptFileError(f"{self._file.path} has positions and not where their blocks begin")
        self._lists = schema.project({child.id for child in schema.descend(ids["_posting"])})
        names = ("_compressed_position", "_position_block_offset")
        self._places = (
            schema.project({child.id for name in names for child in schema.descend(ids[name])}) if self.has_places else None
        )
        sizes = read_all(self._file, ["_length"])
        self.sizes = sizes.column(0).to_numpy()
        self.tokens = TokenMap(folder.open(part_file(number, TOKENS)), token_format, len(self.sizes))

    def count_of(self, token: str) -> int:
        """How many documents have a token."""
        number = self.tokens.get(token)
        return 0 if number is None else int(self.sizes[number])

    def similar(self, token: str, *, edits: int, prefix_length: int, most: int) -> list[str]:
        """Tokens at most so many edits away, in the order of their bytes."""
        return self.tokens.similar(token, edits=edits, prefix_length=prefix_length, most=most)

    def list_of(self, token: str, *, with_places: bool = False) -> Posting:
        """The documents of a token. Raises CorruptFileError."""
        number = self.tokens.get(token)
        if number is None:
            return _NOTHING
        found: Posting = self._cached(number, "list", partial(self._read, number))
        if not with_places:
            return found
        places = self._cached(number, "places", partial(self._read_places, number, found))
        return Posting(found.documents, found.counts, places)

    def _cached(self, number: int, what: str, make: Any) -> Any:
        return shared_cache().get_or_make((*self._folder.key, what, self._number, number), make)

    def every_list(self) -> Iterator[tuple[int, Posting]]:
        """Each list with its number, places too where there are any. Raises CorruptFileError."""
        first = 0
        lists = self._file.read(self._lists, batch_size=_BATCH_LISTS)
        places = iter(self._file.read(self._places, batch_size=_BATCH_LISTS)) if self._places is not None else None
        for batch in lists:
            beside = next(places) if places is not None else None
            column = batch.column(0)
            for row in range(len(column)):
                found, _ = self._decoded(first + row, column.slice(row, 1))
                if beside is not None:
                    held = self._decoded_places(first + row, found, beside.slice(row, 1))[0]
                    found = Posting(found.documents, found.counts, held)
                yield first + row, found
            first += len(column)

    def _read(self, number: int) -> tuple[Posting, int]:
        return self._decoded(number, self._file.take(self._lists, np.array([number])).column(0))

    def _decoded(self, number: int, row: Any) -> tuple[Posting, int]:
        blocks = row.values.slice(*_span(row))
        length = int(self.sizes[number])
        starts, data = _bytes_of(blocks)
        if len(starts) - 1 != -(-length // 128) or length > len(self.ids):
            raise CorruptFileError(f"{self._file.path}: list {number} has {len(starts) - 1} blocks for {length} documents")
        documents, counts = np.empty(length, np.uint32), np.empty(length, np.uint32)
        code = decode_postings(data, starts, length, documents, counts)
        steps = documents[1:] > documents[:-1]
        if code < 0 or (length and int(documents[-1]) >= len(self.ids)) or not steps.all():
            raise CorruptFileError(f"{self._file.path}: list {number} is damaged ({code})", cure="Build the index anew.")
        return Posting(documents, counts), documents.nbytes * 2 + 200

    def _read_places(self, number: int, found: Posting) -> tuple[Any, int]:
        if self._places is None:
            raise CorruptFileError(f"{self._file.path} has no positions")
        return self._decoded_places(number, found, self._file.take(self._places, np.array([number])))

    def _decoded_places(self, number: int, found: Posting, row: pa.RecordBatch) -> tuple[Any, int]:
        data = np.frombuffer(row.column(0)[0].as_buffer(), np.uint8)
        starts = np.append(np.asarray(row.column(1)[0].values.to_numpy(), np.int64), len(data))
        total = int(found.counts.sum(dtype=np.uint64))
        good = len(starts) - 1 == -(-len(found.documents) // 128) and bool((np.diff(starts) >= 0).all())
        places = np.empty(total if good and total <= 128 * len(data) + 128 else 0, np.uint32)
        if not good or decode_positions(data, starts, found.counts, len(found.counts), places) < 0:
            raise CorruptFileError(f"{self._file.path}: the positions of list {number} are damaged")
        return places, places.nbytes + 200


def _span(row: Any) -> tuple[int, int]:
    offsets = row.offsets
    return int(offsets[0].as_py()), int(offsets[1].as_py()) - int(offsets[0].as_py())


def _bytes_of(blocks: Any) -> tuple[Any, Any]:
    """(offsets int64 from 0, bytes) of an array of large binaries."""
    held = blocks.buffers()
    if len(blocks) == 0 or held[2] is None:
        return np.zeros(len(blocks) + 1, np.int64), np.empty(0, np.uint8)
    offsets = np.frombuffer(held[1], np.int64, len(blocks) + 1, blocks.offset * 8)
    data = np.frombuffer(held[2], np.uint8)
    return offsets - offsets[0], data[int(offsets[0]) : int(offsets[-1])]
