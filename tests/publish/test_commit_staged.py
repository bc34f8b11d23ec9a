"""The commit service: folding, creation, adoption, strict overwrites, gates, re-execution, results."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import lance
import pyarrow as pa
import pytest

from lance_core.arrow import schema_from_arrow
from lance_core.commit.identities import identities_of
from lance_core.commit.loop import commit_transaction
from lance_core.commit.manifests import latest_version, load_manifest
from lance_core.commit.transactions import load_transaction
from lance_core.errors import (
    CommitStateUnknownError,
    GateFailedError,
    IncompatibleConflictError,
    InputError,
    PreconditionError,
    RetryableConflictError,
    SchemaMismatchError,
    StoreError,
    StoreRefusedError,
)
from lance_core.io.local.store import LocalStore
from lance_core.io.memory import MemoryStore
from lance_core.io.store import Store
from lance_core.io.wrapped import WrappedStore
from lance_core.publish.commit import commit_staged
from lance_core.publish.model import CommitResult, StagedTransaction
from lance_core.publish.stage import begin_attempt, find_staged, finish_attempt, renew_lease
from lance_core.table.draft import TableOptions
from lance_core.table.operations import Append, Overwrite, Project
from lance_core.table.transaction import Transaction
from tests.commit.commit_support import ARROW_SCHEMA, append, create, live_rows, paths, stage, write_fragment
from tests.io.faulty_stores import FaultyStore

T = TypeVar("T")


@pytest.fixture
def store() -> Store:
    return MemoryStore(uuid.uuid4().hex)


def test_100_appends_are_one_version(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    create(store)
    staged = [stage(store, (100 + number,)) for number in range(100)]
    result = commit_staged(store, [StagedTransaction.from_dict(json.loads(json.dumps(item.to_dict()))) for item in staged])
    assert (result.version, result.num_versions, result.rows_added, result.fragments_added) == (2, 1, 100, 100)
    assert result.bytes_added == sum(item.num_bytes for item in staged)
    assert CommitResult.from_dict(json.loads(json.dumps(result.to_dict()))) == result
    transaction = load_transaction(store, 2)
    assert transaction is not None
    found = identities_of(transaction)
    assert set(found) == {item.identity for item in staged}
    note = {"attempt": staged[0].attempt, "digest": staged[0].digest, "operation": "append", "rows": 1}
    assert found[staged[0].identity] == note
    dataset = lance.dataset(store.uri)
    dataset.validate()
    assert sorted(dataset.to_table()["a"].to_pylist()) == [1, 2, 3, *range(100, 200)]
    assert set(dataset.read_transaction(2).transaction_properties) == set(transaction.properties)
    assert [path for path in paths(store) if path.startswith(("_lance_core/staged/", "_lance_core/intents/"))] == []


def test_creating_appends_become_one_creation(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    staged = [stage(store, (number,)) for number in range(3)]
    assert all(item.creates and item.operation == "append" for item in staged)
    result = commit_staged(store, staged[:2], options=TableOptions(stable_row_ids=True))
    assert (result.version, result.num_versions) == (1, 1)
    assert load_manifest(store).uses_stable_row_ids
    assert commit_staged(store, staged).version == 2
    transaction = load_transaction(store, 2)
    assert transaction is not None
    assert isinstance(transaction.operation, Append)
    assert transaction.uuid == staged[2].identity
    assert live_rows(store) == [0, 1, 2]
    lance.dataset(store.uri).validate()


def test_creating_append_adopts_the_ids_of_the_table(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    staged = stage(store, (7, 8))
    other = pa.table({"b": ["x"], "a": pa.array([1], pa.int64())})
    lance.write_dataset(other, store.uri)
    result = commit_staged(store, [staged])
    assert result.num_versions == 1
    dataset = lance.dataset(store.uri)
    dataset.validate()
    assert dataset.to_table().sort_by("a").to_pylist() == [
        {"b": "x", "a": 1},
        {"b": None, "a": 7},
        {"b": None, "a": 8},
    ]


@pytest.mark.parametrize(
    "fields",
    [
        [pa.field("a", pa.int32())],
        [pa.field("other", pa.int64())],
        [pa.field("a", pa.int64(), nullable=False)],
        [pa.field("a", pa.int64()), pa.field("b", pa.int64(), nullable=False)],
    ],
)
def test_creating_append_refuses_another_table(store: Store, fields: list[pa.Field]) -> None:
    staged = stage(store, (7,))
    operation = Overwrite((), schema_from_arrow(pa.schema(fields)))
    commit_transaction(store, Transaction(0, str(uuid.uuid4()), operation))
    with pytest.raises(SchemaMismatchError):
        commit_staged(store, [staged])
    assert latest_version(store) == 1
    assert find_staged(store, staged.identity) == staged


def test_overwrite_is_strict_by_default(store: Store) -> None:
    create(store)
    staged = stage(store, (7,), overwrite=True)
    append(store, (9,))
    with pytest.raises(IncompatibleConflictError, match="if_moved"):
        commit_staged(store, [staged])
    assert live_rows(store) == [1, 2, 3, 9]
    result = commit_staged(store, [staged], if_moved="overwrite")
    assert result.identities == {staged.identity: "committed"}
    assert live_rows(store) == [7]
    assert commit_staged(store, [staged]).identities == {staged.identity: "already_committed"}


def test_overwrite_of_an_unmoved_table(store: Store) -> None:
    create(store)
    staged = stage(store, (7,), overwrite=True)
    assert commit_staged(store, [staged]).version == 2
    assert live_rows(store) == [7]


def test_overwrite_for_a_table_that_appeared_meanwhile(store: Store) -> None:
    staged = stage(store, (7,), overwrite=True, read_version=0)
    assert not staged.creates
    create(store)
    with pytest.raises(IncompatibleConflictError):
        commit_staged(store, [staged])
    assert live_rows(store) == [1, 2, 3]


def test_append_after_a_foreign_overwrite_is_refused(store: Store) -> None:
    create(store)
    staged = stage(store, (7,))
    commit_transaction(store, Transaction(1, str(uuid.uuid4()), Overwrite((), schema_from_arrow(ARROW_SCHEMA))))
    with pytest.raises(IncompatibleConflictError):
        commit_staged(store, [staged])
    assert latest_version(store) == 2
    assert commit_staged(store, [stage(store, (8,))]).version == 3


def test_gate_leaves_readers_untouched(store: Store) -> None:
    create(store)
    staged = stage(store, (7,))
    seen = []

    def gate(items, newest):  # type: ignore[no-untyped-def]
        seen.append((items[0][0], newest.version, len(items[0][1].operation.fragments)))
        raise GateFailedError("too few rows")

    with pytest.raises(GateFailedError):
        commit_staged(store, [staged], check=gate)
    assert seen == [(staged, 1, 1)]
    assert latest_version(store) == 1
    assert commit_staged(store, [staged]).version == 2


def test_conflict_is_executed_again_under_the_lane(store: Store) -> None:
    create(store)
    staged = stage(store, (7,))
    project = Project(schema_from_arrow(ARROW_SCHEMA), preserves_nullability=False)
    commit_transaction(store, Transaction(1, str(uuid.uuid4()), project))
    with pytest.raises(RetryableConflictError):
        commit_staged(store, [staged])

    def again(ref: StagedTransaction, by: str) -> StagedTransaction:
        return stage(store, (7,), identity=ref.identity, replaces=(ref.attempt, by))

    result = commit_staged(store, [staged], re_execute=again)
    assert (result.re_executed, result.num_versions, result.version) == (1, 1, 3)
    assert live_rows(store) == [1, 2, 3, 7]
    assert len([path for path in paths(store) if path.startswith("data/")]) == 2


class _Opened(WrappedStore):
    """Notes each manifest that is read."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.paths: list[str] = []

    def _around(self, inner: Store) -> Store:
        return inner

    def _call(self, name: str, path: str, action: Callable[[], T]) -> T:
        if name in ("get", "get_ranges") and path.startswith("_versions/"):
            self.paths.append(path)
        return action()


