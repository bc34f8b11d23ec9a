"""Tokenize texts: split, drop long tokens, lower-case, stem, remove stop words, fold to ASCII.

::

    tokens_of("The dogs' running")        [("dog", 1), ("run", 2)]            places count what was cut, kept or not
    cut_texts(["a b", "b"])               distinct pieces [b"a", b"b"], numbers [0, 1, 1], ends [2, 3]

Cutting is done for many texts at once; the rest is done once for each distinct piece.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from lance_core.arrow_numpy import numpy_of
from lance_core.errors import CorruptFileError
from lance_core.index.text.folding import fold, lower
from lance_core.index.text.params import TextParams
from lance_core.index.text.stop_words import stop_words_of
from lance_core.index.text.word_characters import classes_of_anything, classes_of_words
from lance_core.kernels.distinct import FACTOR
from lance_core.kernels.text import ngram_spans, number_spans, split_spans

pc: Any = compute
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(9)], np.uint64)
_SHORT = 4096
"""Letters of a text that is cut without a kernel."""
_KEPT = 1024
"""Words of questions whose tokens are kept: stemming one costs more than finding it in the index."""
_SPARE = np.zeros(8, np.uint8)


@dataclass(frozen=True, eq=False)
class Cut:
    """Texts in pieces: the distinct `pieces` as bytes, per piece of a text its number, per text where its pieces end."""

    pieces: list[bytes]
    codes: Any
    ends: Any


class Tokenizer:
    """A chain of steps with the options of one index; safe to share between threads."""

    def __init__(self, params: TextParams) -> None:
        self.params = params
        self._stemmers = threading.local()
        self._stops: frozenset[str] = frozenset()
        if params.remove_stop_words:
            words = params.custom_stop_words
            self._stops = stop_words_of(params.language) if words is None else frozenset(words)
        self._known = lru_cache(maxsize=_KEPT)(self.token_of)

    @property
    def counts_places(self) -> bool:
        """Whether pieces of a text have places that differ: those of n-grams are all 0."""
        return self.params.base_tokenizer != "ngram"

    def token_of(self, piece: bytes) -> str | None:
        """What becomes of a piece; None: it is left out."""
        longest = self.params.max_token_length
        if longest is not None and len(piece) >= longest:
            return None
        text = piece.decode("utf-8", "replace")
        if self.params.lower_case:
            text = lower(text)
        if self.params.stem:
            text = self._stem(text)
        if text in self._stops:
            return None
        return fold(text) if self.params.ascii_folding else text

    def _stem(self, text: str) -> str:
        """A stemmer holds the word it works on, so each thread has its own."""
        stem: Callable[[str], str] | None = getattr(self._stemmers, "stem", None)
        if stem is None:
            stem = self._stemmers.stem = _stemmer(self.params.language)
        return stem(text)

    def tokens_of(self, text: str) -> list[tuple[str, int]]:
        """The tokens of one text with their places."""
        if len(text) <= _SHORT:
            tokens = [self._known(piece.encode()) for piece in self._pieces(text)]
        else:
            cut = self.cut_texts(pa.array([text], pa.string()))
            known = [self.token_of(piece) for piece in cut.pieces]
            tokens = [known[code] for code in cut.codes.tolist()]
        found = ((token, place if self.counts_places else 0) for place, token in enumerate(tokens))
        return [(token, place) for token, place in found if token is not None]

    def _pieces(self, text: str) -> list[str]:
        """What `cut_texts` finds in one text, letter by letter: a short question is worth no compiled kernel."""
        if self.params.base_tokenizer == "raw":
            return [text]
        if self.params.base_tokenizer == "ngram":
            low, high = self.params.min_ngram_length, self.params.max_ngram_length
            begins = range(min(len(text), 1) if self.params.prefix_only else len(text))
            return [text[at : at + size] for at in begins for size in range(low, min(high, len(text) - at) + 1)]
        classes = classes_of_words() if self.params.base_tokenizer == "simple" else classes_of_anything()
        inside = "".join(letter if ord(letter) < len(classes) and classes[ord(letter)] else "\n" for letter in text)
        return [piece for piece in inside.split("\n") if piece]

    def cut_texts(self, texts: Any) -> Cut:
        """Cut an Arrow array of texts; a null has no pieces."""
        values = texts.fill_null("") if texts.null_count and self.params.base_tokenizer != "raw" else texts
        if self.params.base_tokenizer == "raw":
            return _whole(texts)
        wide = pa.types.is_large_string(values.type)
        offsets, data = _buffers(values, "<i8" if wide else "<i4")
        ends = np.zeros(len(values), np.int64)
        starts, sizes, count = self._spans(offsets, data, ends)
        if count < 0:
            raise CorruptFileError("a string column has offsets outside its data")
        pieces, codes = _numbered(data, starts, sizes, count)
        return Cut(pieces, codes, ends)

    def _spans(self, offsets: Any, data: Any, ends: Any) -> tuple[Any, Any, int]:
        most = (int(offsets[-1]) - int(offsets[0]) if len(offsets) else 0) + len(ends)
        if self.params.base_tokenizer != "ngram":
            starts, sizes = np.empty(most, np.int64), np.empty(most, np.int32)
            classes = classes_of_words() if self.params.base_tokenizer == "simple" else classes_of_anything()
            return starts, sizes, split_spans(offsets, data, classes, starts, sizes, ends)
        low, high = self.params.min_ngram_length, self.params.max_ngram_length
        most *= high - low + 1
        starts, sizes = np.empty(most, np.int64), np.empty(most, np.int32)
        only_prefix = np.uint8(self.params.prefix_only)
        return starts, sizes, ngram_spans(offsets, data, low, high, only_prefix, starts, sizes, ends)


def texts_of(values: Any) -> Any:
    """The documents of a column: texts as they are, the texts of a list joined by a space."""
    if not (pa.types.is_list(values.type) or pa.types.is_large_list(values.type)):
        return values
    if values.flatten().null_count == 0:
        # Wide offsets: the texts of a batch of lists may have more than 2 GiB together.
        return pc.binary_join(values.cast(pa.large_list(pa.large_string())), pa.scalar(" ", pa.large_string()))
    joined = [None if row is None else " ".join(text for text in row if text is not None) for row in values.to_pylist()]
    return pa.array(joined, pa.large_string())


def _buffers(values: Any, kind: str) -> tuple[Any, Any]:
    width = int(kind[-1])
    held = values.buffers()
    offsets = np.frombuffer(held[1], kind, len(values) + 1, values.offset * width) if len(values) else np.zeros(1, kind)
    data = np.frombuffer(held[2], np.uint8) if held[2] is not None else _SPARE[:0]
    low, high = int(offsets[0]), int(offsets[-1])
    if high > len(data):
        raise CorruptFileError("a string column has offsets outside its data")
    if len(data) - high < 8:
        data, offsets = np.concatenate([data[low:high], _SPARE]), offsets - offsets[0]
    return offsets, data


def _numbered(data: Any, starts: Any, sizes: Any, count: int) -> tuple[list[bytes], Any]:
    """The distinct pieces and the number of each; the table grows when there are more than it holds."""
    codes = np.empty(count, np.int32)
    bits = 16 if count > 1 << 12 else 13
    while True:
        limit = 1 << (bits - 1)
        slots = np.full(1 << bits, -1, np.int32)
        firsts = np.empty(limit, np.int64)
        factor, shift = np.uint64(FACTOR), np.uint64(64 - bits)
        found = number_spans(data, starts, sizes, count, _MASKS, factor, shift, limit, slots, codes, firsts)
        if found >= 0:
            break
        bits += 3
    places = firsts[:found]
    whole = memoryview(data)
    begins, lengths = starts[places].tolist(), sizes[places].tolist()
    return [bytes(whole[begin : begin + size]) for begin, size in zip(begins, lengths, strict=True)], codes


def _whole(texts: Any) -> Cut:
    """Each text is one piece, the empty one too; a null is none."""
    present = texts.drop_null().dictionary_encode()
    pieces = [str(text).encode() for text in present.dictionary.to_pylist()]
    living = numpy_of(texts.is_valid(), may_copy=True)
    return Cut(pieces, numpy_of(present.indices).astype(np.int32), np.cumsum(living, dtype=np.int64))


def _stemmer(language: str) -> Callable[[str], str]:
    import snowballstemmer  # type: ignore[import-untyped]

    stem: Callable[[str], str] = snowballstemmer.stemmer(language.lower()).stemWord
    return stem


def plain_words(text: str) -> list[str]:
    """The words of a text as they are written: what the official library compares when a query is fuzzy."""
    plain = TextParams(max_token_length=None, lower_case=False, stem=False, remove_stop_words=False, ascii_folding=False)
    return [word for word, _ in tokenizer_of(plain).tokens_of(text)]


@lru_cache(maxsize=64)
def tokenizer_of(params: TextParams) -> Tokenizer:
    """The tokenizer with these options."""
    return Tokenizer(params)
