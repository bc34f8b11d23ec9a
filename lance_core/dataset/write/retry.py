"""Plan, commit, and plan again after a conflict: shared by delete, update and merge.

::

    plan(snapshot of version 4) -> Edit     commit -> RetryableConflictError     plan(snapshot of version 6) -> Edit   …

What a lost try wrote is removed before the next one.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from lance_core.commit.backoff import DEFAULT_RETRIES, DEFAULT_RETRY_TIMEOUT
from lance_core.commit.loop import commit_transaction
from lance_core.dataset.snapshot.snapshot import Snapshot, snapshot_of
from lance_core.dataset.versions.auto_cleanup import after_commit
from lance_core.dataset.write.base_paths import WriteTarget
from lance_core.dataset.write.stage import discard_fragments
from lance_core.errors import (
    CommitError,
    CommitStateUnknownError,
    IncompatibleConflictError,
    LanceError,
    RetryableConflictError,
)
from lance_core.format.fragment import Fragment
from lance_core.table.transaction import Transaction


@dataclass(frozen=True)
class StagedEdit:
    """A planned edit: its transaction, the files written for it (paths below the table), and what to tell the user.

    `elsewhere` are fragments whose files are in other places (base paths).
    """

    transaction: Transaction
    files: tuple[str, ...] = ()
    result: Mapping[str, Any] = field(default_factory=dict)
    elsewhere: tuple[Fragment, ...] = ()
    places: tuple[WriteTarget, ...] = ()


def commit_with_retry(
    snapshot: Snapshot,
    plan: Callable[[Snapshot], StagedEdit],
    *,
    retries: int = DEFAULT_RETRIES,
    timeout: dt.timedelta = DEFAULT_RETRY_TIMEOUT,
    strict: bool = False,
) -> tuple[Snapshot, StagedEdit]:
    """Commit what `plan` makes of a snapshot; on a retryable conflict plan again on the newest version.

    `strict` plans again whenever the table moved, for edits that new rows of others would change.
    Gives up with the last RetryableConflictError after `retries` more tries or when `timeout` is over. Only an error of ours
    says that nothing was published. A signal may end a commit behind its put, or before a put that goes on by itself: what
    was written stays then, and a cleanup removes it if no version has it.
    """
    deadline = time.monotonic() + timeout.total_seconds()
    current = snapshot
    again = (RetryableConflictError, IncompatibleConflictError) if strict else (RetryableConflictError,)
    for left in range(retries, -1, -1):
        edit = plan(current)
        if snapshot.noted:
            properties = {**snapshot.noted, **edit.transaction.properties}
            edit = replace(edit, transaction=replace(edit.transaction, properties=properties))
        try:
            manifest = commit_transaction(current.store, edit.transaction, strict=strict, opened=current.opened)
        except CommitStateUnknownError:
            raise
        except again as error:
            undo(current, edit)
            if left == 0 or time.monotonic() >= deadline:
                if isinstance(error, RetryableConflictError):
                    raise
                raise _moved(error) from error
        except LanceError:
            undo(current, edit)
            raise
        else:
            committed = Snapshot(current.store, manifest, current.storage_options, noted=snapshot.noted)
            return after_commit(committed), edit
        current = snapshot_of(current.store, storage_options=current.storage_options)
    raise AssertionError("unreachable")


def _moved(error: CommitError) -> RetryableConflictError:
    return RetryableConflictError(
        f"the table changed in the meantime each time the operation was planned, most recently: {error}",
        uri=error.uri,
        version=error.version,
        other_version=error.other_version,
        operation=error.operation,
    )


def undo(snapshot: Snapshot, edit: StagedEdit) -> None:
    """Remove what an edit wrote, wherever it is. Never fails: what stays is garbage."""
    remove_files(snapshot, edit.files)
    discard_fragments(snapshot.store, edit.elsewhere, edit.places)


def remove_files(snapshot: Snapshot, paths: Sequence[str]) -> None:
    """Remove what was written for an edit that was not committed. Never fails: what stays is garbage."""
    for path in paths:
        with suppress(LanceError, OSError):
            snapshot.store.delete(path)
