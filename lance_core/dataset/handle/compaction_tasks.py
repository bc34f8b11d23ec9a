"""A distributed compaction: plan, execute each task anywhere, commit the results. With the official library's names.

::

    plan = Compaction.plan(dataset, {"target_rows_per_fragment": 1_000_000})
    texts = [task.json() for task in plan.tasks]                                  to other processes, and there:
    result = CompactionTask.from_json(text).execute(dataset("/t.lance")).json()
    Compaction.commit(dataset, [RewriteResult.from_json(text) for text in results])

Executing writes files that no version names; what is never committed is garbage, which cleanup takes. The commit is judged
against everything since the version the plan was made on: rows of a group that somebody deleted in the meantime refuse it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lance_core.commit.manifests import load_manifest
from lance_core.dataset.handle.protocol import TableHandle
from lance_core.dataset.maintain.compact import (
    CompactionMetrics,
    compact_files,
    measure,
    plan_snapshot,
    rewrite_group,
    stage_rewrite,
)
from lance_core.dataset.maintain.compact_options import (
    CompactionChoice,
    CompactionOptions,
    choose_options,
    options_from_json,
    options_to_json,
)
from lance_core.dataset.maintain.compact_plan import CompactionGroups
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.dataset.write.retry import commit_with_retry
from lance_core.errors import InputError, RetryableConflictError
from lance_core.format.fragment import Fragment
from lance_core.shortage import verbs_tell_shortages
from lance_core.table.operations.rewrite import RewriteGroup


@dataclass(frozen=True)
class RewriteResult:
    """What a task wrote: fragments without ids that take the place of others, once they are committed."""

    read_version: int
    original_fragments: tuple[Fragment, ...]
    new_fragments: tuple[Fragment, ...]

    @property
    def metrics(self) -> CompactionMetrics:
        """Removed and added fragments and files."""
        return measure([RewriteGroup(self.original_fragments, self.new_fragments)])

    def json(self) -> str:
        """The result as text; `from_json` reads it anywhere."""
        made = {
            "metrics": asdict(self.metrics),
            "new_fragments": [fragment.to_json() for fragment in self.new_fragments],
            "read_version": self.read_version,
            "original_fragments": [fragment.to_json() for fragment in self.original_fragments],
            "row_addrs": None,
        }
        return json.dumps(made)

    @staticmethod
    def from_json(json_data: str) -> RewriteResult:
        """The result that `json` wrote down, here or in the official library. InputError when it is not one."""
        try:
            given: dict[str, Any] = json.loads(json_data)
            old, new = (tuple(map(Fragment.from_json, given[f"{age}_fragments"])) for age in ("original", "new"))
            return RewriteResult(int(given["read_version"]), old, new)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"this JSON does not describe the result of a compaction task: {error}") from error


@verbs_tell_shortages
@dataclass(frozen=True)
class CompactionTask:
    """Neighbouring fragments of version `read_version` that are to be written again, together."""

    read_version: int
    fragments: tuple[Fragment, ...]
    options: CompactionOptions

    def execute(self, dataset: TableHandle) -> RewriteResult:
        """Write the live rows as new fragments; nothing is committed, and the handle keeps its version.

        Raises NotFoundError when the version is gone, InputError when it has not these fragments.
        """
        snapshot = _at(dataset.snapshot, self.read_version)
        _require(snapshot, self.fragments)
        new = rewrite_group(snapshot, self.fragments, self.options)
        return RewriteResult(self.read_version, self.fragments, tuple(new))

    def json(self) -> str:
        """The task as text; `from_json` reads it anywhere."""
        task = {"fragments": [fragment.to_json() for fragment in self.fragments]}
        return json.dumps({"task": task, "read_version": self.read_version, "options": options_to_json(self.options)})

    @staticmethod
    def from_json(json_data: str) -> CompactionTask:
        """The task that `json` wrote down, here or in the official library. InputError when it is not one."""
        try:
            given: dict[str, Any] = json.loads(json_data)
            fragments = tuple(map(Fragment.from_json, given["task"]["fragments"]))
            return CompactionTask(int(given["read_version"]), fragments, options_from_json(given.get("options")))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"this JSON does not describe a compaction task: {error}") from error


class CompactionPlan(CompactionGroups):
    """The groups as tasks that travel."""

    @property
    def tasks(self) -> list[CompactionTask]:
        """The groups as tasks, which run anywhere: `task.execute(dataset)`."""
        return [CompactionTask(self.read_version, group, self.options) for group in self.groups]

    def num_tasks(self) -> int:
        """How many groups there are."""
        return len(self.groups)

    def json(self) -> str:
        """The plan as text; `from_json` reads it anywhere."""
        tasks = [{"fragments": [fragment.to_json() for fragment in group]} for group in self.groups]
        plan = {"tasks": tasks, "read_version": self.read_version, "options": options_to_json(self.options)}
        return json.dumps({**plan, "skipped": self.skipped})

    @staticmethod
    def from_json(json_data: str) -> CompactionPlan:
        """The plan that `json` wrote down, here or in the official library. InputError when it is not one."""
        try:
            given: dict[str, Any] = json.loads(json_data)
            groups = tuple(tuple(map(Fragment.from_json, task["fragments"])) for task in given["tasks"])
            skipped = tuple((int(number), str(why)) for number, why in given.get("skipped") or ())
            return CompactionPlan(int(given["read_version"]), groups, skipped, options_from_json(given.get("options")))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"this JSON does not describe a compaction plan: {error}") from error

    @staticmethod
    def of(groups: CompactionGroups) -> CompactionPlan:
        """The public plan of some groups."""
        return CompactionPlan(groups.read_version, groups.groups, groups.skipped, groups.options)


@verbs_tell_shortages
class Compaction:
    """Compaction in one go, or as plan, tasks and commit."""

    @staticmethod
    def plan(dataset: TableHandle, options: CompactionChoice = None) -> CompactionPlan:
        """What would be rewritten on the handle's version. Options as for `compact_files`; nothing is written."""
        snapshot = dataset.snapshot
        return CompactionPlan.of(plan_snapshot(snapshot, choose_options(options, snapshot.manifest.config)))

    @staticmethod
    def execute(dataset: TableHandle, options: CompactionChoice = None) -> CompactionMetrics:
        """Plan, rewrite and commit; the handle moves to the new version. Raises CommitError."""
        snapshot = dataset.snapshot
        committed, metrics = compact_files(snapshot, choose_options(options, snapshot.manifest.config))
        dataset.move_to(committed)
        return metrics

    @staticmethod
    def commit(
        dataset: TableHandle, rewrites: Sequence[RewriteResult], options: CompactionChoice = None
    ) -> CompactionMetrics:
        """Publish results of tasks, all or some of a plan's, as one version; the handle moves to it.

        Nothing is rewritten here. A result commits once. Files of results that are refused stay: others may have
        committed them; cleanup takes what no version names.

        Raises RetryableConflictError when somebody changed or compacted the fragments in the meantime (plan again),
        InputError when two results rewrite the same fragment.
        """
        if not rewrites:
            return CompactionMetrics()
        _require_disjoint(rewrites)
        snapshot = _at(dataset.snapshot, min(result.read_version for result in rewrites))
        _require_living(snapshot, rewrites)
        groups = [RewriteGroup(result.original_fragments, result.new_fragments) for result in rewrites]
        chosen = choose_options(options, snapshot.manifest.config)
        # Other versions would need other rewrites, so there is no second try.
        committed, _ = commit_with_retry(snapshot, lambda current: stage_rewrite(current, groups, chosen), retries=0)
        dataset.move_to(committed)
        return measure(groups)


