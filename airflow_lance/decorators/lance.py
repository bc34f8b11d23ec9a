"""`@task.lance`: a function returns rows, and the task writes them into a table exactly once.

::

    @task.lance(uri="flights.lance", mode="merge", on="id")
    def corrections(day: str) -> pandas.DataFrame: ...

    corrections("2013-01-01")        -> XCom {"uri": ..., "version": 4, "rows_added": 150, ...}

The function may return an Arrow table, batch, reader or dataset, a pandas or Polars frame, a list of rows, a mapping of
columns, or an iterator of any of these. It is not called when its work was committed already; the function's arguments are
part of that work, so a mapped task whose list changed is refused instead of being taken for done. Inside a
`LanceTransaction` the task only stages.

Tables can be arguments, each at one version::

    @task.lance(uri="daily.lance", inputs={"orders": "orders.lance"})
    def daily(orders: LanceDataset) -> pyarrow.Table: ...
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from airflow_lance.compat import AirflowFailException, Context, DecoratedOperator, determine_kwargs, task_decorator_factory
from airflow_lance.execution.arguments import require_one_of
from airflow_lance.execution.errors import OnMissing, as_airflow_errors
from airflow_lance.execution.inputs import OpenInput, open_input, plain_inputs
from airflow_lance.execution.returned_source import ROWS, private_folder, returned_source
from airflow_lance.lineage import Touched
from airflow_lance.operators.add_columns import LanceAddColumnsOperator
from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.merge import LanceMergeOperator
from airflow_lance.operators.overwrite import LanceOverwriteOperator
from airflow_lance.operators.replace_where import LanceReplaceWhereOperator
from airflow_lance.operators.stage import LanceStageOperator
from lance_core.errors import InputError, SchemaMismatchError

if TYPE_CHECKING:
    from airflow.sdk.bases.decorator import Task
    from typing_extensions import ParamSpec, Unpack

    from airflow_lance.signatures import DecoratedArguments

    P = ParamSpec("P")
    R = TypeVar("R")

Mode = Literal["append", "overwrite", "replace_where", "merge", "add_columns"]


class _WritesWhatAFunctionReturns(DecoratedOperator):
    """The part that all modes share; an operator that has a `source` stands beside it among the bases."""

    custom_operator_name: str = "@task.lance"
    uri: str
    lance_conn_id: str
    on_missing: OnMissing

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        op_args: Any,
        op_kwargs: Any,
        inputs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        kwargs = {"execution": "local", **kwargs}
        if kwargs["execution"] != "local":
            raise InputError(
                f"@task.lance runs in the worker, so it cannot be combined with execution={kwargs['execution']!r}",
                cure='Omit it, or use an operator with a source {"callable": "module:function"}.',
            )
        # Known when the task runs; as long as that, it stands for the source when the DAG is parsed.
        where = returned_source(name="", function=python_callable, arguments=())
        tables = plain_inputs(inputs, where="@task.lance")
        twice = sorted(tables.keys() & op_kwargs.keys())
        if twice:
            raise InputError(f"@task.lance: {twice[0]!r} is an input and is also passed to the function", cure="Omit one.")
        self.inputs = tuple(tables)
        self._opened: tuple[Touched, ...] = ()
        # As arguments their templates are rendered, and they are part of what the work is.
        op_kwargs = {**op_kwargs, **tables}
        super().__init__(
            python_callable=python_callable, op_args=op_args, op_kwargs=op_kwargs, **{**kwargs, "source": where}
        )

    def execute(self, context: Context) -> Any:
        """Call the function unless its work is done, and write what it returns."""
        ti = context["ti"]
        # One name for all tries: it is part of the work's description, which must not change from try to try.
        name = "-".join(str(part) for part in (ti.dag_id, ti.run_id, ti.task_id, getattr(ti, "map_index", -1)))
        given = (self.op_args, self.op_kwargs)
        self.source = returned_source(name=name, function=self.python_callable, arguments=given)
        with private_folder(name) as folder:
            with as_airflow_errors(self.uri, on_missing=self.on_missing):
                is_done = self._is_done(context)
            if not is_done:
                self._call(context, folder / ROWS)
            try:
                return LanceStageOperator.execute(self, context)  # type: ignore[arg-type]
            except AirflowFailException as error:
                if not isinstance(error.__cause__, SchemaMismatchError):
                    raise
                raise AirflowFailException(
                    f"{self._what} returned rows that cannot be written: {error}"
                ) from error.__cause__

    def _call(self, context: Context, path: Path) -> None:
        """Call the function and keep its rows for as long as the task runs."""
        from airflow_lance.execution.returned_rows import write_rows

        with as_airflow_errors(self.uri, on_missing=self.on_missing):
            opened = {name: self._open(name, context) for name in self.inputs}
        self._opened = tuple(Touched(item.uri, item.table.version) for item in opened.values())
        given = {**context, **self.op_kwargs, **{name: item.table for name, item in opened.items()}}
        rows = self.python_callable(*self.op_args, **determine_kwargs(self.python_callable, self.op_args, given))
        with as_airflow_errors(self.uri, on_missing=self.on_missing):
            write_rows(rows, path, what=self._what)

    def _open(self, name: str, context: Context) -> OpenInput:
        return open_input(name, self.op_kwargs[name], context, lance_conn_id=self.lance_conn_id)

    def _lineage_inputs(self) -> Sequence[Touched]:
        """The tables that the function was called with."""
        return self._opened

    @property
    def _what(self) -> str:
        """For messages."""
        return f"the function {self.python_callable.__name__} of task {self.task_id}"

    def _is_done(self, context: Context) -> bool:
        from lance_core.jobs import api

        operator: Any = self
        spec = operator.spec_of(context, uri=operator.table_uri())
        return api.find_done(spec, options=operator.store_options()) is not None


def _decorated(base: type[LanceStageOperator]) -> type[Any]:
    fields = (*DecoratedOperator.template_fields, *(name for name in base.template_fields if name != "source"))
    renderers = {
        **DecoratedOperator.template_fields_renderers, **base.template_fields_renderers,
    }  # fmt: skip
    body = {"template_fields": fields, "template_fields_renderers": renderers, "__module__": __name__}
    return type(f"_{base.__name__.removeprefix('Lance')}", (_WritesWhatAFunctionReturns, base), body)


_MODES: Mapping[str, type[Any]] = {
    "append": _decorated(LanceAppendOperator),
    "overwrite": _decorated(LanceOverwriteOperator),
    "replace_where": _decorated(LanceReplaceWhereOperator),
    "merge": _decorated(LanceMergeOperator),
    "add_columns": _decorated(LanceAddColumnsOperator),
}


def lance_task(
    python_callable: Callable[..., Any] | None = None,
    *,
    uri: str | os.PathLike[str],
    mode: Mode = "append",
    **kwargs: Unpack[DecoratedArguments],
) -> Callable[[Callable[P, R]], Task[P, R]]:
    """The decorator.

    Args:
        uri: the table, as for an operator.
        mode: append, overwrite, replace_where (with `predicate`), merge (with `on`), or add_columns (with `on`).
        inputs: in `kwargs`: tables that the function is called with, `{"orders": "orders.lance"}` or
            `{"orders": {"uri": ..., "version": ..., "lance_conn_id": ...}}`. Without a version it is that of the asset event
            that triggered the run, else the newest. (templated)
        kwargs: those of the operator of that mode, such as `gates`, `commit`, `schema_drift`, `lance_conn_id`.
    """
    require_one_of(mode, tuple(_MODES), where="@task.lance: mode")
    needed = {"replace_where": "predicate", "merge": "on", "add_columns": "on"}.get(mode)
    if needed and needed not in kwargs:
        raise InputError(f"@task.lance: mode {mode!r} needs `{needed}`")
    decorator: Any = task_decorator_factory(
        python_callable=python_callable,
        decorated_operator_class=_MODES[mode],
        uri=uri,
        **kwargs,
    )
    return decorator  # type: ignore[no-any-return]


__all__: Sequence[str] = ["lance_task"]
