"""Full-text search of a table: combine queries, exclude rows that may not be returned, select the best.

::

    hits = search_text(snapshot, MatchQuery("fox"), fast=False)
    hits.addresses, hits.scores          of live rows, in no order

Indexed rows are scored by what the indices know, rows without an index by that and themselves together, as the official
library does it.

Search several columns as one text (BM25F): word counts and lengths are summed over all columns.

::

    first "ann", last "lee"     CombinedFieldsQuery("ann lee", ["first", "last"], operator=AND) finds the row
    count = sum of boost * count in a column    length = sum of boost * length
    documents, and documents with a word: those of the column that has most       mean length = all lengths / documents
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lance_core.dataset.indexing.scalar_search import Segment, usable_segments
from lance_core.dataset.query.text_columns import Searched, TextColumn, restricted, text_column
from lance_core.dataset.scan.index_policy import DEFAULT_POLICY, IndexPolicy
from lance_core.dataset.snapshot.snapshot import CacheSlot, Snapshot
from lance_core.errors import InputError
from lance_core.format.index_details import InvertedDetails
from lance_core.format.schema import column_of
from lance_core.index.text import matching
from lance_core.index.text.inverted import KIND
from lance_core.index.text.matching import Documents, Stats, stats_of
from lance_core.index.text.params import TextParams, params_of_details
from lance_core.index.text.query import (
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    FullTextOperator,
    FullTextQuery,
    MatchQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
)
from lance_core.index.text.scoring import SATURATION
from lance_core.index.text.tokenize import plain_words
from lance_core.index.text.unindexed import Among
from lance_core.rowids.index import MISSING
from lance_core.wire.index import decode_details


@dataclass(frozen=True, eq=False)
class Hits:
    """Addresses of rows (uint64, each once) and their scores (float32)."""

    addresses: Any
    scores: Any

    def ordered(self) -> Hits:
        """By address."""
        order = np.argsort(self.addresses, kind="stable")
        return Hits(self.addresses[order], self.scores[order])

    def best(self, count: int | None) -> Hits:
        """The best first, rows that are equally good by address."""
        rows, scores = self.addresses, self.scores
        if count is not None and 0 < count < len(scores) // 4:
            least = np.partition(scores, len(scores) - count)[len(scores) - count]
            kept = scores >= least
            rows, scores = rows[kept], scores[kept]
        order = np.lexsort((rows, -scores))[:count]
        return Hits(rows[order], scores[order])


_NOTHING = Hits(np.empty(0, np.uint64), np.empty(0, np.float32))


def _text_segments(snapshot: Snapshot) -> tuple[dict[str, list[Segment]], dict[str, TextParams]]:
    """The segments of each column. Where the index is of a version not searched here: none, and how it cuts words."""
    segments: dict[str, list[Segment]] = {}
    for name, found in usable_segments(snapshot).items():
        text = [segment for segment in found if segment.kind is KIND]
        if text:
            first = min(segment.index.name for segment in text)
            segments[name] = [segment for segment in text if segment.index.name == first]
    schema, params = snapshot.manifest.schema, dict[str, TextParams]()
    for index in snapshot.manifest.indices:
        details = decode_details(index.details) if index.details is not None else None
        if not isinstance(details, InvertedDetails) or len(index.fields) != 1 or index.fields[0] not in schema.by_id:
            continue
        name = column_of(schema, index.fields[0])
        if name not in segments and index.fragment_bitmap is not None:
            segments[name] = []
            params.setdefault(name, params_of_details(details))
    return segments, params


_TEXT_SEGMENTS = CacheSlot[Snapshot, tuple[dict[str, list[Segment]], dict[str, TextParams]]](_text_segments)


@dataclass
class TextSearch:
    """One search of one version. `columns` are opened when a query names them."""

    snapshot: Snapshot
    fast: bool
    trust: IndexPolicy = DEFAULT_POLICY
    allowed: Any = None
    """Addresses of the rows that may be found, ascending; None: any. Rows without an index are scored among these."""
    columns: dict[str, TextColumn] = field(default_factory=dict)
    _params: dict[str, TextParams] = field(default_factory=dict)
    _segments: dict[str, list[Segment]] | None = None

    @property
    def segments(self) -> dict[str, list[Segment]]:
        """Column -> the segments of its full-text index: of the first by name when there are several."""
        if self._segments is None:
            self._segments, params = self.snapshot.cached(_TEXT_SEGMENTS)
            self._params = {**params, **self._params}
        return self._segments

    def without_indices(self) -> TextSearch:
        """The same search by reading all rows of the columns it was about; words are cut as the indices cut them."""
        plain = TextSearch(self.snapshot, fast=False, allowed=self.allowed)
        plain._segments = {name: [] for name in self.segments}
        plain._params = {name: column.tokenizer.params for name, column in self.columns.items()}
        return plain

    def column(self, name: str) -> TextColumn:
        """A column to search. Raises InputError: there is none, or it has no texts."""
        if name not in self.columns:
            segments = self.segments.get(name, ())
            params = self._params.get(name)
            column = text_column(self.snapshot, name, segments, fast=self.fast, trust=self.trust, params=params)
            self.columns[name] = column if self.allowed is None else restricted(column, self.allowed)
        return self.columns[name]

    def find(self, query: FullTextQuery) -> Hits:
        """All live rows that match."""
        return _FINDERS[type(query)](self, query)

    def find_best(self, query: FullTextQuery, most: int | None) -> Hits:
        """At least the best so many of the live rows that match; all of them for most kinds of queries."""
        if most and isinstance(query, MatchQuery) and query.boost == 1.0:
            names = self._indexed_columns() if query.column is None else [query.column]
            if len(names) == 1:
                return self._match(query, names[0], most=most)
        return self.find(query)

    def _indexed_columns(self) -> list[str]:
        if not self.segments:
            raise InputError("no column has a full-text index", cure="Pass the column to search, or build an index on it.")
        return sorted(self.segments)

    def match(self, query: MatchQuery) -> Hits:
        """Words in one column, or in all indexed ones."""
        if query.column is None:
            names = self._indexed_columns()
            return self._best_of([self._match(query, name) for name in names])
        return self._match(query, query.column)

    def _match(self, query: MatchQuery, name: str, *, most: int | None = None) -> Hits:
        column = self.column(name)
        # Tokens at one place (n-grams are all at place 0) count once, and one of them is enough.
        places: dict[int, list[str]] = {}
        for word, place in dict.fromkeys(column.tokenizer.tokens_of(query.query)):
            places.setdefault(place, []).append(word)
        groups = [*places.values()]
        all_words = query.operator is FullTextOperator.AND
        indexed = [item.documents for item in column.indexed]
        found = _over(
            column,
            _scorer(_meanings(query, indexed) if query.fuzziness else groups, all_words=all_words),
            _scorer(groups, all_words=all_words),
            most=most,
        )
        return Hits(found.addresses, found.scores * np.float32(query.boost)) if query.boost != 1.0 else found

    def phrase(self, query: PhraseQuery) -> Hits:
        """Words in their order in one column, or in all indexed ones."""
        if query.column is None:
            names = self._indexed_columns()
            return self._best_of([self.phrase(PhraseQuery(query.query, name, slop=query.slop)) for name in names])
        column = self.column(query.column)
        if not column.has_places:
            raise InputError(
                f"the index on {column.name!r} has no positions, which phrases need",
                cure="Rebuild the index with with_position=True.",
            )
        words = column.tokenizer.tokens_of(query.query)

        tokens = [word for word, _ in words]

        def score(part: Documents, stats: Stats, _most: int | None) -> tuple[Any, Any]:
            return matching.score_phrase(part, words, query.slop, stats)

        scorer = _Scorer(tokens, score if words else None)
        return _over(column, scorer, scorer)

    def boost(self, query: BoostQuery) -> Hits:
        """The positive's rows, less those of the negative."""
        positive, negative = self.find(query.positive).ordered(), self.find(query.negative).ordered()
        scores = positive.scores.copy()
        places, hit = _where(negative.addresses, positive.addresses)
        scores[hit] -= np.float32(query.negative_boost) * negative.scores[places[hit]]
        return Hits(positive.addresses, scores)

    def multi_match(self, query: MultiMatchQuery) -> Hits:
        """Each row with the score of its best column."""
        return self._best_of([self.match(part) for part in query.parts()])

    def combined(self, query: CombinedFieldsQuery) -> Hits:
        """Each row with the words of all columns together."""
        columns = [self.column(name) for name in query.columns]
        indexed = [column for column in columns if column.index is not None]
        if not any(self.segments.get(name) for name in query.columns):
            raise InputError("none of the columns has a full-text index", cure="Build an index on one of them.")
        params = indexed[0].tokenizer.params if indexed else columns[0].tokenizer.params
        if any(replace(column.tokenizer.params, with_position=params.with_position) != params for column in indexed):
            raise InputError(
                "the columns of a CombinedFieldsQuery have indices with different tokenizers",
                cure="Build the indices with the same tokenizer options.",
            )
        columns = [self._cut_as(column, params) for column in columns]
        words = [*dict.fromkeys(word for word, _ in columns[0].tokenizer.tokens_of(query.query))]
        found = combined(columns, query.weights, words, all_words=query.operator is FullTextOperator.AND)
        return _NOTHING if found is None else Hits(*found)

    def _cut_as(self, column: TextColumn, params: TextParams) -> TextColumn:
        """A column without an index, cut as others are that have one."""
        if column.index is not None or column.tokenizer.params == params:
            return column
        plain = TextSearch(self.snapshot, fast=self.fast, trust=self.trust, allowed=self.allowed)
        plain._segments, plain._params = {}, {column.name: params}
        return plain.column(column.name)

    def _best_of(self, found: Sequence[Hits]) -> Hits:
        return found[0] if len(found) == 1 else _joined(found, np.maximum)

    def boolean(self, query: BooleanQuery) -> Hits:
        """What MUST and SHOULD say, less what MUST_NOT says."""
        must = [self.find(part).ordered() for part in query.of(Occur.MUST)]
        should = [self.find(part) for part in query.of(Occur.SHOULD)]
        if not must and not should:
            raise InputError("a BooleanQuery needs at least one MUST or SHOULD query")
        wanted = _joined(should, np.add) if should else _NOTHING
        if must:
            found = must[0]
            for other in must[1:]:
                places, hit = _where(other.addresses, found.addresses)
                found = Hits(found.addresses[hit], found.scores[hit] + other.scores[places[hit]])
            places, hit = _where(wanted.addresses, found.addresses)
            scores = found.scores.copy()
            scores[hit] += wanted.scores[places[hit]]
            wanted = Hits(found.addresses, scores)
        for part in query.of(Occur.MUST_NOT):
            kept = ~_where(self.find(part).ordered().addresses, wanted.addresses)[1]
            wanted = Hits(wanted.addresses[kept], wanted.scores[kept])
        return wanted


