"""The life of a staging job on the driver: check earlier tries, plan, begin, run, reconcile, finish; or abort.

::

    find_done      was this identity committed, or is it staged and whole?      -> its reference, nothing is written again
    clear_before   attempts of this identity that never finished             -> aborted, their files found by name
    adopt          what one of them has put on record part by part           -> kept where its kind resumes (`PartPlan`)
    begin ... run  a new attempt; every file it writes carries its id
    reconcile      rows the tasks read = rows they wrote = rows in fragments, else nothing is staged
    finish         the staged transaction; or, when anything fails, abort: the attempt's files are removed

Killed at any point, the next call starts from the top and leaves each row once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from lance_core.commit import naming
from lance_core.commit.identities import Asked
from lance_core.commit.manifests import latest_version, load_manifest, version_numbers
from lance_core.commit.put_manifest import require_put_if_absent
from lance_core.commit.references import data_paths
from lance_core.errors import (
    CommitStateUnknownError,
    IncompatibleConflictError,
    LanceError,
    NotFoundError,
    RetryableConflictError,
    StoreError,
)
from lance_core.io.paths import UNFINISHED_GONE
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.jobs.runtime.committed_work import NOT_THE_WORK, after_clear, is_cleared, require_same_work
from lance_core.jobs.runtime.failure_record import clear_failure, failure_path
from lance_core.jobs.runtime.other_content import warn_of_other_content, with_files_of
from lance_core.jobs.runtime.progress import Ticker, clear_progress, list_notes, read_progress, started_tasks
from lance_core.jobs.runtime.protocols import JobSource, PartPlan, Plan, Runner, StagedOperation, TableState, TaskResult
from lance_core.jobs.specs.identity import random_identity
from lance_core.jobs.specs.spec import JobSpec
from lance_core.publish.abort import ITSELF, AbortRequest, abort_attempt, remove_attempt, remove_attempts, remove_unused
from lance_core.publish.attempts import STARTED, find_finished, is_over, read_started, started_keys
from lance_core.publish.decisions import CommittedWork, last_of, look, say_committed
from lance_core.publish.history import find_committed, known_commit
from lance_core.publish.model import Attempt, StagedTransaction
from lance_core.publish.records import is_same_work, work_digest
from lance_core.publish.stage import adopt_unfinished, begin, committed_reference, finish_attempt, is_whole, renew_lease
from lance_core.publish.table_id import require_known_records, table_id_of
from lance_core.table.transaction import Transaction

log = logging.getLogger(__name__)

LEASE_SECONDS = 3600.0
"""How long a silent driver's attempt is left alone by garbage collection; the driver renews it while it lives."""
_RENEW_SECONDS = 300.0

SECOND_PASS = 1_000_000
"""Partition numbers of a plan's second pass begin here, those of a third at twice that."""

S = TypeVar("S", bound=JobSpec)
PlanJob = Callable[[S, TableState, Runner], Plan | PartPlan | None]
"""None: there is nothing to do."""


class NothingToDoError(Exception):
    """Raised by a plan's `conclude`: the work is done as it is, and makes no version."""


@dataclass(frozen=True, slots=True)
class Done:
    """Work that need not be done again: `version` when it was committed, else it waits for its commit."""

    staged: StagedTransaction
    version: int | None = None
    committed: CommittedWork | None = None


def work_of(spec: JobSpec) -> dict[str, Any]:
    """What makes two specs the same work: no secrets, no identity. Goes into the attempt's record."""
    return {name: value for name, value in spec.to_plain(redact=True).items() if name not in NOT_THE_WORK}


def find_done(store: Store, spec: JobSpec) -> Done | None:
    """Whether this spec's identity was committed or is staged and whole. CommitStateUnknownError when it is unknown.

    IncompatibleConflictError when it was committed with other work, or its rows were restored away: see `committed_work`.
    """
    if not spec.identity:
        return None
    work, state = work_of(spec), look(store, spec.identity)
    committed = known_commit(store, state)
    staged = state.finished
    if committed is None and staged is not None and staged.attempt not in spec.replaces:
        if is_whole(store, staged, spec=work) and not _is_unjudgeable(store, staged) and not is_cleared(store, spec, staged):
            return Done(staged)
        # It is to give way, unless it was committed and the commit was killed before it could say so.
        version = find_committed(store, spec.identity, staged.read_version)
        committed = None if version is None else known_commit(store, look(store, spec.identity))
        if committed is None and is_whole(store, staged, spec=work):
            abort_attempt(store, staged.identity, staged.attempt, by="a new attempt")
    if committed is None:
        return None
    require_same_work(store, spec, committed, digest=work_digest(work))
    return Done(committed_reference(store.uri, committed, operation=spec.kind), committed.version, committed)


