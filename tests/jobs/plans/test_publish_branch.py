"""A branch's changes land on the main line as one version, or are refused with the cure; the branch may go afterwards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lance_core
from lance_core.errors import CommitError, InputError, NotFoundError
from lance_core.jobs import api
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.branches import PublishBranchSpec
from lance_core.jobs.specs.edits import CompactSpec, DeleteSpec, ReplaceWhereSpec, UpdateSpec
from lance_core.jobs.specs.maintenance import BranchSpec
from lance_core.jobs.specs.merge import MergeSpec
from lance_core.jobs.specs.spec import AppendSpec, JobSpec, SourceSpec


def _rows(*ids: int, day: int = 0) -> pa.Table:
    return pa.table({"id": list(ids), "day": [day] * len(ids), "text": [f"row {number}" for number in ids]})


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Three fragments of ten rows, one of them with a deleted row, and a branch that begins there."""
    uri = str(tmp_path / "t.lance")
    for start in (0, 10, 20):
        mode = "append" if start else "create"
        lance.write_dataset(
            _rows(*range(start, start + 10), day=start // 10), uri, mode=mode, enable_stable_row_ids=request.param
        )
    lance.dataset(uri).delete("id = 5")
    run_job(BranchSpec(uri=uri, name="audit"))
    return uri


def _source(tmp_path: Path, rows: pa.Table, name: str = "rows") -> SourceSpec:
    pq.write_table(rows, tmp_path / f"{name}.parquet")
    return SourceSpec(format="parquet", paths=(str(tmp_path / f"{name}.parquet"),))


def _do(spec: JobSpec) -> dict[str, Any]:
    """Stage and commit."""
    return api.commit(spec.uri, [api.run(spec, options={})], options={}, max_attempts=None)


def _on_branch(uri: str) -> str:
    return f"{uri}/tree/audit"


def _ids(uri: str) -> list[int]:
    table = lance.dataset(uri)
    table.validate()
    found: list[int] = sorted(table.to_table(columns=["id"])["id"].to_pylist())
    return found


BASE = [number for number in range(30) if number != 5]


def test_all_kinds_of_changes_become_one_version(table: str, tmp_path: Path) -> None:
    branch = _on_branch(table)
    before = lance.dataset(table).version
    _do(AppendSpec(uri=branch, source=_source(tmp_path, _rows(100, 101))))
    _do(DeleteSpec(uri=branch, predicate="id < 3 or id = 101"))
    _do(UpdateSpec(uri=branch, updates={"text": "'new'"}, where="id = 12"))
    _do(DeleteSpec(uri=branch, predicate="id >= 20 and id < 30"))
    _do(MergeSpec(uri=branch, source=_source(tmp_path, _rows(12, 13, 200, day=9), "more"), on=("id",)))
    expected = lance_core.dataset(branch).to_table().sort_by("id")

    spec = PublishBranchSpec(uri=table, branch="audit", identity="publish-1")
    result = _do(spec)
    assert (result["version"], result["num_versions"]) == (before + 1, 1)
    found = lance.dataset(table)
    found.validate()
    assert found.to_table().sort_by("id").to_pylist() == expected.to_pylist()
    # Once: a retry finds that it landed, also when the branch is gone, and nothing of the main line is below it.
    run_job(BranchSpec(uri=table, name="audit", action="delete"))
    again = _do(spec)
    assert set(again["identities"].values()) == {"already_committed"}
    assert lance.dataset(table).to_table().sort_by("id").to_pylist() == expected.to_pylist()
    assert lance_core.dataset(table).to_table().num_rows == expected.num_rows


@pytest.mark.parametrize(
    ("change", "operation", "num_rows"),
    [
        (lambda uri, tmp: AppendSpec(uri=uri, source=_source(tmp, _rows(100))), "Append", 31),
        (lambda uri, _: DeleteSpec(uri=uri, predicate="id < 2"), "Delete", 28),
        (lambda uri, _: DeleteSpec(uri=uri, predicate="id < 10"), "Delete", 21),
        (lambda uri, _: CompactSpec(uri=uri), "Update", 30),
    ],
    ids=["append", "delete", "whole fragment", "compact"],
)
def test_others_go_on_meanwhile(
    table: str, tmp_path: Path, change: Callable[[str, Path], JobSpec], operation: str, num_rows: int
) -> None:
    _do(change(_on_branch(table), tmp_path))
    staged = api.run(PublishBranchSpec(uri=table, branch="audit", if_moved="publish"), options={})
    lance.write_dataset(_rows(999), table, mode="append")
    api.commit(table, [staged], options={}, max_attempts=None)
    assert type(lance.dataset(table).read_transaction(lance.dataset(table).version).operation).__name__ == operation
    assert len(_ids(table)) == num_rows


def test_a_branch_that_replaced_rows_does_not_hide_rows_of_others(table: str, tmp_path: Path) -> None:
    branch = _on_branch(table)
    _do(ReplaceWhereSpec(uri=branch, predicate="day = 1", source=_source(tmp_path, _rows(50, day=1))))
    lance.write_dataset(_rows(51, day=1), table, mode="append")
    before = lance.dataset(table).version
    with pytest.raises(CommitError):
        _do(PublishBranchSpec(uri=table, branch="audit"))
    assert lance.dataset(table).version == before
    _do(PublishBranchSpec(uri=table, branch="audit", if_moved="publish"))
    assert _ids(table) == sorted([*(number for number in BASE if not 10 <= number < 20), 50, 51])


def test_a_conflict_on_the_same_rows_is_a_conflict(table: str, tmp_path: Path) -> None:
    _do(UpdateSpec(uri=_on_branch(table), updates={"day": "99"}, where="id = 12"))
    lance.dataset(table).delete("id = 12")
    with pytest.raises(CommitError):
        _do(PublishBranchSpec(uri=table, branch="audit"))
    assert 12 not in _ids(table)


def _text_in_place(branch: str) -> None:
    """Another text for row 12: a file of one column in the place of the one that was there."""
    ours = lance_core.dataset(branch)
    rows = pa.table({"id": pa.array([12], pa.int64()), "text": ["another text"]})
    changed, fields = ours.get_fragment(1).update_columns(rows, "id")[:2]
    operation = lance_core.LanceOperation.Update(
        updated_fragments=[changed], fields_modified=fields, update_mode="rewrite_columns"
    )
    lance_core.LanceDataset.commit(branch, operation, read_version=ours.version)


def test_columns_that_were_changed_in_place_are_published(table: str) -> None:
    """Whole fragments are written again; a declared column that was refreshed on the branch is fresh on the main line."""
    lance_core.declare_column(table, "twice", sql="length(text) + id")
    lance_core.refresh_columns(table)
    run_job(BranchSpec(uri=table, name="filled"))
    branch = f"{table}/tree/filled"
    _text_in_place(branch)
    assert lance_core.refresh_columns(branch).stale == 1
    expected = lance_core.dataset(branch).to_table().sort_by("id").to_pylist()
    _do(PublishBranchSpec(uri=table, branch="filled"))
    assert lance_core.dataset(table).to_table().sort_by("id").to_pylist() == expected
    assert _ids(table) == BASE
    assert lance_core.refresh_columns(table).stale == 0


def test_columns_that_were_changed_in_place_do_not_bring_deleted_rows_back(table: str) -> None:
    _text_in_place(_on_branch(table))
    lance.dataset(table).delete("id = 12")
    with pytest.raises(CommitError):
        _do(PublishBranchSpec(uri=table, branch="audit"))
    assert 12 not in _ids(table)


def test_a_branch_that_changed_nothing_makes_no_version(table: str) -> None:
    before = lance.dataset(table).version
    result = _do(PublishBranchSpec(uri=table, branch="audit"))
    assert (lance.dataset(table).version, result["num_versions"]) == (before, 0)


def test_the_version_that_was_checked_is_published(table: str, tmp_path: Path) -> None:
    branch = _on_branch(table)
    checked = _do(AppendSpec(uri=branch, source=_source(tmp_path, _rows(100))))["version"]
    _do(AppendSpec(uri=branch, source=_source(tmp_path, _rows(101), "more")))
    _do(PublishBranchSpec(uri=table, branch="audit", version=checked))
    assert _ids(table) == [*BASE, 100]


def test_what_cannot_be_published_is_refused_before_anything_is_written(table: str) -> None:
    with pytest.raises(NotFoundError, match="no branch 'other'"):
        _do(PublishBranchSpec(uri=table, branch="other"))
    lance_core.dataset(_on_branch(table)).add_columns({"twice": "id * 2"})
    with pytest.raises(InputError, match="its columns differ"):
        _do(PublishBranchSpec(uri=table, branch="audit"))
    run_job(BranchSpec(uri=table, name="audit/below", from_branch="audit"))
    with pytest.raises(InputError, match="it was created from branch 'audit'"):
        _do(PublishBranchSpec(uri=table, branch="audit/below"))
    assert not list(Path(table, "_lance_core", "staged").rglob("*.json"))
