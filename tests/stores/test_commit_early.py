"""What a commit on a far store sends early, or does not read again, is right whatever others did meanwhile."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from functools import partial

import pyarrow as pa
import pytest

import lance_core
from bench.object_client import RunningServer, object_server
from lance_core.commit import naming
from lance_core.commit.loop import commit_transaction
from lance_core.commit.manifests import OpenVersion, load_manifest, open_newest
from lance_core.commit.transactions import read_transaction_file
from lance_core.dataset.write import retry
from lance_core.errors import IncompatibleConflictError
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.table.operations import Append, Delete
from lance_core.table.transaction import Transaction


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with object_server() as running:
        yield running


def new_table(server: RunningServer, *values: int) -> tuple[str, Store, OpenVersion]:
    uri = f"s3://b{uuid.uuid4().hex}/t"
    lance_core.write_dataset(pa.table({"a": [*values]}), uri, storage_options=server.options)
    store = resolve_store(uri, server.options)
    return uri, store, opened_of(store)


def opened_of(store: Store) -> OpenVersion:
    opened = open_newest(store)
    assert opened is not None
    return opened


def append_of(opened: OpenVersion) -> Transaction:
    """Appends the files of the first fragment once more."""
    return Transaction(opened.manifest.version, str(uuid.uuid4()), Append((opened.manifest.fragments[0],)))


def test_the_opened_version_is_not_read_again(server: RunningServer) -> None:
    _, store, opened = new_table(server, 1, 2)
    assert opened.tag
    with server.watch() as seen:
        commit_transaction(store, append_of(opened), opened=opened)
    assert seen.operations["GET"] == 0, str(seen)
    with server.watch() as seen:
        commit_transaction(store, append_of(opened_of(store)))
    assert seen.operations["GET"] == 2, str(seen)  # opened for the test, and by the commit


def test_a_table_made_again_is_not_taken_for_the_one_that_was_opened(server: RunningServer) -> None:
    uri, store, opened = new_table(server, 1, 2)
    transaction = append_of(opened)
    lance_core.LanceDataset.drop(uri, storage_options=server.options)
    lance_core.write_dataset(pa.table({"a": [7, 8, 9]}), uri, storage_options=server.options)
    manifest = commit_transaction(store, transaction, opened=opened)
    assert manifest.version == 2
    there = {file.path for fragment in manifest.fragments for file in fragment.files}
    assert {file.path for file in opened_of(store).manifest.fragments[0].files} <= there
    assert [fragment.physical_rows for fragment in manifest.fragments] == [3, 2]


def test_a_version_of_others_is_judged_and_the_refused_file_is_removed(server: RunningServer) -> None:
    uri, store, opened = new_table(server, 1, 2)
    doomed = Transaction(1, str(uuid.uuid4()), Delete((), (0,), "true"))
    lance_core.write_dataset(pa.table({"b": ["other"]}), uri, mode="overwrite", storage_options=server.options)
    before = {entry.path for entry in store.list("")}
    with pytest.raises(IncompatibleConflictError):
        commit_transaction(store, doomed, opened=opened)
    assert {entry.path for entry in store.list("")} == before


def test_the_file_holds_what_was_published(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    uri, store, opened = new_table(server, *range(100))
    stale = lance_core.dataset(uri, version=1, storage_options=server.options)
    others = lance_core.dataset(uri, storage_options=server.options)
    others.delete("a = 3")
    monkeypatch.setattr(retry, "commit_transaction", partial(commit_transaction, opened=opened))
    stale.delete("a = 5")
    newest = load_manifest(store)
    written = read_transaction_file(store, naming.transaction_path(newest.transaction_file))
    assert written is not None and isinstance(written.operation, Delete)
    (fragment,) = written.operation.updated_fragments
    assert fragment.deletion_file is not None and fragment.deletion_file.num_deleted_rows == 2
    assert lance_core.dataset(uri, storage_options=server.options).count_rows() == 98


def test_an_early_file_that_failed_is_written_again(server: RunningServer) -> None:
    _, store, opened = new_table(server, 1)
    server.fail({"operation": "PUT", "contains": "_transactions/", "status": 403, "times": 1})
    manifest = commit_transaction(store, append_of(opened), opened=opened)
    server.fail()
    assert store.size(naming.transaction_path(manifest.transaction_file)) > 0
