"""Fingerprints of documents, from a full-text index and from the texts themselves, which are compared as a whole.

::

    row 7: "fox fox dog"      3 tokens, mark 2 key(fox) + key(dog)          see kernels.marks
    told(partitions)          ids [7, ..] ascending, lengths [3, ..], marks [..]: read from the lists once
    TextMarks(tokenizer)      of a batch of texts: lengths, marks

No list is held longer than its marks take to make, and no text: memory is 21 bytes for each document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.index.base import VALUE
from lance_core.index.scalar.verify import require
from lance_core.index.text.partition import TextPartition
from lance_core.index.text.token_map import flat_tokens, keys_of
from lance_core.index.text.tokenize import Tokenizer, texts_of
from lance_core.kernels.fingerprints import mark_lists, mark_texts

_MOST_KNOWN, _MOST_BYTES = 64 << 20, 16 << 20
_PIECE_BYTES = 150


class TextMarks:
    """Texts cut as an index cuts them. What became of pieces is remembered, about 64 MiB of it."""

    def __init__(self, tokenizer: Tokenizer, *, with_places: bool) -> None:
        self._tokenizer, self._with_places = tokenizer, np.uint8(with_places)
        self._known: dict[bytes, int] = {}
        self.num_bytes = 0

    def of(self, batch: pa.RecordBatch) -> tuple[Any, Any]:
        """(lengths uint32, marks uint64) of each row; both are 0 where there is no token."""
        cut = self._tokenizer.cut_texts(texts_of(batch.column(VALUE)))
        lengths, marks = np.empty(len(cut.ends), np.uint32), np.empty(len(cut.ends), np.uint64)
        has_places = np.uint8(self._tokenizer.counts_places)
        mark_texts(self._keys_of(cut.pieces), cut.codes, cut.ends, self._with_places, has_places, lengths, marks)
        return lengths, marks

    def _keys_of(self, pieces: list[bytes]) -> Any:
        """The keys of what becomes of pieces; 0: they are left out."""
        known = self._known
        found = [known.get(piece, -1) for piece in pieces]
        new = [place for place, key in enumerate(found) if key < 0]
        if new:
            tokens = [self._tokenizer.token_of(pieces[place]) for place in new]
            keys = keys_of(*flat_tokens([b"" if token is None else token.encode() for token in tokens])).tolist()
            if self.num_bytes > _MOST_KNOWN:
                self._known, self.num_bytes = {}, 0
                known = self._known
            for place, token, key in zip(new, tokens, keys, strict=True):
                found[place] = known[pieces[place]] = 0 if token is None else key
                self.num_bytes += len(pieces[place]) + _PIECE_BYTES
        return np.array(found, np.uint64)


def slices(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows, so few at a time that cutting them takes little memory."""
    for batch in batches:
        step = max(1, batch.num_rows * _MOST_BYTES // max(batch.nbytes, _MOST_BYTES))
        yield from (batch.slice(first, step) for first in range(0, batch.num_rows, step))


@dataclass(frozen=True, eq=False)
class Told:
    """What an index says of its documents, by ascending id."""

    ids: Any
    lengths: Any
    marks: Any
    is_repeated: Any
    """Whether the next document has the same id."""

    @property
    def num_bytes(self) -> int:
        """Bytes held."""
        return int(sum(array.nbytes for array in (self.ids, self.lengths, self.marks, self.is_repeated)))


def told(partitions: Sequence[TextPartition], *, with_places: bool) -> Told:
    """Read all lists. Raises CorruptFileError for what no index says, whatever its texts are."""
    ids = _joined([part.ids for part in partitions], np.uint64)
    lengths = _joined([part.lengths for part in partitions], np.uint32)
    marks = _joined([_marks_of(part, with_places=with_places) for part in partitions], np.uint64)
    if len(ids) > 1 and not bool((ids[1:] >= ids[:-1]).all()):
        order = np.argsort(ids, kind="stable")
        ids, lengths, marks = ids[order], lengths[order], marks[order]
    is_repeated = np.zeros(len(ids), np.bool_)
    np.equal(ids[1:], ids[:-1], out=is_repeated[:-1])
    return Told(ids, lengths, marks, is_repeated)


def _marks_of(part: TextPartition, *, with_places: bool) -> Any:
    keys = part.tokens.keys_of_lists()
    lengths, marks = np.zeros(len(part.ids), np.uint64), np.zeros(len(part.ids), np.uint64)
    for window in part.windows(with_places=with_places):
        many = len(window.ends)
        mine = keys[window.first : window.first + many]
        places = window.places if window.places is not None else window.documents[:0]
        code = mark_lists(mine, window.ends, window.documents, window.counts, places, np.uint8(with_places), lengths, marks)
        require(code == 0, "a list has a document with no occurrence, or out of order")
    require(np.array_equal(lengths, part.lengths), "the lists do not add up to the lengths of documents")
    return marks


def _joined(parts: Sequence[Any], kind: Any) -> Any:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty(0, kind)
