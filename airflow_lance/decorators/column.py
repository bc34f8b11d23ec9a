"""`@task.lance_column`: a function computes a column, and the task keeps it true.

::

    @task.lance_column(uri="reviews.lance", column="words", inputs=["text"], data_type="int", version="1")
    def words(batch: pyarrow.RecordBatch) -> pyarrow.Array: ...

    words()                          -> XCom {"uri": ..., "version": 4, "columns": {"words": {"new": 150, ...}}, ...}

The task declares the column, which is no version where it is declared so, and refreshes it: the function gets record batches
of the rows that are new, changed, failed, written over or of an older definition, and of no others. What the task is called
with, as in `words(minimum=3)`, are the function's arguments and part of the definition. A class is made once for a refresh.

The declaration names the function by its module and name; the name of a DAG file's module differs from host to host, so
the name of the file stands for it. Only this task has such a function: another refresh needs one that it can import.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from airflow_lance.compat import Context, DecoratedOperator, task_decorator_factory
from airflow_lance.execution.errors import as_airflow_errors
from airflow_lance.operators.refresh_columns import LanceRefreshColumnsOperator
from lance_core.errors import InputError

if TYPE_CHECKING:
    from airflow.sdk.bases.decorator import Task
    from typing_extensions import ParamSpec, Unpack

    from airflow_lance.signatures import ColumnArguments
    from lance_core.jobs.api import Runner

    P = ParamSpec("P")
    R = TypeVar("R")

_ONLY_HERE = ("commit", "execution", "spark_conn_id", "conf", "spark_submit", "packaging", "deferrable", "dry_run")


class _KeepsAColumn(DecoratedOperator, LanceRefreshColumnsOperator):
    """Declares a column by the decorated function, and refreshes it in the worker."""

    custom_operator_name: str = "@task.lance_column"

    template_fields: Sequence[str] = (
        *DecoratedOperator.template_fields,
        *(name for name in LanceRefreshColumnsOperator.template_fields if name != "columns"),
        "definition",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **DecoratedOperator.template_fields_renderers,
        **LanceRefreshColumnsOperator.template_fields_renderers,
        "definition": "json",
    }

    def __init__(self, *, column: str, definition: Mapping[str, Any], **kwargs: Any) -> None:
        super().__init__(columns=[column], **{**kwargs, "execution": "local"})
        self.definition = dict(definition)

    def execute(self, context: Context) -> dict[str, Any]:
        """Declare the column, unless it is declared so, and refresh it once."""
        with as_airflow_errors(self.uri, on_missing=self.on_missing):
            self._declare()
        return LanceRefreshColumnsOperator.execute(self, context)

    @property
    def _functions(self) -> dict[str, Any]:
        """The decorated function, by the name that the declaration has: that of its file, wherever it lies."""
        from lance_core.jobs import api

        function = self.python_callable.__wrapped__  # type: ignore[attr-defined]
        return {api.declared_name(function): function}

    def _declare(self) -> None:
        from lance_core.jobs import api
        from lance_core.jobs.specs.columns import DeclareColumnSpec

        options = self.store_options()
        definition = {**self.definition, "inputs": tuple(self.definition["inputs"])}
        function = next(iter(self._functions))
        spec = DeclareColumnSpec(
            uri=self.table_uri(), column=self.columns[0], function=function, arguments=dict(self.op_kwargs), **definition
        )
        api.run(spec, options=options, runner=self._local_runner(options))

    def _local_runner(self, options: Mapping[str, Any]) -> Runner:
        """One that has the function itself."""
        from lance_core.jobs import api

        return api.make_runner(lambda _: options, functions=self._functions)


def _called_without_batch(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as the DAG calls it: without the batch, which a refresh passes."""

    @wraps(function, updated=())
    def called(*args: Any, **kwargs: Any) -> Any:
        raise InputError(f"{function.__name__} is called by a refresh alone")

    parameters = list(inspect.signature(function).parameters.values())
    if not inspect.isclass(function):
        if not parameters:
            raise InputError(
                f"@task.lance_column: {function.__name__} takes no batch", cure="Give it one argument: the batch."
            )
        parameters = parameters[1:]
    keywords = [
        item if item.kind is item.VAR_KEYWORD else item.replace(kind=item.KEYWORD_ONLY)
        for item in parameters
        if item.kind is not item.VAR_POSITIONAL
    ]
    called.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    return called


def lance_column_task(
    python_callable: Callable[..., Any] | None = None,
    *,
    uri: str | os.PathLike[str],
    column: str,
    inputs: Sequence[str],
    data_type: str | None = None,
    list_size: int | None = None,
    version: str = "",
    model: str = "",
    revision: str = "",
    where: str | None = None,
    on_error: str | Mapping[str, str] = "fail",
    error_retries: int = 3,
    batch_size: int | None = None,
    batch_bytes: int | None = None,
    batch_tokens: int | None = None,
    deterministic: bool = True,
    cache_bytes: int = 0,
    confirm: bool = False,
    **kwargs: Unpack[ColumnArguments],
) -> Callable[[Callable[P, R]], Task[P, R]]:
    """The decorator.

    Args:
        uri: the table, as for an operator.
        column: its name; a column that the table does not have is added.
        inputs: the columns that the function reads.
        data_type: the type of a column that is added, as in Spark DDL, such as "string" or "float".
        list_size: the column is a vector of so many values of `data_type`.
        version: of the definition: another one makes every row stale, and needs `confirm`. (templated)
        model: a part of the definition, for people. (templated)
        revision: a part of the definition, for people. (templated)
        where: SQL; the other rows are not computed and hold null. (templated)
        on_error: what becomes of a row for which the function fails: "fail" ends the refresh, "skip" remembers the row; a
            mapping says so by exception or status: `{"429": "retry", "ValueError": "skip", "*": "fail"}`.
        error_retries: how often a call is made again where `on_error` says "retry".
        batch_size: rows of one call, 1,024 unless given.
        batch_bytes: bytes of the inputs of one call; a row that alone has more is a call of its own.
        batch_tokens: tokens of one call, as the function's own `tokens(batch)` counts them for each row.
        deterministic: whether the function gives equal values for equal inputs; else no value stands for another row.
        cache_bytes: bytes of values that are kept beside the table for equal inputs, 0 for none.
        confirm: a definition that takes the place of another one makes every row stale, and is an error without it.
        kwargs: those of `LanceRefreshColumnsOperator` for a refresh in the worker, such as `max_rows`, `max_spent`,
            `concurrency`, `canary` and `gates`.
    """
    given = sorted(kwargs.keys() & set(_ONLY_HERE))
    if given:
        raise InputError(
            f"@task.lance_column computes in the worker and publishes itself, so it takes no {given[0]}",
            cure="Declare the column with LanceDeclareColumnOperator, and refresh it with LanceRefreshColumnsOperator.",
        )
    definition = {
        "inputs": list(inputs), "data_type": data_type, "list_size": list_size, "version": version, "model": model,
        "revision": revision, "where": where, "on_error": on_error, "error_retries": error_retries, "batch_size": batch_size,
        "batch_bytes": batch_bytes, "batch_tokens": batch_tokens, "deterministic": deterministic, "cache_bytes": cache_bytes,
        "confirm": confirm,
    }  # fmt: skip

    def decorate(function: Callable[..., Any]) -> Any:
        return task_decorator_factory(
            python_callable=_called_without_batch(function),
            decorated_operator_class=_KeepsAColumn,
            uri=uri,
            column=column,
            definition=definition,
            **kwargs,
        )

    return decorate(python_callable) if python_callable is not None else decorate


__all__: Sequence[str] = ["lance_column_task"]
