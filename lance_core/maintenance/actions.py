"""One action on one table, requested by a user: what a button does, in a worker.

::

    act("compact", "/t.lance", {}, identity="5d2c…")                   -> {"version": 8, "num_versions": 1, ...}
    act("tag", "/t.lance", {"name": "prod", "version": 7, "action": "set"}, identity="...")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from lance_core.errors import InputError, NotFoundError
from lance_core.io.resolve import resolve_store
from lance_core.jobs.api import with_options
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.definition import DescribeSpec
from lance_core.jobs.specs.edits import CompactSpec, MergeColumnFilesSpec
from lance_core.jobs.specs.indices import OptimizeIndicesSpec
from lance_core.jobs.specs.maintenance import CleanupSpec, GarbageSpec, RestoreSpec, TagSpec
from lance_core.jobs.specs.spec import CommitSpec, JobSpec
from lance_core.maintenance.doctor_checks import COLUMN_MERGE
from lance_core.maintenance.policy import ServiceLevels
from lance_core.publish.abort import abort_attempt
from lance_core.publish.attempts import list_staged
from lance_core.publish.decisions import settle_by_hand
from lance_core.publish.model import StagedTransaction

Arguments = Mapping[str, Any]
Options = Mapping[str, str]


def act(
    action: str,
    uri: str,
    arguments: Arguments,
    *,
    storage_options: Options | None = None,
    identity: str = "",
    asked: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Do it and return what was done. InputError for an unknown action; else what the job raises.

    `identity` makes a retry of the same request harmless; `asked` says who asked, for the table's history.
    """
    options = dict(storage_options or {})
    if action in _SPECS:
        spec = replace(with_options(_SPECS[action](uri, arguments), options), asked=dict(asked or {}))
        if identity:
            spec = replace(spec, identity=identity)
        return _run(spec, options)
    if action in _RECORDS:
        return _RECORDS[action](uri, arguments, options)
    raise InputError(f"unknown action {action!r}", cure=f"Known actions: {', '.join(sorted((*_SPECS, *_RECORDS)))}.")


def _run(spec: JobSpec, options: Options) -> dict[str, Any]:
    result = run_job(spec)
    if isinstance(result, StagedTransaction):
        result = run_job(CommitSpec.of([result], uri=spec.uri, storage_options=dict(options)))
    return dict(result.to_dict())


def _compact(uri: str, arguments: Arguments) -> JobSpec:
    levels = ServiceLevels()
    return CompactSpec(
        uri=uri,
        strategy="tiered",
        tier_fanout=levels.tier_fanout,
        target_rows_per_fragment=levels.target_rows_per_fragment,
        materialize_deletions_threshold=levels.max_deleted_share,
    )


def _cleanup(uri: str, arguments: Arguments) -> JobSpec:
    days, kept = arguments.get("older_than_days"), arguments.get("retain_versions")
    return CleanupSpec(uri=uri, older_than_seconds=None if days is None else days * 86400.0, retain_versions=kept)


def _restore(uri: str, arguments: Arguments) -> JobSpec:
    return RestoreSpec(uri=uri, version=arguments["version"], expected_version=arguments["expected_version"])


def _describe(uri: str, arguments: Arguments) -> JobSpec:
    """What is said of the table, or of one of its columns."""
    said = {name: arguments[name] for name in ("description", "owner") if arguments.get(name) is not None}
    column, fresh_within = arguments.get("column"), arguments.get("fresh_within")
    if column is None:
        return DescribeSpec(uri=uri, fresh_within=fresh_within, **said)
    if fresh_within is not None:
        raise InputError("describe: fresh_within is said of a table, not of a column", cure="Leave one of them out.")
    return DescribeSpec(uri=uri, columns={column: said})


def _abort(uri: str, arguments: Arguments, options: Options) -> dict[str, Any]:
    store = resolve_store(uri, options)
    identity, attempt = arguments["identity"], arguments.get("attempt")
    found = [entry for entry in list_staged(store, identity=identity) if attempt in (None, entry.attempt)]
    if not found:
        raise NotFoundError(
            f"nothing is staged as {identity}", uri=uri, cure="It may have been committed or been aborted in the meantime."
        )
    removed = [path for entry in found for path in abort_attempt(store, identity, entry.attempt)]
    return {"identity": identity, "attempts": [entry.attempt for entry in found], "files_removed": len(removed)}


def _settle(uri: str, arguments: Arguments, options: Options) -> dict[str, Any]:
    identity, version = arguments["identity"], arguments["version"]
    store = resolve_store(uri, options)
    settle_by_hand(store, identity, version=version)
    return {"identity": identity, "version": version}


_SPECS: Mapping[str, Callable[[str, Arguments], JobSpec]] = MappingProxyType(
    {
        "compact": _compact,
        "merge_columns": lambda uri, arguments: MergeColumnFilesSpec(
            uri=uri,
            max_files_per_fragment=COLUMN_MERGE.max_files_per_fragment,
            enough_files=COLUMN_MERGE.enough_files,
        ),
        "optimize_indices": lambda uri, arguments: OptimizeIndicesSpec(uri=uri),
        "cleanup": _cleanup,
        "gc": lambda uri, arguments: GarbageSpec(uri=uri),
        "tag": lambda uri, arguments: TagSpec(uri=uri, **arguments),
        "restore": _restore,
        "describe": _describe,
    }
)
_RECORDS: Mapping[str, Callable[[str, Arguments, Options], dict[str, Any]]] = MappingProxyType(
    {"abort": _abort, "settle": _settle}
)
