"""Full text search: built by us and asked by the official library, built by it and asked by us, over random histories."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import lance
import lance.query
import pyarrow as pa
import pytest

import lance_core.query
from lance_core.dataset.handle.open import dataset
from tests.index.text_tables import any_query, difference, texts

OPTIONS: list[dict[str, Any]] = [
    {},
    {"stem": False},
    {"base_tokenizer": "whitespace", "lower_case": False, "stem": False},
    {"remove_stop_words": False, "ascii_folding": False},
]


def compare(uri: str, rng: random.Random, count: int) -> None:
    theirs, ours = lance.dataset(uri), dataset(uri)
    for _ in range(count):
        make, more = any_query(rng), {"limit": rng.choice([5, 20, 1000])}
        if rng.random() < 0.3:
            more |= {"filter": f"id % {rng.choice([2, 7])} = 1", "prefilter": True}
        if rng.random() < 0.2:
            more["fast_search"] = True
        query = make(lance_core.query)
        expected = theirs.to_table(columns=["id", "_score"], full_text_query=make(lance.query), **more)
        found = ours.to_table(["id", "_score"], full_text_query=query, strict_index=True, **more)
        assert difference(expected, found) is None, (query, more, difference(expected, found))


def step(uri: str, rng: random.Random, number: int) -> str:
    verb = rng.choice(["append", "delete", "update", "compact", "optimize", "delta"])
    actor: Any = rng.choice([lance.dataset(uri), dataset(uri)])
    if verb == "append":
        lance.write_dataset(texts(60, first=1000 * (number + 1), seed=number), uri, mode="append")
    elif verb == "delete":
        actor.delete(f"id % 11 = {rng.randrange(11)}")
    elif verb == "update":
        actor.update({"s": "'fox box'"}, where=f"id % 17 = {rng.randrange(17)}")
    elif verb == "compact":
        actor.optimize.compact_files(target_rows_per_fragment=300)
    else:
        actor.optimize.optimize_indices(**({"num_indices_to_merge": 0} if verb == "delta" else {}))
    return verb


@pytest.mark.parametrize("builder", ["ours", "theirs"])
@pytest.mark.parametrize("seed", range(2))
def test_histories(tmp_path: Path, seed: int, builder: str) -> None:
    rng = random.Random(f"{seed}{builder}")
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(texts(500, seed=seed), uri, max_rows_per_file=170)
    actor: Any = dataset(uri) if builder == "ours" else lance.dataset(uri)
    for column in "st":
        actor.create_scalar_index(column, "INVERTED", with_position=True, **OPTIONS[(seed * 2 + (builder == "ours")) % 4])
    for number in range(2):
        compare(uri, rng, 10)
        step(uri, rng, number)
    compare(uri, rng, 10)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_many_histories(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(texts(500, seed=seed), uri, max_rows_per_file=170)
    for column in "st":
        actor: Any = rng.choice([dataset(uri), lance.dataset(uri)])
        actor.create_scalar_index(column, "INVERTED", with_position=True, **rng.choice(OPTIONS))
    for number in range(8):
        compare(uri, rng, 25)
        step(uri, rng, number)


def test_stable_row_ids_find_no_stale_row(tmp_path: Path) -> None:
    """Updated rows keep their ids; the words they had find them no more (the official library still finds them)."""
    uri = str(tmp_path / "t.lance")
    table = texts(400)
    lance.write_dataset(table, uri, max_rows_per_file=100, enable_stable_row_ids=True)
    ours = dataset(uri)
    ours.create_scalar_index("s", "INVERTED", stem=False)
    ours.delete("id % 7 = 0")
    ours.update({"s": "'otter'"}, where="id % 5 = 0")
    ours.optimize.compact_files(target_rows_per_fragment=1000)
    for word in ("fox", "otter", "zebra"):
        rows = ours.to_table(["id", "s"]).to_pylist()
        expected = {row["id"] for row in rows if word in (row["s"] or "").split()}
        assert set(ours.to_table(["id"], full_text_query=word)["id"].to_pylist()) == expected


def test_filter_after_and_before(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(texts(300), uri)
    ours = dataset(uri)
    ours.create_scalar_index("s", "FTS")
    theirs = lance.dataset(uri)
    for more in ({}, {"prefilter": True}, {"offset": 3}, {"prefilter": True, "offset": 2}):
        options: dict[str, Any] = {"filter": "id < 150", "limit": 10, **more}
        left = theirs.to_table(columns=["id", "_score"], full_text_query="fox dog", **options)
        found = ours.to_table(["id", "_score"], full_text_query="fox dog", **options)
        assert found["_score"].to_pylist() == pytest.approx(left["_score"].to_pylist(), abs=1e-4), more
        assert "offset" in more or difference(left, found) is None, more  # rows that tie may come in any order
    assert ours.to_table(full_text_query={"query": "fox", "columns": ["s"]}, limit=2).column_names == [
        "id",
        "s",
        "t",
        "_score",
    ]
    assert ours.scanner(full_text_query="fox", with_row_id=True).to_table().column_names[-1] == "_rowid"
    assert ours.scanner(full_text_query="fox").count_rows() == theirs.scanner(full_text_query="fox").count_rows()
    told = ours.scanner(full_text_query="fox", limit=3).explain_plan()
    assert "MatchQuery: s_idx (Inverted) on s" in told


@pytest.mark.parametrize(
    "options",
    [
        {"base_tokenizer": "ngram", "min_ngram_length": 2, "max_ngram_length": 3},
        {"base_tokenizer": "ngram", "prefix_only": True},
        {"base_tokenizer": "raw", "stem": False, "remove_stop_words": False},
        {"custom_stop_words": ["fox", "dog"], "with_position": True},
        {"max_token_length": 5},
        {"language": "German", "remove_stop_words": False},
    ],
)
def test_tokenizers(tmp_path: Path, options: dict[str, Any]) -> None:
    for builder in ("ours", "theirs"):
        uri = str(tmp_path / f"{builder}.lance")
        lance.write_dataset(texts(300), uri)
        actor: Any = dataset(uri) if builder == "ours" else lance.dataset(uri)
        actor.create_scalar_index("s", "INVERTED", **options)
        theirs, ours = lance.dataset(uri), dataset(uri)
        for text in ("fox", "apple dog", "Straße", "crème", "run", "nothing at all", "ap"):
            expected = theirs.to_table(columns=["id", "_score"], full_text_query=text, limit=20)
            found = ours.to_table(["id", "_score"], full_text_query=text, limit=20, strict_index=True)
            assert difference(expected, found) is None, (builder, text)


def test_same_bytes(tmp_path: Path) -> None:
    """Statistics, sizes and listing as the official library sees them; lists of texts; an empty table."""
    uri = str(tmp_path / "t.lance")
    rows = pa.table({"id": [0, 1, 2], "l": [["big fox", "dog"], None, ["fox", None]], "e": pa.nulls(3, pa.string())})
    lance.write_dataset(rows, uri)
    ours = dataset(uri)
    ours.create_scalar_index("l", "INVERTED", with_position=True)
    ours.create_scalar_index("e", "INVERTED")
    theirs = lance.dataset(uri)
    assert {item.name: item.index_type for item in theirs.describe_indices()} == {"l_idx": "Inverted", "e_idx": "Inverted"}
    for text in ("fox", "dog"):
        query = {"query": text, "columns": ["l"]}
        expected = theirs.to_table(columns=["id", "_score"], full_text_query=query, limit=3)
        assert difference(expected, ours.to_table(["id", "_score"], full_text_query=query, limit=3)) is None
    nothing = {"query": "fox", "columns": ["e"]}
    assert theirs.to_table(full_text_query=nothing, limit=3).num_rows == 0
    assert ours.to_table(full_text_query=nothing, limit=3).num_rows == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ours.index_statistics("l_idx")["segments"][0]["num_docs"] == 2
