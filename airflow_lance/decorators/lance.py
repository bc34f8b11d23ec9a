"""`@task.lance`: a function returns rows, and the task writes them into a table exactly once.

::

    @task.lance(uri="flights.lance", mode="merge", on="id")
    def corrections(day: str) -> pandas.DataFrame: ...

    corrections("2013-01-01")        -> XCom {"uri": ..., "version": 4, "rows_added": 150, ...}

The function may return an Arrow table, batch, reader or dataset, a pandas or Polars frame, a list of rows, a mapping of
columns, or an iterator of any of these. It is not called when its work has landed already. Inside a `LanceTransaction` the
task only stages.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from airflow_lance.compat import Context, DecoratedOperator, determine_kwargs, task_decorator_factory
from airflow_lance.execution.arguments import require_one_of
from airflow_lance.operators.add_columns import LanceAddColumnsOperator
from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.base import LanceStageOperator
from airflow_lance.operators.merge import LanceMergeOperator
from airflow_lance.operators.overwrite import LanceOverwriteOperator
from airflow_lance.operators.replace_where import LanceReplaceWhereOperator
from lance_core.errors import InputError


class _WritesWhatAFunctionReturns(DecoratedOperator):
    """The part that all modes share; an operator that has a `source` stands beside it among the bases."""

    custom_operator_name: str = "@task.lance"

    def __init__(self, *, python_callable: Callable[..., Any], op_args: Any, op_kwargs: Any, **kwargs: Any) -> None:
        kwargs = {"execution": "local", **kwargs}
        if kwargs["execution"] != "local":
            raise InputError(
                f"@task.lance runs the function in the worker, so execution={kwargs['execution']!r} does not go with it",
                cure='Leave it out, or use an operator with a source {"callable": "module:function"}.',
            )
        where = {"format": "arrow", "paths": ["<what the function returns>"]}
        super().__init__(
            python_callable=python_callable, op_args=op_args, op_kwargs=op_kwargs, **{**kwargs, "source": where}
        )

    def execute(self, context: Context) -> Any:
        """Call the function unless its work is done, and write what it returns."""
        ti = context["ti"]
        # One path for all tries: it is part of the work's description, which must not change from try to try.
        name = "-".join(str(part) for part in (ti.dag_id, ti.run_id, ti.task_id, getattr(ti, "map_index", -1)))
        with _private_folder(name) as folder:
            path = folder / "rows.arrow"
            self.source = {"format": "arrow", "paths": [str(path)]}
            if not self._is_done(context):
                from airflow_lance.execution.returned_rows import write_rows

                arguments = determine_kwargs(self.python_callable, self.op_args, {**context, **self.op_kwargs})
                rows = self.python_callable(*self.op_args, **arguments)
                write_rows(rows, path, what=f"the function {self.python_callable.__name__} of task {self.task_id}")
            return LanceStageOperator.execute(self, context)  # type: ignore[arg-type]

    def _is_done(self, context: Context) -> bool:
        from airflow_lance.execution.arguments import identity_of
        from lance_core.jobs import api

        operator: Any = self
        uri = operator.table_uri()
        spec = operator.make_spec(uri=uri, identity=identity_of(context, uri=uri, key=operator.key))
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


def lance_task(python_callable: Callable[..., Any] | None = None, *, uri: str, mode: str = "append", **kwargs: Any) -> Any:
    """The decorator.

    :param uri: the table, as for an operator.
    :param mode: append, overwrite, replace_where (with `predicate`), merge (with `on`), or add_columns (with `on`).
    :param kwargs: those of the operator of that mode, such as `gates`, `commit`, `schema_drift`, `lance_conn_id`.
    """
    require_one_of(mode, tuple(_MODES), where="@task.lance: mode")
    needed = {"replace_where": "predicate", "merge": "on", "add_columns": "on"}.get(mode)
    if needed and needed not in kwargs:
        raise InputError(f"@task.lance: mode {mode!r} needs `{needed}`")
    return task_decorator_factory(
        python_callable=python_callable,
        decorated_operator_class=_MODES[mode],
        uri=uri,
        **kwargs,
    )


@contextmanager
def _private_folder(name: str) -> Iterator[Path]:
    """A folder of this user whose path follows from a name; it is empty at first, and removed afterwards."""
    import getpass
    import hashlib
    import shutil

    digest = hashlib.sha256(f"{getpass.getuser()}\n{name}".encode()).hexdigest()[:32]
    folder = Path(tempfile.gettempdir()) / f"lance-{digest}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


__all__: Sequence[str] = ["lance_task"]
