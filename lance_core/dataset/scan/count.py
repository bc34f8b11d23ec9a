"""Count the rows that a filter selects."""

from __future__ import annotations

from lance_core.dataset.scan.execute import count_selected
from lance_core.dataset.scan.plan import plan_scan
from lance_core.dataset.scan.projection import plan_projection
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.expr import parse_filter


def count_matching(snapshot: Snapshot, predicate: str) -> int:
    """Rows that a filter selects."""
    expr = parse_filter(predicate, snapshot.arrow_schema)
    schema = snapshot.manifest.schema
    plan = plan_scan(schema, snapshot.manifest.fragments, plan_projection(schema, []), filter=expr)
    return count_selected(snapshot, plan)
