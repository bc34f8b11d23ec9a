"""Why a job's last try failed, recorded where the orchestrator reads its result: in the table's staged registry.

::

    _lance_core/staged/{identity}/failure.json    {"type": "SchemaMismatchError", "message": "...", "retryable": false}

In cluster mode nothing else comes back from a Spark driver: not its exit status, not its output.

A driver whose JVM was killed below it knows nothing of the job, and YARN may have begun it again: its record says
`"is_final": false`, and counts only after `RESTART_SECONDS` in which no other attempt was begun.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from lance_core.commit.naming import staged_path
from lance_core.errors import LanceError
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.jobs.runtime.error_transport import failure_from_plain, failure_to_plain
from lance_core.jobs.specs.identity import DEFAULT_ON_CLEAR, identity_after_clear
from lance_core.jobs.specs.secret import reveal_all
from lance_core.jobs.specs.spec import JobSpec
from lance_core.publish.records import read_record, write_record

RESTART_SECONDS = 900.0
"""How long a cluster may take to begin a killed driver again."""


def record_failure(spec: JobSpec, error: BaseException, *, is_final: bool = True) -> bool:
    """Leave the error behind; False when that is not possible (the error is then in the log only)."""
    return _record(spec.uri, spec.effective_identity, spec.storage_options, error, is_final=is_final)


def record_refusal(sent: Mapping[str, Any], error: BaseException) -> bool:
    """The same for what was sent as a spec and is none; False where it does not say whose work it was to be."""
    uri, identity, options, asked = (sent.get(name) for name in ("uri", "identity", "storage_options", "asked"))
    if not (isinstance(uri, str) and isinstance(identity, str)):
        return False
    clear = str(asked.get("clear") or "") if isinstance(asked, Mapping) else ""
    on_clear = str(sent.get("on_clear") or DEFAULT_ON_CLEAR.get(str(sent.get("kind")), "fail"))
    known = options if isinstance(options, Mapping) else {}
    return _record(uri, identity_after_clear(identity, clear=clear, on_clear=on_clear), known, error, is_final=True)


def _record(uri: str, identity: str, options: Mapping[str, Any], error: BaseException, *, is_final: bool) -> bool:
    if not identity:
        return False
    try:
        store = resolve_store(uri, reveal_all(options))
        write_record(store, failure_path(identity), {**failure_to_plain(error), "at": time.time(), "is_final": is_final})
    except (LanceError, OSError):
        return False
    return True


def read_failure(store: Store, identity: str) -> LanceError | None:
    """What the last failed try of an identity left, as an error to be raised; None when there is nothing."""
    record = read_record(store, failure_path(identity))
    return None if record is None else failure_from_plain(record)


def has_failed(store: Store, identity: str, *, is_running: bool) -> bool:
    """Whether the last try of an identity failed. `is_running`: an attempt of it is at work, so another try has begun."""
    record = read_record(store, failure_path(identity))
    if record is None:
        return False
    at = record.get("at")
    seconds = time.time() - at if isinstance(at, (int, float)) else RESTART_SECONDS
    return record.get("is_final", True) is not False or (not is_running and seconds >= RESTART_SECONDS)


def clear_failure(store: Store, identity: str) -> None:
    """Forget it; called when a new try begins."""
    with suppress(LanceError, OSError):
        store.delete(failure_path(identity))


def failure_path(identity: str) -> str:
    """Where it is."""
    return staged_path(identity, "failure")
