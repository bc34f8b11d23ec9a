"""Compaction in pieces, by the official library's names (`lance.optimize`).

::

    from lance_core.optimize import Compaction
    plan = Compaction.plan(dataset, {"target_rows_per_fragment": 1_000_000})
    results = [task.execute(dataset) for task in plan.tasks]         in any processes: tasks and results travel as JSON
    Compaction.commit(dataset, results)
"""

from __future__ import annotations

from lance_core.dataset.handle.compaction_tasks import Compaction, CompactionPlan, CompactionTask, RewriteResult
from lance_core.dataset.maintain.compact import CompactionMetrics
from lance_core.dataset.maintain.compact_options import CompactionOptions

__all__ = ["Compaction", "CompactionMetrics", "CompactionOptions", "CompactionPlan", "CompactionTask", "RewriteResult"]
