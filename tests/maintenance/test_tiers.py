"""Size tiers of index segments, and fragments whose columns are spread over many files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_core
from lance_core.dataset.indexing.segment_tiers import segments_to_merge
from lance_core.errors import InputError
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.indices import OptimizeIndicesSpec
from lance_core.jobs.specs.spec import CommitSpec
from lance_core.maintenance.actions import act
from lance_core.maintenance.api import carry_out, plan_now
from lance_core.maintenance.doctor import diagnose
from lance_core.maintenance.policy import Budget, Policy, ServiceLevels, TableRule
from lance_core.publish.model import StagedTransaction


def _steps(number: int, fanout: int, size: int = 1000) -> tuple[list[int], int]:
    sizes: list[int] = []
    built = 0
    for _ in range(number):
        count = segments_to_merge(sizes, size, fanout=fanout)
        rows = size + sum(sizes[len(sizes) - count :])
        sizes = [*sizes[: len(sizes) - count], rows]
        built += rows
    return sizes, built


def test_sixty_steps_index_each_row_a_few_times() -> None:
    sizes, built = _steps(60, 8)
    assert built / 60_000 < 3 and len(sizes) <= 14
    assert sum(sizes) == 60_000


@given(steps=st.integers(1, 400), fanout=st.integers(2, 10))
def test_segments_grow_with_the_logarithm(steps: int, fanout: int) -> None:
    sizes, _ = _steps(steps, fanout)
    tiers = 1
    while fanout**tiers <= steps * 1000:
        tiers += 1
    assert len(sizes) <= (fanout - 1) * (tiers + 1)


@given(st.lists(st.integers(0, 10**9), max_size=30), st.integers(0, 10**9), st.integers(2, 10))
def test_any_sizes_end(sizes: Sequence[int], added: int, fanout: int) -> None:
    assert 0 <= segments_to_merge(sizes, added, fanout=fanout) <= len(sizes)


def _optimize(uri: str) -> None:
    staged = run_job(OptimizeIndicesSpec(uri=uri, strategy="tiered", tier_fanout=3))
    assert isinstance(staged, StagedTransaction)
    run_job(CommitSpec.of([staged], uri=uri))


def test_an_index_grows_by_tiers_and_answers_the_same(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    counts = []
    for step in range(9):
        rows = pa.table({"id": range(step * 100, step * 100 + 100)})
        lance_core.write_dataset(rows, uri, mode="append" if step else "create")
        if step == 0:
            lance_core.dataset(uri).create_scalar_index("id", "BTREE")
        else:
            _optimize(uri)
        counts.append(sum(index.name == "id_idx" for index in lance_core.dataset(uri).snapshot.manifest.indices))
    assert counts == [1, 2, 1, 2, 3, 2, 3, 4, 1]
    for library in (lance_core, lance):
        table = library.dataset(uri).to_table(filter="id in (5, 350, 899)")
        assert sorted(table["id"].to_pylist()) == [5, 350, 899]
    statistics = lance.dataset(uri).stats.index_stats("id_idx")
    assert statistics["num_unindexed_rows"] == 0


def test_tiers_cannot_be_combined_with_retraining() -> None:
    with pytest.raises(InputError, match="cannot be combined"):
        OptimizeIndicesSpec(uri="/t", strategy="tiered", retrain=True)


def test_the_policy_merges_column_files_of_large_fragments(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance_core.write_dataset(pa.table({"id": range(200)}), uri)
    for number in range(5):
        lance_core.dataset(uri).add_columns({f"c{number}": f"id + {number}"})
    before = lance_core.dataset(uri).to_table()
    (fragment,) = lance_core.dataset(uri).snapshot.manifest.fragments
    assert len(fragment.files) == 6
    levels = ServiceLevels(max_files_per_fragment=4, target_rows_per_fragment=100)
    policy = Policy(base_uri=str(tmp_path), levels=levels, budget=Budget(backoff_seconds=0))
    plan = plan_now(policy)
    (step,) = plan.steps
    smallest = sorted(file.file_size_bytes or 0 for file in fragment.files)[:5]
    assert (step.action, step.cost.bytes_read) == ("merge_columns", sum(smallest))
    assert step.reason == "the columns of 1 fragment are in more than 4 data files; their 5 smallest become 1"
    row = carry_out(policy, plan.steps)[0]
    assert (row.outcome, row.bytes_read, row.predicted_bytes_read) == ("done", step.cost.bytes_read, step.cost.bytes_read)
    assert row.bytes_written > 0
    (merged,) = lance_core.dataset(uri).snapshot.manifest.fragments
    assert len(merged.files) == 2 and merged.files[0] in fragment.files
    assert lance_core.dataset(uri).to_table().equals(before) and lance.dataset(uri).to_table().equals(before)
    assert plan_now(policy).steps == ()


def test_compact_files_leaves_many_files_alone_unless_asked(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance_core.write_dataset(pa.table({"id": range(200)}), uri)
    lance_core.dataset(uri).add_columns({"a": "id + 1"})
    opened = lance_core.dataset(uri)
    assert opened.optimize.compact_files(target_rows_per_fragment=100).fragments_removed == 0
    assert opened.optimize.compact_files(target_rows_per_fragment=100, max_files_per_fragment=1).fragments_removed == 1


def test_files_that_a_compaction_writes_anew_are_not_merged_before_it(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    for number in range(8):
        lance_core.write_dataset(pa.table({"id": range(10)}), uri, mode="append" if number else "create")
    for number in range(3):
        lance_core.dataset(uri).add_columns({f"c{number}": f"id + {number}"})
    levels = ServiceLevels(max_files_per_fragment=2, min_fragments=2, target_rows_per_fragment=1000)
    policy = Policy(base_uri=str(tmp_path), levels=levels, budget=Budget(backoff_seconds=0))
    plan = plan_now(policy)
    assert [step.action for step in plan.steps] == ["compact"]
    assert {"merge_columns"} <= {item.action for item in plan.skipped}
    without = replace(policy, tables=(TableRule(match="*", steps=("merge_columns", "gc")),))
    (step,) = plan_now(without).steps
    assert (step.action, step.gain) == ("merge_columns", 8 * 3 - 8)
    carry_out(policy, plan.steps)
    assert plan_now(policy).steps == ()


def test_the_button_and_the_doctor_agree_on_spread_columns(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance_core.write_dataset(pa.table({"id": range(200)}), uri)
    for number in range(7):
        assert "many-column-files" not in {finding.code for finding in diagnose(uri)}
        lance_core.dataset(uri).add_columns({f"c{number}": f"id + {number}"})
    (finding,) = [finding for finding in diagnose(uri) if finding.code == "many-column-files"]
    assert finding.cure == f"lance merge-column-files {uri} --max-files 4"
    before = lance_core.dataset(uri).to_table()
    assert act("merge_columns", uri, {}, identity="button")["num_versions"] == 1
    assert "many-column-files" not in {finding.code for finding in diagnose(uri)}
    assert [len(item.files) for item in lance_core.dataset(uri).snapshot.manifest.fragments] == [4]
    assert lance.dataset(uri).to_table().equals(before)
