"""What is done once by its identity is done once for a table, and again for another table at the same uri."""

from __future__ import annotations

import shutil
from pathlib import Path

import lance
import pytest

from lance_core.io.resolve import resolve_store
from lance_core.jobs.run import run_job
from lance_core.jobs.runtime.idempotence import note_done, was_done, work_identity
from lance_core.jobs.specs.maintenance import BranchSpec, TagSpec
from lance_core.publish.decisions import look
from lance_core.publish.table_id import table_id_of
from tests.jobs.edit_support import identity, make_table, rows


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return make_table(str(tmp_path / "t.lance"), rows(0, 10), rows(10, 20))


def made_again(uri: str) -> None:
    """By a tool that knows Lance's own folders only: the records of the old table stay."""
    for name in ("_versions", "data", "_transactions", "_refs", "tree"):
        shutil.rmtree(f"{uri}/{name}", ignore_errors=True)
    make_table(uri, rows(0, 10), rows(10, 20))


def test_a_table_made_again_gets_its_tag_again(uri: str) -> None:
    spec = TagSpec(uri=uri, identity=identity(uri, "t"), name="gold")
    store, key = resolve_store(uri), work_identity(spec)
    run_job(spec)
    first = table_id_of(store)
    record = look(store, key).committed
    assert first and record is not None and record.table_id == first
    made_again(uri)
    assert not was_done(store, key)
    assert run_job(spec).to_dict() == {"name": "gold", "version": 2, "before": None}
    record = look(store, key).committed
    assert record is not None and record.table_id == table_id_of(store) != first
    lance.dataset(uri).tags.delete("gold")
    assert run_job(spec).to_dict()["version"] is None, "done once for this table, and another took it back"


def test_a_table_made_again_gets_its_branch_again(uri: str) -> None:
    spec = BranchSpec(uri=uri, identity=identity(uri, "b"), name="feat")
    assert run_job(spec).to_dict()["changed"] is True
    made_again(uri)
    assert run_job(spec).to_dict()["changed"] is True
    assert run_job(spec).to_dict()["changed"] is False


def test_a_record_without_table_id_still_counts(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = resolve_store(uri)
    with monkeypatch.context() as patch:
        patch.setattr("lance_core.jobs.runtime.idempotence.table_id_of", lambda _: "")
        note_done(store, "of-a-table-without-an-id", version=2)
    assert was_done(store, "of-a-table-without-an-id")
