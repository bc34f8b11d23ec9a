"""Gates of the commit job: exactly the staged rows are looked at, and a refusal leaves readers untouched."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lance_core.errors import GateFailedError, InputError
from lance_core.jobs.run import run_job, run_json
from lance_core.jobs.specs.edits import CompactSpec, DeleteSpec, ReplaceWhereSpec
from lance_core.jobs.specs.gates import GateSpec
from lance_core.jobs.specs.spec import AppendSpec
from tests.jobs.edit_support import commit, identity, ids, leftovers, make_table, rows, source


def says_no(reader: pa.RecordBatchReader) -> bool:
    return reader.read_all().num_rows == 0


def says_why(reader: pa.RecordBatchReader) -> str:
    return f"{reader.read_all().num_rows} rows are not enough"


def is_content(reader: pa.RecordBatchReader) -> None:
    assert reader.read_all()["id"].to_pylist() == [20, 21, 22]


def breaks(reader: pa.RecordBatchReader) -> None:
    raise ValueError("it broke")


def append(uri: str, key: str = "1", name: str = "rows", **kwargs: object) -> object:
    kwargs = kwargs or {"start": 20, "stop": 23}
    return run_job(AppendSpec(uri=uri, identity=identity(uri, key), source=source(name, **kwargs)))


@pytest.fixture
def uri(tmp_path) -> str:
    return make_table(str(tmp_path / "t.lance"), rows(0, 10), rows(10, 20))


@pytest.mark.parametrize(
    ("gate", "words"),
    [
        ({"min_rows": 4}, "3 rows are added, expected at least 4"),
        ({"max_rows": 2}, "3 rows are added, expected at most 2"),
        ({"no_rows": "id > 20"}, r"2 rows are selected by id > 20, for example \{'id': 21\}"),
        ({"unique": ["day"]}, r"1 keys of day occur more than once, for example \{'day': 0\}"),
        ({"callable": f"{__name__}:says_no"}, "says_no returned false"),
        ({"callable": f"{__name__}:says_why"}, "3 rows are not enough"),
        ({"callable": f"{__name__}:breaks"}, "raised ValueError: it broke"),
    ],
)
def test_a_gate_refuses_and_the_table_stays(uri: str, gate: dict, words: str) -> None:
    staged = append(uri)
    plain = {"kind": "commit", "uri": uri, "identities": [staged.identity], "gates": [{"name": "mine", **gate}]}
    with pytest.raises(GateFailedError, match=f"gate 'mine': .*{words}"):
        run_json(json.dumps(plain))
    assert (ids(uri), lance.dataset(uri).version) == ([*range(20)], 2)
    # The staged rows are still there, for a commit with a gate that fits.
    passed = commit(uri, staged, gates=(GateSpec(min_rows=3, max_rows=3, unique=("id",), max_null_rates={"x": 0.0}),))
    assert passed["identities"] == {staged.identity: "committed"}
    assert ids(uri) == [*range(23)]
    assert leftovers(uri) == set()


def test_null_rates(uri: str) -> None:
    staged = append(uri, name="with_nulls", share=2)
    with pytest.raises(GateFailedError, match=r"column .x.: 0.5 of the values are null, expected at most 0.25"):
        commit(uri, staged, gates=(GateSpec(max_null_rates={"x": 0.25, "id": 0.0}),))
    assert commit(uri, staged, gates=(GateSpec(max_null_rates={"x": 0.5}),))["num_versions"] == 1


def test_gates_see_all_staged_rows_together_and_none_that_were_there(uri: str) -> None:
    staged = [append(uri, key, start=20 + number, stop=23 + number) for number, key in enumerate("ab")]
    with pytest.raises(GateFailedError, match="2 keys of id"):
        commit(uri, *staged, gates=(GateSpec(unique=("id",)),))
    assert commit(uri, staged[0], gates=(GateSpec(callable=f"{__name__}:is_content"),))["num_versions"] == 1


def test_gates_of_a_table_that_is_created_and_of_a_replacement(tmp_path) -> None:
    uri = str(tmp_path / "new.lance")
    first = append(uri)
    with pytest.raises(GateFailedError):
        commit(uri, first, gates=(GateSpec(no_rows="id = 22"),))
    assert not Path(uri, "_versions").exists()
    commit(uri, first, gates=(GateSpec(no_rows="id = 23"),))
    spec = ReplaceWhereSpec(uri=uri, identity=identity(uri, "r"), predicate="day = 0", source=source(start=1, stop=3))
    staged = run_job(spec)
    with pytest.raises(GateFailedError, match="3 rows are deleted, expected at most 2"):
        commit(uri, staged, gates=(GateSpec(max_deleted_rows=2),))
    commit(uri, staged, gates=(GateSpec(no_rows="id >= 3", min_rows=2),))
    assert ids(uri) == [1, 2]


def test_deletes_and_compactions_add_no_rows(uri: str) -> None:
    deleted = run_job(DeleteSpec(uri=uri, identity=identity(uri, "d"), predicate="id < 2"))
    commit(uri, deleted, gates=(GateSpec(max_rows=0, no_rows="true"),))
    compacted = run_job(CompactSpec(uri=uri, identity=identity(uri, "c")))
    commit(uri, compacted, gates=(GateSpec(max_rows=0, no_rows="true"),))
    assert ids(uri) == [*range(2, 20)]


def test_what_has_landed_is_not_looked_at_again(uri: str) -> None:
    staged = append(uri)
    commit(uri, staged)
    assert commit(uri, staged, gates=(GateSpec(min_rows=1000),))["identities"] == {staged.identity: "already_committed"}


def test_gates_that_make_no_sense_are_named(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="has no condition"):
        GateSpec(name="empty")
    with pytest.raises(InputError, match="between 0 and 1"):
        GateSpec(max_null_rates={"x": 2.0})
    staged = append(uri)
    with pytest.raises(InputError, match="no column 'nope'"):
        commit(uri, staged, gates=(GateSpec(unique=("nope",)),))
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(InputError, match="needs the package duckdb"):
        commit(uri, staged, gates=(GateSpec(sql="SELECT 1 FROM staged"),))
