"""Merge rows into a table by key: update matched rows, insert unmatched ones, delete rows that the source does not have.

::

    on k     table k=1 2 3     source k=2 5     update matched, insert not matched
    -> 2 is deleted where it was and written again with the source's values; 5 is new

Null keys match nothing. The source is held in memory, of the table only the keys and the rows that change.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrays import Addresses, Ints
from lance_core.arrow import check_compatible, schema_from_arrow
from lance_core.arrow.buffers import fields_schema
from lance_core.arrow.shown import shown
from lance_core.arrow_numpy import arrow_of, true_of
from lance_core.commit.naming import data_path
from lance_core.dataset.columns.declared_rules import refuse_values
from lance_core.dataset.edit.key_lookup import match_keys
from lance_core.dataset.edit.select_rows import matching_offsets
from lance_core.dataset.edit.update import stage_moved
from lance_core.dataset.scan.projection import plan_projection
from lance_core.dataset.scan.request import as_filter
from lance_core.dataset.scan.take import take_addresses
from lance_core.dataset.snapshot.row_offsets import by_fragment
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.base_paths import WriteTarget, choose_targets
from lance_core.dataset.write.deletions import stage_both
from lance_core.dataset.write.retry import StagedEdit
from lance_core.errors import InputError
from lance_core.expr import Expr, evaluate, parse_filter
from lance_core.file.blob.external import ExternalUris
from lance_core.format.fragment import Fragment
from lance_core.format.version import FileVersion
from lance_core.pick import keep, take
from lance_core.table.operations.update import Update
from lance_core.table.transaction import Transaction


@dataclass(frozen=True, slots=True)
class MergePlan:
    """What to do. `matched` is "keep", "update", "delete" or "fail"; `condition` (of an update) refers to `source.x` and
    `target.x`; `delete_missing` is True, or a filter, for rows of the table that the source does not match. `version` of the
    files written (None: the table's own); `target_bases` and `target_all` as for `write_dataset`."""

    on: tuple[str, ...]
    matched: str = "keep"
    condition: str | None = None
    insert: bool = False
    delete_missing: bool | str = False
    version: FileVersion | None = None
    target_bases: tuple[str, ...] = ()
    target_all: bool | None = None

    @property
    def changes_nothing(self) -> bool:
        """Whether no row could change."""
        return self.matched in ("keep", "fail") and not self.insert and self.delete_missing is False


@dataclass(frozen=True)
class _Pairs:
    """Matches: row `source[i]` of the source is the table's row at address `target[i]`; ascending by address."""

    target: Addresses
    source: Ints


def stage_merge(snapshot: Snapshot, source: pa.Table, spec: MergePlan, *, attempt: str | None = None) -> StagedEdit:
    """Write what a merge changes and describe its commit. Raises InputError for ambiguous or forbidden matches."""
    if spec.changes_nothing:
        raise InputError(
            "merge_insert has no action, so it would change nothing", cure="Set an action for matched or for unmatched rows."
        )
    return _stage(snapshot, source, spec, attempt)[0]


def stage_merge_part(
    snapshot: Snapshot, source: pa.Table, spec: MergePlan, *, attempt: str | None = None
) -> tuple[StagedEdit, Ints]:
    """`stage_merge` on a part of the table, without its insertions; and the rows of the source that match there, sorted.

    Whoever has seen all parts knows which rows of the source match nowhere, and inserts those.
    """
    _check(snapshot, source, spec)
    edit, pairs = _stage(snapshot, source, replace(spec, insert=False), attempt)
    return edit, np.unique(pairs.source)


def _stage(snapshot: Snapshot, source: pa.Table, spec: MergePlan, attempt: str | None) -> tuple[StagedEdit, _Pairs]:
    _check(snapshot, source, spec)
    source = _without_views(source, snapshot.arrow_schema)
    pairs = _Pairs(*match_keys(snapshot, source, spec.on))
    if spec.matched == "fail" and len(pairs.target):
        raise InputError(
            f"{len(pairs.target)} rows match and must not, the first with {_key(source, pairs.source[0], spec)}"
        )
    updated = _Pairs(pairs.target[:0], pairs.source[:0])
    if spec.matched == "update":
        updated = _satisfying(snapshot, source, pairs, spec)
    _refuse_ambiguous(source, updated, spec)
    moved = by_fragment(updated.target)
    gone = _union(moved, by_fragment(np.unique(pairs.target)) if spec.matched == "delete" else {})
    gone = _union(gone, _missing(snapshot, pairs, spec))
    inserted = _unmatched(source, pairs) if spec.insert else source.slice(0, 0)
    places = _places(snapshot, spec)
    external = ExternalUris.of(snapshot.manifest.base_paths, snapshot.storage_options)

    def write() -> list[Fragment]:
        rows = _rows(snapshot, source, updated, inserted)
        return stage_moved(snapshot, moved, rows, attempt=attempt, version=spec.version, places=places, external=external)

    deletions, fragments = stage_both(snapshot, gone, write, attempt=attempt, places=places)
    operation = Update(
        removed_fragment_ids=deletions.removed,
        updated_fragments=deletions.updated,
        new_fragments=tuple(fragments),
        fields_for_preserving_frag_bitmap=tuple(item.id for item in snapshot.manifest.schema.fields),
    )
    elsewhere = tuple(fragment for fragment in fragments if fragment.files[0].base_id is not None)
    written = tuple(data_path(file.path) for item in fragments if item not in elsewhere for file in item.files)
    result = {
        "num_inserted_rows": inserted.num_rows,
        "num_updated_rows": len(updated.target),
        "num_deleted_rows": deletions.num_rows - len(updated.target),
    }
    transaction = Transaction(snapshot.version, str(uuids.uuid4()), operation)
    return StagedEdit(transaction, deletions.files + written, result, elsewhere, places), pairs


def _places(snapshot: Snapshot, spec: MergePlan) -> tuple[WriteTarget, ...]:
    return choose_targets(
        snapshot.store,
        snapshot.manifest.base_paths,
        targets=spec.target_bases,
        target_all=spec.target_all,
        storage_options=snapshot.storage_options,
    )


def _check(snapshot: Snapshot, source: pa.Table, spec: MergePlan) -> None:
    names = snapshot.arrow_schema.names
    for key in spec.on:
        if key not in names or key not in source.column_names:
            where = "the table" if key not in names else "the source"
            raise InputError(f"no column {key!r} in {where} to merge on", cure=f"Columns of the table: {', '.join(names)}.")
    given = schema_from_arrow(source.schema, version=snapshot.manifest.file_version)
    refuse_values(snapshot.manifest.schema, source.column_names)
    # Only a new row needs a value in every column; an updated one keeps those that the source lacks.
    check_compatible(snapshot.manifest.schema, given, partial=not spec.insert)


def _without_views(source: pa.Table, schema: pa.Schema) -> pa.Table:
    """The source with views of text and bytes (as Polars has them) in the table's types; Arrow cannot pick rows of views."""
    types = [
        schema.field(field.name).type if "view" in str(field.type) and field.name in schema.names else field.type
        for field in source.schema
    ]
    fields = [field.with_type(kind) for field, kind in zip(source.schema, types, strict=True)]
    return source if types == source.schema.types else source.cast(fields_schema(fields, source.schema.metadata))


def _satisfying(snapshot: Snapshot, source: pa.Table, pairs: _Pairs, spec: MergePlan) -> _Pairs:
    """The pairs for which the update's condition is true."""
    if spec.condition is None or len(pairs.target) == 0:
        return pairs
    target = _old(snapshot, pairs.target, snapshot.arrow_schema.names)
    both = {"source": take(source, arrow_of(pairs.source)), "target": target}
    structs = [pa.chunked_array([_struct(table)]) for table in both.values()]
    (batch,) = pa.table(structs, names=[*both]).combine_chunks().to_batches()
    expr: Expr = parse_filter(spec.condition, batch.schema)
    chosen = true_of(evaluate(expr, batch))
    return _Pairs(pairs.target[chosen], pairs.source[chosen])


def _struct(table: pa.Table) -> Any:
    combined = table.combine_chunks()
    arrays: list[Any] = [combined.column(name).chunk(0) for name in combined.column_names]
    return pa.StructArray.from_arrays(arrays, fields=[*combined.schema])


def _refuse_ambiguous(source: pa.Table, updated: _Pairs, spec: MergePlan) -> None:
    twice = np.flatnonzero(updated.target[1:] == updated.target[:-1])
    if len(twice):
        raise InputError(
            f"several rows of the source match one row of the table: {_key(source, updated.source[twice[0]], spec)}",
            cure='Keep one row per key in the source, or pass when_duplicate="last" to a LanceMergeOperator.',
        )


def _key(source: pa.Table, row: int, spec: MergePlan) -> str:
    return ", ".join(f"{name} = {shown(source.column(name)[int(row)])}" for name in spec.on)


def _union(left: dict[int, Ints], right: dict[int, Ints]) -> dict[int, Ints]:
    if not right:
        return left
    none = np.empty(0, np.int64)
    return {number: np.union1d(left.get(number, none), right.get(number, none)) for number in {*left, *right}}


def _missing(snapshot: Snapshot, pairs: _Pairs, spec: MergePlan) -> dict[int, Ints]:
    """Rows of the table that no row of the source matches and that shall go."""
    if spec.delete_missing is False:
        return {}
    condition = None if spec.delete_missing is True else as_filter(spec.delete_missing, snapshot.arrow_schema)
    matched = by_fragment(np.unique(pairs.target))
    candidates = matching_offsets(snapshot, condition)
    none = np.empty(0, np.int64)
    left = {number: np.setdiff1d(found, matched.get(number, none)) for number, found in candidates.items()}
    return {number: offsets for number, offsets in left.items() if len(offsets)}


def _unmatched(source: pa.Table, pairs: _Pairs) -> pa.Table:
    mask = np.ones(source.num_rows, np.bool_)
    mask[pairs.source] = False
    return keep(source, arrow_of(mask))


def _rows(snapshot: Snapshot, source: pa.Table, updated: _Pairs, inserted: pa.Table) -> Iterator[pa.RecordBatch]:
    """Updated rows in the order of the table, then inserted ones; columns the source lacks keep values, or are null."""
    target = snapshot.arrow_schema
    lacking = [name for name in target.names if name not in source.column_names]
    if len(updated.target):
        new = take(source, arrow_of(updated.source))
        old = _old(snapshot, updated.target, lacking) if lacking else None
        columns = [old.column(name) if old is not None and name in lacking else new.column(name) for name in target.names]
        yield from pa.Table.from_arrays(columns, names=target.names).to_batches()
    if inserted.num_rows:
        nulls: Any = pa.nulls
        columns = [
            nulls(inserted.num_rows, target.field(name).type) if name in lacking else inserted.column(name)
            for name in target.names
        ]
        yield from pa.Table.from_arrays(columns, names=target.names).to_batches()


def _old(snapshot: Snapshot, addresses: Addresses, columns: Sequence[str]) -> pa.Table:
    return take_addresses(snapshot, addresses, plan_projection(snapshot.manifest.schema, [*columns]))
