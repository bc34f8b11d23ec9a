"""Compact: small or much deleted fragments rewritten into fewer, a group of neighbours per task, as one Rewrite.

::

    plan on version 7     groups (0 1 2) (5 6)      skipped: 3 large enough, 4 no neighbour to join
    tasks 0 and 1         each reads its group, batch by batch, and writes new fragments without ids
    staged                Rewrite[(0 1 2) -> x, (5 6) -> y]; the commit gives ids
    groups_per_commit=1   staged and committed group by group in the job: a kill keeps what is finished

When there is nothing to do nothing is written: the identity is noted as committed at the version that was found.
"""

from __future__ import annotations

import logging
import uuid as uuids
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from lance_core.commit.transactions import read_transaction_file
from lance_core.dataset.maintain.compact import rewrite_group
from lance_core.dataset.maintain.compact_options import CompactionOptions
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.retry import StagedEdit
from lance_core.errors import CommitError, LanceError, NotFoundError
from lance_core.format.fragment import Fragment
from lance_core.format.manifest import Manifest
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.jobs.plans.compact_report import compaction_report, options_of, plan_groups
from lance_core.jobs.plans.edit_fragments import edit_work, existing, operations_of, part_of
from lance_core.jobs.plans.write_fragments import size_of
from lance_core.jobs.runtime.lifecycle import (
    abort_after,
    find_done,
    look_at,
    note_nothing_to_do,
    open_attempt,
    stage,
)
from lance_core.jobs.runtime.protocols import Plan, Report, Runner, Shape, StagedOperation, TableState, TaskResult
from lance_core.jobs.specs.edits import CompactSpec
from lance_core.publish.abort import ITSELF, AbortRequest, abort_attempt, remove_attempt
from lance_core.publish.attempts import list_staged
from lance_core.publish.commit import commit
from lance_core.publish.model import Attempt, StagedTransaction
from lance_core.publish.publisher import CommitRequest, ReExecute
from lance_core.publish.stage import finish_attempt
from lance_core.publish.staged_properties import staged_writers
from lance_core.table.operations.rewrite import Rewrite, RewriteGroup
from lance_core.table.transaction import Transaction

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StageRewrite:
    """The dataset's rewriting of one group."""

    options: CompactionOptions

    def __call__(self, snapshot: Snapshot, attempt: str) -> StagedEdit:
        """Write new fragments, which get their ids when they are committed."""
        group = tuple(snapshot.manifest.fragments)
        new = rewrite_group(snapshot, group, self.options, attempt=attempt)
        operation = Rewrite((RewriteGroup(group, tuple(new)),))
        return StagedEdit(Transaction(snapshot.version, str(uuids.uuid4()), operation))


@dataclass(frozen=True)
class Rewrites:
    """Results become one Rewrite. LanceError when a group does not hold the rows it had."""

    manifest: Manifest

    def __call__(self, results: Sequence[TaskResult]) -> StagedOperation:
        """The operation and the rows it writes again."""
        groups = tuple(group for part in operations_of(results, Rewrite) for group in part.groups)
        before = sum(fragment.num_rows for group in groups for fragment in group.old_fragments)
        new = [fragment for group in groups for fragment in group.new_fragments]
        after = sum(fragment.physical_rows for fragment in new)
        if before != after:
            raise LanceError(f"{after:,} rows were written instead of {before:,} live rows, so nothing is staged")
        return StagedOperation(Rewrite(groups), after)


def report(spec: CompactSpec, runner: Runner) -> Report | None:
    """What the compaction would do now, where the spec asks for no more; nothing is written."""
    if not spec.dry_run:
        return None
    store = resolve_store(spec.uri, spec.resolved_options())
    return Report(spec.kind, compaction_report(existing(look_at(store, spec), spec), spec))


def plan_compact(spec: CompactSpec, table: TableState, runner: Runner) -> Plan | None:
    """Find the groups; None for none, and behind waves, which are published as soon as each is written.

    UnsupportedFeatureError for a table that cannot be compacted, before any write.
    """
    if spec.groups_per_commit is not None:
        _in_waves(spec, table.store, runner)
        return None
    snapshot = existing(table, spec)
    groups = plan_groups(snapshot, spec).groups
    return _plan_of(groups, spec, table, snapshot.manifest, runner) if groups else None


def _plan_wave(spec: CompactSpec, table: TableState, runner: Runner) -> Plan:
    # A wave of which nothing is left is staged as a rewrite of nothing: the commit knows it by its identity.
    snapshot = existing(table, spec)
    return _plan_of(plan_groups(snapshot, spec).groups, spec, table, snapshot.manifest, runner)


def _plan_of(
    found: Sequence[Sequence[Fragment]], spec: CompactSpec, table: TableState, manifest: Manifest, runner: Runner
) -> Plan:
    groups = tuple(tuple(fragment.id for fragment in group) for group in found)
    staging = StageRewrite(options_of(spec))
    return Plan(
        table=table,
        source=runner.open_tasks(len(groups)),
        shape=Shape(tick_seconds=spec.progress_seconds, title=f"compact {spec.uri}"),
        make_work=lambda attempt: edit_work(spec, attempt, groups, staging, progress_seconds=spec.progress_seconds),
        conclude=Rewrites(manifest),
        properties=spec.properties,
    )