_FINDERS: dict[type[FullTextQuery], Callable[[TextSearch, Any], Hits]] = {
    MatchQuery: TextSearch.match,
    PhraseQuery: TextSearch.phrase,
    BoostQuery: TextSearch.boost,
    MultiMatchQuery: TextSearch.multi_match,
    CombinedFieldsQuery: TextSearch.combined,
    BooleanQuery: TextSearch.boolean,
}


_Score = Callable[[Documents, Stats, int | None], tuple[Any, Any]]


@dataclass(frozen=True)
class _Scorer:
    """The tokens whose counts matter, and what scores a partition (at least its best so many); None: nothing can match."""

    tokens: Sequence[str]
    score: _Score | None


def _scorer(groups: Sequence[Sequence[str]], *, all_words: bool) -> _Scorer:
    if not any(groups) or (all_words and not all(groups)):
        return _Scorer((), None)

    def score(part: Documents, stats: Stats, most: int | None) -> tuple[Any, Any]:
        return matching.score_words(part, groups, stats, all_words=all_words, most=most)

    return _Scorer([token for group in groups for token in group], score)


def _meanings(query: MatchQuery, parts: Sequence[Documents]) -> list[list[str]]:
    """The tokens each word stands for: all words together get `max_expansions`, the earlier ones first."""
    assert query.fuzziness
    left, groups = query.max_expansions, []
    for word in plain_words(query.query):
        near: set[str] = set()
        for part in parts if left else ():
            near.update(part.similar(word, edits=query.fuzziness, prefix_length=query.prefix_length, most=left))
        groups.append(sorted(near, key=str.encode)[:left])
        left -= len(groups[-1])
    return groups


