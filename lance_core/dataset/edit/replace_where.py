"""Replace the rows a predicate selects by other rows, in one commit: the idempotent backfill of a day.

::

    replace_rows(snapshot, "day = date '2013-01-02'", table)
    -> the old rows of that day are gone, the new ones are there; run it again and nothing changes

Every new row must satisfy the predicate: else a second run would not replace what the first one wrote. (Ours; the official
library has no such verb. The commit is an Update, which it reads like any other.) And when the table moves in between, the
predicate is evaluated again: of two that fill the same empty day at once, the later one replaces what the earlier one wrote.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from lance_core.arrow import check_compatible, schema_from_arrow
from lance_core.arrow_numpy import numpy_of
from lance_core.commit.naming import data_path
from lance_core.dataset.columns.declared_rules import refuse_values
from lance_core.dataset.edit.select_rows import matching_offsets
from lance_core.dataset.scan.request import as_filter
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.deletions import stage_both
from lance_core.dataset.write.retry import StagedEdit, commit_with_retry
from lance_core.dataset.write.sources import open_source
from lance_core.dataset.write.stage import stage_fragments
from lance_core.errors import InputError
from lance_core.expr import Expr, evaluate
from lance_core.file.blob.external import ExternalUris
from lance_core.table.operations.update import Update
from lance_core.table.transaction import Transaction


def replace_rows(
    snapshot: Snapshot, predicate: Any, data: Any, schema: pa.Schema | None = None
) -> tuple[Snapshot, dict[str, int]]:
    """Delete the rows `predicate` selects and append `data`, in one commit.

    The data is held in memory, because a conflict may require writing it again. Raises InputError when a new
    row does not satisfy the predicate, SchemaMismatchError, FilterError, CommitError; the table is as it was then.
    """
    source = open_source(data, schema)
    rows = pa.Table.from_batches([*source.batches], schema=source.schema)
    committed, edit = commit_with_retry(snapshot, lambda current: stage_replace(current, predicate, rows), strict=True)
    return committed, dict(edit.result)


def stage_replace(snapshot: Snapshot, predicate: Any, rows: pa.Table, *, attempt: str | None = None) -> StagedEdit:
    """Write the new rows and the deletion files, and describe the commit."""
    expr = as_filter(predicate, snapshot.arrow_schema)
    if expr is None:
        raise InputError("replace_where needs a predicate", cure='Pass "true" to replace all rows.')
    manifest = snapshot.manifest
    refuse_values(manifest.schema, rows.column_names)
    part = check_compatible(manifest.schema, schema_from_arrow(rows.schema, version=manifest.file_version))
    batches = [*_satisfying(rows, snapshot.arrow_schema, expr, predicate)]
    external = ExternalUris.of(manifest.base_paths, snapshot.storage_options)
    deletions, fragments = stage_both(
        snapshot,
        matching_offsets(snapshot, expr),
        lambda: stage_fragments(
            snapshot.store, batches, part, version=manifest.file_version, attempt=attempt, external=external
        ),
        attempt=attempt,
    )
    operation = Update(
        removed_fragment_ids=deletions.removed,
        updated_fragments=deletions.updated,
        new_fragments=tuple(fragments),
        fields_for_preserving_frag_bitmap=tuple(item.id for item in manifest.schema.fields),
    )
    written = tuple(data_path(file.path) for fragment in fragments for file in fragment.files)
    result = {"num_deleted_rows": deletions.num_rows, "num_inserted_rows": rows.num_rows}
    return StagedEdit(Transaction(snapshot.version, str(uuids.uuid4()), operation), deletions.files + written, result)


def _satisfying(rows: pa.Table, schema: pa.Schema, expr: Expr, predicate: Any) -> Iterator[pa.RecordBatch]:
    """The rows, checked against the predicate; columns they lack count as null."""
    first = 0
    for batch in rows.to_batches():
        known = evaluate(expr, _with_all_columns(batch, schema)).fill_null(False)
        if not numpy_of(known, may_copy=True).all():
            row = first + known.to_pylist().index(False)
            raise InputError(
                f"row {row} of the new data does not satisfy {predicate}",
                cure="Widen the predicate, or omit such rows.",
            )
        first += batch.num_rows
        yield batch


def _with_all_columns(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    nulls: Any = pa.nulls
    arrays = [
        batch.column(field.name) if field.name in batch.schema.names else nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, names=schema.names)
