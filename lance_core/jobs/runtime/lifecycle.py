"""The life of a staging job on the driver: check earlier tries, plan, begin, run, reconcile, finish; or abort.

::

    find_done      has this identity landed, or is it staged and whole?      -> its reference, nothing is written again
    clear_dead     attempts of this identity that never finished             -> aborted, their files found by name
    begin ... run  a new attempt; every file it writes carries its id
    reconcile      rows the tasks read = rows they wrote = rows in fragments, else nothing is staged
    finish         the staged transaction; or, when anything fails, abort: the attempt's files are removed

Killed at any point, the next call starts from the top and leaves each row once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from lance_core.commit.identities import Asked
from lance_core.commit.manifests import latest_version, load_manifest, version_numbers
from lance_core.commit.references import data_paths
from lance_core.errors import CommitStateUnknownError, IncompatibleConflictError, LanceError, NotFoundError
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.jobs.runtime.failure_record import clear_failure
from lance_core.jobs.runtime.landed_reference import landed_reference
from lance_core.jobs.runtime.landed_work import (
    NOT_THE_WORK,
    after_clear,
    find_landing,
    require_same_work,
    withdrawn_by_clear,
)
from lance_core.jobs.runtime.lost_files import explain_lost_file
from lance_core.jobs.runtime.other_content import warn_of_other_content, with_files_of
from lance_core.jobs.runtime.progress import Ticker, clear_progress, list_notes, read_progress, started_tasks
from lance_core.jobs.runtime.protocols import JobSource, Plan, Runner, StagedOperation, TableState, TaskResult
from lance_core.jobs.specs.identity import random_identity
from lance_core.jobs.specs.spec import JobSpec
from lance_core.publish.model import Attempt, StagedTransaction
from lance_core.publish.record_types import work_digest
from lance_core.publish.registry.attempts import find_finished, started_attempts
from lance_core.publish.registry.incarnation import incarnation_of
from lance_core.publish.registry.landings import find_landed
from lance_core.publish.registry.ledger import Landing, record_landed
from lance_core.publish.staging.abort import abort_attempt
from lance_core.publish.staging.in_use import remove_unused
from lance_core.publish.staging.remove import ITSELF, remove_attempt
from lance_core.publish.staging.staged import begin_attempt, find_staged, finish_attempt, renew_lease
from lance_core.table.transaction import Transaction

log = logging.getLogger(__name__)

LEASE_SECONDS = 3600.0
"""How long a silent driver's attempt is left alone by garbage collection; the driver renews it while it lives."""
_RENEW_SECONDS = 300.0

SECOND_PASS = 1_000_000
"""Partition numbers of a plan's second pass begin here, those of a third at twice that."""

S = TypeVar("S", bound=JobSpec)
PlanJob = Callable[[S, TableState, Runner], Plan | None]
"""None: there is nothing to do."""


@dataclass(frozen=True, slots=True)
class Done:
    """Work that need not be done again: `version` when it has landed, else it waits for its commit."""

    staged: StagedTransaction
    version: int | None = None
    landing: Landing | None = None


def work_of(spec: JobSpec) -> dict[str, Any]:
    """What makes two specs the same work: no secrets, no identity. Goes into the attempt's record."""
    return {name: value for name, value in spec.to_plain(redact=True).items() if name not in NOT_THE_WORK}


def find_done(store: Store, spec: JobSpec) -> Done | None:
    """Whether this spec's identity has landed or is staged and whole. CommitStateUnknownError when it is unknown.

    IncompatibleConflictError when it landed with other work, or when its rows were restored away: see `landed_work`.
    """
    if not spec.identity:
        return None
    work = work_of(spec)
    landing = find_landing(store, spec)
    finished = find_finished(store, spec.identity)
    if landing is None and finished is not None:
        # Only a finished attempt can have been committed, so only then may the log know more than the ledger.
        version = find_landed(store, spec.identity, finished.read_version)
        landing = None if version is None else find_landing(store, spec)
    if landing is not None:
        require_same_work(store, spec, landing, digest=work_digest(work))
        reference = landed_reference(store.uri, landing.identity, landing.version, operation=spec.kind)
        return Done(finished or reference, landing.version, landing)
    staged = find_staged(store, spec.identity, spec=work)
    if staged is None or _give_up_unjudgeable(store, staged) or withdrawn_by_clear(store, spec, staged):
        return None
    return Done(staged)


