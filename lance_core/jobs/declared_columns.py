"""Declared columns for callers: declare, undeclare, refresh, check, with the functions that the caller allows.

::

    lance_core.declare_column("/t.lance", "words", sql="length(text)")
    lance_core.declare_column("/t.lance", "vector", function="our.models:embed", type=pa.list_(pa.float32(), 384),
                              inputs=["text"], version="3")
    lance_core.refresh_columns("/t.lance", functions=["our.models:embed"])

A table names functions and never makes them run: a function is called where the caller names it, or where the list of this
deployment (`LANCE_ALLOWED_CALLABLES`) holds it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa

from lance_core.computed.declaration import Declaration, declaration_of, find_declared
from lance_core.computed.declare import declare, undeclare
from lance_core.computed.failures import FailedRows, read_failed
from lance_core.computed.functions import Load, check_counter, code_digest, refuse_changing
from lance_core.computed.history import add_estimate, write_record
from lance_core.computed.limits import SpendingLimits
from lance_core.computed.policies import DEFAULT_RETRIES, OnError, check_batches, check_cache, check_policy
from lance_core.computed.refresh import RefreshOptions, RefreshReport, refresh
from lance_core.computed.workers import HereWorkers, WorkOptions
from lance_core.dataset.snapshot.snapshot import Snapshot, open_snapshot
from lance_core.errors import InputError
from lance_core.expr import columns_of, field_of, parse_filter, parse_value
from lance_core.format import declared
from lance_core.jobs.gates.canary import make_canary
from lance_core.jobs.sources.conform import misfit
from lance_core.jobs.specs.gates import GateSpec
from lance_core.jobs.specs.load_function import allowed_callables, load_function
from lance_core.jobs.specs.spec import from_plain

Uri = str | os.PathLike[str]
_MOST_AT_ONCE = 256
Functions = Collection[str] | Mapping[str, Any]


def declare_column(
    uri: Uri,
    name: str,
    *,
    sql: str | None = None,
    function: str | None = None,
    type: pa.DataType | None = None,
    inputs: Sequence[str] | None = None,
    version: str = "",
    arguments: Mapping[str, Any] | None = None,
    model: str = "",
    revision: str = "",
    where: str | None = None,
    on_error: OnError = "fail",
    retries: int = DEFAULT_RETRIES,
    batch_size: int | None = None,
    batch_bytes: int | None = None,
    batch_tokens: int | None = None,
    deterministic: bool = True,
    cache_bytes: int = 0,
    trust_existing: bool = False,
    functions: Functions | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> int:
    """Declare how a column is computed; returns the version that says so. Nothing is computed: `refresh_columns` does.

    Either `sql`, an expression over other columns, or `function`, "module:function" or "module:Class", which gets record
    batches of `inputs` with `arguments` (plain JSON values) and returns a value of `type` for each row. A column that the
    table does not have is added, and null until it is refreshed. `where`: only these rows are wanted. `on_error="skip"`: a
    row for which the function fails is null and noted as failed, in place of ending the refresh; a mapping says so by
    exception or status, and what is tried again, up to `retries` times, as
    `{"429": "retry", "ValueError": "skip", "*": "fail"}`. `batch_size`: rows of one call, 1,024 for functions unless given;
    `batch_bytes`, `batch_tokens`: fewer where their inputs have more bytes, or more tokens as the function's own
    `tokens(batch)` counts them for each row. A row that alone has more is a call of its own.

    `cache_bytes`: so many bytes of values that a function gave are kept beside the table, so that equal inputs are computed
    once, whatever becomes of the rows; 0 for none. `deterministic=False`: equal inputs may give other values, so no value
    that was computed for a row or by a refresh that ended stands for another one.

    The definition is what is passed here: another expression, function, `version`, `arguments`, `model` or `revision` makes
    every row stale; the function's code does not. `trust_existing`: the values that the column has are taken over, and only
    evidence is written: of all rows where it was not declared; where it was, with the same inputs, of those that are fresh
    by that definition.

    Raises InputError for a column that cannot be declared so, FilterError for SQL, CommitError.
    """
    snapshot = open_snapshot(uri, storage_options=storage_options)
    made, kind = declaration(
        snapshot,
        name,
        sql=sql,
        function=function,
        type=type,
        inputs=inputs,
        version=version,
        arguments=arguments,
        model=model,
        revision=revision,
        where=where,
        on_error=on_error,
        retries=retries,
        batch_size=batch_size,
        batch_bytes=batch_bytes,
        batch_tokens=batch_tokens,
        deterministic=deterministic,
        cache_bytes=cache_bytes,
        functions=functions,
    )
    former = _former(snapshot, name, made) if trust_existing else b""
    committed = declare(snapshot, name, made, kind)
    if trust_existing:
        workers = HereWorkers(loader(functions), WorkOptions(trusts=True, former=former))
        return refresh(committed, [name], workers, RefreshOptions(trust=frozenset({name}))).version
    return committed.version


def _former(snapshot: Snapshot, name: str, made: Declaration) -> bytes:
    """The identity of the definition that a column has, b"" for none from the same inputs."""
    known = next((item for item in declared.declared_fields(snapshot.manifest.schema) if item.name == name), None)
    if known is None:
        return b""
    before = declaration_of(known)
    return before.identity if before.inputs == made.inputs and before.identity != made.identity else b""


def declaration(
    snapshot: Snapshot,
    name: str,
    *,
    sql: str | None,
    function: str | None,
    type: pa.DataType | None,
    inputs: Sequence[str] | None,
    version: str,
    arguments: Mapping[str, Any] | None,
    model: str,
    revision: str,
    where: str | None,
    on_error: OnError,
    retries: int,
    batch_size: int | None,
    batch_bytes: int | None,
    batch_tokens: int | None,
    deterministic: bool,
    cache_bytes: int,
    functions: Functions | None,
) -> tuple[Declaration, pa.DataType | None]:
    """What `declare_column` would declare, and the type of a column that is added. InputError, FilterError."""
    if (sql is None) == (function is None):
        raise InputError("declare_column takes either sql or function", cure="Pass one of them.")
    check_policy(on_error, retries)
    check_batches(batch_size, batch_bytes, batch_tokens, is_sql=sql is not None)
    check_cache(deterministic, cache_bytes, is_sql=sql is not None)
    made = (
        _from_sql(snapshot, name, sql, type) if sql is not None else _from_function(function or "", inputs, type, functions)
    )
    if batch_tokens is not None and function is not None and isinstance(functions, Mapping) and function in functions:
        check_counter(function, functions[function])
    if sql is not None and inputs is not None:
        raise InputError("inputs cannot be combined with sql, which names them itself")
    computed, kind = made
    asked = () if where is None else columns_of(parse_filter(where, snapshot.arrow_schema))
    return (
        Declaration(
            kind=computed.kind,
            expression=computed.expression,
            inputs=tuple(dict.fromkeys([*computed.inputs, *sorted(asked)])),
            version=version,
            arguments=_plain(arguments or {}),
            model=model,
            revision=revision,
            where=where or "",
            on_error=on_error,
            retries=retries,
            batch_size=batch_size,
            batch_bytes=batch_bytes,
            batch_tokens=batch_tokens,
            deterministic=deterministic,
            cache_bytes=cache_bytes,
            code=computed.code,
        ),
        kind,
    )


def _from_sql(snapshot: Snapshot, name: str, sql: str, kind: pa.DataType | None) -> tuple[Declaration, pa.DataType | None]:
    expr = parse_value(sql, snapshot.arrow_schema)
    refuse_changing(expr, sql)
    gives = field_of(name, expr, snapshot.arrow_schema).type
    there = snapshot.arrow_schema.field(name).type if name in snapshot.arrow_schema.names else None
    target = kind or there
    if target is not None and misfit(gives, target, name) is not None:
        whose = "declared as" if there is None else "in the table"
        raise InputError(
            f"column {name!r} is {target} {whose}, but {sql!r} gives {gives}",
            uri=snapshot.uri,
            cure=f"CAST the expression to {target}, or give the column another name.",
        )
    return Declaration("sql", sql, tuple(sorted(columns_of(expr)))), kind or (gives if there is None else None)


def _from_function(
    name: str, inputs: Sequence[str] | None, kind: pa.DataType | None, functions: Functions | None
) -> tuple[Declaration, pa.DataType | None]:
    if not inputs:
        raise InputError("a declared function needs inputs: the columns that it reads", cure="Pass inputs=[...].")
    module, colon, path = name.partition(":")
    if not (module and colon and path):
        raise InputError(f"function must be 'module:function', got {name!r}")
    found = functions.get(name) if isinstance(functions, Mapping) else None
    if found is None and name in (functions or ()):
        found = load_function(name)
    return Declaration("python", name, tuple(inputs), code="" if found is None else code_digest(found)), kind


def _plain(arguments: Mapping[str, Any]) -> dict[str, Any]:
    import json

    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(arguments), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InputError(f"arguments of a declared function must be plain JSON values: {error}") from error
    return plain


def undeclare_column(uri: Uri, name: str, *, storage_options: Mapping[str, str] | None = None) -> int:
    """Take a declaration back; returns the version. The column keeps its values, its evidence goes.

    InputError when the column is not declared.
    """
    return undeclare(open_snapshot(uri, storage_options=storage_options), name).version


def refresh_columns(
    uri: Uri,
    columns: Sequence[str] | None = None,
    *,
    functions: Functions | None = None,
    commit_every: int = 16,
    dry_run: bool = False,
    deep: bool = False,
    retry_failed: bool = True,
    max_rows: int | None = None,
    max_seconds: float | None = None,
    max_spent: Mapping[str, float] | None = None,
    concurrency: int = 1,
    calls_per_second: float | None = None,
    canary: int | None = None,
    canary_fragments: int | None = None,
    gates: Sequence[GateSpec | Mapping[str, Any]] = (),
    storage_options: Mapping[str, str] | None = None,
) -> RefreshReport:
    """Compute what is new, changed, failed, written over or of an older definition, and nothing else.

    `columns`: declared ones, None for all; each comes after those that it reads. `functions`: the functions that may run, by
    name ("module:function") or as a mapping of names to objects; others only where `LANCE_ALLOWED_CALLABLES` holds them.
    `commit_every`: fragments that are published in one version. `dry_run`: count, compute and write nothing. `deep`: read
    every fragment, also those that an earlier refresh noted as fresh. `retry_failed=False`: rows that failed stay so.

    `max_rows`, `max_seconds`, `max_spent` (by the names of a function's `Computed`) end the refresh when they are used up:
    what was computed is published, the rest stays stale, the report says which bound it was (`stopped`). `concurrency`:
    calls of a function that are made at once, in threads. `calls_per_second`: no more of them begin.

    `gates`: what must hold for the first `canary` stale rows of each column (1,000, or those of `canary_fragments`) before
    any value is published, as `[{"max_null_rates": {"vector": 0.01}, "norms": {"vector": [0.9, 1.1]}}]`. Where a gate
    fails, the former values stay and the computed ones wait.

    Raises InputError for a column that is not declared and for a function that is not allowed, GateFailedError for a gate
    that the canary does not pass, CommitError, and whatever a function raises where its declaration says `on_error="fail"`.
    """
    if isinstance(columns, str):
        raise InputError(f"columns must be a list of names, got {columns!r}", cure=f"Pass [{columns!r}].")
    if commit_every < 1:
        raise InputError(f"commit_every must be at least 1, got {commit_every}")
    work = work_options(
        dry_run=dry_run, deep=deep, retry_failed=retry_failed, concurrency=concurrency, calls_per_second=calls_per_second
    )
    budget = SpendingLimits(max_rows, max_seconds, dict(max_spent or {}))
    snapshot = open_snapshot(uri, storage_options=storage_options)
    asked = [gate if isinstance(gate, GateSpec) else from_plain(GateSpec, gate, where="gates") for gate in gates]
    first = make_canary(canary, canary_fragments, asked, refreshed(snapshot, columns))
    options = RefreshOptions(commit_every=commit_every, deep=deep, work=work, budget=budget, canary=first)
    report = refresh(snapshot, columns, HereWorkers(loader(functions), work), options)
    if dry_run:
        add_estimate(report, snapshot.store)
    elif report.fragments_written:
        write_record(snapshot.store, report)
    return report


def refreshed(snapshot: Snapshot, columns: Sequence[str] | None) -> list[str]:
    """The columns that are refreshed, where these are requested, or all."""
    return [*columns] if columns else [item.name for item in declared.declared_fields(snapshot.manifest.schema)]


def work_options(
    *, dry_run: bool, deep: bool, retry_failed: bool, concurrency: int, calls_per_second: float | None
) -> WorkOptions:
    """What is to be done with fragments. InputError for a number that cannot be."""
    if not 1 <= concurrency <= _MOST_AT_ONCE:
        raise InputError(f"concurrency must be between 1 and {_MOST_AT_ONCE}, got {concurrency}")
    if calls_per_second is not None and not calls_per_second > 0:
        raise InputError(f"calls_per_second must be more than 0, got {calls_per_second}")
    return WorkOptions(
        dry_run=dry_run, deep=deep, retry_failed=retry_failed, concurrency=concurrency, calls_per_second=calls_per_second
    )


def failed_rows(uri: Uri, column: str, *, storage_options: Mapping[str, str] | None = None) -> FailedRows:
    """The rows of a declared column for which its function failed when it was last tried, 10,000 of them at most.

    InputError when the column is not declared.
    """
    snapshot = open_snapshot(uri, storage_options=storage_options)
    item = find_declared(snapshot.manifest.schema, column)
    column_id = declared.text_of(item.metadata, declared.ID)
    return read_failed(snapshot.store, column_id) if declared.is_column_id(column_id) else FailedRows()


def loader(functions: Functions | None, *, held: Mapping[str, Any] | None = None) -> Load:
    """What loads a function that a table names, where the caller or the deployment allows it; those of `held` are loaded."""

    def load(name: str) -> Any:
        if held is not None and name in held:
            return held[name]
        if isinstance(functions, Mapping) and name in functions:
            return functions[name]
        if name not in (functions or ()) and not allowed_callables():
            raise InputError(
                f"the table declares the function {name[:200]!r}, which the caller did not name",
                cure="Pass functions=[its name], or list it in [lance] allowed_callables.",
            )
        return load_function(name)

    return load
