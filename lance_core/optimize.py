"""Compaction in pieces, by the official library's names (`lance.optimize`).

::

    from lance_core.optimize import Compaction
    plan = Compaction.plan(dataset, {"target_rows_per_fragment": 1_000_000})
    results = [task.execute(dataset) for task in plan.tasks]         in any processes: tasks and results travel as JSON
    Compaction.commit(dataset, results)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.lazy import lazy_face

if TYPE_CHECKING:
    from lance_core.dataset.handle.compaction_tasks import Compaction as Compaction
    from lance_core.dataset.handle.compaction_tasks import CompactionPlan as CompactionPlan
    from lance_core.dataset.handle.compaction_tasks import CompactionTask as CompactionTask
    from lance_core.dataset.handle.compaction_tasks import RewriteResult as RewriteResult
    from lance_core.dataset.maintain.compact import CompactionMetrics as CompactionMetrics
    from lance_core.dataset.maintain.compact_options import CompactionOptions as CompactionOptions
else:
    __getattr__, __dir__ = lazy_face(
        __name__,
        {
            "Compaction": "lance_core.dataset.handle.compaction_tasks",
            "CompactionMetrics": "lance_core.dataset.maintain.compact",
            "CompactionOptions": "lance_core.dataset.maintain.compact_options",
            "CompactionPlan": "lance_core.dataset.handle.compaction_tasks",
            "CompactionTask": "lance_core.dataset.handle.compaction_tasks",
            "RewriteResult": "lance_core.dataset.handle.compaction_tasks",
        },
    )

__all__ = [
    "Compaction",
    "CompactionMetrics",
    "CompactionOptions",
    "CompactionPlan",
    "CompactionTask",
    "RewriteResult",
]