def _is_unjudgeable(store: Store, staged: StagedTransaction) -> bool:
    """Whether somebody pruned versions since the one it was planned on: no commit could judge it, so it is staged again."""
    known = set(version_numbers(store))
    if known.issuperset(range(staged.read_version + 1, max(known, default=0))):
        return False
    what = "%s was planned on version %d, and later versions were removed since: staging again"
    log.info(what, staged.identity, staged.read_version)
    return True


def clear_before(store: Store, spec: JobSpec, *, resumes: bool = False) -> Attempt | None:
    """What earlier tries have left: a failure, and attempts that have not finished. One listing where there is nothing.

    `resumes`: the newest of those that are of this very work, on a version that can still be read, is spared and returned.
    """
    names = store.list_names(f"{naming.STAGED}/")
    if failure_path(spec.identity).rpartition("/")[2] in names:
        clear_failure(store, spec.identity)
    keys = [key for key in (naming.parse_attempt_record(name, STARTED) for name in names) if key is not None]
    keys = [key for key in keys if key[0] == spec.identity]
    former = _find_former(store, spec, keys) if resumes and keys else None
    _abort_dead(store, spec.identity, [key for key in keys if former is None or key[1] != former.attempt])
    return former


def _find_former(store: Store, spec: JobSpec, keys: Sequence[tuple[str, str]]) -> Attempt | None:
    state, digest = look(store, spec.identity), work_digest(work_of(spec))
    begun = [read_started(store, *key) for key in keys if state.is_open(key[1])]
    alike = [attempt for attempt in begun if attempt is not None and is_same_work(attempt.digest, digest)]
    there = version_numbers(store) if alike else ()
    former = max((item for item in alike if item.read_version in there), key=lambda item: item.started, default=None)
    if former is not None:
        log.info("%s %s: going on with what attempt %s has finished", spec.kind, spec.uri, former.attempt)
    return former


def clear_dead(store: Store, identity: str, *, spare: str = "") -> list[str]:
    """Abort every attempt of an identity that has not finished, but the one to `spare`; returns the files removed.

    A stale writer of such an attempt that still runs is refused when it tries to finish, or handed the reference of its
    retry.
    """
    return _abort_dead(store, identity, [key for key in started_keys(store, identity) if key[1] != spare])


def _abort_dead(store: Store, identity: str, keys: Sequence[tuple[str, str]]) -> list[str]:
    if not keys:
        return []
    finished = find_finished(store, identity)
    keys = [key for key in keys if finished is None or finished.attempt != key[1]]
    for _, attempt in keys:
        # First: once the attempt's records are gone, nobody would find them any more.
        clear_progress(store, attempt)
    removed = remove_attempts(store, keys, AbortRequest("a new attempt", committed_too=True)).files
    if removed:
        log.info("dead attempts of %s: %d of their files removed", identity, len(removed))
    return [*removed]


def stage(spec: S, runner: Runner, plan_job: PlanJob[S], *, resumes: bool = False) -> StagedTransaction:
    """Carry out a staging spec exactly once; the reference to what waits for its commit.

    `resumes`: a try goes on with what an earlier one that did not finish has put on record (see `PartPlan`).

    Raises what planning refuses (nothing was written then), what a task refused, or what the engine raised (see `ending`).
    RetryableConflictError when the attempt was withdrawn in the meantime.
    """
    if not spec.identity:
        spec = spec.with_identity(random_identity())
    store = resolve_store(spec.uri, spec.resolved_options())
    spec = after_clear(store, spec)
    # Free: without a decision of its own; whether one is folded is asked behind the attempt's record.
    is_free = not resumes and last_of(store, spec.identity) is None
    done = None if is_free else find_reference(store, spec)
    if done is not None:
        return done
    table = look_at(store, spec)
    table = replace(table, former=clear_before(store, spec, resumes=resumes))
    plan = plan_job(spec, table, runner)
    if plan is None:
        return _note_committed(store, spec) if table.former is None else note_nothing_to_do(store, spec)
    attempt = _begin(spec, plan, is_free=is_free)
    if is_free and not attempt.is_first:
        done = find_reference(store, spec)
        if done is not None:
            abort_after(store, attempt, NothingToDoError())
            return done
    try:
        with ending(store, attempt, may_resume=resumes):
            return _carry_out(store, runner, plan, attempt)
    except NothingToDoError:
        return note_nothing_to_do(store, spec, attempt=attempt.attempt)


