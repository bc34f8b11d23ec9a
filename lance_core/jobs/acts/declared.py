"""Declare columns and take declarations back; each is idempotent.

A definition that takes the place of another one makes every row of the column stale, and what computes them may cost money:
it is refused, with the number of rows, unless the spec confirms it.
"""

from __future__ import annotations

import logging
from typing import Any

import pyarrow as pa

from lance_core.computed.declaration import declaration_of
from lance_core.dataset.snapshot.snapshot import open_snapshot
from lance_core.errors import InputError
from lance_core.format.declared import declared_fields
from lance_core.jobs.declared_columns import declaration, declare_column, undeclare_column
from lance_core.jobs.runtime.protocols import Report, Runner
from lance_core.jobs.sources.spark_ddl import parse_ddl
from lance_core.jobs.specs.columns import DeclareColumnSpec, UndeclareColumnsSpec
from lance_core.jobs.specs.load_function import load_function

log = logging.getLogger(__name__)


def declare(spec: DeclareColumnSpec, runner: Runner | None = None) -> Report:
    """Report {"version", "column", "declared", "skipped"}; InputError for another definition that is not confirmed."""
    snapshot = open_snapshot(spec.uri, storage_options=spec.resolved_options())
    other = next((item for item in declared_fields(snapshot.manifest.schema) if item.name == spec.unless), None)
    if other is not None and declaration_of(other).version == spec.version:
        return _report(spec, snapshot.version, declared=False, skipped=True)
    known = next((item for item in declared_fields(snapshot.manifest.schema) if item.name == spec.column), None)
    before = None if known is None else declaration_of(known)
    held = {} if runner is None else runner.functions
    functions = held if spec.function in held else _loadable(spec.function)
    arguments: dict[str, Any] = {
        "sql": spec.sql,
        "function": spec.function,
        "type": _type_of(spec),
        "inputs": list(spec.inputs) if spec.function is not None else None,
        "version": spec.version,
        "arguments": spec.arguments,
        "model": spec.model,
        "revision": spec.revision,
        "where": spec.where,
        "on_error": spec.on_error if isinstance(spec.on_error, str) else dict(spec.on_error),
        "retries": spec.error_retries,
        "batch_size": spec.batch_size,
        "batch_bytes": spec.batch_bytes,
        "batch_tokens": spec.batch_tokens,
        "deterministic": spec.deterministic,
        "cache_bytes": spec.cache_bytes,
        "functions": functions,
    }
    made, _ = declaration(snapshot, spec.column, **arguments)
    is_same = before is not None and made.identity == before.identity
    if before is not None and is_same:
        if _rest(made) == _rest(before) and not spec.trust_existing:
            return _report(spec, snapshot.version, declared=False)
        _warn_of_code(spec, before.code, made.code)
    if before is not None and not is_same and not (spec.confirm or spec.trust_existing):
        raise InputError(
            f"column {spec.column!r} of {spec.uri} is declared otherwise, and by the new definition all its "
            f"{snapshot.manifest.num_rows:,} rows would be computed again",
            uri=spec.uri,
            version=snapshot.version,
            cure="Look at the figures of a dry run, then pass confirm=True.",
        )
    version = declare_column(
        spec.uri, spec.column, trust_existing=spec.trust_existing, storage_options=spec.resolved_options(), **arguments
    )
    return _report(spec, version, declared=True)


def _warn_of_code(spec: DeclareColumnSpec, before: str, now: str) -> None:
    if before and now and before != now:
        log.warning(
            "the code of %s changed, the version %r of column %r of %s did not: no row is computed again for it. "
            "Declare it with another version if it means something else now.",
            spec.function,
            spec.version,
            spec.column,
            spec.uri,
        )


def undeclare(spec: UndeclareColumnsSpec, runner: Runner | None = None) -> Report:
    """Report {"version", "undeclared"}."""
    options = spec.resolved_options()
    snapshot = open_snapshot(spec.uri, storage_options=options)
    known = {item.name for item in declared_fields(snapshot.manifest.schema)}
    there = [name for name in spec.columns if name in known]
    version = snapshot.version
    for name in spec.columns:
        if name in there:
            version = undeclare_column(spec.uri, name, storage_options=options)
        else:
            log.warning("%s declares no column %r", spec.uri, name)
    return Report(spec.kind, {"version": version, "undeclared": there})


def _rest(declared: Any) -> tuple[Any, ...]:
    """What a declaration says besides its identity and what code it was declared with."""
    policy = declared.on_error if isinstance(declared.on_error, str) else dict(declared.on_error)
    return (
        policy, declared.retries, declared.batch_size, declared.batch_bytes, declared.batch_tokens, declared.deterministic,
        declared.cache_bytes, declared.code,
    )  # fmt: skip


def _loadable(function: str | None) -> list[str] | None:
    """The function, where this process can load it: the digest of its code is noted. Else executors alone have it."""
    if function is None:
        return None
    try:
        load_function(function)
    except InputError as error:
        log.info("the code of %s is not noted: %s", function, error)
        return None
    return [function]


def _type_of(spec: DeclareColumnSpec) -> pa.DataType | None:
    if spec.data_type is None:
        return None
    found = parse_ddl(f"x {spec.data_type}").field(0).type
    return found if spec.list_size is None else pa.list_(found, spec.list_size)


def _report(spec: DeclareColumnSpec, version: int, *, declared: bool, skipped: bool = False) -> Report:
    log.info("column %s of %s is %s: version %d", spec.column, spec.uri, "declared" if declared else "as declared", version)
    return Report(spec.kind, {"version": version, "column": spec.column, "declared": declared, "skipped": skipped})
