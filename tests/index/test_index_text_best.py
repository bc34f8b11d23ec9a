"""Searches that want the best few rows: the same as the first of all rows that match, although lists of common words are
only looked up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.index.text.matching import score_words, stats_of
from lance_core.index.text.partition import Posting
from lance_core.index.text.query import BooleanQuery, BoostQuery, MatchQuery, Occur

WORDS = [f"w{number:03d}" for number in range(200)]
QUERIES = [
    "w000 w150",
    "w002 w050 w170",
    "w000 w001",
    "w120",
    "w199 w000 w000",
    "w003 nothing",
    "nothing",
    "w000 w001 w002 w003",
]


def texts(rng: np.random.Generator, count: int) -> pa.Array:
    lengths = rng.integers(1, 30, count)
    return pa.array(
        [" ".join(WORDS[min(int(rank) - 1, 199)] for rank in rng.zipf(1.3, length)) for length in lengths.tolist()]
    )


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Two segments, rows without an index, and deleted rows among the best of each query."""
    rng = np.random.default_rng(7)
    uri = str(tmp_path_factory.mktemp("best") / "t")
    handle = lance_core.write_dataset(pa.table({"id": np.arange(3000), "text": texts(rng, 3000)}), uri)
    handle.create_scalar_index("text", "INVERTED")
    handle = lance_core.write_dataset(pa.table({"id": np.arange(3000, 4000), "text": texts(rng, 1000)}), uri, mode="append")
    handle.optimize.optimize_indices(num_indices_to_merge=0)
    return lance_core.write_dataset(pa.table({"id": np.arange(4000, 4300), "text": texts(rng, 300)}), uri, mode="append")


def every(handle: Any, query: Any, **options: Any) -> list[tuple[int, float]]:
    found = handle.to_table(columns=["id", "_score"], full_text_query=query, **options)
    return [*zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True)]


@pytest.mark.parametrize("query", QUERIES)
def test_the_best_are_the_first_of_all(table: Any, query: str) -> None:
    whole = every(table, query)
    for limit in (1, 2, 10, 57, 400, 5000):
        assert every(table, query, limit=limit) == whole[:limit]
        assert every(table, query, limit=limit, offset=3) == whole[3 : limit + 3]


@pytest.mark.parametrize("query", QUERIES)
def test_rows_that_are_gone_or_not_wanted_make_room_for_the_next(table: Any, query: str, tmp_path: Path) -> None:
    whole = every(table, query)
    tested = [row for row in whole if row[0] % 3 == 0]
    for limit in (1, 10, 100):
        before = {"filter": "id % 3 = 0", "prefilter": True}
        assert every(table, query, limit=limit, **before) == every(table, query, **before)[:limit]
        assert every(table, query, limit=limit, filter="id % 3 = 0") == [row for row in whole[:limit] if row in tested]
    copy = lance_core.write_dataset(table.to_table(), str(tmp_path / "t"))
    copy.create_scalar_index("text", "INVERTED")
    gone = [row for row, _ in every(copy, query)[:25:2]]
    if gone:
        copy.delete(f"id in ({', '.join(map(str, gone))})")
    left = every(copy, query)
    assert not {row for row, _ in left} & {*gone}
    for limit in (1, 7, 10, 60):
        assert every(copy, query, limit=limit) == left[:limit]


@pytest.mark.parametrize(
    "query",
    [
        MatchQuery("w000 w150", "text", boost=0.37),
        MatchQuery("w000 w150", "text", boost=-1.0),
        MatchQuery("w00 w150", "text", fuzziness=1),
        MatchQuery("w000 w150", "text") & MatchQuery("w001", "text"),
        BooleanQuery([(Occur.SHOULD, MatchQuery("w000 w150", "text")), (Occur.MUST_NOT, MatchQuery("w003", "text"))]),
        BoostQuery(MatchQuery("w000 w150", "text"), MatchQuery("w002", "text"), negative_boost=0.5),
    ],
    ids=["boost", "negative", "fuzzy", "and", "boolean", "less"],
)
def test_other_queries(table: Any, query: Any) -> None:
    whole = every(table, query)
    assert every(table, query, limit=10) == whole[:10]


class Part:
    """A partition in memory."""

    def __init__(self, rng: np.random.Generator, count: int, shares: dict[str, float]) -> None:
        self.ids, self.num_documents = np.arange(count, dtype=np.uint64), count
        self.lengths = self.scored_lengths = rng.integers(1, 40, count).astype(np.uint32)
        self.total_tokens = int(self.lengths.sum())
        self.lists = {}
        for token, share in shares.items():
            documents = np.flatnonzero(rng.random(count) < share).astype(np.uint32)
            self.lists[token] = Posting(documents, np.minimum(rng.zipf(1.7, len(documents)), 5000).astype(np.uint32))

    def count_of(self, token: str) -> int:
        return len(self.lists[token].documents)

    def list_of(self, token: str, *, with_places: bool = False) -> Posting:
        return self.lists[token]

    def similar(self, token: str, *, edits: int, prefix_length: int, most: int) -> list[str]:
        return []


@pytest.mark.parametrize("seed", range(12))
def test_no_document_that_is_left_out_is_as_good(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shares = {f"t{number}": float(share) for number, share in enumerate(rng.choice([0, 0.001, 0.02, 0.2, 0.7, 1], 4))}
    part = Part(rng, 4000, shares)
    groups = [[token] for token in rng.choice([*shares], rng.integers(1, 6)).tolist()]
    stats = stats_of([part], [token for group in groups for token in group])
    documents, scores = score_words(part, groups, stats, all_words=False)
    by_document = dict(zip(documents.tolist(), scores.tolist(), strict=True))
    for most in (1, 10, 300):
        kept, best = score_words(part, groups, stats, all_words=False, most=most)
        assert [by_document[document] for document in kept.tolist()] == best.tolist()  # to the bit
        assert bool((np.diff(kept.astype(np.int64)) > 0).all())
        left_out = [score for document, score in by_document.items() if document not in {*kept.tolist()}]
        if left_out:
            assert max(left_out) < np.sort(best)[-most]


def test_the_list_of_a_common_word_is_only_looked_up() -> None:
    part = Part(np.random.default_rng(0), 50_000, {"common": 0.3, "rare": 0.002})
    part.lists["common"] = Posting(part.lists["common"].documents, np.ones_like(part.lists["common"].counts))
    stats = stats_of([part], ["common", "rare"])
    documents, _ = score_words(part, [["common"], ["rare"]], stats, all_words=False, most=10)
    assert documents.tolist() == part.lists["rare"].documents.tolist()
