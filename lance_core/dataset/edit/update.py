"""Update rows: delete the old ones and write them with new values into new fragments.

::

    update_rows(snapshot, {"price": "price * 2"}, where="kind = 'a'")  -> the new snapshot, {"num_rows_updated": 17}

With stable row ids the new fragments carry the ids their rows had.
"""

from __future__ import annotations

import datetime as dt
import uuid as uuids
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrays import Ints
from lance_core.commit.backoff import DEFAULT_RETRIES, DEFAULT_RETRY_TIMEOUT
from lance_core.commit.naming import data_path
from lance_core.dataset.columns.declared_rules import refuse_values
from lance_core.dataset.edit.select_rows import matching_offsets
from lance_core.dataset.scan.chain import read
from lance_core.dataset.scan.plan import LARGE_BATCH_ROWS
from lance_core.dataset.scan.request import as_filter
from lance_core.dataset.snapshot.fragment_reader import reader_of
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.base_paths import WriteTarget
from lance_core.dataset.write.deletions import stage_both
from lance_core.dataset.write.retry import StagedEdit, commit_with_retry
from lance_core.dataset.write.stage import stage_fragments
from lance_core.errors import InputError
from lance_core.expr import Expr, evaluate_value, parse_value, type_of
from lance_core.file.blob.external import KEEP, ExternalUris
from lance_core.format.fragment import Fragment
from lance_core.format.version import FileVersion
from lance_core.rowids.message import encode_row_ids
from lance_core.rowids.sequence import sequence_of
from lance_core.shortage import ARROW_ERRORS
from lance_core.table.operations.update import Update
from lance_core.table.transaction import Transaction


def update_rows(
    snapshot: Snapshot,
    updates: Mapping[str, str],
    *,
    where: Any = None,
    conflict_retries: int = DEFAULT_RETRIES,
    retry_timeout: dt.timedelta = DEFAULT_RETRY_TIMEOUT,
    version: FileVersion | None = None,
) -> tuple[Snapshot, dict[str, int]]:
    """Give columns new values (SQL over the old ones) in the rows a filter selects, all rows without one.

    `version`: of the files the moved rows are written to; None is the table's own.

    Raises FilterError, InputError for a column that is not there or a value of another type, CommitError.
    """
    committed, edit = commit_with_retry(
        snapshot,
        lambda current: stage_update(current, updates, where=where, version=version),
        retries=conflict_retries,
        timeout=retry_timeout,
    )
    return committed, dict(edit.result)


def stage_update(
    snapshot: Snapshot,
    updates: Mapping[str, str],
    *,
    where: Any = None,
    attempt: str | None = None,
    version: FileVersion | None = None,
) -> StagedEdit:
    """Write the new rows and deletion files of an update and describe its commit."""
    refuse_values(snapshot.manifest.schema, updates)
    values = _parse_updates(snapshot.arrow_schema, updates)
    matched = matching_offsets(snapshot, as_filter(where, snapshot.arrow_schema))
    deletions, fragments = stage_both(
        snapshot,
        matched,
        lambda: stage_moved(snapshot, matched, _updated(snapshot, matched, values), attempt=attempt, version=version),
        attempt=attempt,
    )
    schema = snapshot.manifest.schema
    changed = {item.id for name in updates for item in schema.descend(schema.find(name).id)}
    operation = Update(
        removed_fragment_ids=deletions.removed,
        updated_fragments=deletions.updated,
        new_fragments=tuple(fragments),
        fields_for_preserving_frag_bitmap=tuple(sorted(changed)),
    )
    written = tuple(data_path(file.path) for fragment in fragments for file in fragment.files)
    transaction = Transaction(snapshot.version, str(uuids.uuid4()), operation)
    return StagedEdit(transaction, deletions.files + written, {"num_rows_updated": deletions.num_rows})


def _parse_updates(schema: pa.Schema, updates: Mapping[str, str]) -> dict[str, Expr]:
    if not updates:
        raise InputError("update needs at least one column", cure='Pass {"column": "SQL expression"}.')
    values = {}
    for name, sql in updates.items():
        if name not in schema.names:
            raise InputError(f"no column {name!r} to update", cure=f"Columns: {', '.join(schema.names)}.")
        values[name] = parse_value(str(sql), schema)
        _cast(pa.nulls(0).cast(type_of(values[name], schema)), schema.field(name))
    return values


def _cast(array: Any, field: Any) -> Any:
    try:
        return array.cast(field.type)
    except ARROW_ERRORS as error:
        raise InputError(
            f"column {field.name!r} is {field.type}, but the new value has another type: {error}", cure="CAST it."
        ) from error


def _updated(snapshot: Snapshot, matched: Mapping[int, Ints], values: Mapping[str, Expr]) -> Iterator[pa.RecordBatch]:
    target = snapshot.arrow_schema
    for batch in old_rows(snapshot, matched):
        columns = {name: _cast(evaluate_value(expr, batch), target.field(name)) for name, expr in values.items()}
        arrays = [columns.get(name, old) for name, old in zip(target.names, batch.columns, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=target)


def old_rows(snapshot: Snapshot, matched: Mapping[int, Ints]) -> Iterator[pa.RecordBatch]:
    """All columns of the matched rows, in the order of the table."""
    schema = snapshot.manifest.schema
    for fragment in snapshot.manifest.fragments:
        if fragment.id in matched:
            reader = reader_of(snapshot, fragment)
            rows = read(reader, schema, matched[fragment.id], batch_size=LARGE_BATCH_ROWS)
            yield from (item.batch for item in rows)


def stage_moved(
    snapshot: Snapshot,
    matched: Mapping[int, Ints],
    batches: Iterator[pa.RecordBatch],
    *,
    attempt: str | None,
    version: FileVersion | None = None,
    places: Sequence[WriteTarget] = (),
    external: ExternalUris = KEEP,
) -> list[Fragment]:
    """Write rows that moved (the matched ones, first and in the order of the table) and rows that are new behind them.

    `version` None is the table's own; files go to `places` in turn, or below the table's own root.
    """
    manifest = snapshot.manifest
    version = manifest.file_version if version is None else version
    fragments = stage_fragments(
        snapshot.store,
        batches,
        manifest.schema,
        version=version,
        attempt=attempt,
        places=places,
        external=external,
    )
    if not manifest.uses_stable_row_ids:
        return fragments
    return with_row_ids(fragments, moved_row_ids(snapshot, matched))


def moved_row_ids(snapshot: Snapshot, matched: Mapping[int, Ints]) -> Any:
    """Stable ids (uint64) of the matched rows, in the order of the table."""
    found = [
        reader_of(snapshot, fragment).row_ids[matched[fragment.id]]
        for fragment in snapshot.manifest.fragments
        if fragment.id in matched
    ]
    return np.concatenate(found) if found else np.empty(0, np.uint64)


def with_row_ids(fragments: Sequence[Fragment], ids: Any) -> list[Fragment]:
    """Fragments whose first rows have these ids; rows beyond them get theirs when the transaction is committed."""
    result, start = [], 0
    for fragment in fragments:
        mine = ids[start : start + fragment.physical_rows]
        start += fragment.physical_rows
        result.append(replace(fragment, row_ids=encode_row_ids(sequence_of(mine))) if len(mine) else fragment)
    return result
