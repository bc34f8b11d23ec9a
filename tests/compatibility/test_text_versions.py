"""Full text indices of every version: those of old releases are searched as the official library does, the rest is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.index.text.partition import decode_wide_postings
from tests.compatibility.old_tables import releases, unpack

WORDS = ("alpha", "beta fox", "17", "jumps over", "the", "Gamma 2", "nothing")
ALL = [name for name in releases() if (0, 17) <= tuple(map(int, name.split("."))) < (9,)]
SAMPLED = {"0.17.0", "0.20.0", "0.27.2", "0.28.0", "4.0.2"}


def answers(dataset: Any, query: Any, **options: Any) -> dict[int, float]:
    """The score of each row that is found."""
    found = dataset.to_table(columns=[], full_text_query=query, with_row_id=True, limit=1000, **options)
    return dict(zip(found.column("_rowid").to_pylist(), found.column("_score").to_pylist(), strict=True))


def assert_same_answers(uri: str, queries: tuple[Any, ...], *, may_be_empty: bool = True) -> None:
    for query in queries:
        for fast in (False, True):
            theirs = answers(lance.dataset(uri), query, fast_search=fast)
            ours = answers(lance_core.dataset(uri), query, fast_search=fast, strict_index=True)
            assert ours == pytest.approx(theirs, rel=1e-5), (query, fast)
            assert ours or may_be_empty, (query, fast)


@pytest.mark.parametrize("release", [pytest.param(name, marks=() if name in SAMPLED else pytest.mark.slow) for name in ALL])
def test_indices_of_old_releases_are_searched(release: str, tmp_path: Path) -> None:
    unpack(release, tmp_path)
    queries = tuple({"query": words, "columns": ["text"]} for words in WORDS)
    for name in ("indices", "indices-optimised"):
        uri = str(tmp_path / name)
        assert_same_answers(uri, queries)
        theirs = lance.dataset(uri).index_statistics("text_idx")
        dataset = lance_core.dataset(uri)
        assert dataset.index_statistics("text_idx")["num_indexed_rows"] == theirs["num_indexed_rows"]
        dataset.optimize.optimize_indices()
        assert_same_answers(uri, queries)


@pytest.mark.parametrize(
    "options", [{"format_version": 1}, {"format_version": 2}, {"format_version": 3}, {"block_size": 256}]
)
def test_phrases_of_each_version(options: dict[str, Any], tmp_path: Path) -> None:
    texts = [f"quick fox {i % 7} jumps {i} fox" + " again and again fox" * (i % 5 * 60) for i in range(300)]
    lance.write_dataset(pa.table({"id": range(300), "s": texts}), tmp_path)
    lance.dataset(tmp_path).create_scalar_index("s", "INVERTED", with_position=True, **options)
    phrases = ('"quick fox"', '"fox 3"', '"jumps 17"', '"again fox"', '"fox again"', "fox 17")
    assert_same_answers(str(tmp_path), phrases, may_be_empty=False)
    lance.write_dataset(pa.table({"id": range(300, 340), "s": texts[:40]}), tmp_path, mode="append")
    lance.dataset(tmp_path).delete("id % 11 = 3")
    assert_same_answers(str(tmp_path), phrases, may_be_empty=False)
    lance_core.dataset(str(tmp_path)).optimize.optimize_indices()
    assert_same_answers(str(tmp_path), phrases, may_be_empty=False)
    lance.dataset(tmp_path).validate()


def test_phrases_of_the_first_layout(tmp_path: Path) -> None:
    """The official library refuses phrases here, although the index has positions."""
    unpack("0.27.2", tmp_path)
    dataset = lance_core.dataset(str(tmp_path / "indices"))
    texts = dict(zip(*dataset.to_table(["text"], with_row_id=True).to_pydict().values(), strict=True))
    for words in ("alpha fox", "jumps over", "over alpha", "fox 17", "fox over"):
        query = lance_core.query.PhraseQuery(words, "text")
        found = answers(dataset, query, strict_index=True)
        assert found.keys() == {row for text, row in texts.items() if f" {words} " in f" {text} "}, words


@pytest.mark.parametrize("options", [{"format_version": 3}, {"block_size": 256}])
def test_version_three_is_found_without_the_columns_name(options: dict[str, Any], tmp_path: Path) -> None:
    texts = [f"the quick fox {i % 7} jumps {i}" for i in range(300)]
    lance.write_dataset(pa.table({"id": range(300), "s": texts}), tmp_path)
    lance.dataset(tmp_path).create_scalar_index("s", "INVERTED", **options)
    for query in ("foxes", "jumps 7", {"query": "quick 250", "columns": ["s"]}):
        theirs = lance.dataset(tmp_path).to_table(columns=["id"], full_text_query=query, limit=1000)
        ours = lance_core.dataset(str(tmp_path)).to_table(["id"], full_text_query=query, limit=1000)
        assert sorted(ours.column("id").to_pylist()) == sorted(theirs.column("id").to_pylist())
        assert ours.num_rows > 0


def test_blocks_of_256_documents_are_searched_with_the_official_scores(tmp_path: Path) -> None:
    """Whole blocks and short ones, counts that need more bits than the rest of their block, lengths that are rounded."""
    random = np.random.default_rng(7)
    counts = np.where(random.random(2500) < 0.02, random.integers(200, 5000, 2500), random.integers(0, 4, 2500))
    texts = [f"alpha w{i % 60} " + "beta " * count + "pad " * (i % 150) for i, count in enumerate(counts.tolist())]
    lance.write_dataset(pa.table({"id": range(2500), "s": texts}), tmp_path)
    lance.dataset(tmp_path).create_scalar_index("s", "INVERTED", block_size=256)
    lance.write_dataset(pa.table({"id": range(2500, 2600), "s": texts[:100]}), tmp_path, mode="append")
    lance.dataset(tmp_path).delete("id % 7 = 0")
    dataset = lance_core.dataset(str(tmp_path))
    assert dataset.index_statistics("s_idx")["indices"][0]["params"]["block_size"] == 256
    for query in ("alpha", "beta", "beta w3", "pad w17 w18", "nothing"):
        theirs = lance.dataset(tmp_path).to_table(columns=["id", "_score"], full_text_query=query, limit=5000)
        ours = dataset.to_table(["id", "_score"], full_text_query=query, limit=5000, strict_index=True)
        assert dict(zip(*ours.to_pydict().values(), strict=True)) == pytest.approx(
            dict(zip(*theirs.to_pydict().values(), strict=True)), rel=1e-5
        )


@pytest.mark.parametrize("size", [0, 4, 5, 37, 39, 70, 71, 72])
def test_a_block_of_256_documents_that_is_cut_off_is_found(size: int) -> None:
    # Documents 0 to 255 in one bit each, counts of no bits with one exception: number 7 is 1 + (3 << 0).
    block = bytes(4) + bytes([1]) + b"\xfe" + b"\xff" * 31 + bytes([1, 1]) + b"\xff" * 32 + bytes([7, 3])
    starts, firsts = np.array([0, len(block)]), np.array([0, 256])
    documents, counts = np.zeros(256, np.uint32), np.zeros(256, np.uint32)
    assert decode_wide_postings(np.frombuffer(block, np.uint8), starts, firsts, documents, counts) == 0
    assert documents.tolist() == list(range(256))
    assert (counts[7], set(counts.tolist())) == (7, {1, 7})
    short = np.frombuffer(block[:size], np.uint8)
    assert decode_wide_postings(short, np.array([0, len(short)]), firsts, documents, counts) < 0
