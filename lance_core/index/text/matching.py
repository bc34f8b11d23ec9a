"""Which documents of a partition match, and how well: words, phrases, words that are nearly right.

::

    score_words(part, [["fox"], ["dog", "dogs"]], stats, all_words=False)     (documents, scores)
    score_words(part, [["fox"], ["the"]], stats, all_words=False, most=10)    at least the best ten of them
    score_phrase(part, [("quick", 0), ("fox", 1)], 0, stats)

A partition here is anything that answers what `Documents` asks: stored, or made of rows that no index covers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from lance_core.errors import CorruptFileError
from lance_core.index.text.partition import Posting
from lance_core.index.text.scoring import SATURATION, idf_of, norms_of
from lance_core.kernels.sort import distinct
from lance_core.kernels.text import add_scores

_NONE = np.empty(0, np.uint32), np.empty(0, np.float32)
_ROUNDING = 1.00001
_DENSE = 8
"""When lists have more than one document in so many, scores are kept for all documents of the partition."""


class Documents(Protocol):
    """What can be searched."""

    ids: Any
    lengths: Any
    num_documents: int
    total_tokens: int

    @property
    def scored_lengths(self) -> Any:
        """The lengths of documents by which they are scored."""

    def count_of(self, token: str) -> int:
        """How many documents have a token."""

    def list_of(self, token: str, *, with_places: bool = False) -> Posting:
        """The documents of a token."""

    def similar(self, token: str, *, edits: int, prefix_length: int, most: int) -> list[str]:
        """Tokens at most so many edits away, in the order of their bytes."""


@dataclass(frozen=True)
class Stats:
    """What scores are relative to: documents, tokens, and how many documents have each token of the query."""

    num_documents: int
    total_tokens: Any
    with_token: Mapping[str, int]
    _weights: dict[str, Any] = field(default_factory=dict, repr=False)

    def weight_of(self, token: str) -> Any:
        """The idf of a token, float32."""
        if token not in self._weights:
            self._weights[token] = idf_of(self.with_token[token], self.num_documents)
        return self._weights[token]

    def norms(self, lengths: Any) -> Any:
        """The length part of the score of documents."""
        return norms_of(lengths, self.total_tokens, self.num_documents)


def stats_of(parts: Sequence[Documents], tokens: Iterable[str]) -> Stats:
    """Over several partitions."""
    counts = {token: sum(part.count_of(token) for part in parts) for token in dict.fromkeys(tokens)}
    return Stats(sum(part.num_documents for part in parts), sum(part.total_tokens for part in parts), counts)


def score_words(
    part: Documents, groups: Sequence[Sequence[str]], stats: Stats, *, all_words: bool, most: int | None = None
) -> tuple[Any, Any]:
    """(documents ascending uint32, scores float32). A group is a word with the words it may stand for.

    `most`: documents worse than so many of those that are returned may be left out.
    """
    lists = [[(token, part.list_of(token)) for token in group] for group in groups]
    total = sum(len(found.documents) for group in lists for _, found in group)
    if total == 0 or (all_words and any(not any(len(found.documents) for _, found in group) for group in lists)):
        return _NONE
    flat = [pair for group in lists for pair in group]
    if most is not None and not all_words and len(flat) > 1:
        return _best(part, flat, stats, most)
    documents = _candidates(lists, len(part.ids), total, all_words=all_words)
    if len(documents) == 0:
        return _NONE
    return documents, _scores(part, flat, documents, stats)


def _best(part: Documents, lists: Sequence[tuple[str, Posting]], stats: Stats, most: int) -> tuple[Any, Any]:
    """MaxScore: a document that only has tokens whose best scores add up to less than the score of the last of `most` others
    is not among the best, so lists of common words are only looked up."""
    bounds = np.array([_bound(part, token, found, stats) for token, found in lists])
    order = np.argsort(-bounds, kind="stable")
    documents = lists[order[0]][1].documents
    if len(documents) >= most:
        scores = _scores(part, lists, documents, stats)
        least = np.partition(scores, len(scores) - most)[len(scores) - most]
        # What the lists from each one on can add up to, and what rounding might add to it.
        reach = np.cumsum(bounds[order][::-1])[::-1] * _ROUNDING
        needed = int((reach >= least).sum())
        if needed <= 1:
            return documents, scores
        order = order[:needed]
    documents = _union([lists[place][1].documents for place in order], len(part.ids))
    return documents, _scores(part, lists, documents, stats)


def _bound(part: Documents, token: str, found: Posting, stats: Stats) -> float:
    """The best score that a document gets of this token."""
    counts, lengths = found.impacts(part.scored_lengths)
    if len(counts) == 0:
        return 0.0
    many = counts.astype(np.float32)
    return float((stats.weight_of(token) * (SATURATION * many / (many + stats.norms(lengths)))).max())


def _candidates(lists: Sequence[Sequence[tuple[str, Posting]]], num_documents: int, total: int, *, all_words: bool) -> Any:
    if all_words:
        unions = sorted((_union([found.documents for _, found in group], num_documents) for group in lists), key=len)
        documents = unions[0]
        for other in unions[1:]:
            documents = documents[_contains(other, documents)]
        return documents
    return _union([found.documents for group in lists for _, found in group], num_documents)


def _union(parts: Sequence[Any], num_documents: int) -> Any:
    if len(parts) == 1:
        return parts[0]
    if sum(len(part) for part in parts) * _DENSE < num_documents:
        return distinct(np.concatenate(parts))
    seen = np.zeros(num_documents, np.bool_)
    for part in parts:
        seen[part] = True
    return np.flatnonzero(seen).astype(np.uint32)


def _common(first: Any, second: Any) -> tuple[Any, Any]:
    """Where two ascending arrays have the same documents; the shorter one is looked up in the longer one."""
    if first is second:
        return slice(None), slice(None)
    if len(first) > len(second):
        there, here = _common(second, first)
        return here, there
    places = np.minimum(np.searchsorted(second, first), len(second) - 1)
    here = np.flatnonzero(second[places] == first)
    return here, places[here]


def _contains(ascending: Any, wanted: Any) -> Any:
    places = np.searchsorted(ascending, wanted)
    places[places == len(ascending)] = 0
    return ascending[places] == wanted if len(ascending) else np.zeros(len(wanted), np.bool_)


def _scores(part: Documents, lists: Sequence[tuple[str, Posting]], documents: Any, stats: Stats) -> Any:
    """Scores of the candidates; duplicates of a token count each time."""
    if len(documents) * _DENSE < len(part.ids):
        norms = stats.norms(part.scored_lengths[documents])
        scores = np.zeros(len(documents), np.float32)
        for token, found in lists:
            here, there = _common(documents, found.documents)
            counts = found.counts[there].astype(np.float32)
            scores[here] += stats.weight_of(token) * (SATURATION * counts / (counts + norms[here]))
        return scores
    norms, every = stats.norms(part.scored_lengths), np.zeros(len(part.ids), np.float32)
    for token, found in lists:
        if add_scores(found.documents, found.counts, norms, stats.weight_of(token), SATURATION, every) < 0:
            raise CorruptFileError("a posting list contains a document id that its partition does not have")
    return every[documents]


def score_phrase(part: Documents, words: Sequence[tuple[str, int]], slop: int, stats: Stats) -> tuple[Any, Any]:
    """As `score_words`, for documents that have the words in this order with these distances (or up to `slop` more)."""
    lists = [(token, part.list_of(token, with_places=True)) for token, _ in words]
    if not all(len(found.documents) for _, found in lists):
        return _NONE
    documents = min((found.documents for _, found in lists), key=len)
    for _, found in lists:
        documents = documents[_contains(found.documents, documents)]
    if len(documents) == 0:
        return _NONE
    standing = _spots(lists[0][1], documents)
    for (_, found), (_, place), (_, before) in zip(lists[1:], words[1:], words, strict=False):
        spots = _spots(found, documents)
        least = spots - (place - before)
        reached = np.searchsorted(standing, least, side="right") > np.searchsorted(standing, least - slop, side="left")
        standing = spots[reached]
    kept = documents[distinct(standing >> _DOCUMENT_SHIFT)]
    return (kept, _scores(part, lists, kept, stats)) if len(kept) else _NONE


_DOCUMENT_SHIFT = 34
_PLACE_BIAS = 1 << 33


def _spots(found: Posting, documents: Any) -> Any:
    """Where a token stands in the candidates: (number of the candidate << 34) + 2^33 + place, ascending."""
    assert found.places is not None
    numbers = np.searchsorted(documents, found.documents)
    numbers[numbers == len(documents)] = 0
    hit = documents[numbers] == found.documents
    repeated = np.repeat(hit, found.counts)
    owners = np.repeat(numbers[hit].astype(np.int64), found.counts[hit])
    spots: Any = (owners << _DOCUMENT_SHIFT) + _PLACE_BIAS + found.places[repeated].astype(np.int64)
    return spots
