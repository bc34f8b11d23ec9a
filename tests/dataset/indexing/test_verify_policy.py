"""Indices without checksums: used by default, compared in parts or skipped when the user says so."""

from __future__ import annotations

import logging
import random
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.dataset.handle.open import dataset
from lance_core.dataset.indexing import verify as trust
from lance_core.errors import CorruptFileError, InputError
from lance_core.io.cache import shared_cache
from tests.index.bit_flips import ask_flipped
from tests.index.index_tables import rows

QUESTIONS = ("i = 7", "i > 350", "s = 'alpha 0'", "x in (3, 290)", "x > 380", "f > 18")
KINDS = {"i": "BTREE", "s": "BITMAP", "x": "ZONEMAP", "f": "BTREE"}


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every segment counts as large, and is compared 100 rows or so at a time."""
    monkeypatch.setattr(trust, "MOST_ROWS", 0)
    monkeypatch.setattr(trust, "_LEAST_PASS", 2000)
    monkeypatch.setattr(trust, "_MOST_PASS", 2000)
    shared_cache().clear()


def make(path: Path) -> str:
    """A table whose indices the official library built."""
    uri = str(path / "t.lance")
    theirs = lance.write_dataset(rows(400), uri, max_rows_per_file=50)
    for column, kind in KINDS.items():
        theirs.create_scalar_index(column, kind)
    theirs.delete("x % 7 = 0")
    return uri


COMPARE = {"unsealed_indices": "compare"}


def answers(uri: str, **options: Any) -> list[list[int]]:
    return [dataset(uri).to_table(["x"], filter=where, **options)["x"].to_pylist() for where in QUESTIONS]


def plan(uri: str, where: str = "i = 7", **options: Any) -> str:
    return dataset(uri).scanner(filter=where, **options).explain_plan()


def page_file(uri: str, name: str = "i_idx", file: str = "page_data.lance") -> Path:
    (index,) = (index for index in dataset(uri).snapshot.manifest.indices if index.name == name)
    return Path(uri, "_indices", index.uuid, file)


def swap_rows(uri: str, value: int) -> None:
    """Make a B-tree say that a row with the value is another: all files whole, all rules of structure kept."""
    path = page_file(uri)
    pages = pa.table(lance.file.LanceFileReader(str(path)).read_all().to_table())
    values, ids = pages["values"].to_pylist(), pages["ids"].to_pylist()
    here = values.index(value)
    ids[here], ids[-1] = ids[-1], ids[here]
    path.unlink()
    with lance.file.LanceFileWriter(str(path), schema=pages.schema) as writer:
        writer.write_batch(pages.set_column(1, "ids", pa.array(ids, pa.uint64())))


def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows of each part that a B-tree is compared with from now on."""
    from lance_core.index.scalar.btree import BTree

    made: list[int] = []
    inner = BTree.verify_rows

    def verify_rows(self: BTree, batches: Iterable[pa.RecordBatch]) -> None:
        kept = [*batches]
        made.append(sum(batch.num_rows for batch in kept))
        inner(self, kept)

    monkeypatch.setattr(BTree, "verify_rows", verify_rows)
    return made


@pytest.mark.usefixtures("large")
def test_compared_in_parts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    uri, made = make(tmp_path), calls(monkeypatch)
    living = lance.dataset(uri).count_rows()
    with caplog.at_level(logging.INFO, "lance_core.index"):
        found = dataset(uri).to_table(["x"], filter="i = 7", strict_index=True, **COMPARE)
    assert len(made) > 1 and sum(made) == living
    assert "i_idx" in caplog.text and "seal_indices()" in caplog.text
    assert found.equals(dataset(uri).to_table(["x"], filter="i = 7", use_scalar_index=False))
    assert "i_idx" in plan(uri, **COMPARE) and len(answers(uri, **COMPARE)[0]) == found.num_rows
    # Asked again, by another handle and over deleted rows, both B-trees are known.
    assert sum(made) == 2 * living
    lance.dataset(uri).delete("x = 1")
    assert answers(uri, strict_index=True, **COMPARE) == answers(uri, use_scalar_index=False)
    assert sum(made) == 2 * living


