"""INVERTED: the words of texts, each with the documents that have it, for search ranked by BM25.

::

    create_scalar_index("text", "INVERTED", with_position=True)        to_table(full_text_query="quick fox")

A filter is answered by it only for `contains_tokens(column, 'words')`; ranking is the business of the search above it.
(Spec: FORMAT E.4; index version 2. Those of older releases are searched, and rebuilt by `optimize_indices`.)

Compare a full-text index with the texts themselves: every document, every token, how often, where, and all lengths.

::

    stored    doc 0 = row 7 of 2 tokens, "fox": [doc 0 twice]
    texts     row 7: "fox fox"                                       they agree

Each document comes down to its length and its mark (see `marks`); those of the texts must be those of the lists. Documents
of rows that are gone still count in scores; of those the lists must add up to the stored length.

A full-text index of a release of the official library up to 0.27.

::

    tokens.lance     _token utf8, _token_id u32
    docs.lance       _rowid u64, _num_tokens u32
    invert.lance     _rowid u64, _frequency f32, _position list<i32>; its metadata has `offsets`, where tokens' rows begin

Its lists name row ids, which become numbers of documents here.

Fingerprints of documents, from a full-text index and from the texts themselves, which are compared as a whole.

::

    row 7: "fox fox dog"      3 tokens, mark 2 key(fox) + key(dog)          see kernels.marks
    told(partitions)          ids [7, ..] ascending, lengths [3, ..], marks [..]: read from the lists once
    TextMarks(tokenizer)      of a batch of texts: lengths, marks

No list is held longer than its marks take to make, and no text: memory is 21 bytes for each document.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from lance_core.arrow.kinds import as_list
from lance_core.arrow_numpy import numpy_of
from lance_core.errors import CorruptFileError, NotFoundError, UnsupportedFeatureError
from lance_core.expr.ast import Expr
from lance_core.file.open_file import OpenFile
from lance_core.format.index import IndexDetails
from lance_core.format.index_details import Details, InvertedDetails
from lance_core.index.base import ID, VALUE, Answer, IndexFolder, IndexKind, metadata_of, read_all
from lance_core.index.scalar.verify import require
from lance_core.index.text.build import train
from lance_core.index.text.params import OPTIONS, TextParams, params_of_details, params_of_json, parse_params
from lance_core.index.text.partition import METADATA, WIDE_BLOCK, Posting, TextPartition, Window, ends_of_windows
from lance_core.index.text.token_map import TokenMap, flat_tokens, keys_of
from lance_core.index.text.tokenize import Tokenizer, texts_of, tokenizer_of
from lance_core.io.cache import shared_cache
from lance_core.kernels.fingerprints import mark_lists, mark_texts
from lance_core.kernels.postings import BLOCK
from lance_core.wire.index import decode_details

_MOST_PARTITIONS = 1 << 20
_TAILS: Mapping[tuple[bytes, bytes], bool] = {
    (b"1", b"fixed32_v1"): True,
    (b"2", b"varint_delta_v1"): False,
    (b"3", b"varint_delta_v1"): False,
}
"""What is written of the format, and whether last blocks are of numbers of fixed width."""

_BLOCK_SIZES: Mapping[bytes, int] = {b"128": BLOCK, b"256": WIDE_BLOCK}


def _open_metadata(folder: IndexFolder) -> OpenFile | None:
    """None: the layout of releases up to 0.27."""
    try:
        return folder.open(METADATA)
    except NotFoundError:
        with suppress(NotFoundError):
            folder.store.size(f"{folder.path}/{TOKENS}")
            return None
        raise


def _first_params(folder: IndexFolder) -> bytes:
    """The options of an index of a release up to 0.27, as JSON."""
    opened = folder.open(TOKENS)
    # Releases before 0.19 do not state them; the official library asks with the defaults.
    return opened.schema.metadata.get("tokenizer") or TextParams().to_json()


class Inverted:
    """An open full-text index (one segment)."""

    def __init__(self, folder: IndexFolder, value_type: pa.DataType, path: tuple[str, ...]) -> None:
        opened = _open_metadata(folder)
        self._folder = folder
        self.partitions: tuple[TextPartition, ...]
        if opened is None:
            self._is_old = True
            part = FirstPartition(folder)
            self._stored_params, self.partitions = _first_params(folder), (part,)
            params = params_of_json(self._stored_params, what=folder.path)
            self.params = replace(params, with_position=part.has_places)
            return
        version, codec = (
            metadata_of(opened, "format_version", b"1"),
            metadata_of(opened, "posting_tail_codec", b"fixed32_v1"),
        )
        has_fixed_tails = _TAILS.get((version, codec))
        block_size = _BLOCK_SIZES.get(metadata_of(opened, "posting_block_size", b"128"))
        if has_fixed_tails is None or block_size is None:
            raise UnsupportedFeatureError(
                f"{opened.path}: format version {version!r}, expected 1 to 3 with blocks of 128 or 256"
            )
        self._is_old, self._block_size = has_fixed_tails, block_size
        self._stored_params = metadata_of(opened, "params")
        self.params = params_of_json(self._stored_params, what=opened.path)
        numbers = _numbers(metadata_of(opened, "partitions"), opened.path)
        kind = metadata_of(opened, "token_set_format", b"arrow").decode("ascii", "replace")
        self.partitions = tuple(
            TextPartition(folder, number, kind, has_fixed_tails=has_fixed_tails, block_size=block_size) for number in numbers
        )
        if self.params.with_position and not self.has_places:
            raise CorruptFileError(f"{opened.path} declares positions, but a partition has none", cure="Rebuild the index.")

    @property
    def tokenizer(self) -> Tokenizer:
        """What cuts queries and texts that are not indexed."""
        return tokenizer_of(self.params)

    @property
    def has_places(self) -> bool:
        """Whether phrases can be searched."""
        return all(part.has_places for part in self.partitions)

    @property
    def num_documents(self) -> int:
        """Documents with at least one token, deleted ones included."""
        return sum(len(part.ids) for part in self.partitions)

    @property
    def total_tokens(self) -> int:
        """Tokens of all documents."""
        return sum(part.total_tokens for part in self.partitions)

    def count_of(self, token: str) -> int:
        """How many documents have a token."""
        return sum(part.count_of(token) for part in self.partitions)

    def search(self, part: Expr) -> Answer | None:
        """Filters are not answered."""
        return None

    streams: ClassVar[bool] = True

    def verify_rows(self, batches: Iterable[pa.RecordBatch]) -> None:
        """The lists are those of the texts, cut again; what the lists say is worked out in the first of several calls.

        Raises UnsupportedFeatureError for old releases, which counted and cut some texts in another way.
        """
        if self._is_old:
            raise UnsupportedFeatureError(
                f"index {self._folder.path}: a full-text index of an old Lance release cannot be compared",
                cure="Rebuild the index.",
            )
        cache, key = shared_cache(), (*self._folder.key, "told")
        known: tuple[Inverted, Told, TextMarks] | None = cache.get(key)
        if known is None or known[0] is not self:
            require_options(self.params, self._stored_params, self._folder.details)
            with_places = self.has_places
            known = self, told(self.partitions, with_places=with_places), TextMarks(self.tokenizer, with_places=with_places)
        _, documents, texts = known
        require_documents(documents, texts, batches)
        cache.put(key, known, documents.num_bytes + texts.num_bytes)

    def statistics(self) -> dict[str, Any]:
        """Counts and options."""
        if self._is_old:
            stored = params_of_json(self._stored_params, what=self._folder.path)
            options = {**json.loads(stored.to_json()), "lance_tokenizer": None}
            sizes = [len(part.sizes) for part in self.partitions]
            return {"params": options, "num_docs": self.num_documents, "num_tokens": sum(sizes)}
        return {
            "params": {**json.loads(self.params.to_json()), "block_size": self._block_size},
            "num_docs": self.num_documents,
            "num_tokens": sum(len(part.sizes) for part in self.partitions),
            "num_partitions": len(self.partitions),
        }


def _numbers(data: bytes, what: str) -> list[int]:
    try:
        numbers = json.loads(data)
    except ValueError:
        numbers = None
    is_list = isinstance(numbers, list) and len(numbers) <= _MOST_PARTITIONS
    if not is_list or not all(isinstance(number, int) and 0 <= number < 1 << 64 for number in numbers):
        raise CorruptFileError(f"{what}: partitions are {data[:80]!r}, expected a list of numbers")
    if len({*numbers}) != len(numbers):
        raise CorruptFileError(f"{what}: partitions are {data[:80]!r}, expected distinct numbers")
    return list(numbers)


def accepts(value_type: pa.DataType) -> bool:
    """Texts, and lists of texts (one document each)."""
    t = pa.types
    if t.is_list(value_type) or t.is_large_list(value_type):
        value_type = value_type.value_type
    return bool(t.is_string(value_type)) or t.is_large_string(value_type)


def describe(_type: pa.DataType, parameters: Mapping[str, Any]) -> Details:
    """The options, for the manifest."""
    return parse_params(parameters).details()


def options_of(folder: IndexFolder, details: Details | None) -> Mapping[str, Any]:
    """The options of a segment: its file tells all, the manifest all but a user's own stop words."""
    try:
        opened = _open_metadata(folder)
        if opened is None:
            return params_of_json(_first_params(folder), what=folder.path).options()
        return params_of_json(metadata_of(opened, "params"), what=opened.path).options()
    except (NotFoundError, CorruptFileError):
        if not isinstance(details, InvertedDetails):
            raise
        return params_of_details(details).options()


