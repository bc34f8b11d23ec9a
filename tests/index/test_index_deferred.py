"""Compactions that leave indices as they are: both libraries follow the reuse index, and optimize trims it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pytest

from lance_core.dataset.handle.open import dataset
from lance_core.dataset.indexing.fragment_reuse import reuse_index
from tests.index.index_tables import rows
from tests.index.text_tables import difference, texts

QUESTIONS = ["i = 7", "i > 390", "i is null", "s = 'alpha 0'", "x = 150", "x > 250 and i < 100", "f > 18"]


def check(uri: str) -> None:
    ours, theirs = dataset(uri), lance.dataset(uri)
    for where in QUESTIONS:
        brute = ours.to_table(["x"], filter=where, use_scalar_index=False)["x"].to_pylist()
        assert ours.to_table(["x"], filter=where, strict_index=True)["x"].to_pylist() == brute, where
        assert sorted(theirs.to_table(columns=["x"], filter=where)["x"].to_pylist()) == sorted(brute), where


@pytest.mark.parametrize("actor", ["ours", "theirs"])
def test_scalar_indices_are_followed(tmp_path: Path, actor: str) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(rows(400), uri, max_rows_per_file=50)
    for column, kind in (("i", "BTREE"), ("s", "BITMAP"), ("x", "ZONEMAP"), ("f", "BTREE")):
        dataset(uri).create_scalar_index(column, kind)
    lance.dataset(uri).delete("x % 7 = 0")

    def compact(target: int) -> None:
        who: Any = dataset(uri) if actor == "ours" else lance.dataset(uri)
        who.optimize.compact_files(target_rows_per_fragment=target, defer_index_remap=True)

    compact(100)
    assert reuse_index(dataset(uri).snapshot) is not None
    assert "i_idx" in dataset(uri).scanner(filter="i = 7").explain_plan()
    check(uri)
    dataset(uri).delete("x % 11 = 0")
    lance.write_dataset(rows(40, seed=9, first=1000), uri, mode="append")
    compact(250)
    check(uri)
    table = dataset(uri)
    table.optimize.optimize_indices()
    assert reuse_index(table.snapshot) is None
    check(uri)
    assert table.index_statistics("i_idx")["num_unindexed_rows"] == 0


@pytest.mark.parametrize("actor", ["ours", "theirs"])
def test_texts_are_followed(tmp_path: Path, actor: str) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(texts(400), uri, max_rows_per_file=100)
    dataset(uri).create_scalar_index("s", "INVERTED", with_position=True)
    dataset(uri).delete("id % 7 = 0")
    who: Any = dataset(uri) if actor == "ours" else lance.dataset(uri)
    who.optimize.compact_files(target_rows_per_fragment=250, defer_index_remap=True)
    ours, theirs = dataset(uri), lance.dataset(uri)
    assert "Inverted" in ours.scanner(full_text_query="fox").explain_plan()
    for words in ("fox", "zebra dog", '"fox dog"'):
        expected = theirs.to_table(columns=["id", "_score"], full_text_query=words, limit=50)
        assert (
            difference(expected, ours.to_table(["id", "_score"], full_text_query=words, limit=50, strict_index=True)) is None
        )
