"""A staged append of very many fragments: committed as bytes, and still looked at file by file."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.commit import naming
from lance_core.errors import IncompatibleConflictError
from lance_core.format.fragment import Fragment
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.edits import DeleteSpec
from lance_core.jobs.specs.spec import CommitSpec
from lance_core.publish.commit import commit_staged
from lance_core.publish.model import StagedTransaction
from lance_core.publish.stage import begin_attempt, find_staged, finish_attempt
from lance_core.table.operations import Append
from lance_core.table.transaction import Transaction
from lance_core.wire.fragments import WireFragments
from lance_core.wire.new_fragments import MANY

IDENTITY = "0f6ab1f3-5c0e-5e7e-9d51-6f3d1f0b6a52"
SPEC = {"what": "many fragments"}


def staged(folder: Path) -> tuple[Store, StagedTransaction, list[str]]:
    """A table of one row, and a staged append of MANY times the same row; the paths of its files."""
    uri = str(folder / "t")
    made = lance_core.write_dataset(pa.table({"a": [1]}), uri)
    store = resolve_store(uri, {"local_fsync": "false"})
    template = made.get_fragments()[0].metadata.files[0]
    attempt = begin_attempt(store, identity=IDENTITY, spec=SPEC, read_version=1)
    fragments = []
    for _ in range(MANY):
        file = replace(template, path=naming.data_file_name(attempt.attempt))
        (folder / "t" / "data" / file.path).hardlink_to(folder / "t" / "data" / template.path)
        fragments.append(Fragment(id=0, files=(file,), physical_rows=1))
    transaction = Transaction(1, "u", Append(fragments))
    ref = finish_attempt(store, attempt, transaction, rows=MANY, bytes=MANY)
    return store, ref, [naming.data_path(item.files[0].path) for item in fragments]


def test_no_fragment_of_many_becomes_an_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, ref, _ = staged(tmp_path)
    seen: list[bytes] = []
    decode = WireFragments.decode
    monkeypatch.setattr(WireFragments, "decode", lambda self, raw: seen.append(raw) or decode(self, raw))
    assert find_staged(store, IDENTITY, spec=SPEC) == ref
    result = commit_staged(store, [ref])
    assert (result.version, result.rows_added, result.fragments_added) == (2, MANY, MANY)
    assert len(seen) < 20
    assert commit_staged(store, [ref]).num_versions == 0
    monkeypatch.undo()
    table = lance.dataset(f"{tmp_path}/t")
    assert table.version == 2
    assert table.count_rows() == MANY + 1
    assert len({item.fragment_id for item in table.get_fragments()}) == MANY + 1
    assert table.take([0, 1, MANY // 2, MANY]).to_pydict() == {"a": [1, 1, 1, 1]}
    assert lance_core.dataset(f"{tmp_path}/t").take([0, MANY]).to_pydict() == {"a": [1, 1]}


def test_one_lost_file_of_many_is_named(tmp_path: Path) -> None:
    store, ref, paths = staged(tmp_path)
    lost = paths[MANY * 2 // 3]
    store.delete(lost)
    assert find_staged(store, IDENTITY) is None
    with pytest.raises(IncompatibleConflictError, match=lost):
        commit_staged(store, [ref])
    assert lance_core.dataset(f"{tmp_path}/t").version == 1


def test_the_fragments_are_not_described_again_for_each_delete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri, count, deletes = str(tmp_path / "t"), 200, 4
    lance.write_dataset(pa.table({"a": [*range(2 * count)]}), uri, max_rows_per_file=2)
    wanted = [DeleteSpec(uri=uri, identity=str(uuid.uuid4()), predicate=f"a = {2 * item}") for item in range(deletes)]
    for spec in wanted:
        run_job(spec)
    for item in range(2):
        lance_core.write_dataset(pa.table({"a": [-item]}), uri, mode="append")
    seen: list[bytes] = []
    decode = WireFragments.decode
    monkeypatch.setattr(WireFragments, "decode", lambda self, raw: seen.append(raw) or decode(self, raw))
    run_job(CommitSpec(uri=uri, identities=tuple(spec.identity for spec in wanted)))
    monkeypatch.undo()
    assert len(seen) < 2 * count, f"{len(seen)} fragments were decoded, of {count}, for {deletes} deletes"
    assert lance.dataset(uri).count_rows() == 2 * count + 2 - deletes
