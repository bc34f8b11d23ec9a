"""Many tiny fragments at once: read their rows, or test a filter on them, so that few are checked one by one.

::

    10,000 fragments of 100 rows            read the files whole, decode the columns of all of them
                                            -> each fragment: a slice of what was decoded
    the same, a = 7                         decode a of all of them, evaluate once
                                            -> fragment 4711: row 12 picked, 9,999 fragments left out

What comes out of a filter is what an index would say (`Picked`). Deleted rows are masked by whoever reads the picked rows.
A fragment that is not so simple keeps its task and is scanned as always.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrays import Ints
from lance_core.arrow import schema_to_arrow
from lance_core.arrow_numpy import arrow_of, true_of
from lance_core.dataset.scan.parallel import is_far
from lance_core.dataset.scan.plan import FragmentTask, Picked, ScanPlan, plain_outputs, plan_scan
from lance_core.dataset.scan.projection import needs_of
from lance_core.dataset.snapshot.row_offsets import row_places
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.expr import SYSTEM_COLUMNS, ast, columns_of, evaluate
from lance_core.file.convert.tree import LeafNode, build_tree
from lance_core.file.small_files import MAX_FILE_SIZE, SmallFile, SmallFilesBatch, read_together
from lance_core.format.fragment import DataFile
from lance_core.format.schema import Schema
from lance_core.format.version import FileVersion

_Columns = dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[int, ...] | None]
MIN_TASKS = 8
"""Fewer fragments are not worth the trouble."""
MIN_FAR_TASKS = 1000
"""On a far store each file is one request either way, and one more when it turns out not to be so simple."""
_FIRST_TASKS, _BLOCK_TASKS = 64, 2048
_BLOCK_BYTES = 16 << 20


def swept(snapshot: Snapshot, plan: ScanPlan) -> Iterable[FragmentTask]:
    """The tasks of a plan in order. Tiny fragments come with their rows, or with those picked that the filter selects;
    of the latter, fragments without any are left out."""
    fewest = MIN_FAR_TASKS if is_far(snapshot) else MIN_TASKS
    if len(plan.tasks) < fewest:
        return plan.tasks
    sweep = _whole_of(snapshot, plan) if plan.filter is None else _sweep_of(snapshot, plan, plan.filter)
    return plan.tasks if sweep is None else sweep.run(plan.tasks)


def _whole_of(snapshot: Snapshot, plan: ScanPlan) -> _Whole | None:
    """None when more is read than flat columns, or something is computed of them."""
    leaves = _leaves_of(plan.first) if plain_outputs(plan) and plan.rest is None else None
    return None if leaves is None else _Whole(snapshot, plan.first, leaves, plan.projection.arrow_schema)


def _sweep_of(snapshot: Snapshot, plan: ScanPlan, test: ast.Expr) -> _Sweep | None:
    """None when the filter tests more than flat columns and addresses."""
    schema = snapshot.manifest.schema
    needs = needs_of(schema, columns_of(test))
    addresses = {"_rowaddr", "_rowoffset"} | (set() if snapshot.manifest.uses_stable_row_ids else {"_rowid"})
    if not needs.system <= addresses or not (needs.field_ids or needs.system):
        return None
    tested = schema.project(needs.field_ids)
    leaves = _leaves_of(tested)
    if leaves is None:
        return None
    picked = plan_scan(schema, (), plan.projection)
    return _Sweep(snapshot, tested, leaves, test, picked, tuple(sorted(needs.system)))


def _leaves_of(schema: Schema) -> tuple[LeafNode, ...] | None:
    nodes = [build_tree(schema, item, {}) for item in schema.top_level]
    leaves = tuple(node for node in nodes if isinstance(node, LeafNode) and not schema.children(node.field.id))
    is_blob = any(leaf.field.metadata.get("lance-encoding:blob") for leaf in leaves)
    return None if is_blob or len(leaves) < len(nodes) else leaves


@dataclass(frozen=True)
class _Reading:
    """Flat columns of tiny fragments."""

    snapshot: Snapshot
    tested: Schema
    leaves: tuple[LeafNode, ...]
    _columns: _Columns = field(default_factory=dict, kw_only=True)

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


@dataclass(frozen=True)
class _Whole(_Reading):
    target: pa.Schema

    def run(self, tasks: Sequence[FragmentTask]) -> Iterator[FragmentTask]:
        for block in _blocks(tasks):
            files = [None if task.fragment.deletion_file is not None else self._small_file(task) for task in block]
            ready = self._read(files)
            for number, task in enumerate(block):
                yield replace(task, ready=ready[number]) if number in ready else task

    def _read(self, files: Sequence[SmallFile | None]) -> dict[int, pa.RecordBatch]:
        """The rows of each file that could be read with the others, by its number."""
        numbers = [number for number, file in enumerate(files) if file is not None]
        wanted = [file for file in files if file is not None]
        if not wanted:
            return {}
        schema = schema_to_arrow(self.tested)
        found, _ = read_together(self.snapshot.store, wanted, self.leaves, [item.type for item in schema])
        ready = {}
        for group in found:
            arrays = [group.arrays[schema.get_field_index(name)] for name in self.target.names]
            rows = pa.RecordBatch.from_arrays(arrays, schema=self.target)
            start = 0
            for position in group.files.tolist():
                ready[numbers[position]] = rows.slice(start, wanted[position].num_rows)
                start += wanted[position].num_rows
        return ready


@dataclass(frozen=True)
class _Sweep(_Reading):
    filter: ast.Expr
    picked: ScanPlan
    """What is left to do with rows that the filter selects."""
    system: tuple[str, ...]

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
            found = [SmallFilesBatch(np.arange(len(wanted), dtype=np.int64), ())]
        answers: dict[int, Ints] = {}
        for group in found:
            members = [numbers[position] for position in group.files.tolist()]
            answers.update(self._test([block[number] for number in members], members, group))
        return answers

    def _test(self, tasks: Sequence[FragmentTask], numbers: Sequence[int], group: SmallFilesBatch) -> dict[int, Ints]:
        counts = np.array([task.fragment.physical_rows for task in tasks], np.int64)
        ends = np.cumsum(counts)
        arrays = [*group.arrays, *(_addresses(self.snapshot, name, tasks, counts) for name in self.system)]
        schema = schema_to_arrow(self.tested)
        for name in self.system:
            schema = schema.append(pa.field(name, SYSTEM_COLUMNS[name]))
        known: Any = evaluate(self.filter, pa.RecordBatch.from_arrays(arrays, schema=schema))
        hits = np.flatnonzero(true_of(known))
        owners = np.searchsorted(ends, hits, side="right")
        answers = dict.fromkeys(numbers, np.empty(0, np.int64))
        firsts, cuts = np.unique(owners, return_index=True)
        for owner, part in zip(firsts.tolist(), np.split(hits, cuts[1:]), strict=False):
            answers[numbers[owner]] = part - (ends[owner] - counts[owner])
        return answers


def _addresses(snapshot: Snapshot, name: str, tasks: Sequence[FragmentTask], counts: Ints) -> Any:
    """`_rowoffset`, or the row address, of all rows of some fragments."""
    if name == "_rowoffset":
        places = [row_places(snapshot, task.fragment, np.arange(task.fragment.physical_rows)) for task in tasks]
        return arrow_of(np.concatenate(places).astype(np.uint64))
    offsets = np.arange(int(counts.sum()), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
    firsts = np.array([task.fragment.id << 32 for task in tasks], np.uint64)
    return arrow_of(np.repeat(firsts, counts) + offsets.astype(np.uint64))


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
