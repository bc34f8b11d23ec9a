"""A staging job through a Spark Connect server; the driver's part runs in the worker's process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lance_core.errors import InputError
from lance_core.jobs import JobSpec
from lance_core.jobs.api import reference_of, with_options
from lance_core.spark import run_connected, write_archive


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
