"""Jobs on indices: built once, in segments, with compactions in between; extended; the official library searches them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import lance
import pytest

from lance_core.errors import InputError
from lance_core.io.resolve import resolve_store
from lance_core.jobs.run import run_job, run_json
from lance_core.jobs.specs.indices import BuildIndexSpec, OptimizeIndicesSpec
from lance_core.publish.abort import abort_attempt
from tests.jobs.edit_support import commit, identity, leftovers, make_table, rows


def build(uri: str, key: str = "1", **fields: object) -> BuildIndexSpec:
    return BuildIndexSpec(uri=uri, identity=identity(uri, key), **{"column": "id", "index_type": "BTREE", **fields})


def segments(uri: str, name: str = "id_idx") -> list[set[int]]:
    found = [index for index in lance.dataset(uri).describe_indices() if index.name == name]
    return [set(segment.fragment_ids) for index in found for segment in index.segments]


def found(uri: str, number: int) -> list[int]:
    table = lance.dataset(uri)
    assert "ScalarIndexQuery" in table.scanner(filter=f"id = {number}").explain_plan()
    return table.to_table(filter=f"id = {number}")["id"].to_pylist()


def index_files(uri: str) -> set[str]:
    folder = Path(uri) / "_indices"
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def uri(request, tmp_path) -> str:
    return make_table(
        str(tmp_path / "t.lance"), rows(0, 10), rows(10, 20), rows(20, 30), enable_stable_row_ids=request.param
    )


@pytest.mark.parametrize(("rows_per_segment", "expected"), [(None, [{0, 1, 2}]), (15, [{0, 1}, {2}])])
def test_an_index_appears_when_it_is_committed(uri: str, rows_per_segment: int | None, expected: list[set[int]]) -> None:
    spec = build(uri, rows_per_segment=rows_per_segment)
    staged = run_json(spec.to_json())
    assert run_job(spec) == staged
    assert segments(uri) == []
    assert commit(uri, staged)["num_versions"] == 1
    assert commit(uri, run_job(spec))["identities"] == {staged.identity: "already_committed"}
    assert sorted(segments(uri), key=min) == expected
    assert found(uri, 17) == [17]


def test_built_again_it_takes_the_place_of_the_old_one(uri: str) -> None:
    commit(uri, run_job(build(uri)))
    lance.write_dataset(rows(30, 40), uri, mode="append")
    with pytest.raises(InputError, match="already an index named 'id_idx'"):
        run_job(build(uri, "2", replace=False))
    commit(uri, run_job(build(uri, "3")))
    assert segments(uri) == [{0, 1, 2, 3}]
    assert found(uri, 35) == [35]


def test_what_others_did_meanwhile(uri: str) -> None:
    staged = run_job(build(uri))
    lance.write_dataset(rows(30, 40), uri, mode="append")
    assert commit(uri, staged)["re_executed"] == 0
    assert found(uri, 35) == [35]  # not indexed, found all the same
    staged = run_job(build(uri, "2", column="day", index_type="BITMAP"))
    lance.dataset(uri).optimize.compact_files()
    assert commit(uri, staged)["re_executed"] == 1
    assert len(segments(uri, "day_idx")) == 1
    assert lance.dataset(uri).count_rows("day = 0") == 40


def test_indices_are_extended(uri: str) -> None:
    commit(uri, run_job(build(uri, rows_per_segment=10)))
    lance.write_dataset(rows(30, 40), uri, mode="append")
    further = OptimizeIndicesSpec(uri=uri, identity=identity(uri, "2"), num_indices_to_merge=0)
    commit(uri, run_job(further))
    assert len(segments(uri)) == 4
    spec = OptimizeIndicesSpec(uri=uri, identity=identity(uri, "3"))
    commit(uri, run_job(spec))
    assert (segments(uri), found(uri, 35)) == ([{0, 1, 2, 3}], [35])
    version = lance.dataset(uri).version
    nothing = run_job(OptimizeIndicesSpec(uri=uri, identity=identity(uri, "4")))
    assert set(commit(uri, nothing)["identities"].values()) == {"already_committed"}
    assert lance.dataset(uri).version == version


def test_the_index_of_a_clone_becomes_its_own(uri: str) -> None:
    commit(uri, run_job(build(uri)))
    shared, clone = index_files(uri), f"{uri}-clone"
    lance.dataset(uri).shallow_clone(clone, lance.dataset(uri).version)
    lance.write_dataset(rows(30, 40), clone, mode="append")
    assert (segments(clone), index_files(clone)) == ([{0, 1, 2}], set())
    commit(clone, run_job(OptimizeIndicesSpec(uri=clone, identity=identity(clone))))
    (index,) = lance.dataset(clone).describe_indices()
    assert (segments(clone), index_files(clone)) == ([{0, 1, 2, 3}], {str(segment.uuid) for segment in index.segments})
    assert (found(clone, 17), found(clone, 35)) == ([17], [35])
    assert (segments(uri), index_files(uri), found(uri, 17)) == ([{0, 1, 2}], shared, [17])


def test_what_is_wrong_is_told_before_anything_is_written(uri: str) -> None:
    for fields, words in (
        ({"column": "nope"}, "nope"),
        ({"index_type": "NOPE"}, "not implemented"),
        ({"parameters": {"nope": 1}}, "nope"),
    ):
        with pytest.raises(InputError, match=words):
            run_job(build(uri, **fields))
    with pytest.raises(InputError, match="there is no index named 'nope'"):
        run_job(OptimizeIndicesSpec(uri=uri, identity=identity(uri), index_names=("nope",)))
    assert (leftovers(uri), index_files(uri)) == (set(), set())


def test_an_aborted_index_leaves_no_files(uri: str) -> None:
    staged = run_job(build(uri, rows_per_segment=10))
    assert len(index_files(uri)) == 3
    abort_attempt(resolve_store(uri), staged.identity, staged.attempt)
    folder = Path(uri) / "_indices"
    assert [path for path in folder.rglob("*") if path.is_file()] == []


KILLED = """
import os, signal, sys
from lance_core.jobs.runtime import lifecycle as stage
from lance_core.jobs.run import run_json
stage.finish_attempt = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
run_json(sys.argv[1])
"""


def test_killed_before_it_is_staged(uri: str) -> None:
    spec = build(uri)
    killed = subprocess.run([sys.executable, "-c", KILLED, spec.to_json()], env=os.environ, timeout=120)
    assert killed.returncode == -signal.SIGKILL
    commit(uri, run_job(spec))
    assert (segments(uri), leftovers(uri)) == ([{0, 1, 2}], set())
    wanted = {segment.uuid for index in lance.dataset(uri).describe_indices() for segment in index.segments}
    files = [path for path in (Path(uri) / "_indices").rglob("*") if path.is_file()]
    assert {path.parent.name for path in files} == {str(uuid) for uuid in wanted}
