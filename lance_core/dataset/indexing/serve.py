"""Give a plan what indices know of its filter; of the search nothing is imported for a table without indices.

::

    serve(snapshot, plan of "a = 3 AND b > 1")      index on a: tasks whose rows are picked, and Use("a_idx", …)
                                                    no index: the plan as it is
"""

from __future__ import annotations

from lance_core.dataset.indexing.served import Served
from lance_core.dataset.scan.index_policy import DEFAULT_POLICY, IndexPolicy
from lance_core.dataset.scan.plan import ScanPlan
from lance_core.dataset.snapshot.snapshot import Snapshot


def serve(
    snapshot: Snapshot, plan: ScanPlan, *, use_indices: bool = True, trust: IndexPolicy = DEFAULT_POLICY, fast: bool = False
) -> Served:
    """Search indices for the plan's filter. The same plan when there is none, no index helps, or they are disabled.

    `fast` skips fragments that the indices used do not cover, unless no index helps.
    """
    if plan.filter is None or not use_indices or not snapshot.manifest.indices or not plan.tasks:
        return Served(plan)
    from lance_core.dataset.indexing.scalar_search import searched

    return searched(snapshot, plan, trust=trust, fast=fast)
