"""A staging job through spark-submit: any master, client or cluster mode, with the Spark provider's own operator.

::

    spark-submit --master local[2] --conf ... main.py base64url:eyJzcGVjIjoxLCJraW5kIjoiYXBwZW5kIi...
    spark-submit --master spark://... --deploy-mode cluster --class org.apache.spark.deploy.PythonRunner
                 lance_job.jar lance_job.jar "" base64url:eyJzcGVj...

The spec is encoded, because masters and shells rewrite arguments (`lance_core.spark.argument`); a large one goes as a file.
The driver's output is the task's log. Its result is not read from there: it is in the table's staged registry.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from airflow_lance.compat import Context
from airflow_lance.execution.callables import allowed_conf
from airflow_lance.execution.options import (
    HiddenOptions,
    all_options,
    environment,
    hide_in_environment,
    hide_in_file,
    private_file,
    secret_names,
    with_references,
)
from airflow_lance.execution.spark_settings import UNPACKED, SparkSettings
from airflow_lance.execution.submit_environment import client_environment, limited_submit
from lance_core.spark import encode_spec, write_application, write_archive

if TYPE_CHECKING:
    from lance_core.jobs.specs.spec import JobSpec

__all__ = ["SparkSettings", "SparkSubmitRun", "application_path"]

APPLICATION = "lance_core.spark.main"
_WRAPPER = "org.apache.spark.deploy.PythonRunner"
"""Spark's own Java program that runs a Python one; standalone clusters in cluster mode take nothing else."""


@dataclass(frozen=True)
class _Prepared:
    """What is submitted: the driver's argument, and those of the Spark provider's operator.

    `reads_files`: the driver reads files of this process, which go when it is done with the submit.
    """

    argument: str
    arguments: dict[str, Any]
    reads_files: bool = False


