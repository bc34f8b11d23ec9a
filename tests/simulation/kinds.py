"""Every kind of staged work in every situation in which one attempt could get two owners: scenarios by construction.

::

    second-try     two tries of one staging task at once, and its commit
    brought-up     the table has moved since it was staged, and two commits bring it up at once
    together       two pieces of work of the kind in one commit, beside a commit of the first alone
    cleared        the table has moved; a commit whose clearing is interrupted, beside a further try of staging

A kind of job that stages and is not in `WORKS` fails a test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.simulation import actors as do
from tests.simulation.model import IdentityWork
from tests.simulation.scenario import Scenario, Stage
from tests.simulation.schedule import CRASH, LATE, LOST

Works = Callable[[], tuple[IdentityWork, IdentityWork]]


def _nothing() -> None:
    """The table is as every kind needs it."""


@dataclass(frozen=True)
class Kind:
    """Two pieces of work of one kind, and what the table needs before."""

    works: Works
    prepare: Callable[[], object] = _nothing


def _pair(make: Callable[[int], IdentityWork]) -> Works:
    return lambda: (make(0), make(1))


def _column_files() -> None:
    work = do.columns_work("columns before")
    do.stage(work)
    do.commit(work)()


def _index() -> None:
    index, more = do.index_work("index before"), do.append_work("rows behind the index", (4,))
    for work in (index, more):
        do.stage(work)
        do.commit(work)()


WORKS: Mapping[str, Kind] = {
    "append": Kind(_pair(lambda number: do.append_work(f"append {number}", (100 + number,)))),
    "overwrite": Kind(_pair(lambda number: do.overwrite_work(f"overwrite {number}", (7 + number,)))),
    "delete": Kind(_pair(lambda number: do.delete_work(f"delete {number}", number))),
    "update": Kind(_pair(lambda number: do.update_work(f"update {number}", number))),
    "replace_where": Kind(_pair(lambda number: do.replace_work(f"replace {number}", 2, (102 + number,), number))),
    "add_columns": Kind(_pair(lambda number: do.columns_work(f"columns {number}", column=f"twice_{number}"))),
    "merge": Kind(_pair(lambda number: do.merge_work(f"merge {number}", (number, 102), 5 + number))),
    "publish_branch": Kind(_pair(lambda number: do.branch_rows_work(f"side{number}", (300 + number,)))),
    "build_index": Kind(_pair(lambda number: do.index_work(f"index {number}", column=("id", "value")[number]))),
    "optimize_indices": Kind(_pair(lambda number: do.optimize_work(f"optimize {number}")), _index),
    "compact": Kind(_pair(lambda number: do.compact_work(f"compact {number}"))),
    "merge_column_files": Kind(_pair(lambda number: do.merge_files_work(f"merge files {number}")), _column_files),
}
"""By the kind of the job (see `jobs.kinds`)."""


def _begin(kind: Kind) -> tuple[IdentityWork, IdentityWork]:
    do.begin_table((0, 1), (2, 3))
    kind.prepare()
    return kind.works()


def _move() -> None:
    """Another writer adds a row and changes one, so that nothing is as it was read."""
    for work in (do.append_work("moved by a row", (200,), drift="fill_missing"), do.update_work("moved by a value", 1)):
        do.stage(work)
        do.commit(work)()


def _second_try(kind: Kind) -> Stage:
    work, _ = _begin(kind)
    return Stage((work,), {"try 1": work.stage, "try 2": work.stage, "commit": do.commit(work)})


def _brought_up(kind: Kind) -> Stage:
    work, _ = _begin(kind)
    do.stage(work)
    _move()
    return Stage((work,), {"commit": do.commit(work, tries=3), "second commit": do.commit(work, tries=3)})


def _together(kind: Kind) -> Stage:
    works = _begin(kind)
    do.stage(*works)
    return Stage(works, {"commit": do.commit(*works, tries=3), "second commit": do.commit(works[0], tries=3)})


def _cleared(kind: Kind) -> Stage:
    work, _ = _begin(kind)
    do.stage(work)
    _move()
    return Stage((work,), {"commit": do.commit(work, tries=3), "try 2": work.stage})


SITUATIONS: Mapping[str, tuple[str, Callable[[Kind], Stage], tuple[str, ...]]] = {
    "second-try": ("two tries of one staging task, and its commit", _second_try, (CRASH, LATE)),
    "brought-up": ("the table has moved, and two commits bring the work up", _brought_up, (CRASH, LOST, LATE)),
    "together": ("two of them in one commit, beside a commit of the first", _together, (CRASH, LOST, LATE)),
    "cleared": ("a commit whose clearing is interrupted, beside a further try", _cleared, (CRASH, LOST, LATE)),
}


def _scenario(name: str, situation: str) -> Scenario:
    about, make, faults = SITUATIONS[situation]
    kind = WORKS[name]
    return Scenario(f"{name.replace('_', '-')}-{situation}", f"{name}: {about}", lambda: make(kind), faults)


OPEN: Mapping[tuple[str, str], str] = {}
"""What is known to go wrong, and is not mended yet: these are not among the scenarios."""

KINDS_IN_SITUATIONS: Mapping[str, Scenario] = {
    scenario.name: scenario
    for scenario in (_scenario(name, case) for name in WORKS for case in SITUATIONS if (name, case) not in OPEN)
}
