"""Files that vanish between two reads of a commit: the commit says what happened, or that there is nothing left to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.commit import naming
from lance_core.commit.manifests import load_manifest
from lance_core.commit.references import deletion_paths, fragment_paths
from lance_core.commit.transactions import read_transaction_file
from lance_core.errors import IncompatibleConflictError, NotFoundError, RetryableConflictError
from lance_core.io.local.store import LocalStore
from lance_core.io.store import Store
from lance_core.io.wrapped import WrappedStore
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.edits import DeleteSpec
from lance_core.publish.abort import abort_attempt
from lance_core.publish.commit import commit, commit_staged
from lance_core.publish.model import ALREADY_COMMITTED, StagedTransaction
from lance_core.publish.publisher import CommitRequest

T = TypeVar("T")
IDENTITY = "87354472-d866-4b24-a877-cb544f4d2954"


class InterruptedStore(WrappedStore):
    """Something happens right before the first read of a file."""

    def __init__(self, inner: Store, path: str, happening: Callable[[], object]) -> None:
        super().__init__(inner)
        self._path, self._happening = path, happening
        self.has_happened = False

    def _call(self, name: str, path: str, action: Callable[[], T]) -> T:
        if name == "get" and path == self._path and not self.has_happened:
            self.has_happened = True
            self._happening()
        return action()


class Meeting:
    """A staged delete of row 1, planned on a version without row 0, and a delete of row 2 that came in between."""

    def __init__(self, folder: Path) -> None:
        self.uri = str(folder / "t.lance")
        self.store = LocalStore(self.uri)
        dataset = lance_core.write_dataset(pa.table({"id": [*range(10)]}), self.uri)
        dataset.delete("id = 0")
        staged = run_job(DeleteSpec(uri=self.uri, identity=IDENTITY, predicate="id = 1"))
        assert isinstance(staged, StagedTransaction)
        self.ref = staged
        lance_core.dataset(self.uri).delete("id = 2")

    @property
    def staged_file(self) -> str:
        """The deletion file that the attempt wrote."""
        transaction = read_transaction_file(self.store, self.ref.transaction_path)
        assert transaction is not None
        (path,) = deletion_paths(transaction, attempt=self.ref.attempt)
        return path

    def file_of(self, version: int) -> str:
        """The deletion file of a version."""
        paths = fragment_paths(load_manifest(self.store, version).fragments)
        (path,) = [path for path in paths if path.startswith(f"{naming.DELETIONS}/")]
        return path

    def remove(self, version: int) -> None:
        """As a cleanup of another library does."""
        self.store.delete(self.file_of(version))
        for scheme in naming.NamingScheme:
            self.store.delete(naming.manifest_path(version, scheme))

    def ids(self) -> list[int]:
        """The rows, as the official library reads them."""
        return sorted(lance.dataset(self.uri).to_table()["id"].to_pylist())


def _commit(store: Store, ref: StagedTransaction) -> str:
    return commit_staged(store, [ref]).identities[IDENTITY]


def test_a_member_that_another_commit_lands_and_clears(tmp_path: Path) -> None:
    made = Meeting(tmp_path)
    store = InterruptedStore(made.store, made.staged_file, lambda: _commit(made.store, made.ref))
    assert _commit(store, made.ref) == ALREADY_COMMITTED
    assert store.has_happened
    assert made.ids() == [*range(3, 10)]


def test_a_member_that_is_aborted(tmp_path: Path) -> None:
    made = Meeting(tmp_path)
    store = InterruptedStore(
        made.store, made.staged_file, lambda: abort_attempt(made.store, made.ref.identity, made.ref.attempt)
    )
    with pytest.raises(IncompatibleConflictError, match="was aborted; for this identity nothing is staged"):
        _commit(store, made.ref)
    assert store.has_happened
    assert made.ids() == [1, *range(3, 10)]


def test_an_aborted_member_does_not_keep_the_others(tmp_path: Path) -> None:
    made = Meeting(tmp_path)
    other = run_job(DeleteSpec(uri=made.uri, identity="0" * 8 + IDENTITY[8:], predicate="id = 5"))
    assert isinstance(other, StagedTransaction)
    store = InterruptedStore(
        made.store, made.staged_file, lambda: abort_attempt(made.store, made.ref.identity, made.ref.attempt)
    )
    result = commit(store, CommitRequest(refs=(made.ref, other), partial=True))
    assert [*result.refused] == [IDENTITY]
    assert [*result.identities] == [other.identity]
    assert made.ids() == [1, 3, 4, *range(6, 10)]


def test_the_version_it_was_planned_on_is_removed(tmp_path: Path) -> None:
    made = Meeting(tmp_path)
    store = InterruptedStore(made.store, made.file_of(2), lambda: made.remove(2))
    with pytest.raises(RetryableConflictError, match="was planned on version 2, which can no longer be read"):
        _commit(store, made.ref)
    assert store.has_happened
    assert made.ids() == [1, *range(3, 10)]


def test_the_version_it_is_brought_up_to_is_removed(tmp_path: Path) -> None:
    made = Meeting(tmp_path)

    def overtake() -> None:
        lance_core.dataset(made.uri).delete("id = 9")
        made.remove(3)

    store = InterruptedStore(made.store, made.file_of(3), overtake)
    with pytest.raises(RetryableConflictError, match="versions were removed while the commit compared its work"):
        _commit(store, made.ref)
    assert store.has_happened
    assert made.ids() == [1, *range(3, 9)]


def test_no_table_is_still_no_table(tmp_path: Path) -> None:
    made = Meeting(tmp_path)
    for version in (1, 2, 3):
        for scheme in naming.NamingScheme:
            made.store.delete(naming.manifest_path(version, scheme))
    with pytest.raises((NotFoundError, IncompatibleConflictError)):
        _commit(made.store, made.ref)
