"""What this worker lacks to submit a Spark job, looked up before anything is started; and where a job runs without a choice.

::

    execution="spark-submit"     without Java: one sentence with the cures, instead of spark-submit's output
    execution="auto"             without Java: "local", and the log says why

Which of the two it was is no part of the work: a retry on another worker may decide otherwise.

A staging job through a Spark Connect server; the driver's part runs in the worker's process.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from airflow_lance.compat import AirflowNotFoundException
from lance_core.errors import InputError
from lance_core.jobs import JobSpec
from lance_core.jobs.api import reference_of, with_options
from lance_core.spark import run_connected, write_archive

if TYPE_CHECKING:
    from airflow_lance.execution.spark_settings import SparkSettings

_NEEDED = {"airflow.providers.apache.spark": "apache-airflow-providers-apache-spark", "pyspark": "pyspark"}


def missing_for_spark(settings: SparkSettings) -> str:
    """What of packages, connection, spark-submit and Java is not there; "" for nothing."""
    missing = [package for module, package in _NEEDED.items() if not _is_there(module)]
    if missing:
        return f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed on this worker"
    try:
        binary = settings.binary
    except AirflowNotFoundException:
        return f"there is no Spark connection {settings.conn_id!r}"
    if shutil.which(binary) is None:
        return f"{binary} is not on the PATH of this worker"
    return "" if _has_java() else "this worker has no Java (JAVA_HOME is not set, and java is not on the PATH)"


def require_spark(settings: SparkSettings, *, task_id: str) -> None:
    """InputError with the cures where something is missing."""
    missing = missing_for_spark(settings)
    if missing:
        raise InputError(
            f"{task_id}: execution='spark-submit' is not possible here: {missing}",
            cure='For Spark, pip install "airflow-provider-lance[airflow,spark]", Java 17, and a Spark connection '
            '(spark_conn_id); for small tables, execution="local" on the operator; for all operators of the deployment, '
            "[lance] default_execution = local.",
        )


def decided(settings: SparkSettings, *, needs_spark: str) -> tuple[str, str]:
    """Where a job runs whose operator and deployment leave it open, and why. `needs_spark`: what of it only Spark can do."""
    if needs_spark:
        return "spark-submit", f"{needs_spark} needs Spark"
    missing = missing_for_spark(settings)
    if missing:
        return "local", missing
    return "spark-submit", f"Spark, Java and the connection {settings.conn_id!r} are there"


def _has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    if home and shutil.which("java", path=str(Path(home) / "bin")):
        return True
    # What spark-submit reads first may say where Java is.
    conf = os.environ.get("SPARK_CONF_DIR") or Path(os.environ.get("SPARK_HOME", "."), "conf")
    return shutil.which("java") is not None or Path(conf, "spark-env.sh").is_file()


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def stage_connected(
    spec: JobSpec, *, options: Mapping[str, Any], conn_id: str | None, conf: Mapping[str, str], packaging: str
) -> dict[str, Any]:
    """Stage through the server of a `spark_connect` connection; the reference for the commit."""
    from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook

    if packaging not in ("installed", "archive"):
        raise InputError(
            f"packaging {packaging!r} cannot be combined with Spark Connect, whose executors already have an environment",
            cure='Use "installed" or "archive".',
        )
    url = SparkConnectHook(conn_id or SparkConnectHook.default_conn_name).get_connection_url()
    with TemporaryDirectory(prefix="lance-") as folder:
        packages = [write_archive(str(Path(folder) / "lance_core.zip"))] if packaging == "archive" else []
        result = run_connected(with_options(spec, options), url=url, conf=conf, packages=packages)
    return reference_of(result, spec)