def _over(column: TextColumn, scorer: _Scorer, others: _Scorer, *, most: int | None = None) -> Hits:
    """Ask every partition, then (with `others`) the rows without an index: those are scored among all."""
    found: list[Hits] = []
    indexed = [item.documents for item in column.indexed]
    if indexed and scorer.score is not None:
        stats = stats_of(indexed, scorer.tokens)
        found.extend(_living(item, scorer.score, stats, most) for item in column.indexed)
    if column.others is not None and others.score is not None:
        documents = column.others.documents
        stats = stats_of([*indexed, documents], others.tokens)
        found.append(_living(column.others, others.score, stats, most))
    if not found:
        return _NOTHING
    if len(found) == 1:
        return found[0]
    return Hits(np.concatenate([hits.addresses for hits in found]), np.concatenate([hits.scores for hits in found]))


def _living(item: Searched, score: _Score, stats: Stats, most: int | None) -> Hits:
    """The documents of a partition whose rows are there: at least the best so many."""
    documents, scores = score(item.documents, stats, most)
    if most is not None and len(scores) > most:
        kept = np.flatnonzero(scores >= np.partition(scores, len(scores) - most)[len(scores) - most])
        best = _where_they_are(item, documents[kept], scores[kept])
        if len(best.scores) >= most:
            return best
    if most is not None and len(scores) >= most:
        # Some of the best may be gone: which others are next is not known yet.
        documents, scores = score(item.documents, stats, None)
    return _where_they_are(item, documents, scores)


