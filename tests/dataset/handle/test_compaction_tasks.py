"""Compaction in pieces: plans, tasks and results travel as JSON, also to and from the official library, and land once."""

from __future__ import annotations

import datetime as dt
import inspect
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import lance.optimize as official
import pytest

import lance_core
from lance_core import optimize as ours
from lance_core.errors import InputError, LanceError, RetryableConflictError
from tests.dataset.dataset_tables import mixed, same
from tests.dataset.exact_storage import missing, strangers
from tests.io.faulty_stores import FaultyStore

OPTIONS = {"target_rows_per_fragment": 90}

WORKER = """
import sys
import lance_core
from lance_core.optimize import CompactionTask
dataset = lance_core.dataset(sys.argv[1])
for line in sys.stdin:
    print(CompactionTask.from_json(line).execute(dataset).json())
"""


def table(uri: Path, *, stable: bool = False) -> Any:
    ds = lance_core.write_dataset(mixed(400), uri, max_rows_per_file=50, enable_stable_row_ids=stable)
    ds.delete("id % 50 = 7")
    ds.update({"name": "'new'"}, where="id = 10")
    return ds


def check(uri: Path, rows: Any, *, stable: bool) -> None:
    mine, theirs = lance_core.dataset(uri), lance.dataset(str(uri))
    mine.validate()
    theirs.validate()
    order = [("id", "ascending")]
    same(mine.to_table(with_row_id=stable).sort_by(order), rows.sort_by(order))
    same(mine.to_table(with_row_id=True), theirs.to_table(with_row_id=True))


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
def test_tasks_run_in_other_processes(tmp_path: Path, stable: bool) -> None:
    uri = tmp_path / "t.lance"
    rows = mixed(400).select(["id", "name"])
    ds = lance_core.write_dataset(rows, uri, max_rows_per_file=50, enable_stable_row_ids=stable)
    ds.delete("id % 50 = 7")
    before = ds.to_table(with_row_id=stable)
    plan = ours.CompactionPlan.from_json(ours.Compaction.plan(ds, OPTIONS).json())
    assert plan.num_tasks() == len(plan.tasks) >= 3
    answers = []
    for part in (plan.tasks[:1], plan.tasks[1:]):
        lines = "\n".join(task.json() for task in part)
        answers += subprocess.check_output([sys.executable, "-c", WORKER, str(uri)], input=lines, text=True).splitlines()
    assert ds.latest_version == plan.read_version, "executing commits nothing"
    results = [ours.RewriteResult.from_json(text) for text in answers]
    metrics = ours.Compaction.commit(ds, results)
    assert metrics.fragments_removed == sum(len(task.fragments) for task in plan.tasks)
    assert metrics.fragments_added == sum(result.metrics.fragments_added for result in results) == len(ds.get_fragments())
    assert ds.version == ds.latest_version
    check(uri, before, stable=stable)


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
def test_plans_tasks_and_results_are_the_official_librarys(tmp_path: Path, stable: bool) -> None:
    uri = tmp_path / "t.lance"
    ds = table(uri, stable=stable)
    theirs = lance.dataset(str(uri))
    for target in (10, 50, 51, 100, 150, 1000):
        options = {"target_rows_per_fragment": target}
        mine, other = ours.Compaction.plan(ds, options), official.Compaction.plan(theirs, options)
        assert mine.num_tasks() == other.num_tasks()
        groups = [[[fragment.id for fragment in task.fragments] for task in plan.tasks] for plan in (mine, other)]
        assert groups[0] == groups[1]
    before = ds.to_table(with_row_id=stable)
    mine, other = ours.Compaction.plan(ds, OPTIONS), official.Compaction.plan(theirs, OPTIONS)
    # Their task, our hands; our task, their hands; each library commits what the other one wrote.
    by_us = ours.CompactionTask.from_json(other.tasks[0].json()).execute(ds)
    by_them = official.CompactionTask.from_json(mine.tasks[1].json()).execute(theirs)
    official.Compaction.commit(theirs, [official.RewriteResult.from_json(by_us.json())])
    ours.Compaction.commit(ds, [ours.RewriteResult.from_json(by_them.json())])
    check(uri, before, stable=stable)


def test_a_result_commits_once(tmp_path: Path) -> None:
    uri = tmp_path / "t.lance"
    ds = table(uri)
    before = ds.to_table()
    results = [task.execute(ds) for task in ours.Compaction.plan(ds, OPTIONS).tasks]
    with pytest.raises(InputError, match="more than once"):
        ours.Compaction.commit(ds, [results[0], results[0]])
    ours.Compaction.commit(ds, results[:1])
    landed = ds.version
    for handle in (ds, ds.checkout_version(results[0].read_version)):
        with pytest.raises(RetryableConflictError):
            ours.Compaction.commit(handle, results[:1])
    assert ds.latest_version == landed, "nothing was reserved for a result that is refused"
    # The rest of the plan is still good, and so is the handle that stands on the version it was made on.
    ours.Compaction.commit(ds.checkout_version(results[0].read_version), results[1:])
    check(uri, before, stable=False)
    assert ours.Compaction.commit(ds, []) == ours.CompactionMetrics()