def test_each_version_is_opened_once_to_find_out_whom_it_concerns(store: Store) -> None:
    create(store)
    members = [stage(store, (7,)), stage(store, (8,))]
    project = Project(schema_from_arrow(ARROW_SCHEMA), preserves_nullability=False)
    commit_transaction(store, Transaction(1, str(uuid.uuid4()), project))
    for value in (40, 50, 60):
        append(store, (value,))
    watched = _Opened(store)
    with pytest.raises(RetryableConflictError):
        commit_staged(watched, members)
    newest = watched.paths.count("_versions/18446744073709551610.manifest")
    between = [path for path in watched.paths if path != "_versions/18446744073709551610.manifest"]
    assert len(between) == len(set(between)) >= 3
    assert newest <= 3


def test_a_store_without_conditional_put_is_refused(store: Store) -> None:
    class Plain(MemoryStore):
        has_put_if_absent = False

    create(store)
    staged = stage(store, (7,))
    plain = Plain(store.uri.removeprefix("memory://"))
    with pytest.raises(PreconditionError, match="no put-if-absent"):
        commit_staged(plain, [staged])
    assert latest_version(store) == 1


def test_lost_reply_of_the_publishing_put_is_settled_by_looking(store: Store) -> None:
    create(store)

    def is_publication(name: str, path: str) -> bool:
        return name == "put_if_absent" and path.startswith("_versions/")

    staged = stage(store, (7,))
    result = commit_staged(FaultyStore(store, fail_at=1, when="after", matches=is_publication), [staged])
    assert result.identities == {staged.identity: "committed"}
    refused = stage(store, (8,))
    result = commit_staged(FaultyStore(store, fail_at=1, when="before", matches=is_publication), [refused])
    assert result.version == 3
    with pytest.raises(StoreError):
        commit_staged(
            FaultyStore(store, fail_at=1, forever=True, matches=is_publication), [stage(store, (9,))], max_retries=2
        )