def _give_up_unjudgeable(store: Store, staged: StagedTransaction) -> bool:
    """Whether somebody pruned versions since the one it was planned on: no commit could judge it, so it is staged again."""
    known = set(version_numbers(store))
    if known.issuperset(range(staged.read_version + 1, max(known, default=0))):
        return False
    log.info(
        "%s was planned on version %d, and later versions were removed since: staging again",
        staged.identity,
        staged.read_version,
    )
    abort_attempt(store, staged.identity, staged.attempt)
    return True


def clear_dead(store: Store, identity: str, *, spare: str = "") -> list[str]:
    """Abort every attempt of an identity that never finished, but the one to `spare`; returns the files removed.

    A zombie of such an attempt that still runs is refused when it tries to finish, or handed the reference of its retry.
    """
    removed: list[str] = []
    finished = find_finished(store, identity)
    for attempt in started_attempts(store, identity):
        if attempt == spare or (finished is not None and finished.attempt == attempt):
            continue
        # First: once the attempt's records are gone, nobody would find them any more.
        clear_progress(store, attempt)
        # One that a commit was about to publish stays until its identity has landed. A zombie may still write.
        files = remove_attempt(store, identity, attempt, by="a new attempt", landed_too=True, unfinished_only=True).files
        log.info("attempt %s of %s has died: %d of its files removed", attempt, identity, len(files))
        removed += files
    return removed


def stage(spec: S, runner: Runner, plan_job: PlanJob[S]) -> StagedTransaction:
    """Carry out a staging spec exactly once; the reference to what waits for its commit.

    Raises what planning refuses (nothing was written then), what a task refused, or what the engine raised (the attempt is
    aborted then). RetryableConflictError when the attempt was withdrawn in the meantime.
    """
    if not spec.identity:
        spec = spec.with_identity(random_identity())
    store = resolve_store(spec.uri, spec.resolved_options())
    spec = after_clear(store, spec)
    done = find_reference(store, spec)
    return done if done is not None else stage_new(store, spec, runner, plan_job)


def find_reference(store: Store, spec: JobSpec) -> StagedTransaction | None:
    """Return the reference to work that is done already, None when it is to be done. It looks at the store once."""
    done = find_done(store, spec)
    if done is None:
        return None
    where = f"landed as version {done.version}" if done.version is not None else "already staged and complete"
    log.info("%s %s: %s, nothing to do", spec.kind, spec.identity, where)
    warn_of_other_content(store, spec, done.staged, done.landing)
    return done.staged


def stage_new(store: Store, spec: S, runner: Runner, plan_job: PlanJob[S]) -> StagedTransaction:
    """`stage` for a caller that has found out by `find_reference` that the work is not done."""
    clear_failure(store, spec.identity)
    clear_dead(store, spec.identity)
    plan = plan_job(spec, look_at(store, spec), runner)
    if plan is None:
        return _note_landed(store, spec)
    attempt, is_closing = open_attempt(with_files_of(plan.source, spec), plan.table), False
    try:
        on_tick = on_tick_of(store, attempt)
        results = [*runner.run(plan.make_work(attempt), plan.source, plan.shape, on_tick)]
        if plan.spools:
            written = sum(result.rows for result in results)
            reconcile(results, fragment_rows=written, source_rows=plan.source.num_rows)
        for more in plan.then:
            made = more.make(attempt, results)
            if made is not None:
                results += runner.run(made[1], made[0], replace(plan.shape, num_partitions=None), on_tick)
        is_closing = True
        return close_attempt(
            store,
            attempt,
            results,
            conclude=plan.conclude,
            properties=plan.properties,
            source=None if plan.spools else plan.source,
            spooled=SECOND_PASS if plan.spools else 0,
        )
    except BaseException as error:
        # BaseException: a signal that stops the driver must not leave files behind either.
        lost = explain_lost_file(store, attempt, error)
        abort_after(store, attempt, error, was_closing=is_closing)
        if lost is not None:
            raise lost from error
        raise


