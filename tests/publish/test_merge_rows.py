"""Deletes, updates and appends staged side by side become one version; whoever meets another in a row is planned again."""

from __future__ import annotations

import contextlib
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import lance
import numpy as np
import pytest

from lance_core.commit.deletion_files import read_deletions, write_deletions
from lance_core.commit.identities import identities_of
from lance_core.commit.manifests import load_manifest
from lance_core.commit.transactions import load_transaction
from lance_core.errors import RetryableConflictError
from lance_core.fetch import Buffer
from lance_core.io.local.store import LocalStore
from lance_core.publish.collect import collect_garbage
from lance_core.publish.commit import commit, commit_staged
from lance_core.publish.model import Attempt, StagedTransaction
from lance_core.publish.publisher import CommitRequest
from lance_core.publish.stage import begin, finish_attempt
from lance_core.table.operations import Delete, Update
from lance_core.table.transaction import Transaction
from tests.commit.commit_support import append, create, stage, write_fragment
from tests.io.faulty_stores import FaultyStore
from tests.publish.publish_support import orphans


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    store = LocalStore(tmp_path / "t")
    create(store, range(10))
    append(store, range(10, 20))
    return store


def stage_rows(
    store: LocalStore,
    rows: dict[int, Sequence[int]],
    *,
    whole: Sequence[int] = (),
    moved_to: Sequence[int] | None = None,
    read_version: int = 2,
    identity: str | None = None,
    replaces: tuple[str, ...] = (),
) -> StagedTransaction:
    """A staged Delete, or with `moved_to` an Update that moves the rows into a new fragment of these values."""
    request = Attempt(identity=identity or str(uuid.uuid4()), spec={}, read_version=read_version, replaces=replaces)
    attempt = begin(store, request)
    current = {item.id: item for item in load_manifest(store, read_version).fragments}
    updated = []
    for number, gone in rows.items():
        offsets = np.union1d(read_deletions(store, current[number]), np.array(gone, np.int64))
        file = write_deletions(store, number, offsets, read_version=read_version, attempt=attempt.attempt)
        updated.append(replace(current[number], deletion_file=file))
    num_rows = sum(len(gone) for gone in rows.values()) + 10 * len(whole)
    if moved_to is None:
        operation: Delete | Update = Delete(tuple(updated), tuple(whole), f"rows {rows}")
    else:
        fragment = write_fragment(store, moved_to, attempt=attempt.attempt)
        operation = Update(tuple(whole), tuple(updated), (fragment,), fields_modified=(0,))
    transaction = Transaction(read_version, attempt.identity, operation)
    return finish_attempt(store, attempt, transaction, rows=len(moved_to or ()), bytes=0, rows_deleted=num_rows)


def values(store: LocalStore) -> list[int]:
    dataset = lance.dataset(store.uri)
    dataset.validate()
    return sorted(dataset.to_table()["a"].to_pylist())


def assert_no_orphans(store: LocalStore) -> None:
    assert orphans(store) == set()


def test_deletes_updates_and_appends_are_one_version(store: LocalStore) -> None:
    staged = [
        stage(store, (100, 101)),
        stage_rows(store, {0: [1], 1: [0]}),
        stage_rows(store, {0: [2]}),
        stage_rows(store, {0: [3]}, moved_to=[300]),
        stage(store, (102,)),
        stage_rows(store, {1: [9]}),
    ]
    result = commit_staged(store, staged)
    assert (result.version, result.num_versions) == (3, 1)
    assert (result.rows_added, result.rows_deleted) == (4, 5)
    assert values(store) == [0, 4, 5, 6, 7, 8, 9, *range(11, 19), 100, 101, 102, 300]
    transaction = load_transaction(store, 3)
    assert transaction is not None
    assert isinstance(transaction.operation, Update)
    assert set(identities_of(transaction)) == {item.identity for item in staged}
    assert_no_orphans(store)
    assert commit_staged(store, staged).num_versions == 0
    collect_garbage(store)
    assert len(values(store)) == 19


def test_only_deletes_are_one_delete(store: LocalStore) -> None:
    staged = [stage_rows(store, {0: [1, 2]}), stage_rows(store, {0: [2, 3]}), stage_rows(store, {}, whole=[1])]
    result = commit_staged(store, staged)
    assert result.num_versions == 1
    assert values(store) == [0, 4, 5, 6, 7, 8, 9]
    transaction = load_transaction(store, 3)
    assert transaction is not None
    assert isinstance(transaction.operation, Delete)
    assert transaction.operation.deleted_fragment_ids == (1,)
    assert_no_orphans(store)


