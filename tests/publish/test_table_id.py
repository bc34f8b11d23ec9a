"""A table that is made again at a uri is another table: its decisions, its staged work and its watchers know."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Sequence
from pathlib import Path

import lance
import pytest

from lance_core.commit.manifests import version_numbers
from lance_core.dataset.maintain.table_facts import table_facts
from lance_core.errors import IncompatibleConflictError
from lance_core.io.resolve import resolve_store
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.maintenance import CleanupSpec
from lance_core.publish.decisions import look
from lance_core.publish.history import known_commit
from lance_core.publish.table_id import TABLE_PATH, table_id_of
from tests.protocol.protocol_support import append, commit, ids, rows_at

_FORMAT_FOLDERS = ("_versions", "data", "_transactions", "_deletions", "_indices")


@pytest.fixture
def uri(tmp_path: Path) -> str:
    where = str(tmp_path / "table.lance")
    lance.write_dataset(rows_at([0]), where)
    return where


def _made_again(uri: str, *, appends: int, folders: Sequence[str] = _FORMAT_FOLDERS) -> None:
    """As a tool does it that knows Lance's own folders only; then its old versions are pruned."""
    for name in folders:
        shutil.rmtree(f"{uri}/{name}", ignore_errors=True)
    for number in range(appends + 1):
        lance.write_dataset(rows_at([number]), uri, mode="append" if number else "create")


def test_the_id_of_the_table_outlives_the_first_version(uri: str) -> None:
    store = resolve_store(uri)
    before = table_id_of(store)
    assert before
    for number in range(3):
        commit(uri, [append(uri, [number])])
        run_job(CleanupSpec(uri=uri, retain_versions=1))
    assert len(version_numbers(store)) == 1
    assert table_id_of(store) == before == table_facts(uri).table_id


def test_a_table_made_again_does_not_believe_the_old_decisions(uri: str) -> None:
    mine = append(uri, [100])
    commit(uri, [mine])
    store = resolve_store(uri)
    first, record = table_id_of(store), look(store, mine.identity).committed
    assert record is not None and record.table_id == first
    run_job(CleanupSpec(uri=uri, retain_versions=1))
    # The new table's number 2 was pruned by our own cleanup: nothing but its id tells that the record is not of it.
    _made_again(uri, appends=4)
    run_job(CleanupSpec(uri=uri, retain_versions=2))
    assert table_id_of(store) not in ("", first)
    assert table_facts(uri).table_id != first
    assert known_commit(store, look(store, mine.identity)) is None
    again = append(uri, [100], mine.identity)
    commit(uri, [again])
    assert 100 in ids(uri)


def test_a_record_of_the_old_table_is_no_witness_for_the_new_one(uri: str) -> None:
    commit(uri, [append(uri, [1])])
    run_job(CleanupSpec(uri=uri, retain_versions=1))
    store = resolve_store(uri)
    assert store.get(TABLE_PATH)
    _made_again(uri, appends=4)
    lance.dataset(uri).cleanup_old_versions(older_than=dt.timedelta(0))
    assert table_id_of(store) == ""


def test_what_was_staged_on_the_old_table_is_refused(uri: str) -> None:
    mine = append(uri, [100])
    # The staged files are still there: only the history is another.
    _made_again(uri, appends=2, folders=("_versions",))
    with pytest.raises(IncompatibleConflictError, match="created again") as refused:
        commit(uri, [mine])
    assert refused.value.cure
    assert 100 not in ids(uri)
