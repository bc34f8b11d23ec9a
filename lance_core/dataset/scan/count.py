"""Count the rows that a filter selects."""

from __future__ import annotations

from lance_core.dataset.scan.execute import LARGE_BATCH_ROWS, count_task, scan
from lance_core.dataset.scan.plan import ScanPlan, plan_scan
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
    return sum(rows for _, rows in in_order(snapshot, plan, lambda task: count_task(snapshot, plan, task)))