@pytest.mark.usefixtures("large")
def test_a_kind_that_streams_gets_all_rows_in_one_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lance_core.index.scalar.zone_map import ZoneMap

    uri, made, inner = make(tmp_path), [], ZoneMap.verify_rows

    def verify_rows(self: ZoneMap, batches: Iterable[pa.RecordBatch]) -> None:
        kept = [*batches]
        made.append(sum(batch.num_rows for batch in kept))
        inner(self, kept)

    monkeypatch.setattr(ZoneMap, "verify_rows", verify_rows)
    dataset(uri).to_table(["x"], filter="x > 380", strict_index=True, **COMPARE)
    assert made == [lance.dataset(uri).count_rows()]


@pytest.mark.usefixtures("large")
def test_flips_in_large_indices_are_found(tmp_path: Path) -> None:
    uri = make(tmp_path)
    expected = answers(uri, use_scalar_index=False)
    assert answers(uri, strict_index=True, **COMPARE) == expected
    rng, noticed = random.Random(5), 0
    files = sorted(Path(uri, "_indices").glob("*/*"))
    for number in range(45):
        path = files[number % len(files)]
        found, is_noticed = ask_flipped(path, rng, lambda: answers(uri, **COMPARE))
        assert found == expected, path.name
        noticed += is_noticed
    assert noticed > 10, noticed


@pytest.mark.usefixtures("large")
def test_a_row_in_the_place_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = make(tmp_path)
    value = answers(uri, use_scalar_index=False)[1][0]
    value = dataset(uri).to_table(["i"], filter=f"x = {value}", use_scalar_index=False)["i"][0].as_py()
    swap_rows(uri, value)
    shared_cache().clear()
    with pytest.raises(CorruptFileError, match="cannot be searched"):
        dataset(uri).to_table(filter=f"i = {value}", strict_index=True, **COMPARE)
    so_far = calls(monkeypatch)
    with pytest.warns(RuntimeWarning, match="match the column"):
        found = dataset(uri).to_table(["x"], filter=f"i = {value}", **COMPARE)
    assert so_far == [], "what is known to be wrong is not compared again"
    whole = dataset(uri).to_table(["x"], filter=f"i = {value}", use_scalar_index=False)
    assert found.equals(whole)
    # Deletes scan instead of comparing, and are right whatever the index says.
    dataset(uri).delete(f"i = {value}")
    left = lance.dataset(uri).to_table(columns=["x"], filter="x >= 0")["x"].to_pylist()
    assert not {*whole["x"].to_pylist()} & {*left} and len(left) == 400 - 58 - whole.num_rows


@pytest.mark.usefixtures("large")
def test_skipped_until_compared_or_sealed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    uri = make(tmp_path)
    expected = answers(uri, use_scalar_index=False)
    with caplog.at_level(logging.INFO, "lance_core.index"):
        assert "i_idx" not in plan(uri, unsealed_indices="skip")
    assert "i_idx" in caplog.text and "not used" in caplog.text
    assert answers(uri, unsealed_indices="skip") == expected
    assert "i_idx" in plan(uri, **COMPARE)
    assert "i_idx" in plan(uri, unsealed_indices="skip"), "it was compared"
    shared_cache().clear()
    assert "i_idx" in plan(uri, unsealed_indices="use") and "i_idx" not in plan(uri, unsealed_indices="skip")
    dataset(uri).seal_indices(["i_idx"])
    assert "i_idx" in plan(uri, unsealed_indices="skip") and "f_idx" not in plan(uri, "f > 18", unsealed_indices="skip")
    assert answers(uri, unsealed_indices="skip") == expected


