"""Built by us and asked by the official library, built by it and asked by us: the same rows, with the index in the plan."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lance_core.dataset.handle.open import dataset
from tests.index.index_tables import CASES, make, rows

KINDS = [(kind, column) for kind, columns in CASES.items() for column in columns]
OUR_WORD = "ScalarIndexQuery"


def same_rows(ours: object, theirs: object, where: str) -> None:
    expected = theirs.scanner(columns=["x"], filter=where, use_scalar_index=False).to_table()["x"].to_pylist()
    brute = ours.to_table(["x"], filter=where, use_scalar_index=False)["x"].to_pylist()
    assert sorted(brute) == sorted(expected), where
    found = ours.to_table(["x"], filter=where, strict_index=True)
    assert found["x"].to_pylist() == brute, where
    assert ours.count_rows(where) == len(brute)
    with_all = ours.to_table(filter=where)
    assert with_all["x"].to_pylist() == brute
    indexed = theirs.scanner(columns=["x"], filter=where).to_table()["x"].to_pylist()
    assert sorted(indexed) == sorted(expected), where


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
@pytest.mark.parametrize("builder", ["ours", "theirs"])
@pytest.mark.parametrize(("kind", "column"), KINDS)
def test_same_rows(tmp_path: Path, kind: str, column: str, builder: str, stable: bool) -> None:
    uri = make(tmp_path / "t.lance", stable=stable)
    if builder == "ours":
        dataset(uri).create_scalar_index(column, kind, name="idx")
    else:
        lance.dataset(uri).create_scalar_index(column, kind, name="idx")
    lance.write_dataset(rows(150, seed=5, first=5000), uri, mode="append")
    lance.dataset(uri).delete("x % 11 = 3")
    ours, theirs = dataset(uri), lance.dataset(uri)
    for where in CASES[kind][column]:
        same_rows(ours, theirs, where)
        plan = theirs.scanner(filter=where).explain_plan()
        if kind != "NGRAM":  # pieces with marked letters are not asked for: how they were folded is for the builder to know
            assert ("idx" in ours.scanner(filter=where).explain_plan()) >= ("@idx" in plan), (where, plan)
    assert any("@idx" in theirs.scanner(filter=where).explain_plan() for where in CASES[kind][column])
    assert any("idx" in ours.scanner(filter=where).explain_plan() for where in CASES[kind][column])


@pytest.mark.parametrize("kind", CASES)
def test_metadata_is_the_official_one(tmp_path: Path, kind: str) -> None:
    column = next(iter(CASES[kind]))
    uri = make(tmp_path / "t.lance")
    dataset(uri).create_scalar_index(column, kind, name="ours")
    lance.dataset(uri).create_scalar_index(column, kind, name="theirs")
    by_name = {index.name: index for index in dataset(uri).snapshot.manifest.indices}
    ours, theirs = by_name["ours"], by_name["theirs"]
    assert ours.details == theirs.details and ours.index_version == theirs.index_version
    assert ours.fields == theirs.fields and ours.fragment_bitmap == theirs.fragment_bitmap
    assert {file.path for file in ours.files} == {file.path for file in theirs.files}
    official = {item.name: item for item in lance.dataset(uri).describe_indices()}
    described = {item.name: item for item in dataset(uri).describe_indices()}
    for name in ("ours", "theirs"):
        assert described[name].index_type == official[name].index_type
        assert described[name].num_rows_indexed == official[name].num_rows_indexed
    told, mine = lance.dataset(uri).index_statistics("ours"), dataset(uri).index_statistics("ours")
    for key in ("index_type", "num_segments", "num_indexed_rows", "num_unindexed_rows", "num_indexed_rows_per_delta"):
        assert told[key] == mine[key], key


def test_letters_are_folded_the_same_way(tmp_path: Path) -> None:
    """The official library finds every Latin letter in an n-gram index of ours."""
    letters = [chr(code) for code in range(0xC0, 0x250)]
    uri = str(tmp_path / "t.lance")
    table = pa.table({"s": [f"qz{letter}zq" for letter in letters], "x": range(len(letters))})
    lance.write_dataset(table, uri)
    dataset(uri).create_scalar_index("s", "NGRAM")
    theirs = lance.dataset(uri)
    for number, letter in enumerate(letters):
        found = theirs.to_table(filter=f"contains(s, 'z{letter}zq')")["x"].to_pylist()
        assert found == [number], letter


def test_deferred_compaction_is_not_misread(tmp_path: Path) -> None:
    """Rows moved and the index was not told: its addresses must not be trusted."""
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(rows(400), uri, max_rows_per_file=100)
    dataset(uri).create_scalar_index("i", "BTREE")
    lance.dataset(uri).delete("x % 3 = 0")
    lance.dataset(uri).optimize.compact_files(defer_index_remap=True)
    for where in ("i = 7", "i > 300"):
        same_rows(dataset(uri), lance.dataset(uri), where)
