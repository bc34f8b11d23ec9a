"""Why a job's last try failed, recorded where the orchestrator reads its result: in the table's staged registry.

::

    _lance_core/staged/{identity}/failure.json    {"type": "SchemaMismatchError", "message": "...", "retryable": false}

In cluster mode nothing else comes back from a Spark driver: not its exit status, not its output.
"""

from __future__ import annotations

import time
from contextlib import suppress

from lance_core.commit.naming import staged_folder
from lance_core.commit.records import read_record, write_record
from lance_core.errors import LanceError
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.jobs.runtime.error_transport import failure_from_plain, failure_to_plain
from lance_core.jobs.specs.spec import JobSpec


def record_failure(spec: JobSpec, error: BaseException) -> bool:
    """Leave the error behind; False when that is not possible (the error is then in the log only)."""
    if not spec.identity:
        return False
    try:
        store = resolve_store(spec.uri, spec.resolved_options())
        write_record(store, failure_path(spec.effective_identity), {**failure_to_plain(error), "at": time.time()})
    except (LanceError, OSError):
        return False
    return True


def read_failure(store: Store, identity: str) -> LanceError | None:
    """What the last failed try of an identity left, as an error to be raised; None when there is nothing."""
    record = read_record(store, failure_path(identity))
    return None if record is None else failure_from_plain(record)


def clear_failure(store: Store, identity: str) -> None:
    """Forget it; called when a new try begins."""
    with suppress(LanceError, OSError):
        store.delete(failure_path(identity))


def failure_path(identity: str) -> str:
    """Where it is."""
    return f"{staged_folder(identity)}/failure.json"