def test_the_table_moved_meanwhile(store: LocalStore) -> None:
    staged = [stage_rows(store, {0: [1]}), stage_rows(store, {0: [2]}, moved_to=[200]), stage(store, (100,))]
    lance.dataset(store.uri).delete("a = 5 or a = 19")
    append(store, (50,))
    result = commit_staged(store, staged)
    assert (result.version, result.num_versions) == (5, 1)
    assert values(store) == [0, 3, 4, 6, 7, 8, 9, *range(10, 19), 50, 100, 200]
    assert_no_orphans(store)


def test_all_rows_of_a_fragment_in_two_halves(store: LocalStore) -> None:
    commit_staged(store, [stage_rows(store, {0: range(5)}), stage_rows(store, {0: range(5, 10)})])
    assert values(store) == list(range(10, 20))
    assert_no_orphans(store)


def test_a_row_updated_twice_is_planned_again(store: LocalStore) -> None:
    first = stage_rows(store, {0: [3]}, moved_to=[300])
    second = stage_rows(store, {0: [3, 4]}, moved_to=[301, 400])
    with pytest.raises(RetryableConflictError, match="row 3 of fragment 0"):
        commit_staged(store, [first, second])
    assert values(store) == list(range(20))
    asked = []

    def again(ref: StagedTransaction, by: str) -> StagedTransaction:
        asked.append(ref.identity)
        return stage_rows(store, {0: [4]}, moved_to=[400], identity=ref.identity, replaces=(ref.attempt, by))

    result = commit_staged(store, [first, second], re_execute=again)
    assert asked == [second.identity]
    assert (result.num_versions, result.re_executed) == (1, 1)
    assert values(store) == [0, 1, 2, *range(5, 20), 300, 400]
    assert_no_orphans(store)


def test_a_member_that_lost_its_row_to_others_is_planned_again(store: LocalStore) -> None:
    staged = [stage_rows(store, {0: [1]}), stage_rows(store, {1: [0]})]
    lance.dataset(store.uri).delete("a = 1")
    asked = []

    def again(ref: StagedTransaction, by: str) -> StagedTransaction:
        asked.append(ref.identity)
        return stage_rows(store, {0: [2]}, read_version=3, identity=ref.identity, replaces=(ref.attempt, by))

    commit_staged(store, staged, re_execute=again)
    assert asked == [staged[0].identity]
    assert values(store) == [0, *range(3, 10), *range(11, 20)]
    assert_no_orphans(store)


def test_all_members_that_met_another_version_are_planned_again_in_one_round(store: LocalStore) -> None:
    staged = [stage_rows(store, {0: [number]}) for number in range(6)] + [stage_rows(store, {1: [0]})]
    lance.dataset(store.uri).update({"a": "a + 100"}, where="a < 6 and a != 2")
    asked, rounds = list[str](), list[int]()

    def again(ref: StagedTransaction, by: str) -> StagedTransaction:
        asked.append(ref.identity)
        return stage_rows(store, {1: [len(asked)]}, read_version=3, identity=ref.identity, replaces=(ref.attempt, by))

    result = commit_staged(store, staged, re_execute=again, check=lambda items, newest: rounds.append(len(items)))
    assert asked == [ref.identity for number, ref in enumerate(staged[:6]) if number != 2]
    assert rounds == [7, 7]
    assert (result.num_versions, result.re_executed) == (1, 5)
    assert_no_orphans(store)


