"""Columns that a task adds and keeps: declared and refreshed in one job; and a fill of columns that are declared so.

::

    add_columns {"words": "length(text)"}, maintained    declare "words", where it is not; refresh it
    add_columns {"words": "length(text)"}, if_exists="fill", where "words" is declared as just that    refresh it

Both are published by the job, as a refresh is: nothing is left to be staged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import pyarrow as pa

from lance_core.computed.declaration import Declaration, declaration_of
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import InputError
from lance_core.format.declared import declared_fields
from lance_core.jobs.declared_columns import declare_column
from lance_core.jobs.plans.column_parts import columns_of
from lance_core.jobs.plans.refresh_declared import refresh_as
from lance_core.jobs.runtime.protocols import Runner
from lance_core.jobs.specs.columns import RefreshColumnsSpec
from lance_core.jobs.specs.edits import AddColumnsSpec
from lance_core.jobs.specs.spec import JobSpec


def keep_columns(spec: AddColumnsSpec, snapshot: Snapshot, runner: Runner) -> bool:
    """Refresh the columns where the job is to keep them, or to fill what is declared; False where it is to do neither.

    InputError for a column that is not declared as the job computes it.
    """
    if not (spec.maintained or spec.if_exists == "fill") or spec.source is not None or spec.engine != "lance":
        return False
    kinds = _kinds(spec, snapshot)
    known = {item.name: declaration_of(item) for item in declared_fields(snapshot.manifest.schema) if item.name in kinds}
    if spec.maintained:
        for name, kind in kinds.items():
            _declare(spec, snapshot, name, kind, known.get(name))
    elif known.keys() != kinds.keys() or not all(_is_same(spec, name, found) for name, found in known.items()):
        return False  # what is declared otherwise is refused there
    common = {item.name: getattr(spec, item.name) for item in fields(JobSpec)}
    functions = () if spec.function is None else (spec.function,)
    refresh = RefreshColumnsSpec(
        **common,
        columns=(*kinds,),
        functions=functions,
        rows_per_task=spec.rows_per_task,
        progress_seconds=spec.progress_seconds,
    )
    refresh_as(spec, refresh, runner)
    return True


def _kinds(spec: AddColumnsSpec, snapshot: Snapshot) -> Mapping[str, pa.DataType | None]:
    """The columns and their types; None for SQL, whose type the declaration finds."""
    if spec.function is None:
        return dict.fromkeys(spec.columns)
    made = columns_of(spec).of_function(snapshot)
    if spec.maintained and len(made.names) != 1:
        raise InputError(
            f"add_columns: {spec.function} returns the columns {', '.join(made.names)}, and a column that is maintained has "
            "a function of its own",
            cure="Give each column a function that returns it alone.",
        )
    return {item.name: item.type for item in made}


def _declare(
    spec: AddColumnsSpec, snapshot: Snapshot, name: str, kind: pa.DataType | None, known: Declaration | None
) -> None:
    """One commit where the table has no such column, none where it is declared so."""
    if known is not None:
        if not _is_same(spec, name, known):
            raise InputError(
                f"column {name!r} of {spec.uri} is declared otherwise, and by the new definition all its "
                f"{snapshot.manifest.num_rows:,} rows would be computed again",
                uri=spec.uri,
                version=snapshot.version,
                cure="Declare it with a LanceDeclareColumnOperator and confirm=True, or give the column another name.",
            )
        return
    if name in snapshot.arrow_schema.names:
        raise InputError(
            f"column {name!r} of {spec.uri} is not declared, and maintaining it would compute all its values again",
            uri=spec.uri,
            version=snapshot.version,
            cure="Declare it with a LanceDeclareColumnOperator and trust_existing=True, or give the column another name.",
        )
    declare_column(
        spec.uri,
        name,
        sql=spec.columns.get(name),
        function=spec.function,
        type=kind,
        inputs=spec.reads if spec.function is not None else None,
        arguments=spec.kwargs,
        batch_size=spec.batch_size,
        functions=None if spec.function is None else [spec.function],
        storage_options=spec.resolved_options(),
    )


def _is_same(spec: AddColumnsSpec, name: str, known: Declaration) -> bool:
    """Whether a column is declared as the job computes it; version, model and what else only a declaration says aside."""
    expression = spec.columns.get(name) if spec.function is None else spec.function
    reads = known.inputs if spec.reads is None else spec.reads
    kind = "sql" if spec.function is None else "python"
    return (kind, expression, {*reads}, dict(spec.kwargs)) == (
        known.kind, known.expression, {*known.inputs}, dict(known.arguments),
    )  # fmt: skip
