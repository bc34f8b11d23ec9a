"""Reading a table by Spark's tasks, whichever way their rows take to Spark: pruned columns, a few fragments per partition.

::

    TableReader(options, columns, target).groups()          on the driver: what each task reads
    reader.read(group)                                      in a task: batches in the types that Spark takes

The version is fixed when Spark plans, so every task reads the same table. What travels to a task is what the manifest says
of its fragments, about a hundred bytes each, and once per reader the rest of the manifest: no task reads it again, which
with 100,000 tasks over 100,000 fragments would be more bytes than the rows. Nothing of PySpark is imported here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from lance_core.arrays import Addresses
from lance_core.dataset.indexing.serve import serve
from lance_core.dataset.scan.index_policy import IndexPolicy
from lance_core.dataset.scan.plan import ScanPlan, plan_scan
from lance_core.dataset.scan.projection import Projection, plan_parts
from lance_core.dataset.scan.sinks import scan
from lance_core.dataset.scan.take import take_addresses
from lance_core.dataset.snapshot.snapshot import Snapshot, open_snapshot
from lance_core.errors import InputError
from lance_core.expr import parse_filter
from lance_core.format.fragment import Fragment
from lance_core.format.fragments import FragmentList
from lance_core.format.schema import Schema
from lance_core.io.resolve import resolve_store
from lance_core.jobs.sources.conform import Conformer
from lance_core.runs import runs_within
from lance_core.spark.options import SourceOptions, refuse_search
from lance_core.spark.sizes import estimated_size
from lance_core.wire.fragments import decode_fragment, encode_fragment

_MOST_BYTES, LEAST_BYTES = 128 * 2**20, 16 * 2**20
_GUESSED_ROW_BYTES = 100


FRAGMENT, ADDRESS = "_fragid", "_rowaddr"
"""The number of a row's fragment, which lance-spark has as a column: the upper half of the row's address."""


@dataclass(frozen=True)
class FragmentGroup:
    """Fragments that one task reads: their places in the manifest, `start` to `end` (excluded), and its entries."""

    start: int
    end: int
    described: tuple[bytes, ...] = ()


class OpenGroup(NamedTuple):
    """The fragments of one task, and the version that they are read through."""

    snapshot: Snapshot
    fragments: Sequence[Fragment]

    @property
    def num_rows(self) -> int:
        """Living rows; a filter may leave less of them."""
        return sum(fragment.num_rows for fragment in self.fragments)


class TableReader:
    """Reads some columns of one version of a table, in the types of `target` (see `types.readable_schema`). Pickles."""

    def __init__(
        self, options: SourceOptions, columns: Sequence[str], target: pa.Schema, *, at: tuple[str, int] | None = None
    ) -> None:
        refuse_search(options)
        snapshot = open_read_snapshot(options, at=at)
        self._opened: Snapshot | None = snapshot
        self._options = options
        self._version = snapshot.version
        # Of a branch the place is not the table's own, whether it was named or a tag is of it.
        self._place = snapshot.uri
        # Where rows have ids of their own, indices answer with ids, and only the whole manifest knows where those are.
        needs_all = snapshot.manifest.uses_stable_row_ids and bool(snapshot.manifest.indices)
        self._manifest = None if needs_all else replace(snapshot.manifest, fragments=())
        self.target = target
        self._num_fragments = len(snapshot.manifest.fragments)
        whole = snapshot.arrow_schema
        # Spark's types know no length of a vector.
        read = _projection(snapshot.manifest.schema, target).arrow_schema
        asked = pa.schema([read.field(name) if name in whole.names else target.field(name) for name in columns])
        self._size = estimated_size(read=asked, table=whole, fragments=snapshot.manifest.fragments)
        self._filter = options.filter
        if options.filter:
            parse_filter(options.filter, snapshot.arrow_schema)  # refused now, not on executors

    def groups(self, *, parallelism: int | None = None, apart: Sequence[int] | None = None) -> Sequence[FragmentGroup]:
        """Neighbouring fragments together: up to `rowsPerPartition` rows where that is given, else by bytes.

        By bytes as Spark cuts files: 128 MiB, or less when that would leave some of `parallelism` processors idle (those of
        this machine, where none are given); each task costs about 0.1 s of start-up, so small tables are not cut finer than
        16 MiB. `apart`: a number for each fragment; those of unlike numbers are never together.
        """
        snapshot = self._snapshot()
        fragments = snapshot.manifest.fragments
        rows = self._options.rows_per_partition
        if rows is not None:
            groups = _groups([fragment.num_rows for fragment in fragments], rows, apart)
            return self._described(snapshot, self._worth_reading(snapshot, groups))
        sizes = [_size_of(fragment) for fragment in fragments]
        # A little more than an even share: halves that are not quite equal are not three.
        share = sum(sizes) * 21 // (20 * (parallelism or os.cpu_count() or 1)) + 1
        groups = _groups(sizes, min(_MOST_BYTES, max(share, LEAST_BYTES)), apart)
        return self._described(snapshot, self._worth_reading(snapshot, groups))

    def bytes_of(self, group: FragmentGroup) -> int:
        """Of the files of its fragments."""
        return sum(_size_of(fragment) for fragment in self._snapshot().manifest.fragments[group.start : group.end])

    def single_values(self) -> Mapping[str, Mapping[int, Any]]:
        """Column -> number of a fragment -> the value of all its rows in this column: what zone maps know of those read."""
        snapshot = self._snapshot()
        if not snapshot.manifest.indices:
            return {}
        from lance_core.dataset.indexing.single_values import single_values  # not for a table without indices

        return single_values(snapshot, self.target.names, trust=IndexPolicy(unsealed=self._options.unsealed_indices))

    @property
    def fragment_ids(self) -> Sequence[int]:
        """Of all fragments, in their order."""
        return FragmentList.of(self._snapshot().manifest.fragments).ids

    def size_of(self, groups: Sequence[FragmentGroup]) -> int:
        """About how many bytes the columns of some groups are; a filter may leave less of them."""
        kept = sum(group.end - group.start for group in groups)
        return self._size * kept // max(1, self._num_fragments)

    def rows_of(self, groups: Sequence[FragmentGroup]) -> int:
        """The rows of some groups; a filter may leave less of them."""
        fragments = self._snapshot().manifest.fragments
        return sum(fragment.num_rows for group in groups for fragment in fragments[group.start : group.end])

    def first_groups(self, groups: Sequence[FragmentGroup], *, rows: int) -> Sequence[FragmentGroup]:
        """As many groups from the first on as surely hold so many rows, where no filter leaves some out; at least one."""
        fragments = self._snapshot().manifest.fragments
        kept: list[FragmentGroup] = []
        found = 0
        for group in groups:
            kept.append(group)
            found += sum(fragment.num_rows for fragment in fragments[group.start : group.end])
            if found >= rows:
                break
        return kept

    @property
    def is_filtered(self) -> bool:
        """Whether the scan leaves rows out."""
        return self._filter is not None

    def _described(self, snapshot: Snapshot, groups: Sequence[FragmentGroup]) -> Sequence[FragmentGroup]:
        if self._manifest is None:
            return groups
        raw = FragmentList.of(snapshot.manifest.fragments).to_bytes(encode_fragment)
        return [replace(group, described=tuple(raw[group.start : group.end])) for group in groups]

    def _worth_reading(self, snapshot: Snapshot, groups: Sequence[FragmentGroup]) -> Sequence[FragmentGroup]:
        """The groups that may hold rows for the filter, as far as indices know; one is kept, because Spark wants one."""
        if self._filter is None or not snapshot.manifest.indices:
            return groups
        fragments = snapshot.manifest.fragments
        found = {task.fragment.id for task in self._planned(snapshot, fragments).tasks}
        kept = [group for group in groups if any(item.id in found for item in fragments[group.start : group.end])]
        return kept or groups[:1]

    def _planned(self, snapshot: Snapshot, fragments: Sequence[Fragment], target: pa.Schema | None = None) -> ScanPlan:
        """What to read of the fragments; indices answer what they can of the filter."""
        schema = snapshot.manifest.schema
        where = parse_filter(self._filter, snapshot.arrow_schema) if self._filter else None
        plan = plan_scan(schema, fragments, _projection(schema, self.target if target is None else target), filter=where)
        return serve(snapshot, plan, trust=IndexPolicy(unsealed=self._options.unsealed_indices)).plan

    def read(self, group: FragmentGroup) -> Iterator[pa.RecordBatch]:
        """The batches of one task, in the types that Spark takes."""
        yield from self.scanned(self.opened(group), self.target)

    def opened(self, group: FragmentGroup) -> OpenGroup:
        """What one task reads; what has been opened of its files is kept for the next reading of them."""
        if self._manifest is None:
            snapshot = self._snapshot()
            return OpenGroup(snapshot, snapshot.manifest.fragments[group.start : group.end])
        fragments = tuple(decode_fragment(raw) for raw in group.described)
        store = resolve_store(self._place, self._options.storage)
        manifest = replace(self._manifest, fragments=fragments)
        return OpenGroup(Snapshot(store, manifest, self._options.storage), fragments)

    def scanned(self, opened: OpenGroup, target: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The columns of `target`, in its types, of the rows that the filter selects."""
        plan = self._planned(opened.snapshot, opened.fragments, target)
        conform = self._conform(target)
        for batch in scan(opened.snapshot, plan, batch_size=self._options.batch_size):
            yield conform(batch)

    def taken(self, opened: OpenGroup, addresses: Addresses) -> Iterator[pa.RecordBatch]:
        """The rows at ascending addresses, as `read` has them; nothing else of the columns is read."""
        projection = _projection(opened.snapshot.manifest.schema, self.target)
        table = take_addresses(opened.snapshot, addresses, projection)
        conform = self._conform(self.target)
        for batch in table.to_batches(max_chunksize=self._options.batch_size):
            yield conform(batch)

    def _conform(self, target: pa.Schema) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
        conformer = Conformer(target, uri=self._options.uri)
        if FRAGMENT in target.names:
            return lambda batch: conformer.apply(_with_fragment(batch))
        return conformer.apply

    def filter_also(self, text: str | None) -> None:
        """Read only rows that satisfy `text` as well as the filter of the options; None takes an earlier `text` back."""
        self._filter = " AND ".join(f"({part})" for part in (self._options.filter, text) if part) or None

    @property
    def arrow_schema(self) -> pa.Schema:
        """Of the whole table, at the version that is read."""
        return self._snapshot().arrow_schema

    def _snapshot(self) -> Snapshot:
        if self._opened is None:
            self._opened = open_snapshot(self._place, version=self._version, storage_options=self._options.storage)
        return self._opened

    def __getstate__(self) -> dict[str, Any]:
        # What is open stays where it is: a task has its fragments, or opens the version itself.
        return {**self.__dict__, "_opened": None}


