"""Size-tiered compaction: what a growing table costs, how many fragments remain, and that every row stays."""

from __future__ import annotations

import random
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_core
from lance_core.dataset.maintain.compact_options import CompactionOptions, options_to_json
from lance_core.dataset.maintain.compact_plan import plan_compaction
from lance_core.dataset.maintain.compact_tiers import tier_of
from lance_core.errors import InputError
from lance_core.format.fragment import Fragment

TIERED = CompactionOptions(strategy="tiered")


def fragment(number: int, rows: int) -> Fragment:
    return Fragment(id=number, files=(), physical_rows=rows)


def after(fragments: list[Fragment], options: CompactionOptions, first_id: int) -> tuple[list[Fragment], int]:
    """What a compaction leaves of fragments, and the rows it rewrites."""
    plan = plan_compaction(fragments, options, read_version=1)
    gone = {item.id for group in plan.groups for item in group}
    made = [fragment(first_id + at, sum(member.num_rows for member in group)) for at, group in enumerate(plan.groups)]
    return [*(item for item in fragments if item.id not in gone), *made], plan.num_rows


def grow(appends: list[int], options: CompactionOptions) -> tuple[float, int]:
    """Rewritten rows for each appended row, and the most fragments there ever were, compacting after each append."""
    fragments: list[Fragment] = []
    rewritten = most = 0
    for number, rows in enumerate(appends):
        fragments, rows_rewritten = after([*fragments, fragment(number * 1000, rows)], options, number * 1000 + 1)
        rewritten += rows_rewritten
        most = max(most, len(fragments))
    assert sum(item.num_rows for item in fragments) == sum(appends)
    return rewritten / sum(appends), most


def test_sixty_small_appends_cost_less_than_one_rewrite() -> None:
    factor, most = grow([2000] * 60, TIERED)
    assert factor < 1
    assert most <= 13
    official, _ = grow([2000] * 60, CompactionOptions())
    assert official > 30


def test_a_table_of_any_age_rewrites_each_row_once_per_tier() -> None:
    factor, most = grow([5000] * 1500, TIERED)
    assert factor <= 3
    assert most < 7 * 4 + 8


@given(st.lists(st.integers(1, 3_000_000), min_size=1, max_size=60), st.integers(2, 10))
def test_whatever_is_appended_fragments_stay_few_and_rows_stay(appends: list[int], fanout: int) -> None:
    options = CompactionOptions(strategy="tiered", tier_fanout=fanout)
    fragments = [fragment(number, rows) for number, rows in enumerate(appends)]
    for turn in range(30):
        fragments, rewritten = after(fragments, options, (turn + 1) * 1000)
        if not rewritten:
            break
    else:
        pytest.fail("compaction never comes to rest")
    small = [item for item in fragments if item.num_rows < options.target_rows_per_fragment]
    tiers = [tier_of(item.num_rows, target=options.target_rows_per_fragment, fanout=fanout) for item in small]
    assert all(tiers.count(tier) < fanout for tier in tiers)
    assert sum(item.num_rows for item in fragments) == sum(appends)


def test_deletions_alone_are_a_reason() -> None:
    deleted = Fragment(id=1, files=(), physical_rows=2_000_000, deletion_file=_deletions(400_000))
    plan = plan_compaction([fragment(0, 2_000_000), deleted, fragment(2, 10)], TIERED, read_version=1)
    assert [[item.id for item in group] for group in plan.groups] == [[1]]
    assert dict(plan.skipped) == {0: "large enough", 2: "its size tier is not full"}


def test_rows_survive_and_the_official_library_agrees(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    draw = random.Random(5)
    expected: list[int] = []
    for _ in range(25):
        ids = list(range(len(expected), len(expected) + draw.randint(1, 40)))
        expected += ids
        ds = lance_core.write_dataset(pa.table({"id": ids}), uri, mode="append" if len(expected) > len(ids) else "create")
        ds.optimize.compact_files(target_rows_per_fragment=200, strategy="tiered", tier_fanout=3)
    assert sorted(ds.to_table()["id"].to_pylist()) == expected
    theirs = lance.dataset(uri)
    theirs.validate()
    assert theirs.to_table() == ds.to_table()
    assert len(ds.get_fragments()) < 12


def test_the_strategy_is_an_option_of_the_table_and_stays_out_of_plans(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    ds = lance_core.write_dataset(pa.table({"id": range(30)}), uri, max_rows_per_file=10)
    ds.update_config({"lance.compaction.strategy": "tiered"})
    assert ds.optimize.compact_files().fragments_removed == 0
    assert ds.optimize.compact_files(strategy="adjacent").fragments_removed == 3
    assert not {"strategy", "tier_fanout"} & options_to_json(TIERED).keys()


@pytest.mark.parametrize("wrong", [{"strategy": "leveled"}, {"tier_fanout": 1}])
def test_nonsense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        CompactionOptions(**wrong)  # type: ignore[arg-type]


def _deletions(count: int):  # type: ignore[no-untyped-def]
    from lance_core.format.fragment import DeletionFile

    return DeletionFile(file_type="bitmap", read_version=1, id=1, num_deleted_rows=count)
