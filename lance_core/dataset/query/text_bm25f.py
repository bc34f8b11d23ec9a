"""Search several columns as one text (BM25F): word counts and lengths are summed over all columns.

::

    first "ann", last "lee"     CombinedFieldsQuery("ann lee", ["first", "last"], operator=AND) finds the row
    count = sum of boost * count in a column    length = sum of boost * length
    documents, and documents with a word: those of the column that has most       mean length = all lengths / documents
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lance_core.dataset.query.text_columns import Searched, TextColumn
from lance_core.index.text.matching import Documents, Stats
from lance_core.index.text.scoring import SATURATION
from lance_core.index.text.unindexed import Among
from lance_core.rowids.index import MISSING


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
