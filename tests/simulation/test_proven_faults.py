"""Every proven fault of the protocol, put back into the finished code: the simulated world finds it by itself.

The table in docs/protocol.md lists them; a test holds the two together."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from lance_core.commit import loop
from lance_core.errors import CommitStateUnknownError
from lance_core.jobs.runtime import lifecycle
from lance_core.publish import commit, history, members
from lance_core.publish.intent import list_intents
from tests.simulation import actors as do
from tests.simulation import test_planted_bugs as planted
from tests.simulation.explore import Bounds, explore
from tests.simulation.model import IdentityWork, appended
from tests.simulation.scenario import LITTER, RunVerdict, Scenario, Stage, Theatre
from tests.simulation.scenarios import SCENARIOS
from tests.simulation.schedule import CRASH, ERROR

Patch = pytest.MonkeyPatch
_BASE = (0, 1, 2, 3)


def _a_late_put_is_taken_for_the_latest_try(patch: Patch) -> None:
    put: Callable[..., Any] = vars(loop)["put_manifest"]
    patch.setattr(loop, "put_manifest", lambda *items, **more: replace(put(*items, **more), found=None))


def _two_commits_share_a_transaction_file(patch: Patch) -> None:
    patch.setattr(loop.CommitLoop, "_transaction_file", lambda self, newest, transaction: transaction.file_name)


def _a_failed_look_behind_the_put_ends_the_try(patch: Patch) -> None:
    require = loop.CommitLoop._require_lineage

    def look(self: Any, done: Any, *, is_doubtful: bool) -> None:
        assert self._in_doubt  # what is planted must be there
        self._in_doubt = is_doubtful
        require(self, done, is_doubtful=is_doubtful)

    patch.setattr(loop.CommitLoop, "_require_lineage", look)


def _a_manifest_that_may_be_there_twice_counts(patch: Patch) -> None:
    look = history.is_ancestor
    patch.setattr(history, "is_ancestor", lambda *items, may_be_twice=False: look(*items))


def _the_intent_of_a_killed_commit_blocks(patch: Patch) -> None:
    run = commit._Commit.run

    def wait(self: Any) -> Any:
        mine = set(self._pending)
        for intent in list_intents(self._store):
            if intent.commit != self.publisher.commit_id and mine & {*intent.attempts}:
                raise CommitStateUnknownError(f"commit {intent.commit} is publishing; wait for it to end")
        return run(self)

    patch.setattr(commit._Commit, "run", wait)


def _what_a_fold_replaces_stays(patch: Patch) -> None:
    patch.setattr(members, "_superseded", lambda items, published: [])


def _the_decisions_of_the_table_before_count(patch: Patch) -> None:
    patch.setattr(history, "void_work", lambda store, works, present: {})


def _what_landed_is_not_compared(patch: Patch) -> None:
    patch.setattr(lifecycle, "require_same_work", lambda store, spec, landing, *, digest: None)


def _other_work() -> Stage:
    """A cleared task asks for other rows under an identity that has landed."""
    do.begin_table(_BASE)
    old, new = do.append_work("append", (100,)), do.append_work("append", (101,))
    do.stage(old)
    do.commit(old)()
    work = IdentityWork("other rows", new.identity, (appended((101,)),), new.stage, actor="again")
    return Stage((work,), {"again": do.in_turn(new.stage, do.commit(new))})


_OWN = {
    item.name: item
    for item in (
        Scenario("other-work", "other rows under an identity that has landed", _other_work, (CRASH,)),
        replace(SCENARIOS["moved-fold"], name="moved-fold-refused", faults=(ERROR,)),
    )
}


@dataclass(frozen=True)
class ProvenFault:
    """How it is put back, and where it shows: "scenario: within how many schedules"."""

    plant: Callable[[Patch], None]
    found: Mapping[str, int]
    kinds: frozenset[str] = planted._DAMAGE


_LITTER = frozenset({LITTER})
FAULTS = {
    "an abort does not look at the log": ProvenFault(
        planted._an_abort_does_not_look_at_the_log,
        {"abort-meets-commit": 50, "abort-by-hand": 100, "shared-member-aborted": 100, "killed-commit": 100},
    ),
    "an abort of finished work makes no version": ProvenFault(
        planted._an_abort_of_finished_work_makes_no_version, {"changed-work": 400, "changed-work-by-clock": 400}
    ),
    "a late put is taken for the latest try": ProvenFault(
        _a_late_put_is_taken_for_the_latest_try, {"rebased-delete": 200, "moved-fold": 2000}
    ),
    "a refused look behind the put ends the try": ProvenFault(
        _a_failed_look_behind_the_put_ends_the_try, {"moved-fold-refused": 200}
    ),
    "two commits share a transaction file": ProvenFault(_two_commits_share_a_transaction_file, {"same-commit-twice": 600}),
    "the rows are judged once, before the loop": ProvenFault(
        planted._commit_judges_rows_once, {"two-replacements": 20, "two-merges": 20}
    ),
    "decisions come after the clearing": ProvenFault(
        planted._decisions_come_after_all_is_cleared, {"ledger-and-prune": 2000}
    ),
    "a put is trusted without a look behind it": ProvenFault(planted._commit_believes_its_put, {"pruned-number": 50}),
    "a manifest that vanished refers to nothing": ProvenFault(
        planted._vanished_manifests_refer_to_nothing, {"outside-prune-and-gc": 6000, "our-cleanup-and-gc": 6000}
    ),
    "the intent of a killed commit blocks": ProvenFault(
        _the_intent_of_a_killed_commit_blocks, {"two-merges": 100, "compaction-beside-deletes": 100}
    ),
    "files that a fold replaces stay": ProvenFault(_what_a_fold_replaces_stays, {"moved-fold": 20}, _LITTER),
    "nothing reminds of an aborted attempt": ProvenFault(
        planted._nothing_reminds_of_an_aborted_attempt, {"zombie": 4000}, _LITTER
    ),
    "a number that was pruned is trusted below a compaction": ProvenFault(
        planted._children_know_what_they_replace, {"pruned-compaction": 900}
    ),
    "a manifest whose writer may have put it again counts as history": ProvenFault(
        _a_manifest_that_may_be_there_twice_counts, {"pruned-delete": 4000}
    ),
    "the decisions of the table before count": ProvenFault(_the_decisions_of_the_table_before_count, {"made-again": 10}),
    "the content of what was committed is not compared": ProvenFault(_what_landed_is_not_compared, {"other-work": 10}),
}
CASES = [(name, scenario) for name, fault in FAULTS.items() for scenario in fault.found]


def first_problem(fault: ProvenFault, scenario: str) -> tuple[int, RunVerdict] | None:
    """The first schedule that shows it."""
    found: list[tuple[int, RunVerdict]] = []

    def stop(number: int, verdict: RunVerdict) -> bool:
        if verdict.has(fault.kinds):
            found.append((number, verdict))
        return bool(found)

    theatre = Theatre({**SCENARIOS, **_OWN}[scenario])
    explore(theatre, bounds=Bounds(2, 1, fault.found[scenario]), stop=stop)
    return found[0] if found else None


def _case(name: str, scenario: str) -> Any:
    marks = [pytest.mark.slow] if FAULTS[name].found[scenario] > 1000 else []
    return pytest.param(name, scenario, marks=marks, id=f"{name}-{scenario}")


@pytest.mark.parametrize(("name", "scenario"), [_case(*case) for case in CASES])
def test_a_fault_that_is_put_back_is_found(name: str, scenario: str, monkeypatch: Patch) -> None:
    fault = FAULTS[name]
    fault.plant(monkeypatch)
    found = first_problem(fault, scenario)
    assert found is not None, f"not in {fault.found[scenario]} schedules of {scenario}"
    print(f"{name}: schedule {found[0]} of {scenario}: {found[1].problems[0]}")


@pytest.mark.parametrize("scenario", _OWN)
def test_the_scenarios_of_this_file_end_exact_in_the_code_as_it_is(scenario: str) -> None:
    fault = ProvenFault(lambda patch: None, {scenario: 300}, planted._DAMAGE | _LITTER)
    found = first_problem(fault, scenario)
    assert found is None, str(found[1].problems) if found else ""


def test_the_page_lists_them() -> None:
    text = (Path(__file__).parents[2] / "docs/protocol.md").read_text()
    table = text.split("| fault | in the code before its fix |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    told = {row[0]: {name: int(most) for name, most in re.findall(r"`([^`]+)` ([0-9]+)", row[2])} for row in cells}
    assert told == {name: dict(fault.found) for name, fault in FAULTS.items()}