def _projection(schema: Schema, target: pa.Schema) -> Projection:
    """What is read of a table for the columns of `target`."""
    needed = [*target.names, ADDRESS] if FRAGMENT in target.names else target.names
    return plan_parts(schema, [name for name in dict.fromkeys(needed) if name != FRAGMENT], target)


def _with_fragment(batch: pa.RecordBatch) -> pa.RecordBatch:
    addresses: Any = batch.column(ADDRESS).cast(pa.int64())
    return batch.append_column(FRAGMENT, pc.shift_right(addresses, pa.scalar(32, pa.int64())).cast(pa.int32()))


def read_schema(options: SourceOptions, *, snapshot: Snapshot | None = None) -> pa.Schema:
    """The Arrow schema of the columns that the options name, at a version that is open or the one that they name.

    InputError for a column that the table does not have.
    """
    schema = (snapshot or open_read_snapshot(options)).visible_schema
    if options.columns is None:
        return schema
    absent = [name for name in options.columns if name not in schema.names]
    if absent:
        raise InputError(f"no column {absent[0]!r} in {options.uri}", cure=f"Its columns: {', '.join(schema.names)}.")
    return pa.schema([schema.field(name) for name in options.columns])


def open_read_snapshot(options: SourceOptions, *, at: tuple[str, int] | None = None) -> Snapshot:
    """The version that the options name, or the place and version that they were found to name before."""
    if at is not None:
        return open_snapshot(at[0], version=at[1], storage_options=options.storage)
    return open_snapshot(options.uri, version=options.version, asof=options.asof, storage_options=options.storage)


def _groups(sizes: Sequence[int], most: int, apart: Sequence[int] | None) -> list[FragmentGroup]:
    """Consecutive fragments in groups of at most `most`, in whatever unit `sizes` are; a larger fragment stands alone."""
    if apart is None:
        return [FragmentGroup(start, end) for start, end in runs_within((sizes, most))]
    groups: list[FragmentGroup] = []
    first = 0
    for _, alike in groupby(apart):
        end = first + len([*alike])
        groups += [FragmentGroup(first + start, first + stop) for start, stop in runs_within((sizes[first:end], most))]
        first = end
    return groups


def _size_of(fragment: Fragment) -> int:
    """Bytes of a fragment's files; where the table does not say, a guess from its rows."""
    known = [file.file_size_bytes for file in fragment.files]
    return sum(size or _GUESSED_ROW_BYTES * fragment.num_rows for size in known)
