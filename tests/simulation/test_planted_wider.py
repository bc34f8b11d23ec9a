"""Bugs planted one at a time that only the scenarios of `wider` can show: each is found, and without it all ends exact."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lance_core.commit.log import loop
from lance_core.commit.log.put_manifest import PutOutcome
from lance_core.jobs.publish import commit
from tests.simulation.scenario import BROKEN, ROWS
from tests.simulation.test_planted_bugs import Bug, Patch, first_problem
from tests.simulation.wider import WIDER


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
}


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name: str, monkeypatch: Patch) -> None:
    bug = BUGS[name]
    bug.plant(monkeypatch)
    found = first_problem(bug)
    assert found is not None, f"not in {bug.schedules} schedules of {bug.scenario}"
    print(f"{name}: schedule {found[0]} of {bug.scenario}: {found[1].problems[0]}")


def test_every_wider_scenario_has_a_bug_that_it_finds() -> None:
    assert {bug.scenario for bug in BUGS.values()} == set(WIDER)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", WIDER)
def test_the_same_schedules_of_the_code_as_it_is_end_exact(scenario: str) -> None:
    most = max(bug.schedules for bug in BUGS.values() if bug.scenario == scenario)
    found = first_problem(Bug(lambda patch: None, scenario, most))
    assert found is None, str(found[1].problems) if found else ""