def open_attempt(spec: JobSpec, table: TableState, *, adopts: Sequence[str] = (), instead_of: str = "") -> Attempt:
    """Put the attempt on record, before its first file, with the earlier ones that it is about to adopt."""
    attempt = begin_attempt(
        table.store,
        identity=spec.identity,
        spec=work_of(spec),
        read_version=table.version,
        base="" if table.manifest is None else table.manifest.transaction_file,
        lease_seconds=LEASE_SECONDS,
        asked=Asked.from_dict(spec.asked),
        adopts=adopts,
        instead_of=instead_of,
    )
    log.info(
        "%s %s as attempt %s on version %d of %s", spec.kind, spec.identity, attempt.attempt, attempt.read_version, spec.uri
    )
    return attempt


def close_attempt(
    store: Store,
    attempt: Attempt,
    results: Sequence[TaskResult],
    *,
    conclude: Callable[[Sequence[TaskResult]], StagedOperation],
    properties: Mapping[str, str],
    source: JobSource | None = None,
    spooled: int = 0,
) -> StagedTransaction:
    """Reconcile the counts and stage the transaction. LanceError when the counts do not agree; nothing is staged then.

    Partitions below `spooled` only put rows aside: their files go.
    """
    with Ticker(_RENEW_SECONDS, lambda: _renew_quietly(store, attempt)):
        staged, notes = _close(store, attempt, results, conclude, properties, source, spooled)
    # Only now: of 100,000 tasks this takes a while. What is left when the driver dies here is removed by garbage collection.
    clear_progress(store, attempt.attempt, notes)
    log.info(
        "staged %s: %d rows, %d fragments, %d bytes",
        staged.identity,
        staged.num_rows,
        staged.num_fragments,
        staged.num_bytes,
    )
    return staged


def _close(
    store: Store,
    attempt: Attempt,
    results: Sequence[TaskResult],
    conclude: Callable[[Sequence[TaskResult]], StagedOperation],
    properties: Mapping[str, str],
    source: JobSource | None,
    spooled: int,
) -> tuple[StagedTransaction, Sequence[str] | None]:
    """The staged transaction, and the names of what the tasks left if they were checked."""
    outcome = conclude(results)
    results = [result for result in results if result.partition >= spooled]
    rows = reconcile(results, fragment_rows=outcome.num_rows, source_rows=None if source is None else source.num_rows)
    transaction = Transaction(
        read_version=attempt.read_version, uuid=attempt.identity, operation=outcome.operation, properties=dict(properties)
    )
    kept = data_paths(transaction, writers=(attempt.attempt,))
    notes = None
    if spooled:
        remove_unused(store, attempt.attempt, keep=frozenset(kept))
    else:
        notes = list_notes(store, attempt.attempt)
        _remove_losers(store, attempt, results, notes, kept=kept)
    size = sum(result.size for result in results)
    staged = finish_attempt(
        store,
        attempt,
        transaction,
        rows=rows,
        bytes=size,
        fragments=outcome.num_fragments,
        rows_deleted=outcome.num_deleted,
    )
    return staged, notes


def _renew_quietly(store: Store, attempt: Attempt) -> None:
    with suppress(LanceError, OSError):  # an attempt that was withdrawn is refused when it finishes
        renew_lease(store, attempt)


def look_at(store: Store, spec: JobSpec) -> TableState:
    """The table now; a place that holds something else than a table is refused."""
    try:
        manifest = load_manifest(store)
    except NotFoundError:
        _refuse_foreign(store)
        return TableState(store, spec.uri, None)
    return TableState(store, spec.uri, manifest)


