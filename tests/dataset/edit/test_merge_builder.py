"""merge_insert and replace_where: every kind of merge as the official library does it; races double no rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.dataset.edit import replace_where
from lance_core.errors import InputError


def source(keys: list[int | None], words: list[str] | None = None) -> pa.Table:
    columns: dict[str, Any] = {"a": pa.array(keys, pa.int64())}
    if words is not None:
        columns["b"] = pa.array(words, pa.string())
    return pa.table(columns)


TABLE = source([1, 2, None, 4], ["w", "x", "y", "z"])
THREE = source([2, 4, 9], ["X", "Z", "N"])
Build = Callable[[Any], Any]
MERGES: dict[str, tuple[pa.Table, Build]] = {
    "upsert": (THREE, lambda m: m.when_matched_update_all().when_not_matched_insert_all()),
    "insert": (THREE, lambda m: m.when_not_matched_insert_all()),
    "update": (THREE, lambda m: m.when_matched_update_all()),
    "update if": (THREE, lambda m: m.when_matched_update_all("target.a > 2")),
    "delete": (THREE, lambda m: m.when_matched_delete()),
    "fail": (THREE, lambda m: m.when_matched_fail().when_not_matched_insert_all()),
    "not by source": (THREE, lambda m: m.when_not_matched_by_source_delete()),
    "not by source if": (THREE, lambda m: m.when_not_matched_by_source_delete("a < 2")),
    "replace": (THREE, lambda m: m.when_not_matched_insert_all().when_not_matched_by_source_delete("a < 2")),
    "null key": (source([None, 2], ["N", "X"]), lambda m: m.when_matched_update_all().when_not_matched_insert_all()),
    "twice matched": (source([2, 2], ["N", "X"]), lambda m: m.when_matched_update_all()),
    "twice new": (source([8, 8], ["N", "X"]), lambda m: m.when_not_matched_insert_all()),
    "nothing": (source([], []), lambda m: m.when_matched_update_all().when_not_matched_insert_all()),
    "part of the columns": (source([2, 7]), lambda m: m.when_matched_update_all().when_not_matched_insert_all()),
    "no verb": (THREE, lambda m: m),
    "unknown column": (THREE.append_column("zz", pa.array([1, 2, 3])), lambda m: m.when_not_matched_insert_all()),
}


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("name", MERGES)
def test_every_merge_does_what_the_official_one_does(tmp_path: Path, name: str, stable: bool) -> None:
    data, build = MERGES[name]
    outcomes = []
    for library in (lance_core, lance):
        path = tmp_path / library.__name__
        lance.write_dataset(TABLE, path, max_rows_per_file=3, enable_stable_row_ids=stable)
        try:
            counts = build(library.dataset(path).merge_insert("a")).execute(data)
        except (OSError, ValueError):
            counts = None
        after = lance.dataset(path)
        rows = after.to_table(with_row_id=stable).to_pylist()
        outcomes.append((counts, sorted(rows, key=str), after.version))
        lance_core.dataset(path).validate()
    assert outcomes[0] == outcomes[1]


def day(path: Path) -> list[str]:
    return sorted(lance_core.dataset(path).to_table(filter="a = 7").column("b").to_pylist())


def test_replacing_again_leaves_the_same_rows(tmp_path: Path) -> None:
    ours = lance_core.write_dataset(TABLE, tmp_path / "t")
    for _ in range(3):
        ours.replace_where("a = 7", source([7, 7], ["p", "q"]))
        assert day(tmp_path / "t") == ["p", "q"]
    assert lance.dataset(tmp_path / "t").count_rows() == 6
    assert isinstance(lance.dataset(tmp_path / "t").read_transaction(4).operation, lance.LanceOperation.Update)


def test_rows_that_do_not_satisfy_leave_no_file(tmp_path: Path) -> None:
    ours = lance_core.write_dataset(TABLE, tmp_path / "t")
    before = sorted((tmp_path / "t").rglob("*"))
    for bad in (source([7, 8], ["p", "q"]), source([None], ["p"])):
        with pytest.raises(InputError, match="does not satisfy"):
            ours.replace_where("a = 7 OR a = 2", bad)
    assert sorted((tmp_path / "t").rglob("*")) == before


def test_two_that_fill_the_same_empty_day_do_not_double_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t"
    slow = lance_core.write_dataset(TABLE, path)
    stage = replace_where.stage_replace
    raced = []

    def meanwhile(*args: Any, **options: Any) -> Any:
        edit = stage(*args, **options)
        if not raced:
            raced.append(True)
            lance_core.dataset(path).replace_where("a = 7", source([7, 7], ["first", "first"]))
            lance.write_dataset(source([5], ["other"]), path, mode="append")
        return edit

    monkeypatch.setattr(replace_where, "stage_replace", meanwhile)
    slow.replace_where("a = 7", source([7], ["second"]))
    assert day(path) == ["second"]
    assert lance.dataset(path).count_rows() == 6
    slow.validate()
