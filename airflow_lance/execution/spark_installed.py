"""Check that Airflow's Spark provider and pyspark are installed, before anything is started."""

from __future__ import annotations

from importlib.util import find_spec

from lance_core.errors import InputError

_NEEDED = {"airflow.providers.apache.spark": "apache-airflow-providers-apache-spark", "pyspark": "pyspark"}


def require_spark(*, task_id: str) -> None:
    """InputError with the cure where one of them is missing."""
    missing = [package for module, package in _NEEDED.items() if not _is_there(module)]
    if missing:
        raise InputError(
            f"{task_id}: execution='spark-submit' needs {' and '.join(missing)}, which this worker does not have",
            cure='pip install "airflow-provider-lance[airflow,spark]"; or pass execution="local", which runs in the worker, '
            "or set [lance] default_execution.",
        )


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
