"""Tokenize texts: split, drop long tokens, lower-case, stem, remove stop words, fold to ASCII.

::

    tokens_of("The dogs' running")        [("dog", 1), ("run", 2)]            places count what was cut, kept or not
    cut_texts(["a b", "b"])               distinct pieces [b"a", b"b"], numbers [0, 1, 1], ends [2, 3]

Cutting is done for many texts at once; the rest is done once for each distinct piece.

Stop words by language, as in the official tokenizer.

::

    stop_words_of("German")  ->  {"aber", "alle", "allem", ...}        words/german.txt, one a line, # begins a comment

The lists are none of those in circulation, so they were found by asking: half a million candidates (public lists, frequent
words of all languages) were indexed by the official library, and those it left out are these.

Fold upper case to lower case and letters with marks to ASCII, as the official tokenizer does.

::

    fold("crème brûlée ﬁ ½")  ->  "creme brulee fi 12"        fold("日本 ć")  ->  "日本 ć" with its loose accent kept

A character that has a compatibility decomposition keeps the ASCII part of it; some have none and are listed; a character
without an ASCII part stays.

Which characters make words: a letter or a number in the sense of Unicode, as the official tokenizer has it.

::

    classes_of_words()[ord("a")]  ->  1        [ord("-")]  ->  0        [0x0ADE]  ->  1

The table is kept here rather than asked of Python, whose `str.isalnum` knows fewer alphabetic marks and differs by version.
It is the steps between the starts and ends of ranges (LEB128), deflated, base64.
"""

from __future__ import annotations

import base64
import threading
import unicodedata
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from lance_core.arrow_numpy import numpy_of
from lance_core.errors import CorruptFileError, UnsupportedFeatureError
from lance_core.index.text.params import TextParams
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


@cache
def stop_words_of(language: str) -> frozenset[str]:
    """The built-in list. Raises UnsupportedFeatureError for a language that has none."""
    place = files("lance_core.index.text").joinpath("words").joinpath(f"{language.lower()}.txt")
    if not language.isalpha() or not place.is_file():
        raise UnsupportedFeatureError(
            f"no stop words are known for {language}", cure="Pass remove_stop_words=False, or custom_stop_words=[...]."
        )
    lines = place.read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


_LISTED = (
    "Æ=AE Ð=D Ø=O Þ=TH ß=ss æ=ae ð=d ø=o þ=th Đ=D đ=d Ħ=H ħ=h ı=i ĸ=k Ł=L ł=l Ŋ=N ŋ=n Œ=OE œ=oe Ŧ=T ŧ=t Ǣ=AE ǣ=ae Ǽ=AE ǽ=ae "
    "Ǿ=O ǿ=o ᴭ=AE ᵑ=n ᶞ=d ẞ=SS ℏ=h ꟱=S ꟲ=C ꟳ=F ꟴ=Q ꟸ=H ꟹ=oe 𐞃=ae 𐞕=h 𐞢=o 𐞥=q 𝚤=i"
)
_YOUNG_CAPITALS = (
    (0x1C89, 0x1C89, 1), (0x2C2F, 0x2C2F, 48), (0xA7C0, 0xA7C0, 1), (0xA7CB, 0xA7CB, -42343), (0xA7CC, 0xA7CC, 1),
    (0xA7CE, 0xA7CE, 1), (0xA7D0, 0xA7D0, 1), (0xA7D2, 0xA7D2, 1), (0xA7D4, 0xA7D4, 1), (0xA7D6, 0xA7D6, 1),
    (0xA7D8, 0xA7D8, 1), (0xA7DA, 0xA7DA, 1), (0xA7DC, 0xA7DC, -42561), (0x10570, 0x1057A, 39), (0x1057C, 0x1058A, 39),
    (0x1058C, 0x10592, 39), (0x10594, 0x10595, 39), (0x10D50, 0x10D65, 32), (0x16EA0, 0x16EB8, 27),
)  # fmt: skip
"""First, last, how far their small letters are: capitals of Unicode 14 to 17, some of which no Python makes small yet."""
_OUTLINED = 0x1CCD6
"""Outlined capitals and digits, which older Python does not decompose."""


@cache
def _table() -> dict[int, str]:
    listed = {ord(pair[0]): pair[2:] for pair in _LISTED.split()}
    plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    return {_OUTLINED + place: letter for place, letter in enumerate(plain)} | listed


def lower(text: str) -> str:
    """The text in small letters, letter by letter: the official tokenizer has no final sigma."""
    return text.lower() if text.isascii() else "".join(_lowered(letter) for letter in text)


@cache
def _lowered(letter: str) -> str:
    small, point = letter.lower(), ord(letter)
    if small != letter:
        return small
    return next((chr(point + far) for first, last, far in _YOUNG_CAPITALS if first <= point <= last), letter)


def fold(text: str) -> str:
    """The text with every character that can be folded folded."""
    return text if text.isascii() else "".join(_folded(letter) for letter in text)


