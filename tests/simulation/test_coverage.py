"""The tables in docs/protocol.md: which scenario has which actor, and which fault the systematic search tries where."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.simulation import actors, outsider
from tests.simulation.scenario import Theatre
from tests.simulation.scenarios import NAMED
from tests.simulation.schedule import CRASH, FAULTS, Deviation, Schedule

_PAGE = Path(__file__).parents[2] / "docs/protocol.md"
_JOBS: Mapping[str, str] = {
    "CommitSpec": "commit",
    "GarbageSpec": "garbage collection",
    "CleanupSpec": "cleanup of this library",
    "RestoreSpec": "restore",
    "BranchSpec": "branch",
    "CompactSpec": "compaction",
    "MergeColumnFilesSpec": "merge of column files",
    "BuildIndexSpec": "index maintenance",
    "AddColumnsSpec": "add columns",
    "AppendSpec": "append",
    "DeleteSpec": "delete",
    "UpdateSpec": "update",
    "ReplaceWhereSpec": "replace-where",
    "MergeSpec": "merge",
    "OverwriteSpec": "overwrite",
}
_CALLS: Mapping[str, tuple[object, str]] = {
    "abort": (actors, "abort_attempt"),
    "fold of the ledger": (actors, "fold_ledger"),
    "user who settles": (actors, "settle_by_hand"),
    "outside append": (outsider, "append"),
    "outside delete": (outsider, "delete"),
    "outside compaction": (outsider, "compact"),
    "outside prune": (outsider, "prune"),
}
_KILLED = Deviation("commit", "put_if_absent _lance_core/decisions/*.*.json", 1, CRASH)
"""The commit is published, and then its outcome is unknown."""


@pytest.fixture(scope="module")
def measured() -> Mapping[str, set[str]]:
    """The scenarios of each actor: what their set-ups stage, and what their actors call in the default order."""
    found: dict[str, set[str]] = defaultdict(set)
    with pytest.MonkeyPatch.context() as patch:
        now: list[str] = []

        def noted(what: Callable[[Any], str], call: Callable[..., object]) -> Callable[..., object]:
            def run(*arguments: Any, **options: Any) -> object:
                found[what(arguments[0] if arguments else None)].add(now[-1])
                return call(*arguments, **options)

            return run

        patch.setattr(actors, "run_job", noted(lambda spec: _JOBS[type(spec).__name__], actors.run_job))
        for name, (module, attribute) in _CALLS.items():
            patch.setattr(module, attribute, noted(lambda _, name=name: name, getattr(module, attribute)))
        for name, scenario in NAMED.items():
            now.append(name)
            theatre = Theatre(scenario)
            theatre.play(Schedule(name))
            if name == "settle":
                theatre.play(Schedule(name, (_KILLED,)))
            commits = [actor for actor in theatre.stage.actors if "commit" in actor or actor == "retry"]
            if len(commits) > 1:
                found["second commit"].add(name)
    return found


def _table(first: str) -> dict[str, set[str]]:
    text = _PAGE.read_text()
    rows = text.split(f"| {first} |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return {row[0]: set(re.findall(r"`([^`]+)`", row[1])) for row in cells}


def test_the_page_says_which_scenario_has_which_actor(measured: Mapping[str, set[str]]) -> None:
    told = _table("actor | scenarios")
    every = set(NAMED)
    assert {name: places or every for name, places in told.items()} == dict(measured)


def test_the_page_says_where_each_fault_is_tried() -> None:
    expected = {fault: {name for name, item in NAMED.items() if fault in item.faults} for fault in FAULTS}
    told = {name.split(":")[0].strip("`"): places for name, places in _table("fault | systematically in").items()}
    assert told == expected
    assert all(expected.values())
