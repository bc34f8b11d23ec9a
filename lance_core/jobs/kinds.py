"""The table of jobs: one row per kind. Names are text, so that reading a spec in a DAG file imports nothing heavy.

A new job is one file with a spec class and a `Job` class, and one row here.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lance_core.errors import InputError
from lance_core.jobs.specs.spec import JobSpec, read_spec

if TYPE_CHECKING:
    from lance_core.jobs.runtime.protocols import Job


@dataclass(frozen=True, slots=True)
class JobKind:
    """What a kind of job is made of. Places are `module:name`; a spec's module imports the standard library only.

    `reexecutes`: its work depends on the rows that are there, so a commit may have to do it again. `refresh`: a function
    that keeps what is still right of such work; without it the work begins again. `replaces_rows`: two of them, neither of
    which has seen the other's rows, must not share a version.
    """

    spec: str
    job: str
    reexecutes: bool = False
    refresh: str | None = None
    replaces_rows: bool = False


KINDS: Mapping[str, JobKind] = {
    "append": JobKind("lance_core.jobs.specs.spec:AppendSpec", "lance_core.jobs.plans.append:AppendJob"),
    "overwrite": JobKind("lance_core.jobs.specs.spec:OverwriteSpec", "lance_core.jobs.plans.overwrite:OverwriteJob"),
    "commit": JobKind("lance_core.jobs.specs.spec:CommitSpec", "lance_core.jobs.publish.commit:CommitJob"),
    "delete": JobKind(
        "lance_core.jobs.specs.edits:DeleteSpec",
        "lance_core.jobs.plans.delete:DeleteJob",
        reexecutes=True,
    ),
    "update": JobKind(
        "lance_core.jobs.specs.edits:UpdateSpec",
        "lance_core.jobs.plans.update:UpdateJob",
        reexecutes=True,
    ),
    "replace_where": JobKind(
        "lance_core.jobs.specs.edits:ReplaceWhereSpec",
        "lance_core.jobs.plans.replace_where:ReplaceWhereJob",
        reexecutes=True,
        replaces_rows=True,
    ),
    "add_columns": JobKind(
        "lance_core.jobs.specs.edits:AddColumnsSpec",
        "lance_core.jobs.plans.add_columns:AddColumnsJob",
        reexecutes=True,
        refresh="lance_core.jobs.plans.refresh_columns:refresh",
    ),
    "merge": JobKind(
        "lance_core.jobs.specs.merge:MergeSpec",
        "lance_core.jobs.plans.merge:MergeJob",
        reexecutes=True,
        replaces_rows=True,
    ),
    "publish_branch": JobKind(
        "lance_core.jobs.specs.branches:PublishBranchSpec",
        "lance_core.jobs.plans.publish_branch:PublishBranchJob",
        replaces_rows=True,
    ),
    "build_index": JobKind(
        "lance_core.jobs.specs.indices:BuildIndexSpec", "lance_core.jobs.plans.build_index:BuildIndexJob", reexecutes=True
    ),
    "optimize_indices": JobKind(
        "lance_core.jobs.specs.indices:OptimizeIndicesSpec",
        "lance_core.jobs.plans.optimize_indices:OptimizeIndicesJob",
        reexecutes=True,
    ),
    "branch": JobKind("lance_core.jobs.specs.maintenance:BranchSpec", "lance_core.jobs.acts.branch:BranchJob"),
    "compact": JobKind(
        "lance_core.jobs.specs.edits:CompactSpec",
        "lance_core.jobs.plans.compact:CompactJob",
        reexecutes=True,
        refresh="lance_core.jobs.plans.compact:refresh",
    ),
    "merge_column_files": JobKind(
        "lance_core.jobs.specs.edits:MergeColumnFilesSpec",
        "lance_core.jobs.plans.merge_column_files:MergeColumnFilesJob",
        reexecutes=True,
    ),
    "cleanup": JobKind("lance_core.jobs.specs.maintenance:CleanupSpec", "lance_core.jobs.acts.cleanup:CleanupJob"),
    "garbage": JobKind("lance_core.jobs.specs.maintenance:GarbageSpec", "lance_core.jobs.acts.garbage:GarbageJob"),
    "tag": JobKind("lance_core.jobs.specs.maintenance:TagSpec", "lance_core.jobs.acts.tag:TagJob"),
    "restore": JobKind("lance_core.jobs.specs.maintenance:RestoreSpec", "lance_core.jobs.acts.restore:RestoreJob"),
    **{
        kind: JobKind(f"lance_core.jobs.specs.definition:{name}Spec", f"lance_core.jobs.acts.definition:{name}Job")
        for kind, name in (
            ("alter_columns", "AlterColumns"),
            ("clone", "Clone"),
            ("create_table", "CreateTable"),
            ("describe", "Describe"),
            ("drop_columns", "DropColumns"),
            ("drop_index", "DropIndex"),
            ("drop_table", "DropTable"),
            ("table_config", "TableConfig"),
        )
    },
    "query": JobKind("lance_core.jobs.specs.definition:QuerySpec", "lance_core.jobs.acts.query:QueryJob"),
    "sql": JobKind("lance_core.jobs.specs.definition:SqlSpec", "lance_core.jobs.acts.sql:SqlJob"),
    "check": JobKind("lance_core.jobs.specs.definition:CheckSpec", "lance_core.jobs.publish.check:CheckJob"),
    "validate": JobKind("lance_core.jobs.specs.maintenance:ValidateSpec", "lance_core.jobs.acts.validate:ValidateJob"),
}

_UNKNOWN = JobKind("", "")


def kind_of(record: Mapping[str, Any]) -> JobKind:
    """The row of a spec's record; an empty one for what is no kind of job."""
    return KINDS.get(str(record.get("kind")), _UNKNOWN)


def refresh_of(spec: JobSpec) -> Callable[..., Any] | None:
    """What brings staged work of this kind up to a newer version; None where it begins again."""
    place = KINDS[spec.kind].refresh
    return None if place is None else _load(place)


def spec_from_plain(data: object) -> JobSpec:
    """The spec of any kind from JSON data. InputError for an unknown kind or key."""
    if not isinstance(data, Mapping):
        raise InputError(f"a job spec must be a JSON object, got {type(data).__name__}")
    kind = data.get("kind")
    row = KINDS.get(str(kind))
    if row is None:
        import difflib  # few have it wrong

        near = difflib.get_close_matches(str(kind), KINDS, n=1)
        guess = f"Did you mean {near[0]!r}? " if near else ""
        raise InputError(f"unknown job kind {kind!r}", cure=f"{guess}Known kinds: {', '.join(sorted(KINDS))}.")
    cls: type[JobSpec] = _load(row.spec)
    return read_spec(cls, data)


def spec_from_json(text: str) -> JobSpec:
    """The spec of any kind from JSON text."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise InputError(f"a job spec must be JSON: {error}") from None
    return spec_from_plain(data)


def job_of(spec: JobSpec) -> Job[Any]:
    """The job that carries a spec out (imports what it needs)."""
    job: type[Job[Any]] = _load(KINDS[spec.kind].job)
    return job()


def _load(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)
