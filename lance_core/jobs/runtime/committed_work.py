"""Work under an identity that was committed already: the same work is done; other work, or a person's clear, is never just
"done".

::

    same digest, automatic retry         committed: nothing to do
    another digest                       refused, with both digests and both askers
    a person cleared it, on_clear        "again": another identity, once more    "fail": refused    "skip": committed
    it was restored away                 refused: its rows are gone on purpose
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TypeVar

from lance_core.commit.history import look_since
from lance_core.commit.identities import Asked
from lance_core.commit.transactions import transaction_of
from lance_core.errors import IncompatibleConflictError
from lance_core.io.store import Store
from lance_core.jobs.specs.spec import JobSpec
from lance_core.publish.abort import abort_attempt
from lance_core.publish.attempts import find_finished, read_started, started_keys
from lance_core.publish.decisions import CommittedWork, look
from lance_core.publish.history import known_commit
from lance_core.publish.model import StagedTransaction
from lance_core.publish.records import is_same_work
from lance_core.table.operations import Restore

log = logging.getLogger(__name__)

S = TypeVar("S", bound=JobSpec)

NOT_THE_WORK = frozenset(
    {"uri", "identity", "storage_options", "table_reads", "progress_seconds", "asked", "on_clear", "replaces"}
)
"""Spec fields that may differ from one try to the next without making it other work."""


def as_cleared(store: Store, spec: S) -> S:
    """The spec as after a clear, where what is known of its identity was requested by another creation of the DAG run, or
    before a clear that Airflow's numbers alone do not show (a clear, and then more `retries`).

    Any number of tries of one run give the same answer, also when the work was committed once more in the meantime.
    """
    mine = Asked.from_dict(spec.asked)
    if spec.cleared or not spec.identity or not (mine.created or mine.max_tries >= 0):
        return spec
    committed = known_commit(store, look(store, spec.identity))
    theirs = asked_of(store, committed, None if committed is not None else find_finished(store, spec.identity))
    if theirs is None or not mine.is_after_clear(theirs):
        return spec
    since = (
        f"of the run that began {mine.created}" if mine.is_of_another_run(theirs) else f"with {mine.max_tries} tries at most"
    )
    clear = f"{mine.dag_id}/{mine.run_id}/{mine.task_id} {since}"
    log.info("%s was requested before by %s: this counts as a clear", spec.identity, theirs)
    return replace(spec, asked={**spec.asked, "clear": clear})


def asked_of(store: Store, committed: CommittedWork | None, staged: StagedTransaction | None) -> Asked | None:
    """Who requested what was committed, else what is staged; None where that is not known."""
    if committed is not None:
        return Asked.from_dict(committed.asked)
    started = None if staged is None else read_started(store, staged.identity, staged.attempt)
    return None if started is None else Asked.from_dict(started.asked)


def after_clear(store: Store, spec: S) -> S:
    """The spec under the identity that it is committed under. What the former identity has staged alone is aborted.

    Done twice it is the same as once: the clear is in the identity then.
    """
    identity = spec.effective_identity
    if identity == spec.identity:
        return spec
    if known_commit(store, look(store, spec.identity)) is None:
        finished = find_finished(store, spec.identity)
        attempts = [
            *(attempt for _, attempt in started_keys(store, spec.identity)),
            *([] if finished is None else [finished.attempt]),
        ]
        for attempt in dict.fromkeys(attempts):
            log.info("aborting attempt %s of %s because its task was cleared", attempt, spec.identity)
            abort_attempt(store, spec.identity, attempt, by="a cleared task")
    return replace(spec, identity=identity, on_clear="fail")


def is_cleared(store: Store, spec: JobSpec, staged: StagedTransaction) -> bool:
    """A person who clears a task wants its work done again: what an earlier run has staged and not committed gives way."""
    if not spec.cleared:
        return False
    asked = asked_of(store, None, staged)
    return asked is None or asked.clear != spec.cleared


def require_same_work(store: Store, spec: JobSpec, committed: CommittedWork, *, digest: str) -> None:
    """IncompatibleConflictError when an identity that was committed must not count as this work."""
    mine, theirs = Asked.from_dict(spec.asked), Asked.from_dict(committed.asked)
    if spec.cleared and spec.cleared != theirs.clear:
        if spec.clear_policy == "skip":
            return
        again = "its DAG run was deleted and created again" if mine.is_of_another_run(theirs) else "its task was cleared"
        raise _refusal(store, spec, committed, again, 'Pass on_clear="again" to publish it once more, or "skip".')
    if committed.digest and not is_same_work(committed.digest, digest):
        raise _refusal(
            store,
            spec,
            committed,
            f"its work differs: digest {committed.digest} of {theirs}, now digest {digest} of {mine}",
            'Use another identity for the new work (key=, idempotency_key=), or clear its task with on_clear="again".',
        )
    restored = _restored_away(store, committed.version)
    if restored:
        raise _refusal(
            store,
            spec,
            committed,
            f"version {restored} restored an older version, which removed its rows",
            'To load the rows again, clear the task with on_clear="again" or use another identity.',
        )


def _refusal(store: Store, spec: JobSpec, committed: CommittedWork, why: str, cure: str) -> IncompatibleConflictError:
    return IncompatibleConflictError(
        f"{store.uri}: {spec.kind} {spec.identity} was committed as version {committed.version}, and {why}",
        uri=store.uri,
        version=committed.version,
        operation=spec.kind,
        cure=cure,
    )


def _restored_away(store: Store, version: int) -> int:
    """The version that restored one before `version`, so that the newest does not come from it; 0 for none."""
    made = {item.manifest.version: transaction_of(store, item) for item in look_since(store, version)}
    number = max(made, default=version)
    while number > version:
        operation = None if (transaction := made.get(number)) is None else transaction.operation
        target = operation.version if isinstance(operation, Restore) else number - 1
        if target < version:
            return number
        number = target
    return 0