class SparkSubmitRun:
    """One submit. `kill` may be called from a signal handler while `run` waits."""

    def __init__(self, settings: SparkSettings, *, task_id: str) -> None:
        self._settings = settings
        self._task_id = task_id
        self._operator: Any = None

    def run(self, spec: JobSpec, *, options: Mapping[str, Any], context: Context) -> None:
        """Submit and wait. Airflow's exception of the Spark provider when the driver fails.

        InputError, before anything is started, for a deploy mode that this master does not have.
        """
        with self._prepared(spec, options) as prepared:
            self._build(spec, prepared)
            self._forget_useless(context)
            # Not through the guard around `execute`, which warns about operators run by operators: this one is our tool.
            inspect.unwrap(type(self._operator).execute)(self._operator, context)

    def detach(self, spec: JobSpec, *, options: Mapping[str, Any], context: Context) -> str | None:
        """Submit, or find the job that an earlier try submitted, and return its id without waiting for it.

        None, and nothing is submitted, where the Spark provider cannot let go of a job: only in cluster mode on YARN
        (`yarn_track_via_rm_api`), Kubernetes (`track_driver_via_k8s_api`) and standalone clusters (with an `application`,
        storage options whose secrets are references, and a spec that fits into an argument).
        """
        if not self._settings.can_detach:
            return None
        with self._prepared(spec, options) as prepared:
            if self._settings.is_wrapped and prepared.reads_files:
                return None
            self._build(spec, prepared)
            self._forget_useless(context)
            store = context.get("task_state_store")
            known = None if store is None else store.get(self._operator.external_id_key)
            if known and self._operator.is_job_active(self._operator.get_job_status(known, context)):
                return str(known)
            _name_the_parent_run(self._operator, context)
            job = str(self._operator.submit_job(context))
            if store is not None:
                store.set(self._operator.external_id_key, job)
            return job

    @contextmanager
    def _prepared(self, spec: JobSpec, options: Mapping[str, Any]) -> Iterator[_Prepared]:
        """The spec as it may be seen, and the submit's arguments; what is hidden is where the driver looks for it."""
        settings = self._settings
        settings.check()
        options = all_options(options, getattr(spec, "table_reads", {}))
        with ExitStack() as stack:
            arguments = self._packaged(stack, settings.submit_arguments)
            if settings.is_wrapped:
                # Such a driver is handed the environment of the submit, which the cluster's master keeps.
                hidden = _for_a_standalone_cluster(stack, options, identity=spec.identity, folder=settings.options_folder)
                stack.enter_context(limited_submit(settings.binary))
            elif settings.deploy_mode == "cluster":
                name = f"lance-options-{spec.identity}.json"
                hidden = hide_in_file(options, name=name)
                if hidden.text:
                    self._ship(stack, arguments, name, hidden.text.encode("utf-8"))
            else:
                hidden = hide_in_environment(options)
                stack.enter_context(environment(client_environment(hidden.text, settings.runs_here)))
            visible, files = with_references(spec, hidden.references), [hidden.text] if hidden.text else []

            def place(content: bytes) -> str:
                files.append("spec")
                return self._place(stack, arguments, f"lance-spec-{spec.identity}.json", content)

            yield _Prepared(encode_spec(visible, place=place), arguments, bool(files))

    def _place(self, stack: ExitStack, arguments: dict[str, Any], name: str, content: bytes) -> str:
        """Put a file where the driver finds it; under which name or path that is."""
        if self._settings.deploy_mode == "cluster" and not self._settings.is_wrapped:
            return self._ship(stack, arguments, name, content)
        path = stack.enter_context(private_file(name, folder=self._settings.options_folder))
        path.write_bytes(content)
        return str(path)

    @staticmethod
    def _ship(stack: ExitStack, arguments: dict[str, Any], name: str, content: bytes) -> str:
        """A file that Spark brings to the driver's folder, where it has this name."""
        path = stack.enter_context(private_file(name))
        path.write_bytes(content)
        arguments["files"] = ",".join(filter(None, [arguments.get("files"), str(path)]))
        return name

    def kill(self) -> None:
        """Stop the Spark job, in the way of its master and deploy mode."""
        if self._operator is not None:
            self._operator.on_kill()

    def _packaged(self, stack: ExitStack, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments with the program to run and what brings lance_core to the executors."""
        packaging = self._settings.packaging
        if self._settings.is_wrapped:
            if not arguments.get("application"):
                place = Path(stack.enter_context(TemporaryDirectory(prefix="lance-")))
                place.chmod(0o755)  # a cluster on this machine may run as somebody else; there is no secret in the jar
                jar = write_application(str(place / "lance_job.jar"), with_package=packaging == "archive")
                arguments["application"] = jar
            arguments["java_class"] = _WRAPPER
            return arguments
        arguments["application"] = application_path()
        if packaging == "archive":
            folder = stack.enter_context(TemporaryDirectory(prefix="lance-"))
            package = write_archive(str(Path(folder) / "lance_core.zip"))
            arguments["py_files"] = ",".join(filter(None, [arguments.get("py_files"), package]))
        elif packaging != "installed":
            arguments["archives"] = ",".join(filter(None, [arguments.get("archives"), f"{packaging}#{UNPACKED}"]))
        return arguments

    def _forget_useless(self, context: Context) -> None:
        """A job of an earlier try that succeeded, while nothing is staged: it was aborted since, so run it once more."""
        store = context.get("task_state_store")
        if store is None or not hasattr(self._operator, "external_id_key"):
            return
        job = store.get(self._operator.external_id_key)
        if job and self._operator.is_job_succeeded(self._operator.get_job_status(job, context)):
            store.delete(self._operator.external_id_key)

    def _build(self, spec: JobSpec, prepared: _Prepared) -> None:
        from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

        arguments = prepared.arguments
        if self._settings.is_yarn and not arguments.get("yarn_track_via_rm_api") and _knows(SparkSubmitOperator, "durable"):
            # The provider re-attaches on YARN through the resource manager only, and refuses otherwise; without it a
            # retry submits again, which the identity makes harmless.
            arguments.setdefault("durable", False)
        self._operator = SparkSubmitOperator(
            task_id=self._task_id.replace(".", "_"),
            application_args=[*_before_spec(arguments), prepared.argument],
            conn_id=self._settings.conn_id,
            conf={**self._settings.packed_conf, **self._settings.log_conf, **self._settings.conf, **allowed_conf()},
            name=arguments.pop("name", f"lance-{spec.kind}-{spec.identity[:8]}"),
            **arguments,
        )


def _name_the_parent_run(operator: Any, context: Context) -> None:
    """What the Spark provider's `execute` does for OpenLineage before it submits; here nobody calls it."""
    for kind in ("parent_job", "transport"):
        if getattr(operator, f"_openlineage_inject_{kind}_info", False):
            module = importlib.import_module("airflow.providers.common.compat.openlineage.utils.spark")
            inject = getattr(module, f"inject_{kind}_information_into_spark_properties")
            operator.conf = inject(operator.conf or {}, context)


def _for_a_standalone_cluster(
    stack: ExitStack, options: Mapping[str, Any], *, identity: str, folder: str | None
) -> HiddenOptions:
    """Plain options and references as they are, and literal secrets in a file that the driver's user alone reads."""
    secret = secret_names(options)
    if not secret:
        return HiddenOptions(dict(options))
    path = stack.enter_context(private_file(f"lance-options-{identity}.json", folder=folder))
    hidden = hide_in_file({name: options[name] for name in secret}, name=str(path))
    path.write_text(hidden.text, encoding="utf-8")
    return HiddenOptions({**options, **hidden.references}, hidden.text)


def _before_spec(arguments: Mapping[str, Any]) -> list[str]:
    """The wrapper's own arguments: the Python program, which is in the driver's folder, and no further files."""
    return [Path(arguments["application"]).name, ""] if arguments.get("java_class") == _WRAPPER else []


def _knows(operator: type[Any], argument: str) -> bool:
    return argument in inspect.signature(operator.__init__).parameters


def application_path() -> str:
    """The file that spark-submit runs, found without importing it."""
    found = importlib.util.find_spec(APPLICATION)
    if found is None or found.origin is None:  # pragma: no cover - a broken installation
        raise ModuleNotFoundError(f"{APPLICATION} is not installed")
    return found.origin
