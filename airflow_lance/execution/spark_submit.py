"""A staging job through spark-submit: any master, client or cluster mode, with the Spark provider's own operator.

::

    spark-submit --master local[2] --conf ... main.py base64url:eyJzcGVjIjoxLCJraW5kIjoiYXBwZW5kIi...
    spark-submit --master spark://... --deploy-mode cluster --class org.apache.spark.deploy.PythonRunner
                 lance_job.jar lance_job.jar "" base64url:eyJzcGVj...

The spec is encoded, because masters and shells rewrite arguments (`lance_core.spark.argument`); a large one goes as a file.
The driver's output is the task's log. Its result is not read from there: it is in the table's staged registry.

The environment of a submit, and the part that a driver may receive.

A standalone cluster in cluster mode is handed the whole environment of the process that submits: its master keeps it, with
what it writes down to recover, and gives it to the driver. So `spark-submit` is started there through a small program that
passes on the variables of `PASSED_ON` only; an Airflow worker's connections, keys and tokens stay where they are.

Storage options on their way to a Spark driver: never on a command line, never in a log.

The spec that travels as an application argument holds references only (`lance_core.jobs.specs.secret`)::

    {"env": "LANCE_STORAGE_OPTIONS", "key": "o0"}      client mode: an environment variable of the driver's process
    {"file": "lance-options-5c.json", "key": "o0"}     cluster mode: a file shipped with `--files` to the driver's folder
    {"file": "/shared/lance-.../lance-options-5c.json", "key": "o0"}     a standalone cluster, cluster mode: a private file

An option that a DAG gives as a reference itself is passed on as it is: the cluster resolves it. On a standalone cluster
plain options (endpoint, region) are passed on as they are, too.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from airflow_lance.compat import Context
from airflow_lance.execution.callables import allowed_conf
from airflow_lance.execution.spark_settings import UNPACKED, SparkSettings
from lance_core.errors import InputError
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

    def is_at_work(self, job: str, spec: JobSpec, *, options: Mapping[str, Any], context: Context) -> bool:
        """Whether the cluster still has a job that `detach` let go of. The Spark provider's error where it cannot say."""
        with self._prepared(spec, options) as prepared:
            self._build(spec, prepared)
            return bool(self._operator.is_job_active(self._operator.get_job_status(job, context)))

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


PASSED_ON = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "PYTHONPATH", "LD_LIBRARY_PATH",
    "JAVA_HOME", "SPARK_HOME", "SPARK_CONF_DIR", "SPARK_LOCAL_IP", "SPARK_LOCAL_HOSTNAME", "SPARK_LOCAL_DIRS",
    "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "HADOOP_HOME", "HADOOP_CONF_DIR", "HADOOP_USER_NAME", "YARN_CONF_DIR",
    "KRB5CCNAME", "KRB5_CONFIG", "LANCE_ALLOWED_CALLABLES",
)  # fmt: skip
"""What spark-submit needs to find Java, Spark, its settings and a Kerberos ticket. None of these is a secret's name."""

_PROGRAM = """\
import os
import sys

passed_on = {{name: os.environ[name] for name in {names!r} if name in os.environ}}
passed_on["PATH"] = {path!r}
os.execve({binary!r}, [{binary!r}, *sys.argv[1:]], passed_on)
"""


def client_environment(options: str, runs_here: bool) -> dict[str, str]:
    """What the driver's process needs: our options, this interpreter, and the spark-submit that is beside it."""
    # Only where executors run on this machine may they get its interpreter; elsewhere the cluster knows its own.
    pythons = ("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON") if runs_here else ("PYSPARK_DRIVER_PYTHON",)
    chosen = {name: os.environ.get(name, sys.executable) for name in pythons}
    return {"PATH": _path(), **({VARIABLE: options} if options else {}), **chosen}