def find_reference(store: Store, spec: JobSpec) -> StagedTransaction | None:
    """Return the reference to work that is done already, None when it is to be done. It looks at the store once."""
    done = find_done(store, spec)
    if done is None:
        return None
    where = f"committed as version {done.version}" if done.version is not None else "already staged and complete"
    log.info("%s %s: %s, nothing to do", spec.kind, spec.identity, where)
    warn_of_other_content(store, spec, done.staged, done.committed)
    return done.staged


def _begin(spec: JobSpec, plan: Plan | PartPlan, *, is_free: bool) -> Attempt:
    """The attempt of a plan, with the parts of an earlier one that it goes on with."""
    store, former = plan.table.store, plan.table.former
    if former is None or not isinstance(plan, PartPlan):
        return open_attempt(with_files_of(plan.source, spec), plan.table, is_free=is_free)
    spec = with_files_of(plan.source, spec, known=plan.read_before)
    attempt = adopt_unfinished(store, open_attempt(spec, plan.table, adopts=(former.attempt, *former.adopts)))
    if attempt.adopts:
        plan.adopt(attempt)
    clear_dead(store, spec.identity, spare=attempt.attempt)
    return attempt


def _carry_out(store: Store, runner: Runner, plan: Plan | PartPlan, attempt: Attempt) -> StagedTransaction:
    on_tick, results = on_tick_of(store, attempt), list[TaskResult]()
    if isinstance(plan, Plan):
        results += runner.run(plan.make_work(attempt), plan.source, plan.shape, on_tick)
        if plan.spools:
            written = sum(result.rows for result in results)
            reconcile(results, fragment_rows=written, source_rows=plan.source.num_rows)
    for more in plan.then:
        made = more.make(attempt, results)
        if made is not None:
            results += runner.run(made[1], made[0], replace(plan.shape, num_partitions=None), on_tick)
    if isinstance(plan, PartPlan):
        return plan.finish(attempt)
    return close_attempt(
        store,
        attempt,
        results,
        conclude=plan.conclude,
        properties=plan.properties,
        source=None if plan.spools else plan.source,
        spooled=SECOND_PASS if plan.spools else 0,
    )


@contextmanager
def ending(store: Store, attempt: Attempt, *, may_resume: bool = False) -> Iterator[None]:
    """An attempt that fails is aborted; where a further try may resume it, only if none can bring it to an end."""
    try:
        yield
    except NothingToDoError:
        raise
    except BaseException as error:
        # BaseException: a signal that stops the driver must not leave files behind either.
        lost = _explain_lost_file(store, attempt, error)
        if lost is not None or not may_resume or (isinstance(error, LanceError) and not error.retryable):
            abort_after(store, attempt, error)
        if lost is not None:
            raise lost from error
        raise


def _explain_lost_file(store: Store, attempt: Attempt, error: BaseException) -> RetryableConflictError | None:
    """What to raise where a file vanished because the attempt was aborted, or the version it read was removed: both end well
    when the task runs again, so neither may look like a damaged table. Ask before the attempt's records go."""
    if not (isinstance(error, NotFoundError) or (isinstance(error, StoreError) and error.operation == UNFINISHED_GONE)):
        return None
    who, version = f"attempt {attempt.attempt} of {attempt.identity}", attempt.read_version
    try:
        if is_over(store, attempt.identity, attempt.attempt):
            return RetryableConflictError(
                f"{store.uri}: {who} was aborted while it ran, by a further try of its task, an abort or garbage "
                f"collection, and its files are gone ({error})",
                uri=store.uri,
                cure="Run the task again: it first checks what the other try has done.",
            )
        if version and version not in version_numbers(store):
            return RetryableConflictError(
                f"{store.uri}: a cleanup removed version {version} while {who} read it ({error})",
                uri=store.uri,
                version=version,
                cure="Run the task again, and keep versions for longer than its work takes.",
            )
    except LanceError:
        pass  # the store fails: the error itself says more
    return None


