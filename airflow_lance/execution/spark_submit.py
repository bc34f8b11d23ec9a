"""A staging job through spark-submit: any master, client or cluster mode, with the Spark provider's own operator.

::

    spark-submit --master local[2] --conf ... main.py '{"spec": 1, "kind": "append", "uri": "s3://lake/flights", ...}'

The driver's output is the task's log. Its result is not read from there: it lies in the table's staged registry.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from airflow_lance.compat import BaseHook, Context
from airflow_lance.execution.options import VARIABLE, environment, hide_in_environment, hide_in_file, private_file
from lance_core.errors import InputError
from lance_core.spark.archive import write_archive

if TYPE_CHECKING:
    from lance_core.jobs.spec import JobSpec

APPLICATION = "lance_core.spark.main"
_UNPACKED = "lance_environment"
"""The folder in which executors find a packed environment."""


@dataclass(frozen=True)
class SparkSettings:
    """Which Spark, and what to tell spark-submit: `arguments` are those of the Spark provider (driver_memory, py_files)."""

    conn_id: str
    conf: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    packaging: str = "installed"

    @property
    def packed_conf(self) -> dict[str, str]:
        """Which Python runs: that of the packed environment where one is shipped."""
        if self.packaging in ("installed", "archive"):
            return {}
        python = f"./{_UNPACKED}/bin/python"
        return {"spark.pyspark.python": python, "spark.executorEnv.PYSPARK_PYTHON": python}

    @property
    def can_detach(self) -> bool:
        """Whether the provider can let go of a submitted job and find it again."""
        tracked = "yarn_track_via_rm_api" if self.is_yarn else "track_driver_via_k8s_api"
        return self.deploy_mode == "cluster" and bool(self.arguments.get(tracked))

    @cached_property
    def deploy_mode(self) -> str:
        """client or cluster, as the arguments or else the connection say."""
        return str(self.arguments.get("deploy_mode") or self._connection.extra_dejson.get("deploy-mode") or "client")

    @cached_property
    def runs_here(self) -> bool:
        """Whether driver and executors share this machine (master `local[...]`), and so this Python."""
        return str(self._connection.host or "").startswith("local")

    @cached_property
    def is_yarn(self) -> bool:
        """Whether YARN is the master."""
        return "yarn" in f"{self._connection.conn_type}://{self._connection.host or ''}"

    def check_deploy_mode(self) -> None:
        """InputError where spark-submit would refuse after seconds, with a message about itself."""
        master = str(self._connection.host or "")
        if self.deploy_mode != "cluster" or not (self.runs_here or master.startswith("spark")):
            return
        why = (
            "a local master has no cluster"
            if self.runs_here
            else "Spark does not run Python applications in cluster mode on standalone clusters"
        )
        raise InputError(
            f"Spark connection {self.conn_id!r}: deploy mode 'cluster' does not go with master {master!r}: {why}",
            cure="Use deploy mode 'client': driver and executors do the same work there.",
        )

    @cached_property
    def _connection(self) -> Any:
        return BaseHook.get_connection(self.conn_id)


class SparkSubmitRun:
    """One submit. `kill` may be called from a signal handler while `run` waits."""

    def __init__(self, settings: SparkSettings, *, task_id: str) -> None:
        self._settings = settings
        self._task_id = task_id
        self._operator: Any = None

    def run(self, spec: JobSpec, *, options: Mapping[str, Any], context: Context) -> None:
        """Submit and wait. Airflow's exception of the Spark provider when the driver fails.

        InputError, before anything is started, for a deploy mode that Spark does not have for Python on this master.
        """
        with self._prepared(spec, options) as (visible, arguments):
            self._build(visible, arguments)
            self._forget_useless(context)
            # Not through the guard around `execute`, which warns about operators run by operators: this one is our tool.
            inspect.unwrap(type(self._operator).execute)(self._operator, context)

    def detach(self, spec: JobSpec, *, options: Mapping[str, Any], context: Context) -> str | None:
        """Submit, or find the job that an earlier try submitted, and return its id without waiting for it.

        None, and nothing is submitted, where the Spark provider cannot let go of a job: only in cluster mode on YARN
        (`yarn_track_via_rm_api`) and Kubernetes (`track_driver_via_k8s_api`).
        """
        if not self._settings.can_detach:
            return None
        with self._prepared(spec, options) as (visible, arguments):
            self._build(visible, arguments)
            self._forget_useless(context)
            store = context.get("task_state_store")
            known = None if store is None else store.get(self._operator.external_id_key)
            if known and self._operator.is_job_active(self._operator.get_job_status(known, context)):
                return str(known)
            job = str(self._operator.submit_job(context))
            if store is not None:
                store.set(self._operator.external_id_key, job)
            return job

    @contextmanager
    def _prepared(self, spec: JobSpec, options: Mapping[str, Any]) -> Iterator[tuple[JobSpec, dict[str, Any]]]:
        """The spec as it may be seen, and the submit's arguments; what is hidden is where the driver looks for it."""
        self._settings.check_deploy_mode()
        with ExitStack() as stack:
            arguments = self._packaged(stack, dict(self._settings.arguments))
            if self._settings.deploy_mode == "cluster":
                name = f"lance-options-{spec.identity}.json"
                hidden = hide_in_file(options, name=name)
                if hidden.text:
                    path = stack.enter_context(private_file(name, hidden.text))
                    arguments["files"] = ",".join(filter(None, [arguments.get("files"), str(path)]))
            else:
                hidden = hide_in_environment(options)
                stack.enter_context(environment(_client_environment(hidden.text, self._settings.runs_here)))
            yield replace(spec, storage_options=hidden.references), arguments

    def kill(self) -> None:
        """Stop the Spark job, in the way of its master and deploy mode."""
        if self._operator is not None:
            self._operator.on_kill()

    def _packaged(self, stack: ExitStack, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments with what brings lance_core to the executors."""
        packaging = self._settings.packaging
        if packaging == "archive":
            folder = stack.enter_context(TemporaryDirectory(prefix="lance-"))
            package = write_archive(str(Path(folder) / "lance_core.zip"))
            arguments["py_files"] = ",".join(filter(None, [arguments.get("py_files"), package]))
        elif packaging != "installed":
            arguments["archives"] = ",".join(filter(None, [arguments.get("archives"), f"{packaging}#{_UNPACKED}"]))
        return arguments

    def _forget_useless(self, context: Context) -> None:
        """A job of an earlier try that succeeded, while nothing is staged: it was aborted since, so run it once more."""
        store = context.get("task_state_store")
        if store is None or not hasattr(self._operator, "external_id_key"):
            return
        job = store.get(self._operator.external_id_key)
        if job and self._operator.is_job_succeeded(self._operator.get_job_status(job, context)):
            store.delete(self._operator.external_id_key)

    def _build(self, spec: JobSpec, arguments: dict[str, Any]) -> None:
        from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

        if self._settings.is_yarn and not arguments.get("yarn_track_via_rm_api") and _knows(SparkSubmitOperator, "durable"):
            # The provider re-attaches on YARN through the resource manager only, and refuses otherwise; without it a
            # retry submits again, which the identity makes harmless.
            arguments.setdefault("durable", False)
        self._operator = SparkSubmitOperator(
            task_id=self._task_id.replace(".", "_"),
            application=application_path(),
            application_args=[spec.to_json()],
            conn_id=self._settings.conn_id,
            conf={**self._settings.packed_conf, **self._settings.conf},
            name=arguments.pop("name", f"lance-{spec.kind}-{spec.identity[:8]}"),
            **arguments,
        )


def _knows(operator: type[Any], argument: str) -> bool:
    return argument in inspect.signature(operator.__init__).parameters


def application_path() -> str:
    """The file that spark-submit runs, found without importing it."""
    found = importlib.util.find_spec(APPLICATION)
    if found is None or found.origin is None:  # pragma: no cover - a broken installation
        raise ModuleNotFoundError(f"{APPLICATION} is not installed")
    return found.origin


def _client_environment(options: str, runs_here: bool) -> dict[str, str]:
    """What the driver's process needs: our options, this interpreter, and the spark-submit that lies beside it."""
    path = os.pathsep.join(filter(None, [os.environ.get("PATH", ""), str(Path(sys.executable).parent)]))
    # Only where executors run on this machine may they be told its interpreter; elsewhere the cluster knows its own.
    pythons = ("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON") if runs_here else ("PYSPARK_DRIVER_PYTHON",)
    chosen = {name: os.environ.get(name, sys.executable) for name in pythons}
    return {"PATH": path, **chosen, **({VARIABLE: options} if options else {})}