@contextmanager
def limited_submit(binary: str = "spark-submit") -> Iterator[None]:
    """Inside, a `spark-submit` found on the path starts the real one with the variables of `PASSED_ON` alone.

    InputError for a binary that is a path: it would be started past this one, and be written over by it.
    """
    if Path(binary).name != binary:
        raise InputError(
            f"spark_submit['spark_binary'] is the path {binary!r}, but with deploy mode 'cluster' on a standalone cluster "
            "it must be a name",
            cure="Put the folder of the program on the PATH of the worker and give its name.",
        )
    path = _path()
    real = shutil.which(binary, path=path)
    if real is None:
        raise InputError(f"{binary} is not on the PATH of this worker", cure="Install pyspark, or put Spark's bin on PATH.")
    with TemporaryDirectory(prefix="lance-") as folder, environment(_spark_home(real)):
        program, command = Path(folder) / "submit.py", Path(folder) / binary
        program.write_text(_PROGRAM.format(names=PASSED_ON, path=path, binary=real), encoding="utf-8")
        python = shlex.quote(sys.executable)
        command.write_text(f'#!/bin/sh\nexec {python} -I {shlex.quote(str(program))} "$@"\n', encoding="utf-8")
        command.chmod(0o700)
        with environment({"PATH": os.pathsep.join([folder, path])}):
            yield


def _path() -> str:
    return os.pathsep.join(filter(None, [os.environ.get("PATH", ""), str(Path(sys.executable).parent)]))


def _spark_home(binary: str) -> dict[str, str]:
    """Where Spark is when it is the pyspark of this environment: its spark-submit asks the driver's Python for that, and
    which Python a driver on the cluster has is not for us to say."""
    found = importlib.util.find_spec("pyspark")
    if "SPARK_HOME" in os.environ or found is None or found.origin is None:
        return {}
    beside = Path(sys.executable).parent
    return {"SPARK_HOME": str(Path(found.origin).parent)} if Path(binary).parent == beside else {}


VARIABLE = "LANCE_STORAGE_OPTIONS"


@dataclass(frozen=True)
class HiddenOptions:
    """References to put in a spec, and the JSON text they refer to (empty when there is nothing to hide)."""

    references: Mapping[str, Any]
    text: str = ""


def hide_in_environment(options: Mapping[str, Any]) -> HiddenOptions:
    """References into the environment variable `VARIABLE`."""
    return _hide(options, {"env": VARIABLE})


def hide_in_file(options: Mapping[str, Any], *, name: str) -> HiddenOptions:
    """References into a file of that name in the driver's working folder."""
    return _hide(options, {"file": name})


def all_options(options: Mapping[str, Any], reads: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a job's own store and of the tables that it reads (`WriteSpec.table_reads`), under one name each."""
    further = {
        f"{name}/{option}": value.to_json() for name, read in reads.items() for option, value in read.storage_options.items()
    }
    return {**options, **further}


def with_references(spec: JobSpec, references: Mapping[str, Any]) -> JobSpec:
    """The spec with references in the place of the options that `all_options` names."""
    own = {name: value for name, value in references.items() if "/" not in name}
    further = {
        name: replace(read, storage_options={option: references[f"{name}/{option}"] for option in read.storage_options})
        for name, read in getattr(spec, "table_reads", {}).items()
    }
    reads: dict[str, Any] = {"table_reads": further} if further else {}
    return replace(spec, storage_options=own, **reads)


def _hide(options: Mapping[str, Any], place: Mapping[str, str]) -> HiddenOptions:
    # Keys are numbered: an option's name may hold a dot, which a reference's key reads as a path.
    literals = {
        name: f"o{index}" for index, (name, value) in enumerate(sorted(options.items())) if not isinstance(value, Mapping)
    }
    references = {name: {**place, "key": literals[name]} if name in literals else dict(options[name]) for name in options}
    text = json.dumps({key: str(options[name]) for name, key in literals.items()}) if literals else ""
    return HiddenOptions(references, text)


@contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set variables of this task's process while a child is started.

    Not the Spark hook's `env_vars`: for YARN and Kubernetes the hook turns those into `--conf` arguments, which every
    user of the machine can read.
    """
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def private_file(name: str, *, folder: str | None = None) -> Iterator[Path]:
    """An empty file that only this user can read, in a separate folder (below `folder` if given), removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="lance-", dir=folder) as place:
        path = Path(place) / name
        path.touch(mode=0o600)
        yield path


def secret_names(options: Mapping[str, Any]) -> list[str]:
    """The options with a literal that is not known to be plain."""
    from lance_core.jobs.specs.plain_options import is_plain_option

    literals = [(name, value) for name, value in options.items() if not isinstance(value, Mapping)]
    return [name for name, value in literals if not is_plain_option(name.rpartition("/")[2], value)]