def open_attempt(spec: JobSpec, table: TableState, *, adopts: Sequence[str] = (), is_free: bool = False) -> Attempt:
    """Put the attempt on record, before its first file, with the earlier ones that it is about to adopt.

    PreconditionError for a store without conditional put: it could not finish there.
    """
    require_put_if_absent(table.store)
    attempt = begin(
        table.store,
        Attempt(
            identity=spec.identity,
            spec=work_of(spec),
            read_version=table.version,
            base="" if table.manifest is None else table.manifest.transaction_file,
            lease_seconds=LEASE_SECONDS,
            asked=Asked.from_dict(spec.asked).to_dict(),
            adopts=tuple(adopts),
            replaces=spec.replaces,
        ),
        is_free=is_free,
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
    notes: Sequence[str] | None = None
    with Ticker(_RENEW_SECONDS, lambda: _renew_quietly(store, attempt)):
        outcome = conclude(results)
        results = [result for result in results if result.partition >= spooled]
        rows = reconcile(results, fragment_rows=outcome.num_rows, source_rows=None if source is None else source.num_rows)
        transaction = Transaction(attempt.read_version, attempt.identity, outcome.operation, properties=dict(properties))
        kept = frozenset(data_paths(transaction, writers=(attempt.attempt,)))
        if spooled:
            remove_unused(store, attempt.attempt, keep=kept)
        else:
            notes = list_notes(store, attempt.attempt) if any(result.has_notes for result in results) else []
            _remove_losers(store, attempt, results, notes, kept=kept)
        size = sum(result.size for result in results)
        staged = finish_attempt(store, attempt, transaction, rows=rows, bytes=size, rows_deleted=outcome.num_deleted)
    # Only now: of 100,000 tasks this takes a while. What is left when the driver dies here is removed by garbage collection.
    clear_progress(store, attempt.attempt, notes)
    log.info("staged %s: %d rows, %d bytes", staged.identity, staged.num_rows, staged.num_bytes)
    return staged


def _renew_quietly(store: Store, attempt: Attempt) -> None:
    with suppress(LanceError, OSError):  # an attempt that was withdrawn is refused when it finishes
        renew_lease(store, attempt)


def look_at(store: Store, spec: JobSpec) -> TableState:
    """The table now; a place that holds something else than a table is refused, and one whose records need a newer
    release."""
    try:
        manifest = load_manifest(store)
    except NotFoundError:
        _refuse_foreign(store)
        return TableState(store, spec.uri, None)
    require_known_records(store, manifest)
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
    store: Store, attempt: Attempt, results: Sequence[TaskResult], notes: Sequence[str], *, kept: frozenset[str]
) -> None:
    """Files of tasks that began and whose result does not count. A folder of data is listed only when there are such."""
    counted = {(result.partition, result.task_attempt) for result in results}
    losers = started_tasks(notes) - counted
    if losers:
        removed = remove_unused(store, attempt.attempt, keep=kept)
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


def abort_after(store: Store, attempt: Attempt, error: BaseException) -> None:
    """Remove what an attempt wrote, unless it may have been published. Never raises: the error that led here matters."""
    try:
        removed = remove_attempt(store, (attempt.identity, attempt.attempt), AbortRequest(ITSELF)).files
        log.warning("attempt %s aborted after %s; %d files removed", attempt.attempt, type(error).__name__, len(removed))
    except (CommitStateUnknownError, IncompatibleConflictError) as refusal:
        log.warning("attempt %s is kept: %s", attempt.attempt, refusal)
    except (LanceError, OSError) as failure:
        log.warning("attempt %s could not be cleaned up (%s); `lance staged gc` will", attempt.attempt, failure)
    clear_progress(store, attempt.attempt)


_OURS = (
    "_lance_core/", "_versions/", "_transactions/", "_deletions/", "_indices/", "_refs/", "data/", "tree/",
    ".lance-reserved",
)  # fmt: skip


def _refuse_foreign(store: Store) -> None:
    for entry in store.list(""):
        if not entry.path.startswith(_OURS):
            raise NotFoundError(
                f"{store.uri} is not a Lance table and not empty (it holds {entry.path})",
                uri=store.uri,
                cure="Check the uri; a new table needs an empty folder.",
            )


def note_nothing_to_do(store: Store, spec: JobSpec, *, attempt: str = "") -> StagedTransaction:
    """The identity counts as committed at the version that is there: its work has nothing (more) to do. `attempt` goes."""
    clear_dead(store, spec.identity)
    done = _note_committed(store, spec)
    if attempt:
        # Noted first: a kill in between leaves what garbage collection knows as committed.
        remove_attempt(store, (spec.identity, attempt), AbortRequest(ITSELF, committed_too=True))
        clear_progress(store, attempt)
    return done


def _note_committed(store: Store, spec: JobSpec) -> StagedTransaction:
    version, digest = latest_version(store), work_digest(work_of(spec))
    work = CommittedWork(spec.identity, version, digest=digest, table_id=table_id_of(store), asked=dict(spec.asked))
    say_committed(store, work, by="nothing to do")
    log.info("%s %s: nothing left to do at version %d", spec.kind, spec.uri, version)
    return committed_reference(store.uri, work, operation=spec.kind)