def _at(snapshot: Snapshot, version: int) -> Snapshot:
    return snapshot if snapshot.version == version else snapshot.at(version)


def _require(snapshot: Snapshot, fragments: Sequence[Fragment]) -> None:
    here = {fragment.id: fragment for fragment in snapshot.manifest.fragments}
    for fragment in fragments:
        found = here.get(fragment.id)
        if found is None or found.files != fragment.files or found.deletion_file != fragment.deletion_file:
            raise InputError(
                f"{snapshot.uri}: version {snapshot.version} has no fragment {fragment.id} that matches the task",
                cure="Execute tasks on the table on which they were planned.",
            )


def _require_disjoint(rewrites: Sequence[RewriteResult]) -> None:
    seen: set[int] = set()
    for result in rewrites:
        for fragment in result.original_fragments:
            if fragment.id in seen:
                raise InputError(f"fragment {fragment.id} is rewritten more than once", cure="Pass each result once.")
            seen.add(fragment.id)


def _require_living(snapshot: Snapshot, rewrites: Sequence[RewriteResult]) -> None:
    """Refuse early what the log would refuse: ids are reserved and indices built before it is called."""
    newest = load_manifest(snapshot.store)
    living = {fragment.id for fragment in newest.fragments}
    gone = sorted({old.id for result in rewrites for old in result.original_fragments} - living)
    if gone:
        raise RetryableConflictError(
            f"{snapshot.uri}: fragments {gone[:5]} no longer exist in version {newest.version}",
            uri=snapshot.uri,
            version=snapshot.version,
            other_version=newest.version,
            operation="Rewrite",
            cure="The results were already committed, or another commit moved the rows: plan again.",
        )