def test_members_that_meet_each_other_stand_in_line(store: LocalStore) -> None:
    """Twelve updates of row 3 and twelve of row 14: each is planned again at most twice; both lines advance."""
    staged = [stage_rows(store, {group: [3]}, moved_to=[1000 * group + number]) for number in range(12) for group in (0, 1)]
    values_of = {ref.identity: (number % 2, number // 2) for number, ref in enumerate(staged)}

    def place_of(group: int) -> dict[int, list[int]]:
        """Where the row is that the members of a line update."""
        before = {1000 * group + item for item in range(12)}
        for fragment in load_manifest(store).fragments:
            if fragment.id in (0, 1):
                continue
            rows = lance.dataset(store.uri).get_fragment(fragment.id).to_table(columns=["a"], with_row_address=True)
            for value, address in zip(*(rows.column(name).to_pylist() for name in ("a", "_rowaddr")), strict=True):
                if value in before:
                    return {fragment.id: [address & 0xFFFFFFFF]}
        return {group: [3]}

    def again(ref: StagedTransaction, by: str) -> StagedTransaction:
        group, number = values_of[ref.identity]
        return stage_rows(
            store,
            place_of(group),
            moved_to=[1000 * group + number],
            read_version=load_manifest(store).version,
            identity=ref.identity,
            replaces=(ref.attempt, by),
        )

    result = commit_staged(store, staged, re_execute=again)
    assert result.num_versions == 12
    assert result.re_executed <= 2 * len(staged)
    assert len(values(store)) == 20
    assert_no_orphans(store)


def test_in_a_partial_commit_only_the_members_that_cannot_be_planned_again_are_left_out(store: LocalStore) -> None:
    staged = [stage_rows(store, {0: [number]}) for number in range(3)]
    lance.dataset(store.uri).delete("a = 0 or a = 1")

    def again(ref: StagedTransaction, by: str) -> StagedTransaction:
        return stage_rows(store, {1: [1]}, read_version=3, identity=ref.identity, replaces=(ref.attempt, by))

    request = CommitRequest(
        refs=tuple(staged),
        re_execute=again,
        may_re_execute=lambda ref: ref.identity != staged[0].identity,
        partial=True,
    )
    result = commit(store, request)
    assert set(result.refused) == {staged[0].identity}
    assert set(result.identities) == {staged[1].identity, staged[2].identity}
    assert result.num_versions == 1


def test_random_commits_equal_a_model(store: LocalStore) -> None:
    """Rounds of random disjoint deletes, updates and appends, some behind a foreign commit, against a set of numbers."""
    rng = np.random.default_rng(7)
    model = set(range(20))
    next_value = 1000
    for turn in range(12):
        version = load_manifest(store).version
        live = [
            (fragment.id, int(offset))
            for fragment in load_manifest(store).fragments
            for offset in np.setdiff1d(np.arange(fragment.physical_rows), read_deletions(store, fragment))
        ]
        where = dict(zip(live, lance.dataset(store.uri).to_table()["a"].to_pylist(), strict=True))
        picked = [live[index] for index in rng.permutation(len(live))[:4]]
        staged = [stage_rows(store, {picked[0][0]: [picked[0][1]]}, read_version=version)]
        staged.append(stage_rows(store, {picked[1][0]: [picked[1][1]]}, moved_to=[next_value], read_version=version))
        staged.append(stage(store, (next_value + 1,)))
        model -= {where[picked[0]], where[picked[1]]}
        model |= {next_value, next_value + 1}
        if turn % 3 == 0:
            lance.dataset(store.uri).delete(f"a = {where[picked[2]]}")
            model -= {where[picked[2]]}
        next_value += 10
        assert commit_staged(store, staged).num_versions == 1
        assert values(store) == sorted(model)
    assert_no_orphans(store)


class _Reading(LocalStore):
    """Counts how often each manifest is read."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.manifests: Counter[str] = Counter()

    def get(self, path: str) -> Buffer:
        if path.startswith("_versions/"):
            self.manifests[path] += 1
        return super().get(path)


def test_versions_in_between_are_opened_once_for_all_members(store: LocalStore, tmp_path: Path) -> None:
    refs = [stage_rows(store, {0: [number]}) for number in range(8)]
    for number in range(6):
        append(store, (100 + number,))
    reading = _Reading(tmp_path / "t")
    result = commit_staged(reading, refs)
    assert result.num_versions == 1
    assert values(store) == [8, 9, *range(10, 20), *range(100, 106)]
    # The look for a landing, the members together, and the publishing loop, which opens them itself: not 8 times.
    assert max(reading.manifests.values()) <= 4, reading.manifests


@pytest.mark.parametrize("when", ["before", "after"])
def test_no_memory_at_any_call_leaves_a_version_whole(tmp_path: Path, when: Literal["before", "after"]) -> None:
    """Files that were merged for a version go only where it is known that the version was not put."""
    number = 0
    while True:
        number += 1
        store = LocalStore(tmp_path / f"{number}")
        create(store, range(10))
        append(store, range(10, 20))
        refs = [stage_rows(store, {0: [1]}), stage_rows(store, {0: [2]})]
        faulty = FaultyStore(store, fail_at=number, when=when, error=MemoryError)
        with contextlib.suppress(MemoryError):
            commit_staged(faulty, refs)
        assert values(store) in ([*range(20)], [0, *range(3, 20)]), faulty.log[number - 1]
        done = commit_staged(store, refs)
        assert (values(store), len(done.identities)) == ([0, *range(3, 20)], 2)
        if faulty.num_calls < number:
            break
    assert number > 10
