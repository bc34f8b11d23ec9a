"""Bugs planted in the protocol, one at a time: an intent dropped, a look left out, two steps exchanged. The simulated world
finds each within a bounded number of schedules, and nothing in the same schedules of the code as it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from lance_core.commit import conflicts, loop
from lance_core.commit import history as lineage
from lance_core.errors import NotFoundError
from lance_core.io.external.store import ExternalStore
from lance_core.publish import (
    abort,
    attempts,
    collect,
    commit,
    decisions,
    folding,
    history,
    publisher,
    segments,
    stage,
)
from tests.simulation.explore import Bounds, explore
from tests.simulation.scenario import BLOCKED, BROKEN, ERRED, LITTER, ROWS, TWICE, UNTRUE, RunVerdict, Theatre
from tests.simulation.scenarios import SCENARIOS
from tests.simulation.world import WIDE
from tests.stores import test_stores_external_records as external_records

Patch = pytest.MonkeyPatch
_DAMAGE = frozenset({BROKEN, ROWS, TWICE, UNTRUE, BLOCKED, ERRED})


@dataclass(frozen=True)
class Bug:
    """How to plant it, where it shows, and within how many schedules."""

    plant: Callable[[Patch], None]
    scenario: str
    schedules: int
    kinds: frozenset[str] = _DAMAGE
    store: str = "memory"


def _a_commit_puts_no_intent(patch: Patch) -> None:
    patch.setattr(publisher, "put_intent", lambda store, intent: intent)


def _the_intent_goes_before_the_decisions(patch: Patch) -> None:
    note = commit._Commit._note

    def early(self: Any, *items: Any) -> None:
        self.publisher.end()
        note(self, *items)

    patch.setattr(commit._Commit, "_note", early)
    said = publisher.say_committed

    def say(store: Any, work: Any, *, by: str, known: Any) -> Any:
        store.delete(f"_lance_core/intents/{by}.json")
        return said(store, work, by=by, known=known)

    patch.setattr(publisher, "say_committed", say)


def _an_abort_of_finished_work_makes_no_version(patch: Patch) -> None:
    patch.setattr(abort._Aborting, "_publish_abort", lambda self, newest, keys: None)


def _an_abort_puts_no_intent(patch: Patch) -> None:
    patch.setattr(abort, "put_intent", lambda store, intent: intent)


def _a_commit_ignores_versions_of_aborts(patch: Patch) -> None:
    patch.setattr(conflicts, "refuse_aborted", lambda store, attempts, theirs, number: None)


def _an_abort_does_not_look_at_the_log(patch: Patch) -> None:
    def silent(store: Any, asked: Any, **_: Any) -> Any:
        return history.Found(states=decisions.look_many(store, [*asked.since]))

    patch.setattr(abort, "search", silent)
    patch.setattr(abort, "files_in_use", lambda *_, **__: frozenset())


def _an_abort_deletes_without_listing(patch: Patch) -> None:
    patch.setattr(abort, "files_in_use", lambda *_, **__: frozenset())


def _vanished_manifests_refer_to_nothing(patch: Patch) -> None:
    def one_look(store: Any, since: int) -> Any:
        paths = lineage._complete_paths(store)
        opened = [lineage._open_or_none(store, item) for item in paths if item[0] > since]
        return [item for item in opened if item is not None]

    patch.setattr(abort, "look_since", one_look)


def _commit_judges_rows_once(patch: Patch) -> None:
    patch.setattr(publisher.Publisher, "_judge_for", lambda self, members: None)


def _commit_believes_its_put(patch: Patch) -> None:
    patch.setattr(loop, "is_ancestor", lambda store, mine, transaction: True)


def _children_know_what_they_replace(patch: Patch) -> None:
    patch.setattr(lineage, "_knew", lambda *_: True)


def _one_member_shows_them_all(patch: Patch) -> None:
    patch.setattr(lineage, "_absent_members", lambda *_: None)


def _a_predecessor_vouches(patch: Patch) -> None:
    stray = history._may_be_stray
    patch.setattr(
        history, "_may_be_stray", lambda store, version, *more, **also: version != 2 and stray(store, version, *more, **also)
    )


def _a_gap_is_never_unknown(patch: Patch) -> None:
    patch.setattr(history, "_judge_gaps", lambda *_: None)


def _what_is_settled_counts_before_the_decisions_are_read_again(patch: Patch) -> None:
    patch.setattr(commit, "LogSearch", lambda *items, **more: history.LogSearch(*items, **{**more, "is_fresh": True}))


def _a_creation_is_moved_onto_versions_that_nobody_read(patch: Patch) -> None:
    patch.setattr(commit, "creates", lambda transaction: False)


def _decisions_about_a_creation_are_read_before_the_intent_alone(patch: Patch) -> None:
    patch.setattr(commit._Commit, "_refuse_aborted_creations", lambda self, loaded: False)


def _a_commit_does_not_ask_the_log_what_is_aborted(patch: Patch) -> None:
    search = history.search

    def found(*items: Any, **more: Any) -> Any:
        answer = search(*items, **more)
        answer.aborted.clear()
        return answer

    patch.setattr(commit, "search", found)


def _an_abort_spares_what_takes_the_place(patch: Patch) -> None:
    def once(self: Any, keys: Any) -> Any:
        waiting = [key for key in map(self._waiting, keys) if key in keys]
        if waiting:
            self._abort_finished(waiting)
        return keys

    def decided(self: Any, key: Any) -> Any:
        def choose(state: Any) -> Any:
            is_late = state.is_decided(key[1]) or state.committed is not None
            return None if is_late else state.abort(key[1], by=self._request.by)

        return decisions.decide(self._store, key[0], choose)

    patch.setattr(abort._Aborting, "_abort_waiting", once)
    patch.setattr(abort._Aborting, "_decide_finished", decided)


def _decisions_come_after_all_is_cleared(patch: Patch) -> None:
    told: list[Callable[[], None]] = []
    note, clear = commit._Commit._note, commit._Commit._clear

    def later(self: Any, fold: Any, done: Any) -> None:
        say = publisher.say_committed

        def remember(store: Any, work: Any, *, by: str, known: Any) -> None:
            told.append(lambda: say(store, work, by=by))

        patch.setattr(publisher, "say_committed", remember)
        try:
            note(self, fold, done)
        finally:
            patch.setattr(publisher, "say_committed", say)

    def clear_then_tell(self: Any) -> None:
        try:
            clear(self)
            while told:
                told.pop()()
        finally:
            told.clear()

    patch.setattr(commit._Commit, "_note", later)
    patch.setattr(commit._Commit, "_clear", clear_then_tell)
    patch.setattr(commit, "publish_single", lambda *_: None)
    patch.setattr("lance_core.jobs.publish.commit.publish_single", lambda *_: None)


def _superseded_files_go_at_once(patch: Patch) -> None:
    outcome = stage._outcome

    def removed(store: Any, attempt: Any, state: Any) -> Any:
        found = outcome(store, attempt, state)
        for former in state.superseded:
            if former not in attempt.adopts:
                paths = [path for path in attempts.attempt_files(store) if abort.Owners([former]).has(path)]
                for path in paths:
                    store.delete(path)
        return found

    patch.setattr(stage, "_outcome", removed)


def _numbers_go_before_their_segment_counts(patch: Patch) -> None:
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


def _segments_are_not_read(patch: Patch) -> None:
    patch.setattr(decisions, "folded_records", lambda store, identities: {})
    patch.setattr(stage, "folded_records", lambda store, identities: {})


def _nothing_reminds_of_an_aborted_attempt(patch: Patch) -> None:
    patch.setattr(abort._Aborting, "_may_write_on", lambda self, key: False)


def _what_a_killed_commit_left_stays(patch: Patch) -> None:
    patch.setattr(collect, "_left_by", lambda store, intents: [])


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


_LITTER = frozenset({LITTER})
BUGS = {
    "a commit puts no intent": Bug(_a_commit_puts_no_intent, "settle", 900),
    "the intent goes before the decisions": Bug(_the_intent_goes_before_the_decisions, "settle", 900),
    "an abort of finished work makes no version": Bug(
        _an_abort_of_finished_work_makes_no_version, "abort-meets-commit", 600
    ),
    "an abort puts no intent": Bug(_an_abort_puts_no_intent, "pruned-abort", 4000),
    "what is settled counts before the decisions are read again": Bug(
        _what_is_settled_counts_before_the_decisions_are_read_again, "settled-meanwhile", 600
    ),
    "a creation is moved onto versions that nobody read": Bug(
        _a_creation_is_moved_onto_versions_that_nobody_read, "settled-meanwhile", 60, store=WIDE
    ),
    "a commit does not ask the log what is aborted": Bug(
        _a_commit_does_not_ask_the_log_what_is_aborted, "pruned-abort", 4000
    ),
    "decisions about a creation are read before the intent alone": Bug(
        _decisions_about_a_creation_are_read_before_the_intent_alone, "created-and-aborted", 600
    ),
    "superseded files go at once": Bug(_superseded_files_go_at_once, "one-row-twice", 1500),
    "a commit ignores versions of aborts": Bug(_a_commit_ignores_versions_of_aborts, "moved-group", 100),
    "an abort does not look at the log": Bug(_an_abort_does_not_look_at_the_log, "abort-meets-commit", 600),
    "an abort deletes without listing": Bug(_an_abort_deletes_without_listing, "add-columns-second-try", 600),
    "a vanished manifest refers to nothing": Bug(_vanished_manifests_refer_to_nothing, "outside-prune-and-gc", 6000),
    "rows are judged once": Bug(_commit_judges_rows_once, "two-merges", 100),
    "a put is trusted": Bug(_commit_believes_its_put, "pruned-number", 600),
    "a child is trusted to know what it replaced": Bug(_children_know_what_they_replace, "pruned-compaction", 900),
    "one member shows them all": Bug(_one_member_shows_them_all, "pruned-overlap", 900),
    "a predecessor that a tag keeps vouches": Bug(_a_predecessor_vouches, "tagged-number", 600),
    "a gap is never unknown": Bug(_a_gap_is_never_unknown, "settle", 900),
    "decisions come last": Bug(_decisions_come_after_all_is_cleared, "pruned-group", 2000),
    "numbers go before their segment counts": Bug(_numbers_go_before_their_segment_counts, "folded-ledger", 300),
    "folds do not race for a number": Bug(_folds_do_not_race_for_a_number, "folded-ledger", 2000),
    "segments are not read": Bug(_segments_are_not_read, "folded-ledger", 300),
    "nothing reminds of an aborted attempt": Bug(_nothing_reminds_of_an_aborted_attempt, "zombie", 4000, _LITTER),
    "what a killed commit left stays": Bug(_what_a_killed_commit_left_stays, "rebased-delete", 200, _LITTER),
}
# That a cleanup decides what the versions that it prunes carry has no scenario: what waits for its commit pins every version
# behind the one that it was planned on, so they carry nothing undecided unless a record was removed by hand
# (`test_intents` does that), and a commit puts its decisions before it removes that record.
_SLOW = frozenset(name for name, bug in BUGS.items() if bug.schedules > 1000)


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
@pytest.mark.parametrize(("scenario", "store"), sorted({(bug.scenario, bug.store) for bug in BUGS.values()}))
def test_the_same_schedules_of_the_code_as_it_is_end_exact(scenario: str, store: str) -> None:
    most = max(bug.schedules for bug in BUGS.values() if (bug.scenario, bug.store) == (scenario, store))
    found = first_problem(Bug(lambda patch: None, scenario, most, store=store))
    assert found is None, str(found[1].problems) if found else ""


def test_a_planted_bug_of_a_manifest_store_is_found_where_writers_and_removers_meet(monkeypatch: Patch) -> None:
    """A search of whole commits needs tens of thousands of schedules for it."""
    _a_row_whose_record_is_gone_stays(monkeypatch)
    with pytest.raises((AssertionError, NotFoundError)):
        external_records.test_a_record_can_be_read_or_written_however_writers_and_removers_meet("a removal")
