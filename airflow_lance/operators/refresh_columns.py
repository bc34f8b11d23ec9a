"""Keep declared columns true: compute the rows that are not, here or on Spark, and publish them some fragments at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_lance.compat import Context
from airflow_lance.execution.refreshed import finish_refresh, require_own_publication, rows_told
from airflow_lance.lineage import Touched
from airflow_lance.operators.stage import LanceStageOperator
from lance_core.errors import InputError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.execution.spark_settings import SparkSettings
    from airflow_lance.signatures import StageArguments
    from lance_core.jobs.specs.spec import JobSpec


class LanceRefreshColumnsOperator(LanceStageOperator):
    """Compute the rows of declared columns that are new, changed, failed, written over or of an older definition, and
    publish them. A kill keeps what was published, and values that a function gave: the next try goes on.

    It publishes itself, so it takes no commit task. Its gates look at the canary: the rows of each column that are computed
    first; where one fails, nothing is published, and what was computed waits. A person's clear refreshes once more, which
    computes what is stale then. The result has the counts of each column. Arguments of `LanceStageOperator`, and

    Args:
        columns: declared columns; none means all. (templated)
        functions: the functions that may run, as "module:name". A table names functions, and they run only where this
            argument or `[lance] allowed_callables` names them too.
        commit_every: fragments that are published in one version; on Spark, also those computed at a time. (templated)
        deep: read every fragment, also those that were noted as fresh.
        retry_failed: whether rows for which the function failed before are tried.
        max_rows: end when so many rows were given to functions; the rest stays stale for the next run. (templated)
        max_seconds: end after so many seconds. (templated)
        max_spent: end when functions have spent so much, by the names of their `Computed`, as `{"usd": 20}`.
        concurrency: calls of a function that are made at once, in threads of each task.
        calls_per_second: calls that begin in a second at most, for each task.
        rows_per_task: on Spark, a task takes fragments of about so many rows. (templated)
        task_resources: on Spark, what one task needs, as `{"cpus": 2}` or `{"gpu": 1}`; `{"gpu": 0.25}`: four tasks share a
            device. For jobs that spark-submit starts. No test has seen a GPU.
        canary: rows of each column that are computed first, for `gates`; 1,000 where there are gates. (templated)
        canary_fragments: in place of it, the rows of so many fragments.
        dry_run: only count, in the worker: rows, bytes of their inputs, and the price by the last refresh that told one.

    Raises:
        InputError: `task_resources` without a job of spark-submit.
        AirflowFailException: a function that is not allowed, one that fails where its declaration says "fail", or a gate
            that the canary does not pass.
    """

    spec = "lance_core.jobs.specs.columns:RefreshColumnsSpec"
    renamed: ClassVar[Mapping[str, str]] = {"dry_run": "only_report"}

    keeps_on_kill = True

    template_fields: Sequence[str] = (
        *LanceStageOperator.template_fields, "columns", "commit_every", "max_rows", "max_seconds", "rows_per_task", "canary",
    )  # fmt: skip

    def __init__(
        self,
        *,
        columns: Sequence[str] = (),
        functions: Sequence[str] = (),
        commit_every: int | str | None = None,
        deep: bool = False,
        retry_failed: bool = True,
        max_rows: int | str | None = None,
        max_seconds: float | str | None = None,
        max_spent: Mapping[str, float] | None = None,
        concurrency: int | None = None,
        calls_per_second: float | None = None,
        rows_per_task: int | str | None = None,
        task_resources: Mapping[str, float] | None = None,
        canary: int | str | None = None,
        canary_fragments: int | None = None,
        dry_run: bool = False,
        **kwargs: Unpack[StageArguments],
    ) -> None:
        super().__init__(**kwargs)
        require_own_publication(self, takes_gates=True)
        self.columns = columns
        self.functions = functions
        self.commit_every = commit_every
        self.deep = deep
        self.retry_failed = retry_failed
        self.max_rows = max_rows
        self.max_seconds = max_seconds
        self.max_spent = dict(max_spent or {})
        self.concurrency = concurrency
        self.calls_per_second = calls_per_second
        self.rows_per_task = rows_per_task
        self.task_resources = dict(task_resources or {})
        self.canary = canary
        self.canary_fragments = canary_fragments
        self.only_report = dry_run  # BaseOperator has a method of that name

    def resolve_template_files(self) -> None:
        """Airflow calls this once the DAG is complete: the time to check the arguments."""
        super().resolve_template_files()
        if not self.task_resources:
            return
        from airflow_lance.execution.task_resources import check_resources

        check_resources(self.task_resources, where=f"{self.task_id}: task_resources")
        if self.execution not in ("spark-submit", "auto"):
            raise InputError(
                f"{self.task_id}: task_resources cannot be combined with execution={self.execution!r}",
                cure="They are for jobs of spark-submit; a Spark Connect server has its own settings.",
            )

    def _spark_settings(self) -> SparkSettings:
        """Those of every job, with what a task needs."""
        from airflow_lance.execution.task_resources import resources_conf

        settings = super()._spark_settings()
        return replace(settings, conf=resources_conf(self.task_resources, settings.conf))

    def execute(self, context: Context) -> dict[str, Any]:
        """Refresh once, or report what a refresh would do."""
        if not self.only_report:
            return super().execute(context)
        from airflow_lance.execution.results import bounded
        from lance_core.jobs import api

        return bounded({"operation": "refresh_columns", **self.report(context, api.refresh_lines)})

    def spec_fields(self) -> dict[str, Any]:
        """The spec's fields; seconds may be a template."""
        fields = super().spec_fields()
        seconds = self.max_seconds
        return fields if seconds is None else {**fields, "max_seconds": float(seconds)}

    def _finish(
        self, reference: dict[str, Any], spec: JobSpec, options: Mapping[str, Any], context: Context
    ) -> dict[str, Any]:
        """What the refresh did. It is published already."""
        result = finish_refresh(self, reference, spec, options, context)
        rows, failed = rows_told(result)
        self._touched = Touched(spec.uri, version=result["version"], rows=rows, failed_rows=failed)
        return result