def test_what_others_do_in_between(tmp_path: Path) -> None:
    uri = tmp_path / "t.lance"
    ds = table(uri)
    results = [task.execute(ds) for task in ours.Compaction.plan(ds, OPTIONS).tasks]
    other = lance.dataset(str(uri))
    other.delete("id = 0")  # in a fragment of the first task
    other.insert(lance_core.dataset(uri).to_table(filter="id = 5"))  # an append concerns nobody
    rows = lance_core.dataset(uri).to_table()
    with pytest.raises(RetryableConflictError):
        ours.Compaction.commit(ds, results)
    ours.Compaction.commit(ds, results[1:])
    check(uri, rows, stable=False)


@pytest.mark.parametrize("defer", [False, True], ids=["rebuilt", "deferred"])
def test_indices_follow(tmp_path: Path, defer: bool) -> None:
    uri = tmp_path / "t.lance"
    ds = table(uri)
    ds.create_scalar_index("id", "BTREE")
    wanted = ds.to_table(filter="id in (3, 77, 399)")
    options = {**OPTIONS, "defer_index_remap": defer}
    plan = ours.Compaction.plan(ds, options)
    assert plan.tasks[0].options.defer_index_remap is defer
    ours.Compaction.commit(ds, [task.execute(ds) for task in plan.tasks], options)
    for handle in (ds, lance.dataset(str(uri))):
        found = handle.to_table(filter="id in (3, 77, 399)").sort_by("id")
        same(found, wanted.sort_by("id"))
    assert "ScalarIndexQuery" in ds.scanner(filter="id = 77").explain_plan()


def test_what_is_never_committed_is_swept(tmp_path: Path) -> None:
    uri = tmp_path / "t.lance"
    ds = table(uri)
    files = {path.name for path in (uri / "data").iterdir()}
    results = [task.execute(ds) for task in ours.Compaction.plan(ds, OPTIONS).tasks]
    assert len({path.name for path in (uri / "data").iterdir()}) == len(files) + sum(len(r.new_fragments) for r in results)
    ds.cleanup_old_versions(older_than=dt.timedelta(0), delete_unverified=True)
    assert strangers(ds.snapshot.store) == missing(ds.snapshot.store) == []
    check(uri, ds.to_table(), stable=False)


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_commit_that_fails_may_be_repeated(tmp_path: Path, when: Any) -> None:
    uri = tmp_path / "t.lance"
    table(uri)
    for fail_at in range(1, 60, 2):
        ds = lance_core.dataset(uri)
        ds.create_scalar_index("id", "BTREE", replace=True)
        before = ds.to_table()
        results = [task.execute(ds) for task in ours.Compaction.plan(ds, {"target_rows_per_fragment": 90 + fail_at}).tasks]
        faulty = FaultyStore(ds.snapshot.store, fail_at=fail_at, when=when)
        try:
            ours.Compaction.commit(lance_core.LanceDataset.from_snapshot(replace(ds.snapshot, store=faulty)), results)
        except LanceError:
            same(lance_core.dataset(uri).to_table(), before)
            # Nothing of the results was taken away, whatever failed; what had landed is not done again.
            with suppress(RetryableConflictError):
                ours.Compaction.commit(ds, results)
        done = faulty.num_calls < fail_at
        check(uri, before, stable=False)
        if done:
            break
        ds = lance_core.dataset(uri)
        ds.restore() if not results else ds.checkout_version(results[0].read_version).restore()
    else:
        raise AssertionError("every call of the commit was to fail once")


def test_options(tmp_path: Path) -> None:
    ds = lance_core.write_dataset(mixed(100), tmp_path / "t.lance", max_rows_per_file=10, data_storage_version="2.1")
    with pytest.raises(InputError, match="bogus"):
        ours.Compaction.plan(ds, {"bogus": 1})
    ds.update_config({"lance.compaction.target_rows_per_fragment": "20", "lance.compaction.materialize_deletions": "false"})
    theirs = lance.dataset(ds.uri)
    assert ours.Compaction.plan(ds, {}).num_tasks() == official.Compaction.plan(theirs, {}).num_tasks() == 5
    assert ds.optimize.plan_compaction({"target_rows_per_fragment": 50}).num_tasks() == 2
    assert not ours.Compaction.plan(ds).options.materialize_deletions
    before = ds.to_table()
    assert ours.Compaction.execute(ds, {"data_storage_version": "2.2", "num_threads": 1}).fragments_added == 5
    assert {file.version.text for fragment in ds.get_fragments() for file in fragment.data_files()} == {"2.2"}
    assert ds.data_storage_version == lance.dataset(ds.uri).data_storage_version == "2.1"
    check(Path(ds.uri), before, stable=False)
    ds.update_config({"lance.compaction.batch_size": "many"})
    with pytest.raises(InputError, match="batch_size"):
        ds.optimize.compact_files()


@pytest.mark.parametrize("kind", [ours.CompactionPlan, ours.CompactionTask, ours.RewriteResult])
@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"tasks": [{}]}', '{"task": 1, "read_version": 2}', '{"read_version": "x"}']
)
def test_text_that_is_no_plan(kind: Any, text: str) -> None:
    with pytest.raises(InputError):
        kind.from_json(text)


def test_names() -> None:
    for name in ("Compaction", "CompactionMetrics", "CompactionPlan", "CompactionTask", "RewriteResult"):
        theirs, mine = (getattr(module, name) for module in (official, ours))
        here = {*dir(mine), *getattr(mine, "__dataclass_fields__", {})}
        assert {item for item in dir(theirs) if not item.startswith("_")} <= here, name
    for name in ("plan", "execute", "commit"):
        theirs, mine = (inspect.signature(getattr(module.Compaction, name)).parameters for module in (official, ours))
        assert [*theirs] == [*mine]
