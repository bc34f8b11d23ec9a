"""Random histories by both libraries: whatever happened, an indexed search gives what a scan without indices gives."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import lance
import pytest

from lance_core.dataset.handle.open import dataset
from tests.index.index_tables import rows

INDICES = {"i": "BTREE", "s": "BITMAP", "tags": "LABEL_LIST", "x": "ZONEMAP", "f": "BTREE"}
QUESTIONS = [
    "i = 7", "i > 390", "i is null", "s = 'alpha 0'", "s is null", "array_has(tags, 'alpha')", "x = 150", "x in (20, 4005)",
    "x > 3900", "f > 18", "i = 3 or s = 'Beta 1'", "i < 0 and array_has(tags, 'Beta')", "contains(s, 'gam')", "x is null",
]  # fmt: skip


def step(uri: str, rng: random.Random, number: int) -> str:
    ours, theirs = dataset(uri), lance.dataset(uri)
    actor: Any = rng.choice([ours, theirs])
    who = "ours" if actor is ours else "theirs"
    verb = rng.choice(["append", "delete", "update", "update_other", "compact", "optimize", "delta", "fragment"])
    if verb == "append":
        lance.write_dataset(rows(60, seed=number, first=1000 * (number + 1)), uri, mode="append")
    elif verb == "delete":
        actor.delete(f"x % 13 = {rng.randrange(13)}")
    elif verb == "update":
        actor.update({"i": "i + 1"}, where=f"x % 17 = {rng.randrange(17)}")
    elif verb == "update_other":
        actor.update({"f": "f * 2"}, where=f"x % 19 = {rng.randrange(19)}")
    elif verb == "compact":
        actor.optimize.compact_files(target_rows_per_fragment=rng.choice([100, 250, 1000]))
    elif verb == "optimize":
        actor.optimize.optimize_indices()
    elif verb == "delta":
        actor.optimize.optimize_indices(num_indices_to_merge=0)
    elif ids := [item.fragment_id for item in ours.get_fragments()]:
        (low, high) = min(ids), max(ids)
        actor.delete(
            f"_rowaddr >= {rng.randint(low, high) << 32} and _rowaddr < {(low + 1) << 32}"
        ) if who == "ours" else None
    return f"{number}: {who} {verb}"


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
@pytest.mark.parametrize("seed", range(3))
def test_random_histories(tmp_path: Path, seed: int, stable: bool) -> None:
    rng = random.Random(f"{seed}{stable}")
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(rows(300, seed=seed), uri, max_rows_per_file=75, enable_stable_row_ids=stable)
    for column, kind in INDICES.items():
        builder: Any = rng.choice([dataset(uri), lance.dataset(uri)])
        builder.create_scalar_index(column, kind, name=f"{column}_idx")
    dataset(uri).create_scalar_index("s", "NGRAM", name="ngram")
    dataset(uri).create_scalar_index("x", "BLOOMFILTER", name="bloom")
    done: list[str] = []
    for number in range(8):
        done.append(step(uri, rng, number))
        ours, theirs = dataset(uri), lance.dataset(uri)
        for where in QUESTIONS:
            brute = ours.to_table(["x", "i"], filter=where, use_scalar_index=False).to_pylist()
            assert ours.to_table(["x", "i"], filter=where, strict_index=True).to_pylist() == brute, (done, where)
            indexed = theirs.to_table(columns=["x"], filter=where)["x"].to_pylist()
            assert sorted(indexed) == sorted(row["x"] for row in brute), (done, where)


def test_compaction_carries_indices(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(rows(400), uri, max_rows_per_file=100)
    table = dataset(uri)
    table.create_scalar_index("i", "BTREE")
    table.create_scalar_index("x", "ZONEMAP", rows_per_zone=50)
    table.delete("x % 3 = 0")
    before = table.to_table(["x"], filter="i = 7")
    assert table.optimize.compact_files().fragments_removed == 4
    assert table.index_statistics("i_idx")["num_unindexed_rows"] == 0
    assert (
        table.index_statistics("x_idx")["rows_per_zone"] == 50
        if "rows_per_zone" in table.index_statistics("x_idx")
        else True
    )
    assert table.to_table(["x"], filter="i = 7", strict_index=True).equals(before)
    assert "@i_idx" in lance.dataset(uri).scanner(filter="i = 7").explain_plan()
    assert sorted(lance.dataset(uri).to_table(filter="i = 7")["x"].to_pylist()) == before["x"].to_pylist()


def test_optimize_covers_what_came_later(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(rows(200), uri)
    dataset(uri).create_scalar_index("i", "BTREE")
    lance.write_dataset(rows(100, seed=1, first=500), uri, mode="append")
    table = dataset(uri)
    table.optimize.optimize_indices(num_indices_to_merge=0)
    assert table.index_statistics("i_idx")["num_segments"] == 2
    table.optimize.optimize_indices()
    told = table.index_statistics("i_idx")
    assert (told["num_segments"], told["num_unindexed_rows"], told["num_indexed_rows"]) == (1, 0, 300)
    version = table.version
    table.optimize.optimize_indices()
    assert table.version == version
