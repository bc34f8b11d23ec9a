"""Stop words and stems of every language: what either library leaves out and makes of words, the other does."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from lance_core.dataset.handle.open import dataset
from lance_core.dataset.indexing.scalar_search import open_segment, usable_segments
from lance_core.errors import UnsupportedFeatureError
from lance_core.index.text.inverted import Inverted
from lance_core.index.text.params import LANGUAGES
from lance_core.index.text.tokenize import stop_words_of

QUICK = ("Arabic", "French", "German", "Greek", "Romanian", "Russian", "Tamil", "Turkish")


def words_of(language: str) -> list[str]:
    """Stop words, the same with capitals, words made of them that are none, and some that are stemmed."""
    stops = sorted(stop_words_of(language))
    chosen = random.Random(language).sample(stops, min(60, len(stops)))
    joined = (first + second for first, second in itertools.pairwise(chosen))
    return [*chosen, *(word.capitalize() for word in chosen[:20]), *joined]


def tokens(uri: str) -> dict[int, set[str]]:
    """Document -> its tokens, as stored."""
    table = dataset(uri)
    (segment,) = usable_segments(table.snapshot)["s"]
    index = open_segment(table.snapshot, segment)
    assert isinstance(index, Inverted)
    found: dict[int, set[str]] = {}
    for part in index.partitions:
        for token in part.tokens.numbers:
            for document in part.list_of(token.decode()).documents:
                found.setdefault(int(part.ids[document]), set()).add(token.decode())
    return found


@pytest.mark.parametrize(
    "language", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in LANGUAGES]
)
def test_language(tmp_path: Path, language: str) -> None:
    words = words_of(language)
    texts = [*words, *(" ".join(words[at : at + 7]) for at in range(0, len(words), 5))]
    stored, scores = [], []
    for builder in (dataset, lance.dataset):
        uri = str(tmp_path / f"{builder.__module__}.lance")
        lance.write_dataset(pa.table({"id": range(len(texts)), "s": texts}), uri)
        actor: Any = builder(uri)
        actor.create_scalar_index("s", "INVERTED", language=language, stem=True, remove_stop_words=True)
        stored.append(tokens(uri))
        for asker in (dataset, lance.dataset):
            table: Any = asker(uri)
            found = [table.to_table(columns=["id", "_score"], full_text_query=word, limit=9) for word in words[-6:]]
            scores.append([[round(score, 4) for score in answer["_score"].to_pylist()] for answer in found])
    assert stored[0] == stored[1] and 0 < len(stored[0]) < len(texts)
    assert scores[0] == scores[1] == scores[2] == scores[3] and any(scores[0])


def test_every_language_has_a_list() -> None:
    assert all(len(stop_words_of(language)) > 40 for language in LANGUAGES)
    assert {"the", "you've"} < stop_words_of("English") and "und" in stop_words_of("German")
    for language in ("Klingon", "../english"):
        with pytest.raises(UnsupportedFeatureError):
            stop_words_of(language)
