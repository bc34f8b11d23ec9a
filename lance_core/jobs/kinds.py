"""The table of kinds: one row for each kind of job. Names are text, so that reading a spec in a DAG file imports nothing
heavy.

A new kind is a spec, a function that plans or does its work, and one row here.
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
    from lance_core.jobs.runtime.protocols import JobResult, Runner


@dataclass(frozen=True, slots=True)
class Kind:
    """What a kind of job is made of. Places are `module:name`; a spec's module imports the standard library only.

    Work that a commit publishes has a `plan`, a function `(spec, table, runner) -> Plan | None`, which is staged by the one
    life of all plans. What takes effect at once has an `act`, a function `(spec, runner) -> result` that does it by itself.

    `report`: a function `(spec, runner) -> Report | None`, None for a spec without `dry_run`. `reexecutes`: its work depends
    on the rows that are there, so a commit may have to do it again. `refresh`: a function that keeps what is still right of
    such work; without it the work begins again. `resumes`: a try goes on with the parts of one that did not finish.
    `replaces_rows`: two of them, neither of which has seen the other's rows, must not share a version.
    """

    spec: str
    plan: str = ""
    act: str = ""
    report: str = ""
    resumes: bool = False
    reexecutes: bool = False
    refresh: str = ""
    replaces_rows: bool = False

    @property
    def is_staged(self) -> bool:
        """Whether a commit publishes it."""
        return bool(self.plan)


_SPECS = "lance_core.jobs.specs"
_PLANS = "lance_core.jobs.plans"
_ACTS = "lance_core.jobs.acts"

KINDS: Mapping[str, Kind] = {
    "add_columns": Kind(
        f"{_SPECS}.edits:AddColumnsSpec",
        plan=f"{_PLANS}.add_columns:plan_columns",
        resumes=True,
        reexecutes=True,
        refresh=f"{_PLANS}.refresh_columns:refresh",
    ),
    "alter_columns": Kind(f"{_SPECS}.definition:AlterColumnsSpec", act=f"{_ACTS}.definition:alter_columns"),
    "append": Kind(f"{_SPECS}.spec:AppendSpec", plan=f"{_PLANS}.append:plan_append"),
    "branch": Kind(f"{_SPECS}.maintenance:BranchSpec", act=f"{_ACTS}.branch:branch"),
    "build_index": Kind(f"{_SPECS}.indices:BuildIndexSpec", plan=f"{_PLANS}.build_index:plan_build", reexecutes=True),
    "check": Kind(f"{_SPECS}.definition:CheckSpec", act="lance_core.jobs.publish.row_checks:check"),
    "cleanup": Kind(f"{_SPECS}.maintenance:CleanupSpec", act=f"{_ACTS}.cleanup:cleanup"),
    "clone": Kind(f"{_SPECS}.definition:CloneSpec", act=f"{_ACTS}.definition:clone"),
    "commit": Kind(f"{_SPECS}.spec:CommitSpec", act="lance_core.jobs.publish.commit:publish"),
    "compact": Kind(
        f"{_SPECS}.edits:CompactSpec",
        plan=f"{_PLANS}.compact:plan_compact",
        report=f"{_PLANS}.compact:report",
        reexecutes=True,
        refresh=f"{_PLANS}.compact:refresh",
    ),
    "create_table": Kind(f"{_SPECS}.definition:CreateTableSpec", act=f"{_ACTS}.definition:create_table"),
    "declare_column": Kind(f"{_SPECS}.columns:DeclareColumnSpec", act=f"{_ACTS}.declared:declare"),
    "delete": Kind(f"{_SPECS}.edits:DeleteSpec", plan=f"{_PLANS}.delete:plan_delete", reexecutes=True),
    "describe": Kind(f"{_SPECS}.definition:DescribeSpec", act=f"{_ACTS}.definition:describe_table"),
    "drop_columns": Kind(f"{_SPECS}.definition:DropColumnsSpec", act=f"{_ACTS}.definition:drop_columns"),
    "drop_index": Kind(f"{_SPECS}.definition:DropIndexSpec", act=f"{_ACTS}.definition:drop_index"),
    "drop_table": Kind(f"{_SPECS}.definition:DropTableSpec", act=f"{_ACTS}.definition:drop_table"),
    "garbage": Kind(f"{_SPECS}.maintenance:GarbageSpec", act=f"{_ACTS}.garbage:garbage"),
    "merge": Kind(f"{_SPECS}.merge:MergeSpec", plan=f"{_PLANS}.merge:plan_merge", reexecutes=True, replaces_rows=True),
    "merge_column_files": Kind(
        f"{_SPECS}.edits:MergeColumnFilesSpec",
        plan=f"{_PLANS}.merge_column_files:plan_merge",
        report=f"{_PLANS}.merge_column_files:report",
        reexecutes=True,
    ),
    "optimize_indices": Kind(
        f"{_SPECS}.indices:OptimizeIndicesSpec", plan=f"{_PLANS}.optimize_indices:plan_optimize", reexecutes=True
    ),
    "overwrite": Kind(f"{_SPECS}.spec:OverwriteSpec", plan=f"{_PLANS}.overwrite:plan_overwrite"),
    "publish_branch": Kind(
        f"{_SPECS}.branches:PublishBranchSpec", plan=f"{_PLANS}.publish_branch:plan_publish", replaces_rows=True
    ),
    "query": Kind(f"{_SPECS}.definition:QuerySpec", act=f"{_ACTS}.query:query"),
    "refresh_columns": Kind(f"{_SPECS}.columns:RefreshColumnsSpec", act=f"{_PLANS}.refresh_declared:refresh_columns"),
    "replace_where": Kind(
        f"{_SPECS}.edits:ReplaceWhereSpec",
        plan=f"{_PLANS}.replace_where:plan_replace",
        reexecutes=True,
        replaces_rows=True,
    ),
    "restore": Kind(f"{_SPECS}.maintenance:RestoreSpec", act=f"{_ACTS}.restore:restore"),
    "sql": Kind(f"{_SPECS}.definition:SqlSpec", act=f"{_ACTS}.sql:sql"),
    "switch_column": Kind(f"{_SPECS}.switch:SwitchColumnSpec", act=f"{_ACTS}.switch:switch"),
    "table_config": Kind(f"{_SPECS}.definition:TableConfigSpec", act=f"{_ACTS}.definition:table_config"),
    "tag": Kind(f"{_SPECS}.maintenance:TagSpec", act=f"{_ACTS}.tag:tag"),
    "undeclare_columns": Kind(f"{_SPECS}.columns:UndeclareColumnsSpec", act=f"{_ACTS}.declared:undeclare"),
    "update": Kind(f"{_SPECS}.edits:UpdateSpec", plan=f"{_PLANS}.update:plan_update", reexecutes=True),
    "validate": Kind(f"{_SPECS}.maintenance:ValidateSpec", act=f"{_ACTS}.validate:validate"),
}

_UNKNOWN = Kind("")


def kind_of(record: Mapping[str, Any]) -> Kind:
    """The row of a spec's record; an empty one for what is no kind of job."""
    return KINDS.get(str(record.get("kind")), _UNKNOWN)


def refresh_of(spec: JobSpec) -> Callable[..., Any] | None:
    """What brings staged work of this kind up to a newer version; None where it begins again."""
    place = KINDS[spec.kind].refresh
    return load(place) if place else None


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
    cls: type[JobSpec] = load(row.spec)
    return read_spec(cls, data)


def spec_from_json(text: str) -> JobSpec:
    """The spec of any kind from JSON text."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise InputError(f"a job spec must be JSON: {error}") from None
    return spec_from_plain(data)


def carry_out(spec: JobSpec, runner: Runner) -> JobResult:
    """Stage what a spec asks for, or do it where it takes effect at once (imports what that needs).

    Errors are LanceErrors with `retryable` set right, or whatever the runner's engine raised.
    """
    row = KINDS[spec.kind]
    report: JobResult | None = load(row.report)(spec, runner) if row.report else None
    if report is not None:
        return report
    if row.plan:
        from lance_core.jobs.runtime.lifecycle import stage

        return stage(spec, runner, load(row.plan), resumes=row.resumes)
    result: JobResult = load(row.act)(spec, runner)
    return result


def load(place: str) -> Any:
    """What stands at a place, `module:name`."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
