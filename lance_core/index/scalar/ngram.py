"""N-grams: for each three letters or digits in a row the set of rows whose text has them.

::

    "Hello, Bob!"  ->  hel ell llo bob        token = base-37 number of the three, 0-9 are 1-10, a-z are 11-36
    ngram_postings.lance     tokens u32 (0: rows that are null), posting_list (64-bit roaring treemap)
                             releases 0.23 and 0.24: tokens string, one to three letters (null: rows that are null)

Texts are lower-cased, letters with marks lose them. Answers `contains(column, text)`; what it picks is tested again.
(Spec: FORMAT E.3.)

Lower-case letters and remove their marks: the first step of n-gram indices.

::

    "Crème Brûlée, STRASSE ½"  ->  "creme brulee, strasse 12"

The official library drops what is not ASCII from the compatibility decomposition of a letter; a mark that stands alone, as
in decomposed text, stays and separates words. Capitals that only a decomposition brings (the trade mark sign is TM) it gives
numbers of its own; here they are made small.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from typing import Any, ClassVar, cast

import numpy as np
import pyarrow as pa
from pyarrow import compute

from lance_core.arrow.buffers import fields_schema, take
from lance_core.arrow_numpy import arrow_of, numpy_of
from lance_core.errors import CorruptFileError
from lance_core.expr import ast
from lance_core.expr.ast import Expr
from lance_core.format.index import IndexFile
from lance_core.format.index_details import PlainDetails
from lance_core.index.base import ID, VALUE, Answer, IndexFolder, IndexKind, gather
from lance_core.index.memory import OPTION, memory_bytes
from lance_core.index.scalar.external_sort import in_order as sorted_parts
from lance_core.index.scalar.id_lookup import STEP, Places
from lance_core.index.scalar.postings import sets_by_key
from lance_core.index.scalar.predicates import made_of, text_inside
from lance_core.index.scalar.row_sets import Holding, RowSets
from lance_core.index.scalar.verify import expanded, in_order, require
from lance_core.kernels.sort import distinct
from lance_core.rowids.selection import AddressSet, decode_address_treemap, encode_address_treemap

pc: Any = compute  # the stubs know only some of what the kernels take
FILE = "ngram_postings.lance"
NULL_TOKEN = 0
_WORDS = re.compile("[0-9a-z]{3,}")
_ASCII_WORDS = re.compile("[0-9A-Za-z]{3,}")
_SCHEMA = fields_schema(
    [
        pa.field("tokens", pa.uint32()),
        pa.field("posting_list", pa.binary(), nullable=False, metadata={"lance-encoding:compression": "none"}),
    ]
)
_TOKEN = re.compile("[0-9a-z]{3}")
_NUM_TOKENS = 37**3
_PART_BYTES = 1 << 20
_DIGITS = np.array(
    [n - 47 if 48 <= n < 58 else (n | 32) - 86 if 97 <= (n | 32) < 123 and n < 128 else 0 for n in range(256)], np.uint16
)
"""What a byte counts in a token; 0: it is no plain letter or digit."""


def tokens_of(words: Iterable[str]) -> set[int]:
    """The tokens of lower-case words of letters and digits.

    >>> sorted(tokens_of(["code"]))
    [18736, 34758]
    """
    found: set[int] = set()
    for word in words:
        digits = [ord(char) - 47 if char <= "9" else ord(char) - 86 for char in word]
        found.update((a * 37 + b) * 37 + c for a, b, c in zip(digits, digits[1:], digits[2:], strict=False))
    return found


def _number(token: int | str | None, place: int) -> int:
    """The number of a token; shorter ones of old releases, which are not looked up, have one above all others."""
    if token is None:
        return NULL_TOKEN
    if isinstance(token, int):
        return token
    return next(iter(tokens_of([token]))) if _TOKEN.fullmatch(token) else _NUM_TOKENS + place


def train(
    folder: IndexFolder, batches: Iterable[pa.RecordBatch], value_type: pa.DataType, *, memory_limit: int | None = None
) -> tuple[IndexFile, ...]:
    """Sort all (token, row) pairs, on disk where they do not fit the memory, and write one list per token."""
    pairs = (pair for batch in batches for pair in _pairs(batch))
    parts = sorted_parts(pairs, pa.uint32(), limit=memory_bytes(memory_limit))

    def lists() -> Iterator[pa.RecordBatch]:
        for tokens, sets in sets_by_key(parts, partial(encode_address_treemap, runs=False)):
            yield pa.RecordBatch.from_arrays([tokens, pa.array(sets, pa.binary())], schema=_SCHEMA)

    return (folder.write(FILE, lists(), _SCHEMA),)


def _pairs(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Each token of some texts with its rows, every pair once."""
    ids = numpy_of(batch.column(ID))
    for first, count in _parts_of(texts := batch.column(VALUE).cast(pa.large_string())):
        part = texts.slice(first, count)
        is_plain = pc.string_is_ascii(part).fill_null(True)
        tokens, rows = pieces_of(pc.if_else(is_plain, part, "").fill_null(""))
        others = np.flatnonzero(~numpy_of(is_plain, may_copy=True))
        rare = cast("list[str]", take(part, others).to_pylist())
        found = [tokens_of(_WORDS.findall(fold(text))) for text in rare]
        missing = np.flatnonzero(numpy_of(part.is_null(), may_copy=True))
        places = distinct(
            np.concatenate(
                [
                    tokens.astype(np.int64) * count + rows,
                    np.fromiter(
                        (token * count + row for row, here in zip(others, found, strict=True) for token in here), np.int64
                    ),
                    NULL_TOKEN * count + missing,
                ]
            )
        )
        numbers = arrow_of((places // count).astype(np.uint32))
        yield pa.RecordBatch.from_arrays([numbers, arrow_of(ids[first + places % count])], [VALUE, ID])


def pieces_of(texts: Any) -> tuple[Any, Any]:
    """(token, row) of every three plain letters or digits in a row of large strings; all texts at once."""
    offsets = np.frombuffer(texts.buffers()[1], np.int64, len(texts) + 1, texts.offset * 8) if len(texts) else np.zeros(1)
    data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)[int(offsets[0]) : int(offsets[-1])]
    if len(data) < 3:
        return np.empty(0, np.uint16), np.empty(0, np.int32)
    digits = _DIGITS[data]
    rows = np.repeat(np.arange(len(texts), dtype=np.int32), np.diff(offsets))
    whole = (digits[:-2] > 0) & (digits[1:-1] > 0) & (digits[2:] > 0) & (rows[:-2] == rows[2:])
    return ((digits[:-2] * 37 + digits[1:-1]) * 37 + digits[2:])[whole], rows[:-2][whole]


def _parts_of(texts: Any) -> Iterator[tuple[int, int]]:
    """(first row, rows) of parts of large strings that have about as many bytes."""
    offsets = np.frombuffer(texts.buffers()[1], np.int64, len(texts) + 1, texts.offset * 8) if len(texts) else np.zeros(1)
    first = 0
    while first < len(texts):
        end = int(np.searchsorted(offsets, offsets[first] + _PART_BYTES, side="right")) - 1
        end = min(max(end, first + 1), first + STEP)
        yield first, end - first
        first = end


class NGram:
    """An open n-gram index: tokens are in memory, posting lists are read on request."""

    streams: ClassVar[bool] = False

    def __init__(self, folder: IndexFolder, value_type: pa.DataType, path: tuple[str, ...]) -> None:
        self._type = value_type
        self._file = folder.open(FILE)
        schema = self._file.schema
        names = [item.name for item in schema.top_level]
        if names != ["tokens", "posting_list"]:
            raise CorruptFileError(f"{self._file.path} has the columns {', '.join(names)}, expected tokens, posting_list")
        ids = [item.id for item in schema.top_level]
        self._lists = schema.project({ids[1]})
        self._rows_of: dict[int, int] = {}
        tokens = [token for batch in self._file.read(schema.project({ids[0]})) for token in batch.column(0).to_pylist()]
        for place, token in enumerate(tokens):
            self._rows_of[_number(token, place)] = place

    def search(self, part: Expr) -> Answer | None:
        """The rows that have all three-letter pieces of the text; None when the text has none."""
        rows = self._rows(part)
        return None if rows is None else Answer(rows, is_exact=False)

    def _rows(self, part: Expr) -> AddressSet | None:
        if isinstance(part, (ast.And, ast.Or)):
            found = [self._rows(item) for item in part.items]
            known = [rows for rows in found if rows is not None]
            if len(known) < len(found):
                return None
            result = known[0]
            for rows in known[1:]:
                result = result | rows if isinstance(part, ast.Or) else result & rows
            return result
        text = text_inside(part)
        # Only pieces of plain letters: how other letters were folded is for the writer of the index to know.
        tokens = tokens_of(word.lower() for word in _ASCII_WORDS.findall(text or ""))
        if not tokens:
            return None
        if not tokens <= self._rows_of.keys():
            return AddressSet()
        positions = sorted(self._rows_of[token] for token in tokens)
        lists = self._file.take(self._lists, positions).column(0)
        sets = [
            decode_address_treemap(data.as_buffer() or b"", what=f"a posting list of {self._file.path}") for data in lists
        ]
        result = sets[0]
        for rows in sets[1:]:
            result = result & rows
        return result

    def verify_rows(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Each row is in the lists of all pieces of plain letters that its text has; more rows do no harm."""
        values, ids = in_order(*gather(batches, self._type))
        texts = values.cast(pa.large_string())
        columns = [batch.column(0) for batch in self._file.read(self._lists)]
        require(sum(len(column) for column in columns) == len(self._rows_of), "an n-gram is contained twice")
        sets = RowSets.of(columns, has_sizes=False)
        if sets is None:
            self._compare_pairs(texts, ids, columns)
            return
        del columns  # the sets have a copy
        number_of, holding = np.full(_NUM_TOKENS, -1, np.int32), Holding(sets)
        for token, number in self._rows_of.items():
            if token < _NUM_TOKENS:
                number_of[token] = number
        for first, count in _parts_of(texts):
            tokens, rows = pieces_of(texts.slice(first, count))
            numbers = number_of[tokens]
            require((numbers >= 0).all(), "an n-gram of a row has no list")
            held = holding.count(numbers, ids[first : first + count][rows])
            require(held >= 0, "a row is missing in the list of an n-gram that it has")

    def _compare_pairs(self, texts: Any, ids: Any, columns: list[Any]) -> None:
        tokens, rows = pieces_of(texts)
        wanted = distinct(tokens.astype(np.int64) * len(ids) + rows)
        places, have = Places(ids), [np.empty(0, np.int64)]
        numbers = sorted(self._rows_of, key=self._rows_of.__getitem__)
        for token, data in zip(numbers, (data for column in columns for data in column), strict=True):
            held = decode_address_treemap(data.as_buffer() or b"", what=f"a posting list of {self._file.path}")
            found = places.of(expanded(held, ids))
            have.append(token * len(ids) + found[found >= 0])
        both = np.sort(np.concatenate([*have, wanted]))
        is_pinned = int((both[1:] == both[:-1]).sum()) == len(wanted)
        require(is_pinned, "a row is missing in the list of an n-gram that it has")

    def statistics(self) -> dict[str, Any]:
        """The number of tokens."""
        return {"num_ngrams": len(self._rows_of)}


KIND = IndexKind(
    name="NGRAM",
    title="NGram",
    details="NGramIndexDetails",
    version=0,
    written_version=0,
    accepts=lambda value_type: pa.types.is_string(value_type) or pa.types.is_large_string(value_type),
    can_answer=lambda part: made_of(part, lambda leaf: text_inside(leaf) is not None),
    train=train,
    open=NGram,
    describe=lambda _type, _parameters: PlainDetails("NGramIndexDetails"),
    parameters=frozenset({OPTION}),
)


_SPECIAL = {
    "ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ħ": "h", "ı": "i", "ŋ": "n",
    "ŧ": "t", "ĸ": "k", "ẚ": "a",
}  # fmt: skip


def fold(text: str) -> str:
    """The text in plain small letters as far as that goes; what has no plain form stays."""
    small = text.lower()
    return small if small.isascii() else "".join(char if char < "\x80" else _plain(char) for char in small)


@lru_cache(maxsize=4096)
def _plain(char: str) -> str:
    if char in _SPECIAL:
        return _SPECIAL[char]
    parts = unicodedata.normalize("NFKD", char)
    if parts == char:
        return char
    kept = "".join(_SPECIAL.get(part, part) for part in parts)
    return "".join(part for part in kept if part.isascii() and part.isalnum()).lower() or char
