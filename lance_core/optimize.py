"""Compaction in pieces, by the official library's names (`lance.optimize`).

::

    from lance_core.optimize import Compaction
    plan = Compaction.plan(dataset, {"target_rows_per_fragment": 1_000_000})
    results = [task.execute(dataset) for task in plan.tasks]         in any processes: tasks and results travel as JSON
    Compaction.commit(dataset, results)
"""

from __future__ import annotations

from lance_core.dataset.compact import CompactionMetrics
from lance_core.dataset.compact_options import CompactionOptions
from lance_core.dataset.compact_plan import CompactionPlan
from lance_core.dataset.compact_task import Compaction, CompactionTask, RewriteResult

__all__ = ["Compaction", "CompactionMetrics", "CompactionOptions", "CompactionPlan", "CompactionTask", "RewriteResult"]