def test_bare_commit_with_an_unreadable_outcome_says_so(store: Store) -> None:
    create(store)
    broken = []

    def breaks(name: str, path: str) -> bool:
        if name == "put_if_absent":
            broken.append(path)
        return bool(broken)

    faulty = FaultyStore(store, fail_at=1, when="after", forever=True, matches=breaks)
    transaction = Transaction(1, str(uuid.uuid4()), Append((write_fragment(store, (7,)),)))
    with pytest.raises(CommitStateUnknownError, match="it is unknown whether"):
        commit_transaction(faulty, transaction)
    assert live_rows(store) == [1, 2, 3, 7]
    assert commit_transaction(store, transaction).version == 2
    assert latest_version(store) == 2


def test_staged_commit_with_an_unreadable_outcome_may_be_repeated(store: Store) -> None:
    create(store)
    staged = stage(store, (7,))
    broken = []

    def breaks(name: str, path: str) -> bool:
        if name == "put_if_absent" and path.startswith("_versions/"):
            broken.append(path)
        return bool(broken)

    faulty = FaultyStore(store, fail_at=1, when="after", forever=True, matches=breaks)
    with pytest.raises(StoreError, match="safe to make this commit again") as caught:
        commit_staged(faulty, [staged])
    assert caught.value.retryable
    assert commit_staged(store, [staged]).identities == {staged.identity: "already_committed"}
    assert live_rows(store) == [1, 2, 3, 7]


@pytest.mark.parametrize("refused", ["_versions/", "_lance_core/decisions/"])
def test_a_refusal_after_the_put_is_not_retryable_and_the_commit_may_be_repeated_later(store: Store, refused: str) -> None:
    create(store)
    staged = stage(store, (7,))
    puts = []

    def breaks(name: str, path: str) -> bool:
        if name == "put_if_absent" and path.startswith("_versions/"):
            puts.append(path)
        return bool(puts) and path.startswith(refused)

    faulty = FaultyStore(store, fail_at=1, when="after", forever=True, matches=breaks, error=StoreRefusedError)
    with pytest.raises(StoreRefusedError, match=r"(the same|this) commit again") as caught:
        commit_staged(faulty, [staged])
    assert not caught.value.retryable
    assert commit_staged(store, [staged]).identities == {staged.identity: "already_committed"}
    assert live_rows(store) == [1, 2, 3, 7]


def test_same_transaction_twice_is_one_version(store: Store) -> None:
    create(store)
    transaction = Transaction(1, str(uuid.uuid4()), Append((write_fragment(store, (7,)),)))
    assert commit_transaction(store, transaction).version == 2
    append(store, (8,))
    assert commit_transaction(store, transaction).version == 2
    assert latest_version(store) == 3


def test_bad_arguments(store: Store) -> None:
    create(store)
    staged = stage(store, (7,))
    with pytest.raises(InputError):
        commit_staged(store, [])
    with pytest.raises(InputError):
        commit_staged(store, [staged], if_moved="maybe")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="two attempts"):
        commit_staged(store, [staged, replace(staged, attempt="0" * 16)])
    with pytest.raises(InputError):
        begin_attempt(store, identity="../up", spec={}, read_version=1)
    with pytest.raises(InputError, match="fields of"):
        StagedTransaction.from_dict({"uri": "x"})
    attempt = begin_attempt(store, identity="job", spec={}, read_version=1)
    renew_lease(store, attempt)
    with pytest.raises(InputError, match="read version"):
        finish_attempt(store, attempt, Transaction(2, "x", Append(())), rows=0, bytes=0)
