"""Delete rows: write new deletion files, without changing data files; a fragment without live rows is dropped.

::

    delete_rows(snapshot, "id < 100")     -> the new snapshot, {"num_deleted_rows": 100}
"""

from __future__ import annotations

import datetime as dt
import uuid as uuids
from collections.abc import Callable
from typing import Any

from lance_core.commit.backoff import DEFAULT_RETRIES, DEFAULT_RETRY_TIMEOUT
from lance_core.dataset.edit.select_rows import matching_offsets
from lance_core.dataset.scan.request import as_filter
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.deletions import stage_deletions
from lance_core.dataset.write.retry import StagedEdit, commit_with_retry
from lance_core.errors import InputError
from lance_core.table.operations.delete import Delete
from lance_core.table.transaction import Transaction


def delete_rows(
    snapshot: Snapshot,
    predicate: Any,
    *,
    conflict_retries: int = DEFAULT_RETRIES,
    retry_timeout: dt.timedelta = DEFAULT_RETRY_TIMEOUT,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[Snapshot, dict[str, int]]:
    """Delete the rows a filter selects (null does not). Raises FilterError, CommitError.

    `progress(rows checked, rows to check)` is called during the search.
    """
    committed, edit = commit_with_retry(
        snapshot,
        lambda current: stage_delete(current, predicate, progress=progress),
        retries=conflict_retries,
        timeout=retry_timeout,
    )
    return committed, dict(edit.result)


def stage_delete(
    snapshot: Snapshot,
    predicate: Any,
    *,
    attempt: str | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> StagedEdit:
    """Write the deletion files of a delete and describe its commit."""
    expr = as_filter(predicate, snapshot.arrow_schema)
    if expr is None:
        raise InputError("delete needs a predicate", cure='Pass "true" to delete all rows.')
    deletions = stage_deletions(snapshot, matching_offsets(snapshot, expr, progress=progress), attempt=attempt)
    operation = Delete(deletions.updated, deletions.removed, str(predicate))
    transaction = Transaction(snapshot.version, str(uuids.uuid4()), operation)
    return StagedEdit(transaction, deletions.files, {"num_deleted_rows": deletions.num_rows})
