"""Commit: publish staged transactions; this file resolves what a spec refers to.

::

    identities ["5d2c…", "77ab…"]  ->  the attempts that count for them, and what their own specs request:
                                       if_moved of an overwrite, storage version and row ids of a table to be created

Errors keep their kind: `retryable` on the class says whether the same commit may simply be made again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from lance_core.commit.backoff import DEFAULT_MAX_RETRIES
from lance_core.commit.identities import Asked
from lance_core.commit.manifests import find_latest_version
from lance_core.errors import CorruptFileError, IncompatibleConflictError, LanceError, RetryableConflictError
from lance_core.io.parallel import each
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.jobs.kinds import kind_of
from lance_core.jobs.publish.reexecute import can_reexecute, reexecute, why_not_reexecutable
from lance_core.jobs.publish.row_checks import make_check, make_concerns
from lance_core.jobs.runtime.local_runner import LocalRunner
from lance_core.jobs.runtime.protocols import Runner
from lance_core.jobs.specs.spec import CommitSpec
from lance_core.publish.attempts import list_staged, read_started
from lance_core.publish.commit import commit
from lance_core.publish.decisions import DecisionState, look_many
from lance_core.publish.model import CommitResult, StagedTransaction
from lance_core.publish.publisher import CommitRequest, IfMoved, publish_single
from lance_core.publish.stage import committed_reference
from lance_core.table.draft import TableOptions

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Waiting:
    """A staged transaction and what the spec that staged it said."""

    ref: StagedTransaction
    spec: Mapping[str, Any]
    state: DecisionState | None = None


def publish(spec: CommitSpec, runner: Runner | None = None) -> CommitResult:
    """Publish; see `lance_core.publish.commit` for what it raises."""
    options = spec.resolved_options()
    store = resolve_store(spec.uri, options)
    ref = _single(spec)
    states: dict[str, DecisionState] = {}
    done = None if ref is None else publish_single(store, ref, states=states)
    if done is not None:
        log.info("committed %s: version %d, %d rows added", spec.uri, done.version, done.rows_added)
        return done
    waiting = find_waiting(store, spec, known=states)
    if not waiting:
        return CommitResult(version=find_latest_version(store) or 0, num_versions=0, identities={})
    retries = DEFAULT_MAX_RETRIES if spec.max_attempts is None else spec.max_attempts
    records = {item.ref.identity: item.spec for item in waiting}
    again = partial(reexecute, store, spec, records, runner or LocalRunner())
    results = []
    for if_moved, group in _groups(waiting):
        request = CommitRequest(
            refs=tuple(item.ref for item in group),
            if_moved=if_moved,
            options=_table_options(group),
            check=make_check(spec.gates, store, storage_options=options) if spec.gates else None,
            re_execute=again if spec.re_execute else None,
            may_re_execute=lambda ref: can_reexecute(spec, ref.identity, records[ref.identity]),
            max_retries=retries,
            concerns=make_concerns(store, options),
            partial=spec.partial,
            states={item.ref.identity: item.state for item in group if item.state is not None},
            single=ref is None,  # else that was tried, before anything was read
        )
        try:
            results.append(commit(store, request))
        except RetryableConflictError as error:
            raise _explained(error, group, spec) from error
    result = _sum(results)
    log.info("committed %s: version %d, %d rows added", spec.uri, result.version, result.rows_added)
    return result


def _single(spec: CommitSpec) -> StagedTransaction | None:
    """The one staged transaction that is to be published, where the spec says all of it and asks nothing about it."""
    if len(spec.identities) != 1 or len(spec.references) != 1 or spec.gates:
        return None
    ref = StagedTransaction.from_dict(spec.references[0])
    return ref if ref.identity == spec.identities[0] else None


def _explained(error: RetryableConflictError, items: Sequence[Waiting], spec: CommitSpec) -> LanceError:
    """The conflict itself, or one that says why trying again is of no use."""
    reasons = [why_not_reexecutable(spec, item.ref.identity, item.spec) for item in items] if spec.re_execute else []
    reason = next((text for text in reasons if text), "")
    if not reason:
        return error
    return IncompatibleConflictError(
        f"{error} {reason}",
        uri=error.uri,
        version=error.version,
        other_version=error.other_version,
        operation=error.operation,
    )


def find_waiting(store: Store, spec: CommitSpec, *, known: Mapping[str, DecisionState]) -> list[Waiting]:
    """What the identities stand for; when there are none all that is staged, but for what a statement commits itself.

    One that was committed long ago counts as well. `known`: decisions that were just read.

    IncompatibleConflictError for an identity that is neither staged nor committed.
    """
    if not spec.identities:
        entries = [entry for entry in list_staged(store) if not Asked.from_dict(entry.asked).statement]
        return [Waiting(entry.staged, entry.spec) for entry in entries if entry.staged is not None]
    damaged: dict[str, CorruptFileError] = {}
    identities = [*dict.fromkeys(spec.identities)]
    states = known if known.keys() >= {*identities} else look_many(store, identities, damaged=damaged)
    for identity, error in damaged.items():
        raise IncompatibleConflictError(
            f"{store.uri}: the staged transaction of {identity} cannot be read: {error}",
            uri=store.uri,
            cure="Run `lance staged repair`, then clear its staging task.",
        ) from error
    return each(store, [*states.values()], _waiting)


def _waiting(store: Store, state: DecisionState) -> Waiting:
    staged = state.finished
    if staged is not None:
        started = read_started(store, state.identity, staged.attempt) if state.spec is None else None
        spec = state.spec if started is None else started.spec
        return Waiting(staged, spec or {}, state)
    if state.committed is not None and state.number:
        return Waiting(committed_reference(store.uri, state.committed), {}, state)
    raise IncompatibleConflictError(
        f"{store.uri}: nothing is staged for {state.identity}, and it was not committed",
        uri=store.uri,
        cure="Run its staging task again, then commit.",
    )


def _groups(waiting: Sequence[Waiting]) -> Iterator[tuple[IfMoved, list[Waiting]]]:
    """All in one call where that is possible: the service folds within a call only.

    Replacements and merges do not fold with each other: two of one day that hold none of the other's rows would both stand,
    and two that insert the same key.
    """
    replacements = [item for item in waiting if kind_of(item.spec).replaces_rows][1:]
    yield from _by_strictness([item for item in waiting if item not in replacements])
    for item in replacements:
        yield "fail", [item]


def _by_strictness(waiting: Sequence[Waiting]) -> Iterator[tuple[IfMoved, list[Waiting]]]:
    overwrites = [item for item in waiting if item.ref.operation == "overwrite" and not item.ref.creates]
    forced = [item for item in overwrites if item.spec.get("if_moved") == "overwrite"]
    if not forced:
        yield "fail", list(waiting)
    elif len(forced) == len(overwrites):
        yield "overwrite", list(waiting)
    else:
        # A strict overwrite must see the table as it was planned on, so it comes before those that do not mind.
        yield "fail", [item for item in waiting if item not in forced]
        yield "overwrite", forced


def _table_options(group: Sequence[Waiting]) -> TableOptions | None:
    """What a table is created with, or overwritten with: as the first spec that says so has it."""
    version = next((item.spec["data_storage_version"] for item in group if item.spec.get("data_storage_version")), None)
    stable = any(item.spec.get("enable_stable_row_ids") for item in group)
    return TableOptions(data_storage_version=version, stable_row_ids=stable) if version or stable else None


def _sum(results: Sequence[CommitResult]) -> CommitResult:
    return CommitResult(
        version=max(one.version for one in results),
        identities={identity: state for one in results for identity, state in one.identities.items()},
        num_versions=sum(one.num_versions for one in results),
        rows_added=sum(one.rows_added for one in results),
        rows_deleted=sum(one.rows_deleted for one in results),
        fragments_added=sum(one.fragments_added for one in results),
        bytes_added=sum(one.bytes_added for one in results),
        conflicts_rebased=sum(one.conflicts_rebased for one in results),
        re_executed=sum(one.re_executed for one in results),
        seconds=sum(one.seconds for one in results),
        refused={identity: reason for one in results for identity, reason in one.refused.items()},
    )
