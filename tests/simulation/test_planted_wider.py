"""Bugs planted one at a time that only the scenarios of `wider` can show: each is found, and without it all ends exact."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import Any

import pytest

from lance_core.commit import loop
from lance_core.commit.loop import Early
from lance_core.commit.put_manifest import PutOutcome
from lance_core.jobs.publish import commit
from lance_core.publish import history, members, publisher
from tests.simulation import test_planted_bugs as planted
from tests.simulation.scenario import BLOCKED, BROKEN, KINDS, LITTER, ROWS, UNTRUE, Theatre
from tests.simulation.schedule import Schedule
from tests.simulation.test_planted_bugs import Bug, Patch, first_problem
from tests.simulation.test_schedules import SEEDS
from tests.simulation.wider import WIDER
from tests.simulation.world import WIDE


def _strict_work_never_refuses_in_the_loop(patch: Patch) -> None:
    accept = loop.CommitLoop._accept

    def lenient(self: Any, *arguments: Any) -> None:
        self._strict = False
        accept(self, *arguments)

    patch.setattr(loop.CommitLoop, "_accept", lenient)


def _a_put_without_an_answer_is_lost(patch: Patch) -> None:
    put = loop.put_manifest

    def settled(*arguments: Any, **more: Any) -> Any:
        found = put(*arguments, **more)
        return replace(found, outcome=PutOutcome.LOST) if found.outcome is PutOutcome.NOT_THERE else found

    patch.setattr(loop, "put_manifest", settled)


def _replacements_and_merges_fold_with_each_other(patch: Patch) -> None:
    patch.setattr(commit, "_groups", commit._by_strictness)


def _a_commit_does_not_wait_for_its_intent(patch: Patch) -> None:
    patch.setattr(publisher.Publisher, "wait_for_intent", lambda self: None)


def _a_file_that_was_sent_early_is_not_waited_for(patch: Patch) -> None:
    patch.setattr(Early, "has_failed", lambda self: False)


def _files_go_in_one_request_with_their_records(patch: Patch) -> None:
    def at_once(store: Any, files: Any, groups: Any, *, last: Any) -> None:
        store.delete_many([*files, *chain.from_iterable(groups), *last])

    patch.setattr(members, "delete_committed", at_once)


def _the_decisions_of_the_table_before_count(patch: Patch) -> None:
    patch.setattr(history, "void_work", lambda store, works, present: {})


def _the_configuration_does_not_tell_of_a_batch(patch: Patch) -> None:
    patch.setattr(history, "has_come", lambda config, transaction: None)


def _the_configuration_never_has_a_batch(patch: Patch) -> None:
    patch.setattr(history, "has_come", lambda config, transaction: False)


_LITTER = frozenset({LITTER})
BUGS = {
    "strict work never refuses": Bug(_strict_work_never_refuses_in_the_loop, "strict-overwrite", 200, frozenset({ROWS})),
    "a put without an answer is lost": Bug(
        _a_put_without_an_answer_is_lost, "rebased-delete-in-doubt", 1500, frozenset({BROKEN})
    ),
    "two replacements of a day fold": Bug(
        _replacements_and_merges_fold_with_each_other, "two-replacements-in-one", 20, frozenset({ROWS})
    ),
    "two merges of a key fold": Bug(
        _replacements_and_merges_fold_with_each_other, "two-merges-in-one", 20, frozenset({ROWS})
    ),
    "the configuration does not tell of a batch": Bug(
        _the_configuration_does_not_tell_of_a_batch, "pruned-batch", 100, frozenset({BLOCKED})
    ),
    "the configuration never has a batch": Bug(_the_configuration_never_has_a_batch, "pruned-batch", 200, frozenset({ROWS})),
    "the decisions of the table before count": Bug(_the_decisions_of_the_table_before_count, "made-again", 20),
    "a commit does not wait for its intent": Bug(
        _a_commit_does_not_wait_for_its_intent, "rebased-delete", 60, _LITTER, store=WIDE
    ),
    "files go in one request with their records": Bug(
        _files_go_in_one_request_with_their_records, "same-commit-twice", 60, _LITTER, store=WIDE
    ),
    "a file that was sent early is not waited for": Bug(
        _a_file_that_was_sent_early_is_not_waited_for, "rebased-delete", 60, _LITTER, store=WIDE
    ),
}


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name: str, monkeypatch: Patch) -> None:
    bug = BUGS[name]
    bug.plant(monkeypatch)
    found = first_problem(bug)
    assert found is not None, f"not in {bug.schedules} schedules of {bug.scenario}"
    print(f"{name}: schedule {found[0]} of {bug.scenario}: {found[1].problems[0]}")


def test_every_wider_scenario_has_a_bug_that_it_finds() -> None:
    every = [*BUGS.values(), *planted.BUGS.values()]
    assert {"abort-beside-superseding", "settled-by-cleanup", *(bug.scenario for bug in every)} >= set(WIDER)


def test_an_abort_that_spares_what_takes_the_place_is_missed(monkeypatch: Patch) -> None:
    """The commit brings the work up between the abort's version and its decision: more switches than a search tries."""
    seed = Schedule.from_json(SEEDS.joinpath("abort-beside-superseding-memory-untrue.json").read_text())
    assert not Theatre(WIDER[seed.scenario]).play(seed).problems
    planted._an_abort_spares_what_takes_the_place(monkeypatch)
    assert Theatre(WIDER[seed.scenario]).play(seed).has({UNTRUE})


@pytest.mark.slow
@pytest.mark.parametrize(("scenario", "store"), sorted({(bug.scenario, bug.store) for bug in BUGS.values()}))
def test_the_same_schedules_of_the_code_as_it_is_end_exact(scenario: str, store: str) -> None:
    most = max(bug.schedules for bug in BUGS.values() if (bug.scenario, bug.store) == (scenario, store))
    found = first_problem(Bug(lambda patch: None, scenario, most, frozenset(KINDS), store=store))
    assert found is None, str(found[1].problems) if found else ""