KIND = IndexKind(
    name="INVERTED",
    title="Inverted",
    details="InvertedIndexDetails",
    version=3,
    written_version=2,
    accepts=accepts,
    can_answer=lambda _part: False,
    train=train,
    open=Inverted,
    describe=describe,
    parameters=OPTIONS,
    options_of=options_of,
)


def require_documents(told: Told, texts: TextMarks, batches: Iterable[pa.RecordBatch]) -> None:
    """Raises CorruptFileError unless each row (value, id) is one of the stored documents, or none when it has no tokens."""
    for batch in slices(batches):
        lengths, marks = texts.of(batch)
        ids = numpy_of(batch.column(ID))
        places, is_there = _places(told.ids, ids)
        has_tokens = lengths > 0
        require(is_there[has_tokens].all(), "a document is missing")
        found = places[is_there]
        require(not told.is_repeated[found].any(), "a document is contained twice")
        require(np.array_equal(told.lengths[found], lengths[is_there]), "the length of a document differs from the table's")
        same = told.marks[found] == marks[is_there]
        if not same.all():
            row = int(ids[is_there][np.flatnonzero(~same)[0]])
            require(False, f"the tokens of row {row} differ from the table's")


def _places(ascending: Any, wanted: Any) -> tuple[Any, Any]:
    """(the first place where each id is or would be, whether it is there)."""
    if len(ascending) == 0:
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    places = np.searchsorted(ascending, wanted)
    places[places == len(ascending)] = 0
    return places, ascending[places] == wanted


def require_options(params: TextParams, stored: bytes, details: IndexDetails | None) -> None:
    """The tokenizer must be described alike by the index's file and by the manifest, which has all but a user's own stop
    words."""
    told = decode_details(details) if details is not None else None
    if not isinstance(told, InvertedDetails) or told.base_tokenizer is None:
        return
    words = params.custom_stop_words
    if "custom_stop_words" not in json.loads(stored):
        raise CorruptFileError(f"the options of the index do not state its stop words: {stored[:80]!r}")
    wanted = params_of_details(told)
    for name in TextParams.__dataclass_fields__:
        mine, theirs = getattr(params, name), words if name == "custom_stop_words" else getattr(wanted, name)
        require(mine == theirs, f"the option {name} is {mine!r}, the manifest has {theirs!r}")


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
