"""Explain the plan of a scan.

::

    scan version 3: 4 fragments, 400 rows
      ScalarIndexQuery: a_idx (BTree) on a, exact, answers for 3 fragments; 2 rows of 1 fragments may match
      read and test a with a = 3
"""

from __future__ import annotations

from lance_core.dataset.indexing.served import Served
from lance_core.dataset.scan.plan import ScanPlan
from lance_core.dataset.snapshot.snapshot import Snapshot


def explain(snapshot: Snapshot, served: Served, filter: object, *, verbose: bool = False) -> str:
    """What a scan reads and which index answers which part of its filter."""
    plan = served.plan
    rows = sum(task.num_rows if task.picked is None else len(task.picked.offsets) for task in plan.tasks)
    lines = [f"scan version {snapshot.version}: {len(plan.tasks)} fragments, {rows} rows", *_index_lines(served)]
    names = _names(plan)
    if plan.filter is None:
        lines.append(f"  read {names}")
    elif any(task.picked is None or task.picked.plan.filter is not None for task in plan.tasks):
        lines.append(f"  read and test {names} with {filter}")
    else:
        lines.append("  nothing is left to test")
    if plan.rest is not None:
        lines.append(f"  of the selected rows read {', '.join(item.name for item in plan.rest.top_level)}")
    if plan.filter is not None and (plan.limit is not None or plan.offset):
        lines.append(f"  skip {plan.offset} selected rows, stop after {plan.limit}")
    if verbose:
        lines.extend(
            f"  fragment {task.fragment.id}: rows {task.start} to {task.end}"
            if task.picked is None
            else f"  fragment {task.fragment.id}: {len(task.picked.offsets)} rows selected by indices"
            for task in plan.tasks
        )
    return "\n".join(lines)


def _names(plan: ScanPlan) -> str:
    return ", ".join(item.name for item in plan.first.top_level) or "no stored columns"


def _index_lines(served: Served) -> list[str]:
    picked = [task for task in served.plan.tasks if task.picked is not None]
    rows = sum(len(task.picked.offsets) for task in picked if task.picked is not None)
    lines = []
    for use in served.uses:
        says = "exact" if use.is_exact else "to be tested again"
        lines.append(
            f"  ScalarIndexQuery: {use.index} ({use.title}) on {', '.join(use.columns)}, {says}, "
            f"answers for {len(use.fragments)} fragments"
        )
    if served.uses:
        lines.append(f"  of these {rows} rows in {len(picked)} fragments may match")
    return lines
