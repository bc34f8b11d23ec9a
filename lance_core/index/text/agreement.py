"""Compare a full text index with the texts themselves: every document, every token, how often, where, and all lengths.

::

    stored    doc 0 = row 7 of 2 tokens, "fox": [doc 0 twice]
    counted   row 7: "fox fox"                                       they agree

Documents of rows that are gone still count in scores; of those the lists must add up to the length that is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lance_core.index.scalar.agreement import places_of, require
from lance_core.index.text.partition import Partition, Posting
from lance_core.index.text.unindexed import MemoryPartition


def require_agreement(partitions: Sequence[Partition], counted: MemoryPartition) -> None:
    """Raises CorruptFileError unless the partitions say of the counted documents what they are."""
    ids = np.concatenate([part.ids for part in partitions]) if partitions else np.empty(0, np.uint64)
    lengths = np.concatenate([part.lengths for part in partitions]) if partitions else np.empty(0, np.uint32)
    places = places_of(ids, counted.ids)
    require(np.array_equal(lengths[places], counted.lengths), "a document has another length")
    numbers = np.full(len(ids), -1, np.int64)
    numbers[places] = np.arange(len(places))
    found: dict[bytes, list[tuple[Posting, Any]]] = {}
    first = 0
    for part in partitions:
        mine = numbers[first : first + len(part.ids)]
        first += len(part.ids)
        for token, posting in _lists(part):
            found.setdefault(token, []).append((posting, mine[posting.documents]))
    for name, pieces in found.items():
        _require_list(name.decode("utf-8", "replace"), pieces, counted)
    missing = counted.tokens() - {name.decode("utf-8", "replace") for name in found}
    require(not missing, "a token has no list")


def _lists(part: Partition) -> Iterator[tuple[bytes, Posting]]:
    """Every token with its list. The lists must add up to the lengths of all documents."""
    tokens = {number: token for token, number in part.tokens.numbers.items()}
    require(len(tokens) == len(part.tokens.numbers) == len(part.sizes), "tokens and lists are not one to one")
    sums = np.zeros(len(part.ids), np.int64)
    for number, posting in part.every_list():
        np.add.at(sums, posting.documents, posting.counts)
        yield tokens[number], posting
    require(np.array_equal(sums, part.lengths), "the lists do not add up to the lengths of documents")


def _require_list(token: str, pieces: Sequence[tuple[Posting, Any]], counted: MemoryPartition) -> None:
    with_places = all(posting.places is not None for posting, _ in pieces)
    documents, counts, places = _joined(pieces, with_places=with_places)
    wanted = counted.list_of(token, with_places=with_places)
    same = np.array_equal(documents, wanted.documents) and np.array_equal(counts, wanted.counts)
    if with_places and wanted.places is not None:
        same = same and np.array_equal(places, wanted.places)
    require(same, f"the list of {token!r} differs")


def _joined(pieces: Sequence[tuple[Posting, Any]], *, with_places: bool) -> tuple[Any, Any, Any]:
    """Documents by the numbers they were counted with, ascending; those that were not are left out."""
    numbers = np.concatenate([mine for _, mine in pieces])
    counts = np.concatenate([posting.counts for posting, _ in pieces])
    living = numbers >= 0
    order = np.argsort(numbers[living], kind="stable")
    documents, kept = numbers[living][order], counts[living][order]
    if not with_places:
        return documents, kept, None
    places = np.concatenate([posting.places for posting, _ in pieces])
    if bool(living.all()) and bool((order[1:] > order[:-1]).all()):
        return documents, kept, places
    ends = np.cumsum(counts)
    spans = [slice(int(end - size), int(end)) for end, size in zip(ends[living][order], kept, strict=True)]
    return documents, kept, np.concatenate([places[span] for span in spans]) if spans else places[:0]
