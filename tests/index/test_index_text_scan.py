"""Text searches of columns without an index: the rows and scores of the official library, which cuts such texts as they are.

`LANCE_TEXT_SEED` picks another seed than the one of each day's sample.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import lance.query
import pyarrow as pa
import pytest

import lance_core
import lance_core.query

WORDS = [
    "Some", "some", "words", "the", "The", "and", "running", "Runs", "ran", "café", "CAFE", "Café", "naïve", "x1",
    "1234", "1.5", "foo-bar", "don't", "a", "I", "über", "ÜBER", "日本語", "hello, world", "e-mail@x.org", "Straße",
    "STRASSE", "éa", "New York", "cats", "cat", "dog's", "x" * 39, "x" * 40, "y" * 200, "_under_score_", "tab\tbed",
    "new\nline", "İstanbul", "ﬁne", "٣٤", "\u00a0", "",
]  # fmt: skip
SEED = int(os.environ.get("LANCE_TEXT_SEED", "29"))
Make = Callable[[Any], Any]


def _table(rng: random.Random, uri: str, *, indexed: bool) -> None:
    texts = [" ".join(rng.choice(WORDS) for _ in range(rng.randrange(0, 9))) for _ in range(70)]
    rows = pa.table({"i": range(72), "t": [*texts, None, ""], "u": [*texts[::-1], "", None]})
    lance.write_dataset(rows.slice(0, 50), uri, max_rows_per_file=25, data_storage_version="2.1")
    if indexed:
        kinds = {"stem": False, "remove_stop_words": False, "ascii_folding": False, "lower_case": False}
        lance.dataset(uri).create_scalar_index("u", "INVERTED", with_position=True, max_token_length=None, **kinds)
    lance.write_dataset(rows.slice(50), uri, mode="append")
    lance.dataset(uri).delete("i in (3, 30, 55)")


def _queries(rng: random.Random, column: str, count: int) -> Iterator[tuple[str, Make]]:
    def match(text: str, **options: Any) -> Make:
        return lambda library: library.MatchQuery(text, column, **options)

    for _ in range(count):
        one, two = rng.choice(WORDS), rng.choice(WORDS)
        both = f"{one} {two}"
        yield f"match {one!r}", match(one)
        yield f"either {both!r}", match(both)
        yield f"fuzzy {one!r}", match(one, fuzziness=rng.choice([1, 2, None]))
        yield f"both {both!r}", lambda q, text=both: q.MatchQuery(text, column, operator=q.FullTextOperator.AND)
        yield f"phrase {both!r}", lambda q, text=both: q.PhraseQuery(text, column)
        yield f"boost {both!r}", lambda q, one=one, two=two: q.BoostQuery(match(one)(q), match(two)(q))
        for first, second in (("MUST", "MUST_NOT"), ("SHOULD", "SHOULD"), ("MUST", "SHOULD"), ("MUST", "MUST")):
            yield (
                f"{first} {one!r} {second} {two!r}",
                lambda q, one=one, two=two, first=first, second=second: q.BooleanQuery(
                    [(q.Occur[first], match(one)(q)), (q.Occur[second], match(two)(q))]
                ),
            )


def _found(library: Any, uri: str, query: Any, **options: Any) -> dict[int, float] | str:
    try:
        rows = library.dataset(uri).to_table(columns=["i"], full_text_query=query, **options)
    except (OSError, ValueError, RuntimeError):
        return "refused"
    return dict(zip(rows["i"].to_pylist(), rows["_score"].to_pylist(), strict=True))


def _differences(uri: str, rng: random.Random, column: str, count: int) -> tuple[int, list[str]]:
    asked, different = 0, []
    for title, make in _queries(rng, column, count):
        options: dict[str, Any] = rng.choice([{}, {}, {"filter": "i > 20", "prefilter": True}, {"filter": "i > 20"}])
        found = _found(lance_core, uri, make(lance_core.query), **options)
        expected = _found(lance, uri, make(lance.query), **options)
        asked += 1
        if isinstance(found, str) or isinstance(expected, str):
            same = found == expected
        else:
            same = found == pytest.approx(expected, rel=1e-5, abs=1e-6)
        if not same:
            different.append(f"{title} {options}: {found} for {expected}")
    return asked, different


def _compared(tmp_path: Path, seed: int, *, indexed: bool, count: int) -> None:
    rng = random.Random(f"{seed} {indexed}")
    uri = str(tmp_path / "t.lance")
    _table(rng, uri, indexed=indexed)
    asked, different = _differences(uri, rng, "u" if indexed else "t", count)
    assert not different, f"seed {seed}: {len(different)} of {asked} searches differ, first {different[:3]}"


@pytest.mark.parametrize("indexed", [False, True])
def test_searches_find_what_the_official_library_finds(tmp_path: Path, indexed: bool) -> None:
    _compared(tmp_path, SEED, indexed=indexed, count=12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(50))
@pytest.mark.parametrize("indexed", [False, True])
def test_many_searches_find_what_the_official_library_finds(tmp_path: Path, indexed: bool, seed: int) -> None:
    _compared(tmp_path, seed, indexed=indexed, count=10)


def test_an_index_of_the_same_tokens_changes_no_answer(tmp_path: Path) -> None:
    plain, indexed = str(tmp_path / "plain"), str(tmp_path / "indexed")
    for uri in (plain, indexed):
        _table(random.Random(1), uri, indexed=False)
    kinds = {"stem": False, "remove_stop_words": False, "ascii_folding": False, "lower_case": False}
    lance_core.dataset(indexed).create_scalar_index("t", "INVERTED", with_position=True, max_token_length=None, **kinds)
    for title, make in _queries(random.Random(2), "t", 12):
        if not title.startswith("fuzzy"):  # only an index has words that are near
            query = make(lance_core.query)
            expected = _found(lance_core, plain, query)
            assert _found(lance_core, indexed, query) == pytest.approx(expected, rel=1e-5, abs=1e-6), title
