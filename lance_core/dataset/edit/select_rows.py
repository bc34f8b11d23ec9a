"""The rows that a filter selects, as offsets: the first step of delete, update and replace.

::

    a = 7   -> {0: [3, 90], 4: [12]}      fragment id -> sorted physical offsets of live rows

Addresses in the filter rule fragments out, indices answer what they can, tiny fragments are tested together, and of all
others only the columns that the filter tests are read.
"""

from __future__ import annotations

from collections.abc import Callable

from lance_core.arrays import Ints
from lance_core.dataset.indexing.serve import serve
from lance_core.dataset.scan.index_policy import IndexPolicy
from lance_core.dataset.scan.plan import nearby, plan_scan
from lance_core.dataset.scan.projection import plan_projection
from lance_core.dataset.scan.sinks import in_order, selected_offsets
from lance_core.dataset.snapshot.deletion_vectors import living_offsets
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.expr import Expr
from lance_core.progress import CountProgress


def select_offsets(snapshot: Snapshot, expr: Expr, *, progress: CountProgress = lambda done, total: None) -> dict[int, Ints]:
    """Sorted physical offsets of the live rows a filter selects, by fragment id; fragments without one are left out.

    `progress(rows checked, rows to check)` is called after each fragment that is scanned.
    """
    manifest = snapshot.manifest
    fragments = nearby(manifest, manifest.fragments, expr)
    plan = plan_scan(manifest.schema, fragments, plan_projection(manifest.schema, []), filter=expr)
    # Comparing an index with its column costs more than the one scan it would spare.
    served = serve(snapshot, plan, trust=IndexPolicy(unsealed="skip")).plan
    total, done, found = sum(task.num_rows for task in served.tasks), 0, {}
    for task, offsets in in_order(snapshot, served, lambda task: selected_offsets(snapshot, served, task)):
        done += task.num_rows
        progress(done, total)
        if len(offsets):
            found[task.fragment.id] = offsets
    progress(total, total)
    return found


def matching_offsets(
    snapshot: Snapshot, expr: Expr | None, *, progress: Callable[[int, int], None] = lambda done, total: None
) -> dict[int, Ints]:
    """Sorted physical offsets of the live rows a filter selects (None: all), by fragment id.

    `progress(rows checked, rows to check)` is called during the search.
    """

    if expr is not None:
        return select_offsets(snapshot, expr, progress=progress)
    everything = {fragment.id: living_offsets(snapshot, fragment) for fragment in snapshot.manifest.fragments}
    return {number: offsets for number, offsets in everything.items() if len(offsets)}
