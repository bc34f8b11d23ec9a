"""SQL over several Lance tables: a SELECT's rows as the task's result or a file, or a statement that changes a table.

::

    LanceSqlOperator(task_id="n", sql="INSERT INTO daily SELECT ...", tables={...})                  DuckDB, in the worker
    LanceSqlOperator(task_id="n", sql="INSERT INTO daily SELECT ...", tables={...}, execution="spark-submit")        Spark
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow_lance.compat import Context
from airflow_lance.connection import plain_uri
from airflow_lance.execution.arguments import given, whole
from airflow_lance.hooks.lance import LanceHook
from airflow_lance.lineage import Touched, described, lineage
from airflow_lance.operators.stage import LanceStageOperator
from lance_core.errors import InputError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.signatures import SqlArguments
    from airflow_lance.sql_tables import SqlTable
    from lance_core.jobs.api import Runner
    from lance_core.jobs.specs.spec import JobSpec
    from lance_core.jobs.specs.sql import Engine
    from lance_core.jobs.specs.sql_reader import Statement


_EXECUTIONS = ("local", "spark-submit", "spark-connect")
_CREATES = ("append", "overwrite", "replace_where")


class LanceSqlOperator(LanceStageOperator):
    """Run one SQL statement, with DuckDB in the worker or with Spark. Arguments of `LanceStageOperator` except `uri`, and

    Args:
        sql: a SELECT, or one of INSERT INTO, INSERT OVERWRITE, INSERT INTO ... REPLACE WHERE, CREATE OR REPLACE TABLE ...
            AS, UPDATE, DELETE and MERGE INTO, which change a table exactly once; or the path of a `.sql` file. Queries in it
            are DuckDB's SQL, or Spark's where Spark runs them. (templated)
        tables: name in the statement -> a table's uri or its name below the base uri, or a mapping with `uri` and `version`
            (a number, a tag, or "triggering": that of the asset event which triggered this run), `branch`, `lance_conn_id`;
            or a source such as `{"format": "csv", "paths": [...]}`. The statement sees nothing else. Each Lance table is
            read at one version, the newest if none is given. (templated)
        execution: "local" (the default, also where the deployment has another), with DuckDB in the worker; "spark-submit"
            or "spark-connect", where a cluster runs what a statement that changes a table reads.
        target: a file's uri or absolute path for the rows of a SELECT; without it they are the task's result. (templated)
        format: of that file: "parquet", "csv", "json" (one object a line) or "arrow".
        max_rows: more rows than this are refused as a result.
        max_bytes: rows beyond so many bytes of JSON are left out of a result, which says so (`left_out`); 48 KB by
            default, because results are kept in Airflow's database. A `target` takes all rows.
        schema_drift: for INSERT and MERGE, as for `LanceAppendOperator`.
        properties: text that is kept in the transaction. (templated)

    Raises:
        InputError: a statement that no job can carry out, or one that changes a table which `tables` does not name.
        AirflowFailException: what the engine refuses, or more rows than `max_rows`.
    """

    spec = "lance_core.jobs.specs.definition:SqlSpec"  # that of a SELECT; other statements have the specs of their kinds

    template_fields: Sequence[str] = (*LanceStageOperator.template_fields, "sql", "tables", "target", "properties")
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **LanceStageOperator.template_fields_renderers, "sql": "sql", "tables": "json", "properties": "json",
    }  # fmt: skip
    template_ext: Sequence[str] = (".sql",)

    def __init__(
        self,
        *,
        sql: str,
        tables: Mapping[str, Any],
        target: str | os.PathLike[str] | None = None,
        format: Literal["parquet", "csv", "json", "arrow"] = "parquet",
        max_rows: int = 1000,
        max_bytes: int | None = None,
        schema_drift: str | None = None,
        properties: Mapping[str, str] | None = None,
        **kwargs: Unpack[SqlArguments],
    ) -> None:
        kwargs = {"execution": "local", **kwargs}
        if kwargs["execution"] not in _EXECUTIONS:
            raise InputError(
                f"LanceSqlOperator cannot be combined with execution={str(kwargs['execution'])!r}",
                cure=f"Use one of {', '.join(_EXECUTIONS)}.",
            )
        super().__init__(uri="", **kwargs)
        self.sql = sql
        self.tables = dict(tables)
        self.target = plain_uri(target)
        self.format = format
        self.max_rows = max_rows
        self.max_bytes = max_bytes
        self.schema_drift = schema_drift
        self.properties = dict(properties or {})
        self._found: dict[str, SqlTable] = {}
        self._inputs: dict[str, int] = {}

    def prepare_template(self) -> None:
        """Airflow calls this when the DAG is parsed: the table that the statement changes is this task's table."""
        super().prepare_template()
        self.uri = self._own_uri()

    def make_spec(self, *, uri: str, identity: str) -> JobSpec:
        """The spec of the statement's job; InputError names what is wrong."""
        from airflow_lance.sql_tables import read_tables
        from lance_core.jobs.specs.sql import sql_spec

        tables = self._found or read_tables(self.tables)
        result = given(target=self.target, format=self.format, max_rows=whole(self.max_rows), max_bytes=self.max_bytes)
        write = {"properties": self.properties}
        drift = given(schema_drift=self.schema_drift)
        sources = {name: table.source for name, table in tables.items()}
        spec = sql_spec(self.sql, sources, identity=identity, engine=self._engine, result=result, write=write, rows=drift)
        if spec.kind == "sql" and (self.commit == "later" or self.gates):
            raise InputError(f"{self.task_id}: a SELECT stages nothing, so it has neither a commit task nor gates")
        return spec

    def execute(self, context: Context) -> dict[str, Any]:
        """Run the statement: a SELECT at once, a change exactly once."""
        is_query = self._resolve(context).kind == "query"
        return self._select(context) if is_query and self.execution == "local" else super().execute(context)

    def execute_complete(
        self, context: Context, event: Mapping[str, Any], inputs: Mapping[str, int] | None = None
    ) -> dict[str, Any]:
        """The triggerer saw the Spark job end: what came of it, or its error."""
        self._resolve(context)
        self._inputs = {**(inputs or {})}
        return super().execute_complete(context, event)

    def prepare_spec(self, spec: JobSpec) -> JobSpec:
        """The spec with the versions and the options of the tables that the statement reads."""
        from lance_core.jobs import api

        spec, self._inputs = api.pin_tables(spec, options_of=self.options_of)
        self.log.info("Reading the versions %s", self._inputs)
        return spec

    def resume_arguments(self) -> dict[str, Any]:
        """The versions that the statement reads."""
        return {"inputs": self._inputs}

    def options_of(self, uri: str) -> dict[str, str]:
        """The storage options of a table that the statement reads."""
        from lance_core.jobs import api

        table = next((table for table in self._found.values() if table.uri == uri), None)
        if table is None or (table.lance_conn_id is None and table.name == self.uri):
            return api.revealed(self.store_options())
        hook = LanceHook(table.lance_conn_id or self.lance_conn_id)
        own = {} if table.lance_conn_id else self.storage_options
        return api.revealed({**hook.storage_options(table.name), **own})

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """For OpenLineage: the tables that were read, at their versions, and the one that was changed."""
        inputs = [Touched(self._found[name].uri, version) for name, version in self._inputs.items() if name in self._found]
        told = [described(item, options=self._options) for item in inputs]
        output = self._touched
        return lineage(inputs=told, outputs=[] if output is None else [described(output, options=self._options)])

    def _select(self, context: Context) -> dict[str, Any]:
        from airflow_lance.execution.callables import check_callables
        from airflow_lance.execution.errors import as_airflow_errors
        from lance_core.jobs import api

        with as_airflow_errors(self.uri, on_missing=self.on_missing):
            self._options = self.store_options() if self.uri else {}
            spec = self.spec_of(context, uri=self.table_uri() if self.uri else "sql:query")
            check_callables(spec.to_plain(redact=True))
            result = api.run(spec, options=self._options, runner=api.make_runner(self.options_of))
        self._inputs = result["inputs"]
        self.log.info("query over %s: %d rows", self._inputs, result["num_rows"])
        return result

    def _stage_here(self, spec: JobSpec, options: Mapping[str, Any], _context: Context) -> dict[str, Any]:
        from lance_core.jobs import api

        if self.execution != "local":
            done = api.find_done(spec, options=options)
            return super()._stage_here(spec, options, _context) if done is None else done.reference
        try:
            return super()._stage_here(spec, options, _context)
        finally:
            self.log.info("Read the versions %s", self._inputs)

    def _local_runner(self, options: Mapping[str, Any]) -> Runner:
        """One that knows the options of each table that is read, and tells which versions were."""
        from lance_core.jobs import api

        runner = api.make_runner(self.options_of)
        self._inputs = runner.opened
        return runner

    def _finish(
        self, reference: dict[str, Any], spec: JobSpec, options: Mapping[str, Any], context: Context
    ) -> dict[str, Any]:
        return {**super()._finish(reference, spec, options, context), "inputs": self._inputs}

    def _own_uri(self) -> str:
        """The table that the statement changes, else the first that it reads; "" while neither is known."""
        from airflow_lance.sql_tables import read_tables

        try:
            tables = read_tables(self.tables)
            changed = self._statement().target
        # A template, a mistake that is named when the arguments are checked, or a machine that only parses DAGs.
        except (InputError, ModuleNotFoundError):
            return ""
        return next((table.uri for name, table in tables.items() if table.uri and changed in ("", name)), "")

    @property
    def _engine(self) -> Engine:
        return "duckdb" if self.execution == "local" else "spark"

    def _statement(self) -> Statement:
        from lance_core.jobs.specs.sql import dialect_of
        from lance_core.jobs.specs.statement import read_statement

        return read_statement(self.sql, dialect_of(self._engine))

    def _resolve(self, context: Context) -> Statement:
        """Find the tables; what the statement asks for."""
        from airflow_lance.execution.errors import as_airflow_errors
        from airflow_lance.sql_tables import read_tables
        from lance_core.jobs.specs.sql import changed_table

        with as_airflow_errors(self.uri, on_missing=self.on_missing):
            self.uri = self._own_uri()
            told, tables = self._statement(), read_tables(self.tables)
            if told.kind != "query":  # before the table is looked up: the message names those that are given
                changed_table(told, {name: table.source for name, table in tables.items()})
            is_new = told.target if told.kind in _CREATES else ""
            self._found = {name: self._resolved(table, context, declare=name == is_new) for name, table in tables.items()}
        return told

    def _resolved(self, table: SqlTable, context: Context, *, declare: bool) -> SqlTable:
        from airflow_lance.execution.triggering import pinned_version

        if not table.uri:
            return table
        uri = LanceHook(table.lance_conn_id or self.lance_conn_id).get_uri(table.uri, declare=declare)
        return table.at(uri, version=pinned_version(whole(table.version), context, uri=uri))