@cache
def _folded(letter: str) -> str:
    if letter.isascii():
        return letter
    listed = _table().get(ord(letter))
    if listed is not None:
        return listed
    parts = "".join(part for part in unicodedata.normalize("NFKD", letter) if part.isascii())
    return parts or letter


_POINTS = 0x110000
_STEPS = (
    "eNplVE2MFEUUzvfq1U9Xd0/PT+/OzuzszOwPsz+zv+yyy64G1l1AEaJG4iIeTDgAiZKowRsXD0QOikdNNOGghoOJCZ4MNzSAicrBRDh4IiZ6kX"
    "Ay3Ex8NQMmxO6uqq6qV6++97733qK3dVNfgCVAERSqaOFHxUlBWwA7GCmDiAEj+7KQ4xg+gLsCdAhmerIgayQv3DDzSKz3osSn4dhxkVBcTE8V"
    "upEc10NUqdRsrIdgLdyMT5Q1R1GE4ow8KnBENAi5UrEK/0EjmKApIUNgBcN9iXAbsZaZ6LWCzBZjhUjQ9Xe1Cv+kkDH5iOXkY91hr6dbEAXNHt"
    "aLEUqJegp2KFJKJaxlRT6DQpqmPZcUlZNRDgfNctg7C4br7fmgtb+rRZNoVUk4NU29VUAXqSLKFMpqSHCCrBNnwhlPlG5oa0B+MtyvMSR9RXjQ"
    "wd/kidto5YnDBFe4iIntNTmdmReoE4Spi9viGQo8MU1LG/1vlmFd+u1CrorFHTLqPlMJdX1ExTaPB5K8h5CSFaoUxBDljR/05oTt6kO+hYSjdI"
    "p0PMt1E+9q8H7KY5FIUaVYLa0gg1O+M0MbiAtrkVdLFOsuqWkOoBX0dVTG4o9JeOtIc+g/LdrT41fBKibDqXjLnhMpHZv0lKAQz0Fp05dmxEKy"
    "Fno37uqn688/5OZ994cEgaIIj+zfa1GsRhZPvu0F3FGqFllNmneMwmtg3cXrin17sdj2TYes7Sez63R9efPS19iep0ukGvmCduqdyYjO0Mv5AE"
    "aFnpXkAOD9kOjAvB5PR9Qykiw2LaxFBfKmqg4GqEOKisSxEVtND00XBXNee/Pl8aTKSxe2HhC90bGJ1glSwd1PmLOjf1F5k1anknc1LqLSy8P4"
    "hOqpITWeoC6hQMioMHY+mUvWS/Q3RtRScZgnoqbu6iZNsIOeuSyOMxM8wVNuJYmFnBDoj0a1knxL0aB3QwYziA5KJmE2cERValHHRYtyhR4Vnu"
    "udvZzTbpmFqB3xUbWFdtuhYXRx1Q/SsK5X7UuH15bTZTvvvOkIz9XfpFbMhLQpmt1KTbnBmIfL8428Gh1KmtB+PUJas94sK8/sxiVLNyGxJezm"
    "cRljknu8rxevgtbbdZHk/ydrSERtGz64DR30Rw5GiC1bApa116q51SsZ/gpWydbM2P5QrmLfWSVJcpM3hqmgE7bXsH7mWCJ5LGFJaCJcwKk/5G"
    "ieQuTR8DL50nMa5cNn3KujmTcR5kLYZiPi8EEUDgdksyqACB2JKyTosUtaKEXezLJ/iGpUwrRSmd9BNtD91J5+q3QDP+cns6uuZGqftfQPfG3P"
    "Avyt9BrbFrx5UVqzvFjkRIoSBnTlqppT/haORzWqzR7hdVvaFPsSG91dn26fPPfPNvd89IVk+ogUrwK7D9WF8ps6VZH1jF/a/lacJ/nZ2kW8gm"
    "cFKHr1MhEbLZ6R2uBkbAhmiUdl8StRDTWh88nmaPd7hZYxd0S4RD1S9L5RvD3nLckt31GzLPbeVQ3p0KT4ppwadHQPoTxK7OImKFo8EMog+0/M"
    "U2E8Oofse9keDjzK54PjQr3jfuarR+uPnzDjnsIg4FGSuqFRusHpuIStqf+Z+/fdvdvUvjxGH83RNxvZA/68cpl/j3/q6K+2/gU8Eowg"
)


@cache
def classes_of_words() -> Any:
    """uint8 by code point: 1 for letters and numbers."""
    edges, value, shift, at = [], 0, 0, 0
    for byte in zlib.decompress(base64.b64decode(_STEPS)):
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            at += value
            edges.append(at)
            value = shift = 0
    return _between(edges)


@cache
def classes_of_anything() -> Any:
    """uint8 by code point: 1 for all but the white space of ASCII."""
    classes = np.ones(_POINTS, np.uint8)
    classes[[9, 10, 12, 13, 32]] = 0
    classes.flags.writeable = False
    return classes


def _between(edges: list[int]) -> Any:
    classes = np.zeros(_POINTS, np.uint8)
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        classes[start:end] = 1
    classes.flags.writeable = False
    return classes
