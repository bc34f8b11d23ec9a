"""Bugs planted in the protocol, one at a time: a fence dropped, a look left out, two steps exchanged. The simulated world
finds each within a bounded number of schedules, and nothing in the same schedules of the code as it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

pytest.importorskip("lance_core.publish.registry.fences")

from lance_core.commit import history as lineage
from lance_core.commit import look, loop
from lance_core.errors import NotFoundError
from lance_core.io.external.store import ExternalStore
from lance_core.publish.record_types import PUBLISH, WITHDRAW, Fence
from lance_core.publish.registry import attempts, fences, folding, group_fences, landings, segments
from lance_core.publish.service import alone, commit_staged, publisher
from lance_core.publish.staging import drain, in_use, marks, remove, staged
from tests.simulation.explore import Bounds, explore
from tests.simulation.scenario import BLOCKED, BROKEN, ERRED, ROWS, TWICE, RunVerdict, Theatre
from tests.simulation.scenarios import SCENARIOS
from tests.stores import test_stores_external_records as external_records

Patch = pytest.MonkeyPatch
_DAMAGE = frozenset({BROKEN, ROWS, TWICE, BLOCKED, ERRED})


@dataclass(frozen=True)
class Bug:
    """How to plant it, where it shows, and within how many schedules."""

    plant: Callable[[Patch], None]
    scenario: str
    schedules: int
    kinds: frozenset[str] = _DAMAGE
    store: str = "memory"


def _commit_puts_no_fence(patch: Patch) -> None:
    def decide(store: Any, keys: Any, *, commit: str) -> Any:
        return {key: fences.read_fence(store, *key) or Fence(PUBLISH, commit=commit) for key in keys}

    patch.setattr(drain, "fence_for_publishing", decide)
    patch.setattr(drain, "publish_together", lambda *_, **more: ({}, {}))
    patch.setattr(
        alone, "fence_alone", lambda store, *key, commit: (fences.read_fence(store, *key) or Fence(PUBLISH)).commit == ""
    )


def _commit_does_not_look_behind_its_fence(patch: Patch) -> None:
    patch.setattr(drain, "require_counts", lambda store, ref, *, is_withdrawn: None)
    patch.setattr(drain, "_without_files", lambda store, items: {})
    patch.setattr(alone, "missing_files", lambda store, transaction, *, attempt: [])


def _giving_up_raises_no_flag(patch: Patch) -> None:
    def decide(store: Any, identity: str, attempt: str, *, by: str, decided: Any) -> Any:
        found = fences.read_fence(store, identity, attempt)
        return (Fence(WITHDRAW, by=by), False) if found is None else (found, False)

    patch.setattr(remove, "fence_for_withdrawal", decide)
    patch.setattr(marks, "put_mark", lambda store, identity, attempt: None)


def _a_group_is_not_kept_apart(patch: Patch) -> None:
    patch.setattr(remove, "keep_apart", lambda store, groups, newest: {})


def _a_group_is_decided_for_good(patch: Patch) -> None:
    decide = drain.publish_together

    def once(store: Any, keys: Any, groups: Any, *, commit: str, version: int) -> Any:
        planned = max(map(group_fences.version_of, groups.values()))
        return decide(store, keys, groups, commit=commit, version=planned + 1)

    patch.setattr(drain, "publish_together", once)


def _a_record_of_a_group_is_no_evidence(patch: Patch) -> None:
    asked = landings.publishers
    patch.setattr(landings, "publishers", lambda *items, group: asked(*items, group=""))


def _one_member_shows_them_all(patch: Patch) -> None:
    patch.setattr(lineage, "_absent_members", lambda *_: None)


def _a_commit_without_a_claim_has_ended(patch: Patch) -> None:
    asked = landings.publishers

    def ended(*items: Any, group: str) -> Any:
        found = asked(*items, group=group)
        return None if found is None else [replace(item, alone=False) for item in found]

    patch.setattr(landings, "publishers", ended)


def _giving_up_publishes_no_fence_version(patch: Patch) -> None:
    def pretend(self: Any, keys: Any, *, doubt: str) -> None:
        for key in keys:
            self._known[key].fence = Fence(WITHDRAW, by="nobody")

    patch.setattr(remove._Removing, "publish_fence", pretend)


def _commit_ignores_fence_versions(patch: Patch) -> None:
    patch.setattr(loop, "refuse_withdrawn", lambda store, attempts, theirs, number: None)


def _absence_of_a_ledger_record_proves(patch: Patch) -> None:
    def from_the_ledger(store: Any, since: Any, **more: Any) -> Any:
        found = landings.landings_of(store, list(since))
        return {name: None if item is None else item.version for name, item in zip(since, found, strict=True)}

    patch.setattr(remove, "find_landed_many", from_the_ledger)
    patch.setattr(remove._Removing, "_in_use", lambda self, doomed: frozenset())


def _vanished_manifests_refer_to_nothing(patch: Patch) -> None:
    def one_look(store: Any, since: int) -> Any:
        paths = look.complete_paths(store)
        opened = [look._open_or_none(store, item) for item in paths if item[0] > since]
        there = tuple(item for item in opened if item is not None)
        return look.LogLook(store, since, there, paths[-1][0] if paths else 0)

    patch.setattr(in_use, "look_since", one_look)


def _commit_judges_rows_once(patch: Patch) -> None:
    patch.setattr(publisher.Publisher, "_judge_for", lambda self, members: None)


def _commit_believes_its_put(patch: Patch) -> None:
    patch.setattr(loop, "is_ancestor", lambda store, mine, transaction: True)


def _children_know_what_they_replace(patch: Patch) -> None:
    patch.setattr(lineage, "_knew", lambda *_: True)


def _ledger_is_told_after_all_is_cleared(patch: Patch) -> None:
    told: list[Callable[[], None]] = []
    record, drained = commit_staged.record_fold, commit_staged._Service._drain

    def later(store: Any, identities: Any, **more: Any) -> None:
        told.append(lambda: record(store, identities, **more))

    def drain_then_tell(self: Any) -> None:
        try:
            drained(self)
            for tell in told:
                tell()
        finally:
            told.clear()

    patch.setattr(commit_staged, "record_fold", later)
    patch.setattr(commit_staged._Service, "_drain", drain_then_tell)
    cleared = alone.quietly

    def clear_then_tell(action: Callable[[], object]) -> bool:
        try:
            return cleared(action)
        finally:
            while told:
                told.pop()()

    patch.setattr(alone, "record_fold", later)
    patch.setattr(alone, "quietly", clear_then_tell)


def _fence_is_lifted_before_the_files_go(patch: Patch) -> None:
    whole = remove._Removing.remove

    def lifted(self: Any, *, left: Any, **more: Any) -> Any:
        for key, known in self._known.items():
            if key not in left and known.landed is None and known.doubt is None:
                remove.remove_fence(self._store, *key)
                self._store.delete(attempts.record_path(*key, attempts.WITHDRAWN))
        return whole(self, left=left, **more)

    patch.setattr(remove._Removing, "remove", lifted)


def _records_go_before_their_segment_counts(patch: Patch) -> None:
    publish = folding._publish

    def early(store: Any, index: Any, share: Any, **more: Any) -> Any:
        folding._remove_plain(store, share)
        return publish(store, index, share, **more)

    patch.setattr(folding, "_publish", early)


def _folds_do_not_race_for_a_number(patch: Patch) -> None:
    def decide(store: Any, made: Any) -> bool:
        store.put(made.path, segments.encode_index(made))
        return True

    patch.setattr(folding, "_decide", decide)


def _a_predecessor_vouches(patch: Patch) -> None:
    stray = landings._may_be_stray
    patch.setattr(landings, "_may_be_stray", lambda store, version, *more: version != 2 and stray(store, version, *more))


def _the_ledger_is_not_asked_behind_the_read_version(patch: Patch) -> None:
    patch.setattr(staged, "has_no_record", lambda store, identity: True)


def _a_row_whose_record_is_gone_stays(patch: Patch) -> None:
    dead = ExternalStore._dead_row

    def row_first(self: Any, path: str) -> None:
        row = self._row_of(path)
        if row is not None and row[1] == 0:
            self._register.remove(*row)
        self._inner.delete(path)
        if row is not None and row[1] != 0:
            self._register.remove(*row)

    def unless_final(self: Any, row: tuple[str, int], path: str) -> str | None:
        found = dead(self, row, path)
        return None if found is not None and found.endswith(".final") else found

    patch.setattr(ExternalStore, "delete", row_first)
    patch.setattr(ExternalStore, "_dead_row", unless_final)


BUGS = {
    "a commit puts no fence": Bug(_commit_puts_no_fence, "abort-meets-commit", 600),
    "a commit does not look behind its fence": Bug(_commit_does_not_look_behind_its_fence, "abort-meets-commit", 600),
    "giving up raises no flag": Bug(_giving_up_raises_no_flag, "abort-meets-commit", 600),
    "a group is not kept apart": Bug(_a_group_is_not_kept_apart, "moved-group", 600),
    "a group is decided for good": Bug(_a_group_is_decided_for_good, "moved-group", 600),
    "a record of a group is no evidence": Bug(_a_record_of_a_group_is_no_evidence, "pruned-group", 600),
    "one member shows them all": Bug(_one_member_shows_them_all, "pruned-overlap", 900),
    "a commit without a claim has ended": Bug(_a_commit_without_a_claim_has_ended, "settle", 600),
    "giving up publishes no fence version": Bug(_giving_up_publishes_no_fence_version, "abort-meets-commit", 600),
    "a commit ignores fence versions": Bug(_commit_ignores_fence_versions, "abort-meets-commit", 2000),
    "no ledger record: not landed": Bug(_absence_of_a_ledger_record_proves, "abort-meets-commit", 600),
    "a vanished manifest refers to nothing": Bug(_vanished_manifests_refer_to_nothing, "outside-prune-and-gc", 6000),
    "rows are judged once": Bug(_commit_judges_rows_once, "two-merges", 100),
    "a put is trusted": Bug(_commit_believes_its_put, "pruned-number", 600),
    "a child is trusted to know what it replaced": Bug(_children_know_what_they_replace, "pruned-compaction", 900),
    "the ledger comes last": Bug(_ledger_is_told_after_all_is_cleared, "ledger-and-prune", 2000),
    "records go before their segment counts": Bug(_records_go_before_their_segment_counts, "folded-ledger", 300),
    "a predecessor that a tag keeps vouches": Bug(_a_predecessor_vouches, "tagged-number", 600),
    "folds do not race for a number": Bug(_folds_do_not_race_for_a_number, "folded-ledger", 2000),
    "the ledger is asked before the version is read": Bug(_the_ledger_is_not_asked_behind_the_read_version, "zombie", 600),
    "the fence goes first": Bug(_fence_is_lifted_before_the_files_go, "abort-meets-commit", 2000),
}
_SLOW = frozenset({"a vanished manifest refers to nothing", "the ledger comes last", "the fence goes first"})


def first_problem(bug: Bug) -> tuple[int, RunVerdict] | None:
    """The first schedule that shows it, of the systematic search."""
    found: list[tuple[int, RunVerdict]] = []

    def stop(number: int, verdict: RunVerdict) -> bool:
        if verdict.has(bug.kinds):
            found.append((number, verdict))
        return bool(found)

    explore(Theatre(SCENARIOS[bug.scenario], store=bug.store), bounds=Bounds(2, 1, bug.schedules), stop=stop)
    return found[0] if found else None


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in _SLOW)) for name in BUGS])
def test_a_planted_bug_is_found(name: str, monkeypatch: Patch) -> None:
    bug = BUGS[name]
    bug.plant(monkeypatch)
    found = first_problem(bug)
    assert found is not None, f"not in {bug.schedules} schedules of {bug.scenario}"
    print(f"{name}: schedule {found[0]} of {bug.scenario}: {found[1].problems[0]}")


@pytest.mark.slow
@pytest.mark.parametrize("scenario", sorted({bug.scenario for bug in BUGS.values()}))
def test_the_same_schedules_of_the_code_as_it_is_end_exact(scenario: str) -> None:
    most = max(bug.schedules for bug in BUGS.values() if bug.scenario == scenario)
    found = first_problem(Bug(lambda patch: None, scenario, most))
    assert found is None, str(found[1].problems) if found else ""


def test_a_planted_bug_of_a_manifest_store_is_found_where_writers_and_removers_meet(monkeypatch: Patch) -> None:
    """A search of whole commits needs tens of thousands of schedules for it."""
    _a_row_whose_record_is_gone_stays(monkeypatch)
    with pytest.raises((AssertionError, NotFoundError)):
        external_records.test_a_record_can_be_read_or_written_however_writers_and_removers_meet("a removal")
