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
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_lance.compat import BaseHook, Context
from airflow_lance.execution.options import VARIABLE, environment, hide_in_environment, hide_in_file, private_file
from lance_core.errors import InputError

if TYPE_CHECKING:
    from lance_core.jobs.spec import JobSpec

APPLICATION = "lance_core.spark.main"


@dataclass(frozen=True)
class SparkSettings:
    """Which Spark, and what to tell spark-submit: `arguments` are those of the Spark provider (driver_memory, py_files)."""

    conn_id: str
    conf: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)

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
        self._settings.check_deploy_mode()
        with ExitStack() as stack:
            arguments = dict(self._settings.arguments)
            if self._settings.deploy_mode == "cluster":
                name = f"lance-options-{spec.identity}.json"
                hidden = hide_in_file(options, name=name)
                if hidden.text:
                    path = stack.enter_context(private_file(name, hidden.text))
                    arguments["files"] = ",".join(filter(None, [arguments.get("files"), str(path)]))
            else:
                hidden = hide_in_environment(options)
                stack.enter_context(environment(_client_environment(hidden.text, self._settings.runs_here)))
            self._submit(replace(spec, storage_options=hidden.references), arguments, context)

    def kill(self) -> None:
        """Stop the Spark job, in the way of its master and deploy mode."""
        if self._operator is not None:
            self._operator.on_kill()

    def _submit(self, spec: JobSpec, arguments: dict[str, Any], context: Context) -> None:
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
            conf=dict(self._settings.conf),
            name=arguments.pop("name", f"lance-{spec.kind}-{spec.identity[:8]}"),
            **arguments,
        )
        # Not through the guard around `execute`, which warns about operators run by operators: this one is our tool.
        inspect.unwrap(SparkSubmitOperator.execute)(self._operator, context)


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
