"""Branch and tag jobs: once by identity, whatever others moved since; half-made branches; the official library reads all."""

from __future__ import annotations

import lance
import pytest

from lance_core.dataset.versions import clone as fork
from lance_core.errors import InputError, NotFoundError
from lance_core.jobs.run import run_job, run_json
from lance_core.jobs.specs.maintenance import BranchSpec, TagSpec
from lance_core.jobs.specs.spec import AppendSpec
from tests.jobs.edit_support import commit, identity, ids, make_table, rows, source


@pytest.fixture
def uri(tmp_path) -> str:
    return make_table(str(tmp_path / "t.lance"), rows(0, 10), rows(10, 20))


def branch(uri: str, name: str, key: str = "1", **fields: object) -> BranchSpec:
    return BranchSpec(uri=uri, identity=identity(uri, key), name=name, **fields)


def test_a_branch_is_begun_once_and_written_like_a_table(uri: str) -> None:
    spec = branch(uri, "feat/x")
    first = run_json(spec.to_json()).to_dict()
    assert (first["parent_version"], first["changed"]) == (2, True)
    lance.write_dataset(rows(20, 30), uri, mode="append")
    again = run_job(spec).to_dict()
    assert again == {**first, "changed": False}
    place = first["uri"]
    commit(place, run_job(AppendSpec(uri=place, identity=identity(place), source=source(start=50, stop=52))))
    assert lance.dataset(uri).checkout_version(("feat/x", None)).count_rows() == 22
    assert ids(uri) == [*range(30)]


def test_where_a_branch_begins(uri: str) -> None:
    run_job(TagSpec(uri=uri, identity=identity(uri, "t"), name="one", version=1))
    assert run_job(branch(uri, "a", "1", tag="one")).to_dict()["parent_version"] == 1
    assert run_job(branch(uri, "b", "2", version=1)).to_dict()["parent_version"] == 1
    assert run_job(branch(uri, "c", "3", from_branch="a")).to_dict()["parent_branch"] == "a"
    assert set(lance.dataset(uri).branches.list()) == {"a", "b", "c"}
    assert run_job(branch(uri, "a", "4", version=1)).to_dict()["changed"] is False
    with pytest.raises(InputError, match="began at version 1 of main, not at version 2"):
        run_job(branch(uri, "a", "5"))
    with pytest.raises(NotFoundError):
        run_job(branch(uri, "d", "6", tag="nope"))
    with pytest.raises(InputError, match="in use by branch 'c'"):
        run_job(branch(uri, "a", "7", action="delete"))
    for name, key in (("c", "8"), ("c", "9"), ("c", "8")):
        run_job(branch(uri, name, key, action="delete"))
    assert set(lance.dataset(uri).branches.list()) == {"a", "b"}


def test_a_branch_deleted_by_another_is_not_begun_again_by_a_retry(uri: str) -> None:
    run_job(branch(uri, "a"))
    run_job(branch(uri, "a", "2", action="delete"))
    assert run_job(branch(uri, "a")).to_dict()["uri"] is None
    assert run_job(branch(uri, "a", "3")).to_dict()["changed"] is True


def test_a_half_made_branch_is_finished(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(fork, "encode_branch", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run_job(branch(uri, "a"))
    assert lance.dataset(uri).branches.list() == {}
    assert run_job(branch(uri, "a")).to_dict()["changed"] is True
    assert lance.dataset(uri).checkout_version(("a", None)).count_rows() == 20


def test_a_tag_is_set_once_by_identity(uri: str) -> None:
    spec = TagSpec(uri=uri, identity=identity(uri, "t"), name="gold")
    assert run_job(spec).to_dict() == {"name": "gold", "version": 2, "before": None}
    lance.write_dataset(rows(20, 30), uri, mode="append")
    assert run_job(spec).to_dict() == {"name": "gold", "version": 2, "before": 2}
    lance.dataset(uri).tags.update("gold", 1)
    assert run_job(spec).to_dict()["version"] == 1
    assert run_job(TagSpec(uri=uri, identity=identity(uri, "u"), name="gold")).to_dict()["version"] == 3
    gone = TagSpec(uri=uri, identity=identity(uri, "v"), name="gold", action="delete")
    run_job(gone)
    lance.dataset(uri).tags.create("gold", 2)
    assert run_job(gone).to_dict()["version"] == 2


def test_killed_between_tag_and_ledger_it_is_known_by_its_signature(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from lance_core.jobs.acts import tag

    spec = TagSpec(uri=uri, identity=identity(uri, "t"), name="gold")
    with monkeypatch.context() as patch:
        patch.setattr(tag, "note_done", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run_job(spec)
    lance.write_dataset(rows(20, 30), uri, mode="append")
    assert run_job(spec).to_dict()["version"] == 2
