"""Test a filter on many tiny fragments at once, so that only those with a selected row are checked one by one.

::

    10,000 fragments of 100 rows, a = 7     read the files whole, decode a of all of them, evaluate once
                                            -> fragment 4711: row 12 picked, 9,999 fragments left out

What comes out is what an index would say (`Picked`). Deleted rows are masked by whoever reads the picked rows. A fragment
that is not so simple keeps its task and is scanned as always.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrays import Ints
from lance_core.arrow import schema_to_arrow
from lance_core.dataset.scan.parallel import is_far
from lance_core.dataset.scan.plan import FragmentTask, Picked, ScanPlan, plan_scan
from lance_core.dataset.scan.projection import needs_of
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.expr import SYSTEM_COLUMNS, ast, columns_of, evaluate
from lance_core.file.convert.tree import LeafNode, build_tree
from lance_core.file.small_files import MAX_FILE_SIZE, SmallFile, Together, read_together
from lance_core.format.fragment import DataFile
from lance_core.format.schema import Schema
from lance_core.format.version import FileVersion

MIN_TASKS = 8
"""Fewer fragments are not worth the trouble."""
MIN_FAR_TASKS = 1000
"""On a far store each file is one request either way, and one more when it turns out not to be so simple."""
_FIRST_TASKS, _BLOCK_TASKS = 64, 2048
_BLOCK_BYTES = 16 << 20


def swept(snapshot: Snapshot, plan: ScanPlan) -> Iterable[FragmentTask]:
    """The tasks of a plan in order; tiny fragments come with their selected rows picked, those without any not at all."""
    fewest = MIN_FAR_TASKS if is_far(snapshot) else MIN_TASKS
    if plan.filter is None or len(plan.tasks) < fewest:
        return plan.tasks
    sweep = _sweep_of(snapshot, plan)
    return plan.tasks if sweep is None else sweep.run(plan.tasks)


def _sweep_of(snapshot: Snapshot, plan: ScanPlan) -> _Sweep | None:
    """None when the filter tests more than flat columns and addresses."""
    assert plan.filter is not None
    schema = snapshot.manifest.schema
    needs = needs_of(schema, columns_of(plan.filter))
    addresses = {"_rowaddr", "_rowoffset"} | (set() if snapshot.manifest.uses_stable_row_ids else {"_rowid"})
    if not needs.system <= addresses or not (needs.field_ids or needs.system):
        return None
    tested = schema.project(needs.field_ids)
    nodes = [build_tree(tested, item, {}) for item in tested.top_level]
    leaves = tuple(node for node in nodes if isinstance(node, LeafNode) and not tested.children(node.field.id))
    if len(leaves) < len(nodes) or any(leaf.field.metadata.get("lance-encoding:blob") for leaf in leaves):
        return None
    picked = plan_scan(schema, (), plan.projection)
    return _Sweep(snapshot, plan.filter, picked, tested, leaves, tuple(sorted(needs.system)))


@dataclass(frozen=True)
class _Sweep:
    snapshot: Snapshot
    filter: ast.Expr
    picked: ScanPlan
    """What is left to do with rows that the filter selects."""
    tested: Schema
    leaves: tuple[LeafNode, ...]
    system: tuple[str, ...]
    _columns: dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[int, ...] | None] = field(default_factory=dict)

    def run(self, tasks: Sequence[FragmentTask]) -> Iterator[FragmentTask]:
        for block in _blocks(tasks):
            files = [self._small_file(task) for task in block]
            answers = self._answer(block, [number for number, file in enumerate(files) if file is not None], files)
            for number, task in enumerate(block):
                offsets = answers.get(number)
                if offsets is None:
                    yield task
                elif len(offsets):
                    yield replace(task, picked=Picked(offsets, self.picked))

    def _small_file(self, task: FragmentTask) -> SmallFile | None:
        fragment = task.fragment
        if task.picked is not None or fragment.overlays or task.num_rows != fragment.num_rows or not fragment.physical_rows:
            return None
        if not self.leaves:
            return SmallFile("", 0, fragment.physical_rows, ())
        for file in fragment.files:
            columns = self._columns_in(file)
            if columns is not None:
                size = file.file_size_bytes or MAX_FILE_SIZE + 1
                if size > MAX_FILE_SIZE or file.base_id is not None:
                    return None
                return SmallFile(f"data/{file.path}", size, fragment.physical_rows, columns)
        return None

    def _columns_in(self, file: DataFile) -> tuple[int, ...] | None:
        """The columns of a file that hold the tested fields; None when it does not hold them all."""
        key = (file.fields, file.column_indices)
        if key not in self._columns:
            found = dict(zip(file.fields, file.column_indices, strict=False))
            columns = tuple(found.get(leaf.field.id, -1) for leaf in self.leaves)
            sound = min(columns) >= 0 and file.version >= FileVersion.V2_1
            self._columns[key] = columns if sound else None
        return self._columns[key]

    def _answer(
        self, block: Sequence[FragmentTask], numbers: Sequence[int], files: Sequence[SmallFile | None]
    ) -> dict[int, Ints]:
        """Offsets of the rows the filter selects, by number of the task; tasks without an answer are to be scanned."""
        wanted = [file for file in files if file is not None]
        if not wanted:
            return {}
        if self.leaves:
            types = [field.type for field in schema_to_arrow(self.tested)]
            found, _ = read_together(self.snapshot.store, wanted, self.leaves, types)
        else:
            found = [Together(np.arange(len(wanted), dtype=np.int64), ())]
        answers: dict[int, Ints] = {}
        for group in found:
            members = [numbers[position] for position in group.files.tolist()]
            answers.update(self._test([block[number] for number in members], members, group))
        return answers

    def _test(self, tasks: Sequence[FragmentTask], numbers: Sequence[int], group: Together) -> dict[int, Ints]:
        counts = np.array([task.fragment.physical_rows for task in tasks], np.int64)
        ends = np.cumsum(counts)
        arrays = [*group.arrays, *(_addresses(name, tasks, counts) for name in self.system)]
        schema = schema_to_arrow(self.tested)
        for name in self.system:
            schema = schema.append(pa.field(name, SYSTEM_COLUMNS[name]))
        known: Any = evaluate(self.filter, pa.RecordBatch.from_arrays(arrays, schema=schema))
        hits = np.flatnonzero(known.fill_null(False).to_numpy(zero_copy_only=False))
        owners = np.searchsorted(ends, hits, side="right")
        answers = dict.fromkeys(numbers, np.empty(0, np.int64))
        firsts, cuts = np.unique(owners, return_index=True)
        for owner, part in zip(firsts.tolist(), np.split(hits, cuts[1:]), strict=False):
            answers[numbers[owner]] = part - (ends[owner] - counts[owner])
        return answers


def _addresses(name: str, tasks: Sequence[FragmentTask], counts: Ints) -> Any:
    """`_rowoffset`, or the row address, of all rows of some fragments."""
    offsets = np.arange(int(counts.sum()), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
    if name == "_rowoffset":
        return pa.array(offsets.astype(np.uint64))
    firsts = np.array([task.fragment.id << 32 for task in tasks], np.uint64)
    return pa.array(np.repeat(firsts, counts) + offsets.astype(np.uint64))


def _blocks(tasks: Sequence[FragmentTask]) -> Iterator[list[FragmentTask]]:
    """Neighbouring tasks whose files may be held at once; few at first, because a limit may be reached early."""
    block: list[FragmentTask] = []
    size, most = 0, _FIRST_TASKS
    for task in tasks:
        block.append(task)
        size += min(MAX_FILE_SIZE, sum(file.file_size_bytes or 0 for file in task.fragment.files))
        if len(block) == most or size >= _BLOCK_BYTES:
            yield block
            block, size, most = [], 0, min(4 * most, _BLOCK_TASKS)
    if block:
        yield block
