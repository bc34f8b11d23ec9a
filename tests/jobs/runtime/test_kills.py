"""kill -9 between the steps of each kind of edit, then a retry: rows and versions exact, nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import lance
import pytest

from lance_core.io.resolve import resolve_store
from lance_core.jobs.run import run_job, run_json
from lance_core.jobs.specs.edits import (
    AddColumnsSpec,
    CompactSpec,
    DeleteSpec,
    MergeColumnFilesSpec,
    ReplaceWhereSpec,
    UpdateSpec,
)
from lance_core.jobs.specs.indices import BuildIndexSpec
from lance_core.jobs.specs.merge import MergeSpec
from lance_core.jobs.specs.spec import AppendSpec, CommitSpec, JobSpec
from lance_core.publish.collect import collect_garbage
from tests.jobs.edit_support import commit, identity, ids, leftovers, make_table, rows, source

KILLED = """
import os, signal, sys
from lance_core.io.local.store import LocalStore
from lance_core.jobs.run import run_json

step, job, commit = sys.argv[1:]
put = LocalStore.put_if_absent
decisions, versions = "_lance_core/decisions/", "_versions/"
# Where it is killed: before or behind the put of which name. The first decision is that the work has finished.
moments = {
    "written": ("before", decisions, 0), "staged": ("behind", decisions, 0),
    "claimed": ("before", versions, 1), "published": ("behind", versions, 1), "noted": ("behind", decisions, 1),
}
when, prefix, at = moments[step]
phase = 0

def killing(self, path, *args, **kwargs):
    dies = path.startswith(prefix) and phase == at
    if dies and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    found = put(self, path, *args, **kwargs)
    if dies:
        os.kill(os.getpid(), signal.SIGKILL)
    return found

LocalStore.put_if_absent = killing
run_json(job)
phase = 1
run_json(commit)
"""


def spec_of(kind: str, uri: str) -> JobSpec:
    own = {"uri": uri, "identity": identity(uri)}
    kinds: dict[str, JobSpec] = {
        "delete": DeleteSpec(**own, predicate="id < 12"),
        "update": UpdateSpec(**own, updates={"id": "id + 100"}, where="id >= 15 and id < 25"),
        "replace_where": ReplaceWhereSpec(**own, predicate="id < 12", source=source(start=1, stop=4)),
        "compact": CompactSpec(**own),
        "merge_column_files": MergeColumnFilesSpec(**own, max_files_per_fragment=1),
        "merge": MergeSpec(**own, on=("id",), source=source(start=25, stop=35, day=9)),
        "append_new": AppendSpec(**own, source=source("rows_with_column", start=30, stop=35), schema_drift="add_extra"),
        "replace_new": ReplaceWhereSpec(
            **own, predicate="id < 12", source=source("rows_with_column", start=1, stop=4), schema_drift="add_extra"
        ),
        "merge_new": MergeSpec(
            **own, on=("id",), source=source("rows_with_column", start=25, stop=35), schema_drift="add_extra"
        ),
        "add_columns": AddColumnsSpec(**own, columns={"twice": "id * 2"}),
        "build_index": BuildIndexSpec(**own, column="id", index_type="BTREE"),
    }
    return kinds[kind]


EXPECTED = {
    "delete": [*range(12, 30)],
    "update": [*range(15), *range(25, 30), *range(115, 125)],
    "replace_where": [1, 2, 3, *range(12, 30)],
    "compact": [*range(30)],
    "merge_column_files": [*range(30)],
    "merge": [*range(35)],
    "append_new": [*range(35)],
    "replace_new": [1, 2, 3, *range(12, 30)],
    "merge_new": [*range(35)],
    "add_columns": [*range(30)],
    "build_index": [*range(30)],
}


QUICK = ("append_new", "compact", "delete", "replace_where", "update")


@pytest.mark.parametrize("step", ["written", "staged", "claimed", "published", "noted"])
@pytest.mark.parametrize(
    "kind", [*QUICK, *(pytest.param(kind, marks=pytest.mark.slow) for kind in EXPECTED if kind not in QUICK)]
)
def test_killed_and_tried_again(tmp_path: Path, kind: str, step: str) -> None:
    uri = make_table(str(tmp_path / "t.lance"), rows(0, 10), rows(10, 20), rows(20, 30))
    if kind == "merge_column_files":
        lance.dataset(uri).add_columns({"half": "id / 2"})
    before = lance.dataset(uri).version
    spec = spec_of(kind, uri)
    commit_spec = CommitSpec(uri=uri, identities=(spec.identity,))
    paths = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, step, spec.to_json(), commit_spec.to_json()],
        env={**os.environ, "PYTHONPATH": paths}, timeout=120,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL
    staged = run_job(spec)
    result = run_json(commit_spec.to_json()).to_dict()
    assert result["identities"] == {staged.identity: "already_committed" if step in ("published", "noted") else "committed"}
    assert commit(uri, run_job(spec))["num_versions"] == 0
    assert (ids(uri), lance.dataset(uri).version) == (EXPECTED[kind], before + 1)
    if kind.endswith("_new"):
        brought = spec.source.kwargs  # type: ignore[attr-defined]
        found = {row["id"] for row in lance.dataset(uri).to_table().to_pylist() if row["country"] == f"c{row['id']}"}
        assert found == {*range(brought["start"], brought["stop"])}
    assert leftovers(uri) == set()


AGAIN = """
import os, signal, sys
from lance_core.jobs.publish import reexecute as again
from lance_core.jobs.run import run_json

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

again.carry_out = die
run_json(sys.argv[1])
"""


@pytest.mark.parametrize("named", [True, False])
def test_killed_before_it_stages_again(tmp_path: Path, named: bool) -> None:
    uri = make_table(str(tmp_path / "t.lance"), rows(0, 10), rows(10, 20), rows(20, 30))
    spec = spec_of("delete", uri)
    run_job(spec)
    lance.dataset(uri).optimize.compact_files()
    commit_spec = CommitSpec(uri=uri, identities=(spec.identity,) if named else ())
    killed = subprocess.run([sys.executable, "-c", AGAIN, commit_spec.to_json()], env=os.environ, timeout=120)
    assert killed.returncode == -signal.SIGKILL
    assert run_json(commit_spec.to_json()).to_dict()["identities"] == {spec.identity: "committed"}
    collect_garbage(resolve_store(uri))
    assert (ids(uri), leftovers(uri)) == (EXPECTED["delete"], set())
    again = run_json(CommitSpec(uri=uri, identities=(spec.identity,)).to_json()).to_dict()
    assert again["identities"] == {spec.identity: "already_committed"}
    assert run_json(CommitSpec(uri=uri).to_json()).to_dict()["num_versions"] == 0
