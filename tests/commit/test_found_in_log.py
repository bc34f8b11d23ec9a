"""A commit that finds its work in the log: what its own tries have written goes, what the version in the log names stays."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from lance_core.commit.loop import LoopRequest, commit_in_detail
from lance_core.commit.manifests import load_manifest, open_version
from lance_core.commit.naming import manifest_path
from lance_core.errors import StoreError
from lance_core.fetch import Buffer
from lance_core.io.memory import MemoryStore
from lance_core.table.operations import Append
from lance_core.table.transaction import Transaction
from tests.commit.commit_support import append, create, live_rows, paths, write_fragment


class _Wide(MemoryStore):
    """Has a high latency, so that the transaction's file is sent before the log has been read."""

    is_wide = True

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.sent: list[str] = []

    def put(self, path: str, data: Buffer, *, durable: bool = True) -> None:
        super().put(path, data, durable=durable)
        self.sent.append(path)


class _LosesTheReply(MemoryStore):
    """The reply to the first put of version 2 is lost."""

    num_lost = 0

    def put_if_absent(self, path: str, data: Buffer, *, durable: bool = True) -> None:
        super().put_if_absent(path, data, durable=durable)
        if path == manifest_path(2) and not self.num_lost:
            self.num_lost += 1
            raise StoreError("the reply was lost")


def planned(store: MemoryStore) -> Transaction:
    return Transaction(1, str(uuid.uuid4()), Append((write_fragment(store, [4]),)))


def transaction_files(store: MemoryStore) -> list[str]:
    return [path for path in sorted(paths(store)) if path.startswith("_transactions/")]


def first_time(action: Callable[[], object]) -> Callable[[int], None]:
    """A callback that acts once."""
    left = [action]

    def act(_: int) -> None:
        if left:
            left.pop()()

    return act


@pytest.mark.parametrize("kind", [MemoryStore, _Wide])
@pytest.mark.parametrize("between", [(), (5,)], ids=["same number", "later number"])
def test_a_try_that_lost_to_the_same_work_leaves_no_file(kind: type[MemoryStore], between: tuple[int, ...]) -> None:
    store = kind(uuid.uuid4().hex)
    create(store)
    mine = planned(store)

    def others() -> None:
        for value in between:
            append(store, [value])
        commit_in_detail(store, mine, LoopRequest(attempt="winner"))

    done = commit_in_detail(store, mine, LoopRequest(attempt="loser", before_put=first_time(others)))
    assert done.already == bool(between)
    assert done.manifest.transaction_file == f"1-{mine.uuid}.winner.txn"
    assert not [path for path in transaction_files(store) if "loser" in path]
    assert f"_transactions/{done.manifest.transaction_file}" in transaction_files(store)
    assert live_rows(store) == [1, 2, 3, 4, *between]


def test_a_file_that_was_sent_early_goes_when_the_log_has_the_work() -> None:
    store = _Wide(uuid.uuid4().hex)
    create(store)
    mine, opened = planned(store), open_version(store)
    commit_in_detail(store, mine, LoopRequest(attempt="first"))
    before = transaction_files(store)
    assert commit_in_detail(store, mine, LoopRequest(attempt="second", opened=opened)).already
    assert [path for path in store.sent if path.endswith(".second.txn")]
    assert transaction_files(store) == before


@pytest.mark.parametrize("attempt", ["one", None])
def test_the_file_of_a_put_whose_reply_was_lost_stays(attempt: str | None) -> None:
    store = _LosesTheReply(uuid.uuid4().hex)
    create(store)
    mine = planned(store)
    done = commit_in_detail(store, mine, LoopRequest(attempt=attempt))
    assert store.num_lost
    assert done.manifest.version == load_manifest(store).version == 2
    assert f"_transactions/{done.manifest.transaction_file}" in transaction_files(store)


def test_the_same_transaction_without_an_attempt_keeps_its_one_file() -> None:
    store = MemoryStore(uuid.uuid4().hex)
    create(store)
    mine = planned(store)
    first = commit_in_detail(store, mine, LoopRequest())
    files = transaction_files(store)
    again = commit_in_detail(store, mine, LoopRequest())
    assert (first.already, again.already) == (False, True)
    assert transaction_files(store) == files
    assert f"_transactions/{first.manifest.transaction_file}" in files
