"""A full-text build takes the memory that it reckons with, encodes lists in windows, and finds the stem of a word once."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.index.base import ID, VALUE
from lance_core.index.text import build
from lance_core.index.text.build import encode_lists
from lance_core.index.text.params import parse_params
from lance_core.index.text.tokenize import Tokenizer, tokenizer_of

WORDS = np.array([f"w{number}" for number in range(500)])


def partition_of(num_documents: int, *, with_position: bool, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    partition = build._Partition()
    tokenizer = tokenizer_of(parse_params({"with_position": with_position}))
    for first in range(0, num_documents, 20_000):
        count = min(20_000, num_documents - first)
        texts = [" ".join(row) for row in WORDS[rng.zipf(1.5, (count, 10)) % len(WORDS)]]
        ids = pa.array(np.arange(first, first + count, dtype=np.uint64))
        build._add(partition, tokenizer, pa.RecordBatch.from_arrays([pa.array(texts), ids], [VALUE, ID]))
    return partition


def encoded(partition: Any, *, with_position: bool) -> pa.Table:
    lengths = np.concatenate(partition.lengths)
    lists = build._lists(partition, len(partition.vocabulary), has_places=with_position)
    return encode_lists(lists, lengths, int(lengths.sum()), has_places=with_position)


@pytest.mark.parametrize("with_position", [False, True], ids=["words", "places"])
def test_a_partition_takes_no_more_memory_than_it_reckons_with(with_position: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read and what is made of it: a limit holds, and a build that fits is not split."""
    monkeypatch.setattr(build, "WINDOW_TOKENS", 1 << 15)
    encoded(partition_of(1_000, with_position=with_position), with_position=with_position)
    tracemalloc.start()
    try:
        partition = partition_of(60_000, with_position=with_position)
        reckoned = partition.num_bytes
        tracemalloc.reset_peak()
        encoded(partition, with_position=with_position)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert partition.num_tokens == 600_000
    assert peak <= reckoned, (peak / partition.num_tokens, reckoned / partition.num_tokens)


@pytest.mark.parametrize("with_position", [False, True], ids=["words", "places"])
def test_lists_are_the_same_in_windows_of_any_size(with_position: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for size in (1, 700, 1 << 20):
        monkeypatch.setattr(build, "WINDOW_TOKENS", size)
        found.append(encoded(partition_of(3_000, with_position=with_position), with_position=with_position))
    assert found[0].num_rows > 300
    assert found[0].equals(found[2])
    assert found[1].equals(found[2])


def test_a_word_is_stemmed_once_however_many_partitions_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second partition took as long for its words as the first."""
    stemmed: list[str] = []
    stem = Tokenizer._stem
    monkeypatch.setattr(Tokenizer, "_stem", lambda self, text: (stemmed.append(text), stem(self, text))[1])
    rng = np.random.default_rng(1)
    texts = [" ".join(row) for row in rng.choice(WORDS[:40], (6_000, 5))]
    ds = lance_core.write_dataset(pa.table({"t": texts}), tmp_path / "t", max_rows_per_file=1_000)
    monkeypatch.setattr("lance_core.index.memory.DEFAULT_MEMORY", 300_000)
    ds.create_scalar_index("t", "INVERTED", with_position=True)
    assert ds.stats.index_stats("t_idx")["indices"][0]["num_partitions"] > 1
    assert sorted(stemmed) == sorted({*stemmed})
    hits = ds.to_table(full_text_query="w7", limit=6_000)
    assert hits.num_rows == sum("w7" in text.split() for text in texts)


def test_words_that_take_too_much_memory_are_not_handed_on() -> None:
    partition = partition_of(100, with_position=False)
    assert partition.known_after(1 << 20).token_of(b"w1", Tokenizer(parse_params({}))) == "w1"
    assert not partition.known_after(1 << 10).numbers