def reconcile(results: Sequence[TaskResult], *, fragment_rows: int, source_rows: int | None = None) -> int:
    """The number of rows, when everyone who counted counted the same. LanceError (nothing is staged then) otherwise."""
    read, written = sum(result.rows_read for result in results), sum(result.rows for result in results)
    counts = {
        "rows according to the files of the source": source_rows,
        "rows read by the tasks": read,
        "rows written by the tasks": written,
        "rows in the fragments": fragment_rows,
    }
    known = {name: count for name, count in counts.items() if count is not None}
    if len(set(known.values())) > 1:
        text = ", ".join(f"{name}: {count:,}" for name, count in known.items())
        raise LanceError(
            f"the row counts differ, so nothing is staged: {text}",
            cure="Check whether the source changed while it was read.",
        )
    return written


def _remove_losers(
    store: Store, attempt: Attempt, results: Sequence[TaskResult], notes: Sequence[str], *, kept: Iterable[str]
) -> None:
    """Files of tasks that began and whose result does not count. A folder of data is listed only when there are such."""
    counted = {(result.partition, result.task_attempt) for result in results}
    losers = started_tasks(notes) - counted
    if losers:
        removed = remove_unused(store, attempt.attempt, keep=frozenset(kept))
        log.info("%d tasks were superseded; %d of their files removed", len(losers), len(removed))


def on_tick_of(store: Store, attempt: Attempt) -> Callable[[], None]:
    """What a runner calls now and then: a log line, and the attempt's lease."""
    due = time.monotonic() + _RENEW_SECONDS

    def tick() -> None:
        nonlocal due
        with suppress(LanceError, OSError):  # the job does not fail for want of a log line
            log.info("%s: %s", attempt.attempt, read_progress(store, attempt.attempt).line())
            if time.monotonic() >= due:
                renew_lease(store, attempt)
                due = time.monotonic() + _RENEW_SECONDS

    return tick


def abort_after(store: Store, attempt: Attempt, error: BaseException, *, was_closing: bool = True) -> None:
    """Remove what an attempt wrote, unless it may have been published. Never raises: the error that led here matters.

    `was_closing`: whether `close_attempt` was called, so that the attempt may count as finished.
    """
    try:
        removed = remove_attempt(store, attempt.identity, attempt.attempt, by=ITSELF, never_finished=not was_closing).files
        log.warning("attempt %s aborted after %s; %d files removed", attempt.attempt, type(error).__name__, len(removed))
    except (CommitStateUnknownError, IncompatibleConflictError) as refusal:
        log.warning("attempt %s is kept: %s", attempt.attempt, refusal)
    except (LanceError, OSError) as failure:
        log.warning("attempt %s could not be cleaned up (%s); `lance staged gc` will", attempt.attempt, failure)
    clear_progress(store, attempt.attempt)


_OURS = (
    "_lance_core/",
    "_versions/",
    "_transactions/",
    "_deletions/",
    "_indices/",
    "_refs/",
    "data/",
    "tree/",
    ".lance-reserved",
)


def _refuse_foreign(store: Store) -> None:
    for entry in store.list(""):
        if not entry.path.startswith(_OURS):
            raise NotFoundError(
                f"{store.uri} is not a Lance table and not empty (it holds {entry.path})",
                uri=store.uri,
                cure="Check the uri; a new table needs an empty folder.",
            )


def note_nothing_to_do(store: Store, spec: JobSpec) -> StagedTransaction:
    """The identity counts as landed at the version that is there: its work has nothing (more) to do."""
    clear_dead(store, spec.identity)
    return _note_landed(store, spec)


def _note_landed(store: Store, spec: JobSpec) -> StagedTransaction:
    version = latest_version(store)
    record_landed(
        store,
        spec.identity,
        version=version,
        transaction="",
        digest=work_digest(work_of(spec)),
        asked=spec.asked,
        incarnation=incarnation_of(store),
    )
    log.info("%s %s: nothing left to do at version %d", spec.kind, spec.uri, version)
    return landed_reference(store.uri, spec.identity, version, operation=spec.kind)
