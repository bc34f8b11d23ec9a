"""Erasure: nothing of the rows is left anywhere, or the report names what still has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from lance_core.dataset.refs.branches import place_of
from lance_core.errors import InputError
from lance_core.io.resolve import resolve_store
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.maintenance import BranchSpec, TagSpec
from lance_core.maintenance.erasure import Erasure, erase, find_holders, is_signed_by, sign

KEY = b"0123456789abcdef"
PERSON = "customer = 'secret-7'"


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Three fragments, the person in each; one of the rows is deleted already; an index over the names; a branch."""
    uri = str(tmp_path / "t.lance")
    for start in (0, 10, 20):
        rows = pa.table({"id": list(range(start, start + 10)), "customer": [f"secret-{n % 10}" for n in range(10)]})
        lance.write_dataset(rows, uri, mode="append" if start else "create")
    lance.dataset(uri).create_scalar_index("customer", "BTREE")
    lance.dataset(uri).delete("id = 7")
    run_job(BranchSpec(uri=uri, name="trial"))
    return uri


def _bytes_that_hold(folder: str, text: bytes) -> list[str]:
    return [str(path) for path in Path(folder).rglob("*") if path.is_file() and text in path.read_bytes()]


def _data(paths: list[str]) -> list[str]:
    return [path for path in paths if "/data/" in path or "/_indices/" in path]


def test_nothing_is_left_of_the_rows_on_any_line(table: str) -> None:
    assert _data(_bytes_that_hold(table, b"secret-7"))
    before = find_holders(table, PERSON, options={})
    assert {holder.line for holder in before} == {"main", "trial"}
    report = erase(Erasure(uri=table, predicate=PERSON, identity="e", delete_unverified=True), options={})
    assert {line["line"]: line["rows_deleted"] for line in report["lines"]} == {"main": 2, "trial": 2}
    for uri in (table, f"{table}/tree/trial"):
        found = lance.dataset(uri)
        found.validate()
        assert found.count_rows() == 27
        assert found.to_table(filter="customer = 'secret-6'").num_rows == 3
    assert {line["line"]: line["indices_dropped"] for line in report["lines"]} == {"main": [], "trial": ["customer_idx"]}
    held = [holder for holder in report["holders"] if holder["num_rows"]]
    # The version where the branch began is read by nobody, but belongs to it: the report says so, or it went.
    assert [holder for holder in held if not holder["why"].startswith("kept by the cleanup")] == []
    run_job(BranchSpec(uri=table, name="trial", action="delete"))
    again = erase(Erasure(uri=table, predicate=PERSON, delete_unverified=True), options={})
    assert (again["is_gone"], again["holders"]) == (True, [])
    assert _data(_bytes_that_hold(table, b"secret-7")) == []


def test_a_tag_and_a_clone_are_named(table: str, tmp_path: Path) -> None:
    run_job(BranchSpec(uri=table, name="trial", action="delete"))
    run_job(TagSpec(uri=table, name="kept"))
    version = lance.dataset(table).version
    import lance_core

    lance_core.dataset(table).shallow_clone(str(tmp_path / "clone.lance"), version)
    report = erase(Erasure(uri=table, predicate=PERSON), options={})
    assert report["is_gone"] is False
    held = {holder["kind"]: holder for holder in report["holders"] if holder["num_rows"]}
    assert (held["version"]["name"], held["version"]["why"]) == (str(version), "kept by the tag kept")
    assert held["version"]["num_rows"] == 3, "the row that was deleted before is still in its file"
    assert held["clone"]["name"] == str(tmp_path / "clone.lance")
    assert "erase the rows there" in held["clone"]["why"]


def test_a_second_try_does_nothing_twice(table: str) -> None:
    first = erase(Erasure(uri=table, predicate=PERSON, identity="e"), options={})
    version = lance.dataset(table).version
    second = erase(Erasure(uri=table, predicate=PERSON, identity="e"), options={})
    assert {line["outcome"] for line in first["lines"]} == {"committed"}
    assert {line["outcome"] for line in second["lines"]} == {"already_committed"}
    assert lance.dataset(table).version == version


def test_rows_that_came_meanwhile_are_named(table: str) -> None:
    erase(Erasure(uri=table, predicate=PERSON, identity="e"), options={})
    lance.write_dataset(pa.table({"id": [99], "customer": ["secret-7"]}), table, mode="append")
    report = erase(Erasure(uri=table, predicate=PERSON, identity="e"), options={})
    assert report["is_gone"] is False
    assert "rows were added in the meantime" in {holder["why"].split(": ")[-1] for holder in report["holders"]}


def test_a_report_that_was_changed_is_not_signed_any_more(table: str) -> None:
    report: dict[str, Any] = sign(erase(Erasure(uri=table, predicate=PERSON), options={}), KEY, key_id="k1")
    assert is_signed_by(report, KEY)
    assert not is_signed_by(report, b"another key of 16")
    assert not is_signed_by({**report, "is_gone": not report["is_gone"]}, KEY)
    assert not is_signed_by({**report, "signature": {**report["signature"], "key_id": "k2"}}, KEY)
    with pytest.raises(InputError, match="16 random bytes"):
        sign(report, b"short")
    with pytest.raises(InputError, match="predicate is empty"):
        erase(Erasure(uri=table, predicate=" "), options={})
    assert place_of(resolve_store(table), "trial").uri.endswith("tree/trial")