def _where_they_are(item: Searched, documents: Any, scores: Any) -> Hits:
    addresses = item.at(documents)
    living = addresses != MISSING
    return Hits(addresses[living], scores[living]) if not living.all() else Hits(addresses, scores)


def _where(ascending: Any, wanted: Any) -> tuple[Any, Any]:
    """(places, whether it is there) of values in an ascending array."""
    if len(ascending) == 0:
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    places = np.minimum(np.searchsorted(ascending, wanted), len(ascending) - 1)
    return places, ascending[places] == wanted


def _joined(found: Sequence[Hits], how: Any) -> Hits:
    """Rows of all, scores of the same row put together by a ufunc."""
    addresses, scores = np.concatenate([hits.addresses for hits in found]), np.concatenate([hits.scores for hits in found])
    order = np.argsort(addresses, kind="stable")
    addresses, scores = addresses[order], scores[order]
    if len(addresses) == 0:
        return _NOTHING
    starts = np.concatenate([[0], np.flatnonzero(addresses[1:] != addresses[:-1]) + 1])
    return Hits(addresses[starts], how.reduceat(scores, starts).astype(np.float32))


def combined(columns: Sequence[TextColumn], boosts: Sequence[float], words: Sequence[str], *, all_words: bool) -> Any:
    """(addresses of live rows ascending, their scores float32), or None when there are none."""
    counted = [_counts(column, words) for column in columns]
    rows: Any = np.unique(np.concatenate([found for lists in counted for found, _ in lists])) if words else ()
    if len(rows) == 0:
        return None
    counts = np.zeros((len(words), len(rows)), np.float32)
    lengths = np.zeros(len(rows), np.float32)
    for column, boost, lists in zip(columns, boosts, counted, strict=True):
        for number, (found, times) in enumerate(lists):
            counts[number, np.searchsorted(rows, found)] += np.float32(boost) * times
        lengths += np.float32(boost) * _lengths(column, rows)
    if all_words:
        kept = (counts > 0).all(axis=0)
        rows, counts, lengths = rows[kept], counts[:, kept], lengths[kept]
    stats = _stats(columns, boosts, words)
    norms = stats.norms(lengths)
    scores = np.zeros(len(rows), np.float32)
    for number, word in enumerate(words):
        scores += stats.weight_of(word) * (SATURATION * counts[number] / (counts[number] + norms))
    return rows, scores


def _parts(column: TextColumn) -> tuple[Searched, ...]:
    return column.indexed if column.others is None else (*column.indexed, column.others)


def _whole(documents: Documents) -> Documents:
    return documents.whole if isinstance(documents, Among) else documents


def _counts(column: TextColumn, words: Sequence[str]) -> list[tuple[Any, Any]]:
    """For each word (addresses of the rows that have it, how often)."""
    lists = []
    for word in words:
        rows, times = [np.empty(0, np.uint64)], [np.empty(0, np.float32)]
        for item in _parts(column):
            posting = item.documents.list_of(word)
            addresses = item.at(posting.documents)
            living = addresses != MISSING
            rows.append(addresses[living])
            times.append(posting.counts[living].astype(np.float32))
        lists.append((np.concatenate(rows), np.concatenate(times)))
    return lists


def _lengths(column: TextColumn, rows: Any) -> Any:
    """Tokens of the rows in a column, 0 where it has none."""
    found = np.zeros(len(rows), np.float32)
    for item in _parts(column):
        addresses, lengths = item.addresses, item.documents.lengths
        if len(addresses) == 0:
            continue
        if not bool((addresses[1:] > addresses[:-1]).all()):
            order = np.argsort(addresses, kind="stable")
            addresses, lengths = addresses[order], lengths[order]
        places = np.minimum(np.searchsorted(addresses, rows), len(addresses) - 1)
        hit = addresses[places] == rows
        found[hit] = lengths[places[hit]]
    return found


def _stats(columns: Sequence[TextColumn], boosts: Sequence[float], words: Sequence[str]) -> Stats:
    # Unlike a MatchQuery, a filter does not change what rows without an index are scored among.
    parts = [[_whole(item.documents) for item in _parts(column)] for column in columns]
    documents = max((sum(part.num_documents for part in items) for items in parts), default=0)
    total = sum(boost * sum(part.total_tokens for part in items) for boost, items in zip(boosts, parts, strict=True))
    having = {word: max(sum(part.count_of(word) for part in items) for items in parts) for word in words}
    return Stats(documents, np.float32(total), having)