@pytest.mark.usefixtures("large")
def test_opened_again_is_not_compared_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index too large for the cache is opened for every question."""
    uri, made = make(tmp_path), calls(monkeypatch)
    answers(uri, **COMPARE)
    once = sum(made)
    (index,) = (index for index in dataset(uri).snapshot.manifest.indices if index.name == "i_idx")
    key = (dataset(uri).snapshot.store.uri, f"_indices/{index.uuid}", "open", ("i",))
    assert shared_cache().get(key) is not None
    shared_cache().discard(key)
    assert answers(uri, **COMPARE) == answers(uri, use_scalar_index=False) and sum(made) == once > 0
    # The bytes it is read from must still be those that were compared.
    swap_rows(uri, dataset(uri).to_table(["i"], filter="i > 350", use_scalar_index=False)["i"][0].as_py())
    shared_cache().discard(key)
    with pytest.warns(RuntimeWarning, match="not used"):
        found = answers(uri, **COMPARE)
    assert found == answers(uri, use_scalar_index=False)


@pytest.mark.usefixtures("large")
def test_prewarming_compares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri, made = make(tmp_path), calls(monkeypatch)
    dataset(uri).prewarm_index("i_idx")
    assert sum(made) == lance.dataset(uri).count_rows()
    assert "i_idx" in plan(uri) and sum(made) == lance.dataset(uri).count_rows()
    swap_rows(uri, dataset(uri).to_table(["i"], filter="i > 350", use_scalar_index=False)["i"][0].as_py())
    shared_cache().clear()
    with pytest.raises(CorruptFileError, match="match the column"):
        dataset(uri).prewarm_index("i_idx")


@pytest.mark.usefixtures("large")
def test_used_without_comparing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri, made = make(tmp_path), calls(monkeypatch)
    assert answers(uri) == answers(uri, use_scalar_index=False)
    assert "i_idx" in plan(uri) and made == [], "it is the default"
    shared_cache().clear()
    assert answers(uri, unsealed_indices="use") == answers(uri, use_scalar_index=False)
    assert "i_idx" in plan(uri, unsealed_indices="use") and made == []
    # What it finds is tested again: a row that does not match is never told.
    value = dataset(uri).to_table(["i"], filter="i > 350", use_scalar_index=False)["i"][0].as_py()
    swap_rows(uri, value)
    shared_cache().clear()
    with pytest.warns(RuntimeWarning, match="not used"):
        found = dataset(uri).to_table(["x"], filter=f"i = {value}", unsealed_indices="use")
    assert found.equals(dataset(uri).to_table(["x"], filter=f"i = {value}", use_scalar_index=False))
    with pytest.raises(InputError, match="'compare', 'skip', 'use'"):
        dataset(uri).scanner(unsealed_indices="trust")


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("again", [False, True])
def test_moved_rows_are_compared_where_they_were(tmp_path: Path, *, again: bool) -> None:
    uri = make(tmp_path)
    lance.dataset(uri).optimize.compact_files(target_rows_per_fragment=100, defer_index_remap=True)
    if again:
        lance.dataset(uri).delete("x % 11 = 0")
        # Built after the first move, before the second.
        lance.dataset(uri).create_scalar_index("x", "BTREE", name="later", replace=False)
        lance.dataset(uri).optimize.compact_files(target_rows_per_fragment=250, defer_index_remap=True)
    shared_cache().clear()
    expected = answers(uri, use_scalar_index=False)
    assert answers(uri, strict_index=True) == expected
    assert "i_idx" in plan(uri)
    assert dataset(uri).check_indices() == len(KINDS) + again
    value = dataset(uri).to_table(["i"], filter="i > 350", use_scalar_index=False)["i"][0].as_py()
    swap_rows(uri, value)
    shared_cache().clear()
    with pytest.raises(CorruptFileError, match="i_idx"):
        dataset(uri).check_indices()
    with pytest.warns(RuntimeWarning, match="not used"):
        found = dataset(uri).to_table(["x"], filter=f"i = {value}")
    assert found.equals(dataset(uri).to_table(["x"], filter=f"i = {value}", use_scalar_index=False))


def test_vectors_and_texts_are_skipped_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust, "MOST_ROWS", 0)
    shared_cache().clear()
    uri = str(tmp_path / "v.lance")
    values = np.random.default_rng(1).normal(size=(300, 8)).astype(np.float32)
    table = rows(300).append_column("v", pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), 8))
    theirs = lance.write_dataset(table, uri)
    theirs.create_scalar_index("s", "INVERTED", name="words")
    theirs.create_index("v", "IVF_FLAT", num_partitions=2)
    nearest = {"column": "v", "q": values[5], "k": 3, "nprobes": 2}
    words = {"query": "alpha", "columns": ["s"]}

    def asked(**options: Any) -> tuple[list[int], list[int]]:
        found = dataset(uri).to_table(["x"], nearest=nearest, **options)["x"].to_pylist()
        return found, sorted(dataset(uri).to_table(["x"], full_text_query=words, **options)["x"].to_pylist())

    def cached() -> int:
        return sum(shared_cache().get((*key, "known")) is not None for key in keys)

    keys = [(dataset(uri).snapshot.store.uri, f"_indices/{item.uuid}") for item in dataset(uri).snapshot.manifest.indices]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        skipped = asked(unsealed_indices="skip")
        assert cached() == 0
        assert asked() == skipped and cached() == 2
