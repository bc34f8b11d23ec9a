"""Carry out a plan: each step independently, several tables at once, and a row of evidence for every one.

A step that fails never stops another: a failed compaction does not keep a table from its cleanup. Steps go through the jobs
that operators use, so they are staged, conflict-checked and safe to kill, and a conflict with a foreground writer is lost by
the maintenance, never by the writer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lance_core.commit.manifests import load_manifest
from lance_core.computed.history import read_record
from lance_core.dataset.maintain.compact_plan import bytes_of
from lance_core.errors import LanceError
from lance_core.format.manifest import Manifest
from lance_core.io.resolve import resolve_store
from lance_core.io.threads import Threads
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.columns import RefreshColumnsSpec
from lance_core.jobs.specs.edits import CompactSpec, MergeColumnFilesSpec
from lance_core.jobs.specs.indices import OptimizeIndicesSpec
from lance_core.jobs.specs.maintenance import CleanupSpec, GarbageSpec
from lance_core.jobs.specs.spec import CommitSpec, JobSpec
from lance_core.maintenance.evidence import DONE, FAILED, NOTHING, Evidence, rows_of_skipped
from lance_core.maintenance.observe import compaction_options, merge_options
from lance_core.maintenance.plan import MaintenancePlan, MaintenanceStep
from lance_core.maintenance.policy import STEPS, ManagedTable, Policy, ServiceLevels
from lance_core.publish.model import CommitResult, StagedTransaction

Options = Mapping[str, str]
OptionsOf = Callable[[str | None], Options]


def no_options(conn_id: str | None) -> Options:
    """Storage options without a connection: none."""
    return {}


@dataclass(frozen=True)
class Maintainer:
    """Runs steps. `options_of` gives the storage options of a connection id; `run` names this run in the evidence."""

    policy: Policy
    options_of: OptionsOf = no_options
    run: str = ""
    clock: Callable[[], float] = time.time
    on_step: Callable[[Evidence], None] = lambda evidence: None

    def carry_out(self, plan: MaintenancePlan) -> list[Evidence]:
        """Carry out all steps, the tables side by side, and return a row for each step and for each one that was skipped."""
        by_table: dict[str, list[MaintenanceStep]] = {}
        for step in plan.steps:
            by_table.setdefault(step.uri, []).append(step)
        with Threads(self.policy.budget.max_concurrent, thread_name_prefix="lance-maintain") as pool:
            done = [row for rows in pool.map(self._table, by_table.values()) for row in rows]
        return [*done, *rows_of_skipped(plan.skipped, now=self.clock(), run=self.run)]

    def step(self, step: MaintenanceStep) -> Evidence:
        """Carry out one step. LanceErrors become evidence; anything else is a fault of this program and is raised."""
        began, clock = self.clock(), time.monotonic()
        options = self.options_of(step.conn_id)
        row = Evidence(
            at=began,
            uri=step.uri,
            action=step.action,
            outcome=DONE,
            reason=step.reason,
            run=self.run,
            quantity=step.quantity,
            predicted_bytes_read=step.cost.bytes_read,
            predicted_bytes_written=step.cost.bytes_written,
            predicted_seconds=step.cost.seconds,
        )
        try:
            before = load_manifest(resolve_store(step.uri, options))
            row = replace(row, version_before=before.version, **_size("before", before))
            changed = self._act(step, options)
            after = load_manifest(resolve_store(step.uri, options))
            read, written = moved_bytes(before, after)
            row = replace(
                row,
                outcome=DONE if changed else NOTHING,
                version_after=after.version,
                bytes_read=read if changed else 0,
                bytes_written=written if changed else 0,
                **_size("after", after),
            )
        except LanceError as error:
            row = replace(row, outcome=FAILED, error=f"{type(error).__name__}: {error}")
        seconds = time.monotonic() - clock
        row = replace(row, seconds=seconds, gb_hours=replace(step.cost, seconds=seconds).gb_hours)
        self.on_step(row)
        return row

    def _table(self, steps: Sequence[MaintenanceStep]) -> list[Evidence]:
        # A compaction moves rows out of their indices, and both leave old versions behind.
        return [self.step(step) for step in sorted(steps, key=lambda step: STEPS.index(step.action))]

    def _act(self, step: MaintenanceStep, options: Options) -> bool:
        rule = self.policy.for_table(ManagedTable(uri=step.uri, conn_id=step.conn_id))
        levels = self.policy.levels if rule is None else rule.levels
        spec = spec_of(step, levels, options, functions=() if rule is None else rule.functions)
        result = run_job(spec)
        if isinstance(spec, RefreshColumnsSpec):
            record = read_record(resolve_store(step.uri, options), str(result.to_dict()["identity"]))
            return record is not None and int(record.report["num_versions"]) > 0
        if not isinstance(result, StagedTransaction):
            facts = result.to_dict()
            return any(
                facts.get(name) for name in ("versions", "old_versions", "attempts", "files_removed", "data_files_removed")
            )
        commit = run_job(CommitSpec.of([result], uri=step.uri, storage_options=dict(options)))
        return isinstance(commit, CommitResult) and commit.num_versions > 0


def spec_of(
    step: MaintenanceStep, levels: ServiceLevels, options: Options | None = None, *, functions: Sequence[str] = ()
) -> JobSpec:
    """Return the job of a step, as an operator would run it. `functions`: those that declared columns may run."""
    common: dict[str, Any] = {"uri": step.uri, "storage_options": dict(options or {})}
    if step.action == "compact":
        options_now = compaction_options(levels, deleted_share=step.deleted_share, num_bytes=step.num_bytes)
        return CompactSpec(
            **common,
            strategy="tiered",
            tier_fanout=options_now.tier_fanout,
            enough_fragments=options_now.enough_fragments,
            target_rows_per_fragment=options_now.target_rows_per_fragment,
            materialize_deletions_threshold=options_now.materialize_deletions_threshold,
        )
    if step.action == "merge_columns":
        merging = merge_options(levels)
        return MergeColumnFilesSpec(
            **common, max_files_per_fragment=merging.max_files_per_fragment, enough_files=merging.enough_files
        )
    if step.action == "refresh_columns":
        return RefreshColumnsSpec(**common, functions=tuple(functions), max_rows=levels.max_refresh_rows)
    if step.action == "optimize_indices":
        return OptimizeIndicesSpec(**common, strategy="tiered", tier_fanout=levels.tier_fanout)
    if step.action == "cleanup":
        return CleanupSpec(**common, older_than_seconds=levels.keep_seconds, retain_versions=levels.keep_versions)
    return GarbageSpec(**common)


def moved_bytes(before: Manifest, after: Manifest) -> tuple[int, int]:
    """Return the bytes of data and index files removed and added between two versions of a table."""
    old, new = _files(before), _files(after)
    gone = sum(size for path, size in old.items() if path not in new)
    come = sum(size for path, size in new.items() if path not in old)
    return gone, come


def _files(manifest: Manifest) -> dict[str, int]:
    found = {file.path: file.file_size_bytes or 0 for item in manifest.fragments for file in item.files}
    found.update({f"{index.uuid}/{file.path}": file.size_bytes or 0 for index in manifest.indices for file in index.files})
    return found


def _size(moment: str, manifest: Manifest) -> dict[str, Any]:
    fragments = manifest.fragments
    return {f"fragments_{moment}": len(fragments), f"bytes_{moment}": sum(map(bytes_of, fragments))}
