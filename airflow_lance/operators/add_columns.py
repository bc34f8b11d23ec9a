"""Add columns, computed fragment by fragment: staged now, published by the commit task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow_lance.compat import Context
from airflow_lance.execution.refreshed import finish_refresh, require_own_publication, rows_told
from airflow_lance.lineage import Touched
from airflow_lance.operators.stage import LanceStageOperator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import StageArguments
    from lance_core.jobs.specs.spec import JobSpec, SourceSpec


class LanceAddColumnsOperator(LanceStageOperator):
    """Stage new columns. Fragments that are done stay done: a retry computes only the others, and rows that others append
    in the meantime are filled in by the commit task. A kill keeps what is finished; garbage collection removes it when
    nobody comes back within an hour.

    Arguments of `LanceStageOperator`, and one of columns, function, source:

    Args:
        columns: name -> SQL over the table's columns. (templated)
        engine: whose SQL that is: "lance", which runs anywhere, or "spark", evaluated by Spark with all its functions.
        function: "module:function", given record batches of `reads`; returns a batch of the new columns with as many
            rows. (templated)
        reads: the columns that the function needs, None means all; those that Spark is given, None means those whose
            names stand in the SQL.
        function_kwargs: keyword arguments of the function. (templated)
        source: rows to join, as for an append; keys must be unique. (templated)
        on: the table's key column for the join. (templated)
        source_on: the source's key column; None is `on`. (templated)
        if_exists: what becomes of a column that the table has: "fail" is an error; "skip" leaves it as it is, and the task
            does nothing when all are there; "fill" computes the rows in which it is null, such as those appended since. The
            log says how many rows were computed; a row for which the function answers null is computed again by each run.
            A column that is declared as this task computes it is refreshed instead.
        maintained: declare the columns, and refresh them: this run computes all rows, a later one those that are new,
            changed, failed or written over, as a `LanceRefreshColumnsOperator` does. The task publishes itself, so it takes
            neither gates nor a commit task; a person's clear refreshes once more. With Lance's own SQL, or a function that
            returns one column, whose inputs `reads` names. Another definition is an error:
            `LanceDeclareColumnOperator` declares it, and says what only it can, such as `version`, `where`, `on_error`.
        rows_per_task: a task takes fragments of about so many rows. (templated)
        batch_size: rows of one batch. (templated)
        properties: text that is kept in the transaction. (templated)

    Raises:
        AirflowFailException: a column that exists where `if_exists` says "fail", SQL that does not fit the columns, or a
            function that fails.
    """

    spec = "lance_core.jobs.specs.edits:AddColumnsSpec"
    renamed: ClassVar[Mapping[str, str]] = {"kwargs": "function_kwargs"}

    keeps_on_kill = True

    template_fields: Sequence[str] = (
        *LanceStageOperator.template_fields,
        "columns", "function", "function_kwargs", "source", "on", "source_on", "rows_per_task", "batch_size", "properties",
    )  # fmt: skip
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **LanceStageOperator.template_fields_renderers,
        "columns": "json", "function_kwargs": "json", "source": "json", "properties": "json",
    }  # fmt: skip

    def __init__(
        self,
        *,
        columns: Mapping[str, str] | None = None,
        engine: Literal["lance", "spark"] = "lance",
        function: str | None = None,
        reads: Sequence[str] | None = None,
        function_kwargs: Mapping[str, Any] | None = None,
        source: Mapping[str, Any] | SourceSpec | None = None,
        on: str | None = None,
        source_on: str | None = None,
        if_exists: Literal["fail", "skip", "fill"] = "fail",
        maintained: bool = False,
        rows_per_task: int | str | None = None,
        batch_size: int | str | None = None,
        properties: Mapping[str, str] | None = None,
        **kwargs: Unpack[StageArguments],
    ) -> None:
        super().__init__(**kwargs)
        self.columns = dict(columns or {})
        self.engine = engine
        self.function = function
        self.reads = reads
        self.function_kwargs = dict(function_kwargs or {})
        self.source = source
        self.on = on
        self.source_on = source_on
        self.if_exists = if_exists
        self.maintained = maintained
        if maintained:
            require_own_publication(self)
        self.rows_per_task = rows_per_task
        self.batch_size = batch_size
        self.properties = dict(properties or {})

    def _finish(
        self, reference: dict[str, Any], spec: JobSpec, options: Mapping[str, Any], context: Context
    ) -> dict[str, Any]:
        """The reference for the commit, or what the commit did; of maintained columns what their refresh did."""
        if not self.maintained:
            return super()._finish(reference, spec, options, context)
        result = finish_refresh(self, reference, spec, options, context)
        rows, failed = rows_told(result)
        self._touched = Touched(spec.uri, version=result["version"], rows=rows, failed_rows=failed)
        return result