def refresh(store: Store, spec: CompactSpec, ref: StagedTransaction, runner: Runner) -> StagedTransaction:
    """A staged compaction on the newest version: unchanged groups are kept, of the others the remaining rows are
    rewritten again, here.

    For the commit task. When nothing is left to do the identity is noted as committed. NotFoundError when what was staged is
    gone.
    """
    before = read_transaction_file(store, ref.transaction_path)
    if before is None or not isinstance(before.operation, Rewrite):
        raise NotFoundError(f"{store.uri}: the staged transaction of {ref.identity} no longer exists", uri=store.uri)
    table = look_at(store, spec)
    snapshot = existing(table, spec)
    groups = _groups_left(before.operation, snapshot, spec)
    if not groups:
        # Noted first: a kill in between leaves what garbage collection knows as committed.
        nothing = note_nothing_to_do(store, spec)
        remove_attempt(store, (ref.identity, ref.attempt), AbortRequest(ITSELF, committed_too=True))
        return nothing
    attempt = open_attempt(spec, table, adopts=staged_writers(before, ref.attempt))
    try:
        return _rewrite_left(groups, snapshot, spec, attempt)
    except BaseException as error:
        abort_after(store, attempt, error)
        raise


def _groups_left(operation: Rewrite, snapshot: Snapshot, spec: CompactSpec) -> list[RewriteGroup]:
    """The groups that are still as they were read; of others what remains, without new fragments."""
    here = {fragment.id: fragment for fragment in snapshot.manifest.fragments}
    # What planning leaves alone now (an index was built over it) stays alone.
    free = {fragment.id for group in plan_groups(snapshot, replace(spec, groups=())).groups for fragment in group}
    kept: list[RewriteGroup] = []
    for group in operation.groups:
        numbers = tuple(fragment.id for fragment in group.old_fragments)
        if all(number in free and here.get(number) == old for number, old in zip(numbers, group.old_fragments, strict=True)):
            kept.append(group)
            continue
        left = tuple(here[number] for number in numbers if number in here and number in free)
        if len(left) > 1 or any(fragment.num_deleted_rows for fragment in left):
            kept.append(RewriteGroup(left, ()))
    return kept


def _rewrite_left(
    groups: Sequence[RewriteGroup], snapshot: Snapshot, spec: CompactSpec, attempt: Attempt
) -> StagedTransaction:
    """Rewrite the groups whose new fragments are missing, or may not be adopted, and stage all of them."""
    whole: list[RewriteGroup] = []
    for group in groups:
        if group.new_fragments and attempt.adopts:
            whole.append(group)
            continue
        part = part_of(snapshot, [fragment.id for fragment in group.old_fragments])
        new = rewrite_group(part, group.old_fragments, options_of(spec), attempt=attempt.attempt)
        whole.append(RewriteGroup(group.old_fragments, tuple(new)))
    new_fragments = [fragment for group in whole for fragment in group.new_fragments]
    return finish_attempt(
        snapshot.store,
        replace(attempt, has_more=bool(attempt.adopts)),
        Transaction(snapshot.version, attempt.identity, Rewrite(tuple(whole)), properties=dict(spec.properties)),
        rows=sum(fragment.physical_rows for fragment in new_fragments),
        bytes=sum(map(size_of, new_fragments)),
    )


def _in_waves(spec: CompactSpec, store: Store, runner: Runner) -> None:
    """Some groups at a time, each wave an identity of its own that is committed as soon as it is staged."""
    if find_done(store, spec) is not None:
        return  # long ago: its decision is folded
    _settle_waves(store, spec)
    groups = plan_groups(existing(look_at(store, spec), spec), spec).groups
    ids = [tuple(fragment.id for fragment in group) for group in groups]
    for wave in _chunks(ids, spec.groups_per_commit or 1):
        part = replace(
            spec, identity=_wave_identity(spec, wave), groups=tuple(wave), part_of=spec.identity, groups_per_commit=None
        )
        # Bound here, because the commit may request another try if a writer was in between.
        commit(store, CommitRequest(refs=(_stage_wave(part, runner),), re_execute=_again(part, runner)))
        log.info("compacted %s: fragments %s", spec.uri, ", ".join(map(str, wave)))


def _again(part: CompactSpec, runner: Runner) -> ReExecute:
    return lambda ref, commit: _stage_wave(replace(part, replaces=(ref.attempt, commit)), runner)


def _stage_wave(part: CompactSpec, runner: Runner) -> StagedTransaction:
    return stage(part, runner, _plan_wave)


def _settle_waves(store: Store, spec: CompactSpec) -> None:
    """What an earlier try of this job left: a wave that is staged and whole is published, any other is given up."""
    for entry in list_staged(store):
        if entry.spec.get("part_of") != spec.identity:
            continue
        try:
            if entry.staged is not None:
                commit(store, CommitRequest(refs=(entry.staged,)))
                continue
        except CommitError as error:
            log.info("a finished part of %s can no longer be published: %s", spec.identity, error)
        with suppress(CommitError):
            abort_attempt(store, entry.identity, entry.attempt)


def _wave_identity(spec: CompactSpec, wave: Sequence[tuple[int, ...]]) -> str:
    return str(uuids.uuid5(uuids.NAMESPACE_OID, f"{spec.identity}:{wave}"))


def _chunks(items: Sequence[tuple[int, ...]], size: int) -> Iterator[Sequence[tuple[int, ...]]]:
    return (items[start : start + size] for start in range(0, len(items), size))
