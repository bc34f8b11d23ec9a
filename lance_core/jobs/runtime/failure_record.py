"""Why a job's last try failed, recorded where the orchestrator reads its result: in the table's staged registry.

::

    _lance_core/staged/{identity}/failure.json    {"type": "SchemaMismatchError", "message": "...", "retryable": false}

In cluster mode nothing else comes back from a Spark driver: not its exit status, not its output.
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


def record_failure(spec: JobSpec, error: BaseException) -> bool:
    """Leave the error behind; False when that is not possible (the error is then in the log only)."""
    return _record(spec.uri, spec.effective_identity, spec.storage_options, error)


def record_refusal(sent: Mapping[str, Any], error: BaseException) -> bool:
    """The same for what was sent as a spec and is none; False where it does not say whose work it was to be."""
    uri, identity, options, asked = (sent.get(name) for name in ("uri", "identity", "storage_options", "asked"))
    if not (isinstance(uri, str) and isinstance(identity, str)):
        return False
    clear = str(asked.get("clear") or "") if isinstance(asked, Mapping) else ""
    on_clear = str(sent.get("on_clear") or DEFAULT_ON_CLEAR.get(str(sent.get("kind")), "fail"))
    known = options if isinstance(options, Mapping) else {}
    return _record(uri, identity_after_clear(identity, clear=clear, on_clear=on_clear), known, error)


def _record(uri: str, identity: str, options: Mapping[str, Any], error: BaseException) -> bool:
    if not identity:
        return False
    try:
        store = resolve_store(uri, reveal_all(options))
        write_record(store, failure_path(identity), {**failure_to_plain(error), "at": time.time()})
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
    return staged_path(identity, "failure")
