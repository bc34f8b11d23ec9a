"""Shared by staging operators: find the table, identify the work, run the job, return a small reference.

::

    LanceAppendOperator(task_id="append", uri="flights.lance", source={"format": "csv", "paths": ["/raw/{{ ds }}.csv"]})
        -> XCom {"uri": "/data/lake/flights.lance", "identity": "5d2c...", "version": 4, "rows_added": 27004, ...}

A task alone publishes what it staged, exactly once. Inside a `LanceTransaction`, or where a `LanceCommitOperator` takes
its output, it only stages, which changes nothing that a reader sees.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

from airflow_lance.compat import AirflowException, Context, deferrable_by_default
from airflow_lance.execution.arguments import (
    COMMITS,
    EXECUTIONS,
    ON_CLEAR,
    Commit,
    Execution,
    OnClear,
    default_execution,
    identity_of,
    require_one_of,
    with_asker,
)
from airflow_lance.execution.dataflow import has_commit_after
from airflow_lance.execution.errors import ON_MISSING, OnMissing, as_airflow_errors
from airflow_lance.execution.parse_checks import check_gates
from airflow_lance.lineage import Touched, described, lineage, source_paths
from airflow_lance.operators.job import LanceJobOperator
from lance_core.errors import GateFailedError, InputError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from airflow_lance.execution.external import Command, CommandRun
    from airflow_lance.execution.spark_settings import SparkSettings
    from airflow_lance.execution.spark_submit import SparkSubmitRun
    from airflow_lance.signatures import TableArguments
    from lance_core.jobs.api import Runner
    from lance_core.jobs.specs.spec import JobSpec


class LanceStageOperator(LanceJobOperator):
    """Base of the operators that stage work.

    Args:
        commit: who publishes the work: "now", this task, right after it was staged; "later", a commit task of the same
            DAG; "elsewhere", another DAG or the command line. None is "later" inside a `LanceTransaction` and where a
            `LanceCommitOperator` takes this task's output, else "now".
        gates: what the added rows must be like before this task publishes them, as for `LanceCommitOperator`. (templated)
        partitions: keys of the partitions that this work is about, such as "{{ ds }}": the outlets' events carry them
            where Airflow can (3.3), and name them in their extra everywhere. DAGs that wait for the plain asset, not for
            partitions, do not hear an event with a key. (templated)
        on_missing: what to do while a file or folder of the source does not exist or holds nothing: "retry" as `retries`
            say, "skip" the task, or "fail" without a retry.
        key: tells apart several writes of one task instance to one table; part of the identity. (templated)
        idempotency_key: takes the place of DAG, run and task in the identity: the work is done once for each such text, such
            as "orders/{{ ds }}", whichever run asks for it. The table, the map index and `key` stay part of it. (templated)
        on_clear: what happens to work that was committed when a person clears its task: "again" publishes it once more,
            "fail" refuses, "skip" leaves it. None is "again" for overwrite, replace where and merge, else "fail".
        execution: "spark-submit"; "spark-connect", the driver's part in the worker and the rest on a Spark Connect server;
            or "local" for small tables: in the worker's own process, without Spark; or an `ExternalPython` or a `Command` of
            `airflow_lance.execution.external`: like "local", in another environment or a container. "auto" is spark-submit
            where PySpark, Java and the Spark connection are there, and local elsewhere; the task decides it when it runs,
            and its log says which and why. None takes the deployment's `[lance] default_execution`, and "auto" without one.
        spark_conn_id: the Spark connection; None takes the lance connection's, else `spark_default`
            (`spark_connect_default` for "spark-connect"). (templated)
        packaging: how executors get lance_core: "installed" there; "archive", sent along as a zip, where its dependencies
            are installed; or the path or uri of a packed environment that holds everything (`venv-pack`, `conda-pack`).
            (templated)
        deferrable: wait in the triggerer for a job that the Spark provider can let go of (cluster mode on YARN with
            `yarn_track_via_rm_api`, on Kubernetes with `track_driver_via_k8s_api`, on a standalone cluster with an
            `application`); elsewhere the worker waits.
        conf: Spark configuration. (templated)
        spark_submit: further arguments of the Spark provider's `SparkSubmitOperator`, such as `driver_memory`,
            `executor_memory`, `py_files`, `num_executors`, `deploy_mode`; and `application`, for cluster mode on a
            standalone cluster (`execution.spark_settings`). (templated)

    Raises:
        InputError: arguments that contradict each other, among the DAG's import errors.
        AirflowFailException: an error that a retry meets again; its text ends with the cure.
        AirflowSkipException: the source is missing, and `on_missing` says "skip".
        RetryableConflictError: others changed the same rows. Airflow tries the task again.
    """

    keeps_on_kill: ClassVar[bool] = False
    """Whether what a killed attempt has finished is kept for the next try."""

    template_fields: Sequence[str] = (
        *LanceJobOperator.template_fields,
        "gates",
        "partitions",
        "key",
        "idempotency_key",
        "spark_conn_id",
        "conf",
        "spark_submit",
        "packaging",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **LanceJobOperator.template_fields_renderers, "conf": "json", "gates": "json", "spark_submit": "json",
    }  # fmt: skip

    def __init__(
        self,
        *,
        commit: Commit | None = None,
        gates: Sequence[Mapping[str, Any]] = (),
        partitions: Sequence[str] | str | None = None,
        on_missing: OnMissing = "retry",
        key: str = "",
        idempotency_key: str | None = None,
        on_clear: OnClear | None = None,
        execution: Execution | Command | None = None,
        spark_conn_id: str | None = None,
        conf: Mapping[str, str] | None = None,
        spark_submit: Mapping[str, Any] | None = None,
        packaging: str = "installed",
        deferrable: bool | None = None,
        **kwargs: Unpack[TableArguments],
    ) -> None:
        super().__init__(**kwargs)
        execution = execution or default_execution()
        if not _is_command(execution):
            require_one_of(execution, EXECUTIONS, where=f"{self.task_id}: execution")
        require_one_of(on_missing, ON_MISSING, where=f"{self.task_id}: on_missing")
        if commit is not None:
            require_one_of(commit, COMMITS, where=f"{self.task_id}: commit")
        if on_clear is not None:
            require_one_of(on_clear, ON_CLEAR, where=f"{self.task_id}: on_clear")
        if gates and commit in ("later", "elsewhere"):
            raise InputError(
                f"{self.task_id}: gates cannot be combined with commit={commit!r}, because this task publishes nothing",
                cure="Pass the gates to the commit task.",
            )
        self.commit: Commit | None = commit
        self.gates = list(gates)
        self.partitions = partitions
        self.on_missing: OnMissing = on_missing
        self.key = key
        self.idempotency_key = idempotency_key
        self.on_clear: OnClear | None = on_clear
        self.execution = execution
        self.spark_conn_id = spark_conn_id
        self.conf = dict(conf or {})
        self.spark_submit = dict(spark_submit or {})
        self.packaging = packaging
        self.deferrable = deferrable_by_default() if deferrable is None else deferrable
        self._spec: JobSpec | None = None
        self._options: dict[str, Any] = {}
        self._submit: SparkSubmitRun | CommandRun | None = None
        self._runs_here = False
        self._publishes = False
        self._touched: Touched | None = None

    @property
    def publishes(self) -> bool:
        """Whether this task publishes what it stages."""
        return self.commit in (None, "now")

    def resolve_template_files(self) -> None:
        """Airflow calls this once the DAG is complete: the time to check the arguments, and that a task commits."""
        super().resolve_template_files()
        check_gates(self.gates, task_id=self.task_id)
        self.require_committer()

    def require_committer(self) -> None:
        """InputError when the work is left for a commit task that the DAG does not have."""
        is_known = self.has_dag()  # type: ignore[no-untyped-call]
        if self.commit == "later" and is_known and not has_commit_after(self):
            raise InputError(
                f"{self.task_id}: commit='later', but no commit task is downstream of it in DAG {self.dag_id!r}",
                cure="Put it into a LanceTransaction, pass its output to a LanceCommitOperator, omit `commit` to "
                "publish at once, or pass commit='elsewhere' if another DAG or the command line publishes it.",
            )

    def execute(self, context: Context) -> dict[str, Any]:
        """Stage the work once, however often this task is tried, and publish it unless another task does."""
        with as_airflow_errors(self.uri, on_missing=self.on_missing):
            from airflow_lance.execution.callables import check_callables
            from lance_core.jobs import api

            self.require_committer()
            check_gates(self.gates, task_id=self.task_id)
            uri, options = self.table_uri(), self.store_options()
            # Kept for `on_kill`, which runs in a signal handler and must not ask Airflow for the connection again.
            self._options = options
            spec = self._spec = api.as_cleared(self.spec_of(context, uri=uri), options=options)
            check_callables(spec.to_plain(redact=True))
            self._decide_execution(spec)
            self.log.info("Staging %s on %s as %s (%s)", spec.kind, uri, spec.effective_identity, self.execution)
            stage = self._submit_job if self.execution == "spark-submit" else self._stage_here
            if _is_command(self.execution):
                stage = self._run_command
            return self._finish(stage(spec, options, context), spec, options, context)

    def report(self, context: Context, lines: Callable[[dict[str, Any]], list[str]]) -> dict[str, Any]:
        """What a run would do, for an operator with a dry run: the job, which changes nothing, in the worker's process.

        `lines` are what the log says of the report.
        """
        from lance_core.jobs import api

        with as_airflow_errors(self.uri):
            uri = self.table_uri()
            found = api.run(self.make_spec(uri=uri, identity=identity_of(context, uri=uri)), options=self.store_options())
        for line in lines(found):
            self.log.info(line)
        return {"uri": uri, **found}

    def spec_of(self, context: Context, *, uri: str) -> JobSpec:
        """Return the job of this task instance: its work, whose it is, and what a person's clear means for it.

        InputError for an idempotency key that is empty, and whatever `make_spec` raises.
        """
        named = {"key": self.key, "idempotency_key": self.idempotency_key or ""}
        if self.idempotency_key is not None and not self.idempotency_key.strip():
            raise InputError(f"{self.task_id}: idempotency_key is empty, so every run would have the same identity")
        known_as = self.identity_uri(uri)
        spec = self.make_spec(uri=uri, identity=identity_of(context, uri=known_as, **named))
        spec = replace(spec, on_clear=self.on_clear)
        return with_asker(spec, context, retries=self.retries)

    def _finish(
        self, reference: dict[str, Any], spec: JobSpec, options: Mapping[str, Any], context: Context
    ) -> dict[str, Any]:
        """The reference for the commit; or, published, what came of it and whose work it was."""
        from airflow_lance.execution.partitions import plain_keys
        from airflow_lance.execution.publish import publish

        self.log.info("%s", staged_sentence(reference))
        self.log.debug("The reference: %s", reference)
        keys = plain_keys(self.partitions)
        if not self.publishes:
            return {**reference, "partitions": keys} if keys else reference
        # A commit that is killed is finished by the next one: nothing of it may be removed.
        self._publishes = True
        try:
            result = publish(
                self, context, uri=spec.uri, references=[reference], options=options, gates=self.gates, partitions=keys
            )
        except GateFailedError:
            from lance_core.jobs import api

            # No other task would publish these rows, and another run with this identity would find them again.
            api.abort_rejected(reference, options=options, log=self.log)
            raise
        self._touched = Touched(spec.uri, result["version"], rows=result["rows_added"], bytes=result["bytes_added"])
        return {**result, "identity": reference["identity"]}

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """For OpenLineage: the source's files go into the table, at the version that this task published."""
        inputs = self._lineage_inputs()
        output = self._touched or (None if self._spec is None else Touched(self._spec.uri))
        outputs = [] if output is None else [described(output, options=self._options, task=self)]
        return lineage(inputs=inputs, outputs=outputs)

    def _lineage_inputs(self) -> Sequence[Touched]:
        """What the work read besides its own table."""
        return [Touched(path) for path in source_paths(getattr(self, "source", {}) or {})]

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> dict[str, Any]:
        """The triggerer saw the job end: what came of it, or its error."""
        from lance_core.jobs import api

        with as_airflow_errors(self.uri, on_missing=self.on_missing):
            uri, options = self.table_uri(), self.store_options()
            spec = self.spec_of(context, uri=uri)
            if event.get("state") == "unbegun":
                self._look_at_job(spec, event, options, context)
            if event.get("state") == "failed":
                api.raise_failure(spec, options=options)
            return self._finish(api.read_result(spec, options=options), spec, options, context)

    def on_kill(self) -> None:
        """Stop the Spark job and abort its attempt: its files are removed by name.

        Where the work is in this process, AirflowException unwinds it, which does the same.
        """
        if self._publishes:
            return
        if self._runs_here:
            # This is a signal handler in the middle of the work: unwinding it stops and aborts the attempt in one go.
            raise AirflowException(f"{self.task_id} was stopped while it staged")
        if self._submit is not None:
            try:
                self._submit.kill()
            except Exception as error:  # whatever goes on there, the abort keeps its work from ever counting
                self.log.warning("The Spark job could not be stopped: %s: %s", type(error).__name__, error)
        if self._spec is not None and not self.keeps_on_kill:
            from lance_core.jobs import api

            api.abort(self._spec, options=self._options, log=self.log)

    def _decide_execution(self, spec: JobSpec) -> None:
        """Settle "auto", for this try alone: the identity and the digest of the work do not depend on it."""
        if self.execution != "auto":
            return
        from airflow_lance.execution.spark_installed import decided

        reasons = {
            "spark_conn_id": self.spark_conn_id,
            "spark_submit": self.spark_submit,
            "packaging": self.packaging != "installed",
            'engine="spark"': getattr(spec, "engine", "") == "spark",
            "task_resources": getattr(self, "task_resources", None),
        }
        needs = next((name for name, given in reasons.items() if given), "")
        self.execution, why = decided(self._spark_settings(), needs_spark=needs)
        self.log.info("Running with execution=%r, because %s", self.execution, why)

    def _spark_settings(self) -> SparkSettings:
        from airflow_lance.execution.spark_settings import SparkSettings

        conn_id = self.spark_conn_id or self.lance_hook.spark_conn_id(self.uri)
        return SparkSettings(conn_id, self.conf, self.spark_submit, self.packaging)

    def _stage_here(self, spec: JobSpec, options: Mapping[str, Any], _context: Context) -> dict[str, Any]:
        """Stage in this process, which looks for finished work itself."""
        self._runs_here = True
        try:
            if self.execution == "local":
                from lance_core.jobs import api

                return api.run(spec, options=options, runner=self._local_runner(options))
            from airflow_lance.execution.spark_installed import stage_connected

            return stage_connected(
                self.prepare_spec(spec),
                options=options,
                conn_id=self.spark_conn_id,
                conf=self.conf,
                packaging=self.packaging,
            )
        finally:
            self._runs_here = False

    def _local_runner(self, options: Mapping[str, Any]) -> Runner | None:
        """What carries the work out in this process; None for what every job has."""
        return None

    def prepare_spec(self, spec: JobSpec) -> JobSpec:
        """The spec with what a job elsewhere has to know beside its work."""
        return spec

    def resume_arguments(self) -> dict[str, Any]:
        """What `execute_complete` gets back after a wait in the triggerer."""
        return {}

    def _run_command(self, spec: JobSpec, options: Mapping[str, Any], _context: Context) -> dict[str, Any]:
        """Stage in the process that a command starts."""
        from airflow_lance.execution.external import CommandRun

        command = cast("Command", self.execution)
        self._submit = run = CommandRun(command, log=self.log)
        return run.run(spec, options=options)

    def _submit_job(self, spec: JobSpec, options: Mapping[str, Any], context: Context) -> dict[str, Any]:
        """Stage in a Spark job, unless this identity's work is done already."""
        from airflow_lance.execution.spark_installed import require_spark
        from airflow_lance.execution.spark_submit import SparkSubmitRun
        from lance_core.jobs import api

        done = api.find_done(spec, options=options)
        if done is not None:
            self.log.info("Nothing to do: %s", done.reason)
            return done.reference
        settings = self._spark_settings()
        require_spark(settings, task_id=self.task_id)
        spec = self.prepare_spec(spec)
        self._submit = submit = SparkSubmitRun(settings, task_id=self.task_id)
        with api.raising_driver_errors(spec, options=options):
            stale = api.begin_watch(spec, options=options)
            job = submit.detach(spec, options=options, context=context) if self.deferrable else None
            if job is None:
                submit.run(spec, options=options, context=context)
        if job is not None:
            self._defer(spec, job, stale)
        return api.read_result(spec, options=options)

    def _defer(self, spec: JobSpec, job: str, stale: str) -> None:
        from airflow_lance.triggers.staging import LanceStagingTrigger

        self.log.info("Waiting for Spark job %s in the triggerer", job)
        self.defer(
            trigger=LanceStagingTrigger(
                uri=self.uri,
                identity=spec.effective_identity,
                stale=stale,
                job=job,
                lance_conn_id=self.lance_conn_id,
                storage_options=self.storage_options,  # whole: secrets in them are references
            ),
            method_name="execute_complete",
            kwargs=self.resume_arguments(),
        )

    def _look_at_job(self, spec: JobSpec, event: Mapping[str, Any], options: Mapping[str, Any], context: Context) -> None:
        """Wait on where the cluster has the job, whose driver has not begun; else it has ended, and its error is raised."""
        from airflow_lance.execution.spark_submit import SparkSubmitRun
        from lance_core.jobs import api

        job, stale = str(event["job"]), str(event["stale"])
        self._submit = submit = SparkSubmitRun(self._spark_settings(), task_id=self.task_id)
        # The spec as it is: preparing it would name the versions of now, and the job reads those of its submit.
        if submit.is_at_work(job, spec, options=options, context=context):
            self._defer(spec, job, stale)
        if api.watch(spec.uri, spec.effective_identity, stale=stale, options=options) != "staged":
            self.log.error("Spark job %s ended before its driver had begun", job)
            api.raise_failure(spec, options=options)


def staged_sentence(reference: Mapping[str, Any]) -> str:
    """What was staged, for the log. Internals of the reference stay out.

    >>> staged_sentence({"operation": "append", "uri": "/t.lance", "num_rows": 2, "num_bytes": 343})
    'Staged append on /t.lance: 2 rows added, 0 deleted (343 bytes); no reader sees it yet'
    """
    counts = {name: reference.get(name) or 0 for name in ("num_rows", "num_deleted_rows", "num_bytes")}
    return (
        f"Staged {reference.get('operation') or 'work'} on {reference.get('uri', '')}: {counts['num_rows']:,} rows added, "
        f"{counts['num_deleted_rows']:,} deleted ({counts['num_bytes']:,} bytes); "
        "no reader sees it yet"
    )


def _is_command(execution: object) -> bool:
    """Whether an execution is a command. Who has one has imported its class."""
    module = sys.modules.get("airflow_lance.execution.external")
    return module is not None and isinstance(execution, module.Command)
