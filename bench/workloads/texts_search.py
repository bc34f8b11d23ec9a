"""Full text: 1,000,000 short documents (10 to 30 words, Zipf's law over 50,000), an INVERTED index built and searched."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lance_core
from bench.measure import Case

WORDS, QUERIES, K = 50_000, 20, 10
LIBRARIES: Mapping[str, Any] = {"lance_core": lance_core, "pylance": lance}


def cases(folder: Path, scale: float) -> Iterator[Case]:
    """Built once each, then searched for rare and common words."""
    count = int(1_000_000 * scale)
    uris = {name: str(folder / f"{name}.lance") for name in LIBRARIES}
    rng = np.random.default_rng(5)
    vocabulary = _vocabulary(rng)
    first, *others = uris.values()
    lance.write_dataset(pa.table({"id": np.arange(count), "text": _documents(rng, vocabulary, count)}), first)
    for other in others:
        shutil.copytree(first, other)
    for label, options in (("", {}), (" with positions", {"with_position": True})):
        yield Case(
            f"build INVERTED{label}",
            {name: partial(_build, library, uris[name], options) for name, library in LIBRARIES.items()},
            rows=count,
            repeats=1,
        )
    tables = {name: library.dataset(uris[name]) for name, library in LIBRARIES.items()}
    rare, common = vocabulary[2_000:20_000:900][:QUERIES], vocabulary[100 : 100 + QUERIES]
    for label, words in (
        ("one rare word", [str(word) for word in rare]),
        ("two words", [f"{a} {b}" for a, b in zip(common, rare, strict=True)]),
    ):
        yield Case(
            f"search, {label} ({QUERIES} queries)",
            {name: partial(_search, table, words) for name, table in tables.items()},
            check=_same,
        )
    unindexed = [f"contains(text, '{word}')" for word in rare[:1]]
    yield Case(
        "the same word by a filter over the rows",
        {name: partial(_scan, table, unindexed) for name, table in tables.items()},
    )


def _vocabulary(rng: np.random.Generator) -> np.ndarray:
    letters = np.array([*"abcdefghijklmnopqrstuvwxyz"])
    lengths = rng.integers(3, 11, WORDS * 2)
    words = {"".join(rng.choice(letters, length)) for length in lengths.tolist()}
    return np.array(sorted(words, key=lambda word: word[::-1])[:WORDS])


def _documents(rng: np.random.Generator, vocabulary: np.ndarray, count: int) -> pa.Array:
    lengths = rng.integers(10, 31, count)
    ranks = np.minimum(rng.zipf(1.15, int(lengths.sum())) - 1, WORDS - 1)
    spread = np.where(ranks == WORDS - 1, rng.integers(0, WORDS, len(ranks)), ranks)
    words = pa.array(vocabulary).take(pa.array(spread))
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    return pa.compute.binary_join(pa.ListArray.from_arrays(offsets, words), " ")


def _build(library: Any, uri: str, options: Mapping[str, Any]) -> None:
    library.dataset(uri).create_scalar_index("text", "INVERTED", replace=True, **options)


def _search(table: Any, words: list[str]) -> list[list[float]]:
    found = [table.to_table(columns=["id", "_score"], full_text_query=text, limit=K) for text in words]
    return [sorted((round(score, 3) for score in part["_score"].to_pylist()), reverse=True) for part in found]


def _scan(table: Any, tests: list[str]) -> int:
    return sum(table.to_table(columns=["id"], filter=test).num_rows for test in tests)


def _same(results: Mapping[str, object]) -> None:
    if results["lance_core"] != results["pylance"]:
        raise AssertionError("the scores differ")
