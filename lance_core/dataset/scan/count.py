"""Count the rows that a filter selects."""

from __future__ import annotations

from dataclasses import replace

from lance_core.dataset.scan.execute import LARGE_BATCH_ROWS, count_task, scan
from lance_core.dataset.scan.plan import FragmentTask, ScanPlan, plan_scan
from lance_core.dataset.scan.projection import plan_projection
from lance_core.dataset.scan.to_table import in_order
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.expr import parse_filter


def count_matching(snapshot: Snapshot, predicate: str) -> int:
    """Rows that a filter selects."""
    expr = parse_filter(predicate, snapshot.arrow_schema)
    schema = snapshot.manifest.schema
    plan = plan_scan(schema, snapshot.manifest.fragments, plan_projection(schema, []), filter=expr)
    return count_selected(snapshot, plan)


def count_selected(snapshot: Snapshot, plan: ScanPlan) -> int:
    """How many rows a plan with a filter selects. With a limit no more is read than it takes to reach it."""
    if plan.limit is not None or plan.offset:
        return sum(batch.num_rows for batch in scan(snapshot, plan, batch_size=LARGE_BATCH_ROWS))
    known = [_known(task) for task in plan.tasks]
    rest = replace(plan, tasks=tuple(task for task, rows in zip(plan.tasks, known, strict=True) if rows is None))
    read = in_order(snapshot, rest, lambda task: count_task(snapshot, rest, task)) if rest.tasks else ()
    return sum(rows for rows in known if rows is not None) + sum(rows for _, rows in read)


def _known(task: FragmentTask) -> int | None:
    """Rows of a task that an index has answered, where no row was deleted since: nothing is read for them."""
    picked = task.picked
    if picked is None or picked.plan.filter is not None or task.fragment.deletion_file is not None:
        return None
    count = len(picked.offsets)
    # An index that names rows which the fragment does not have is an error of the read.
    return count if count and int(picked.offsets[-1]) < task.fragment.physical_rows else None
