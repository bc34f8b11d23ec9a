"""PySpark's daemon, which has imported what its workers need before it forks them: else each of the two that plan a read of
the Python source imports PySpark and this package anew, a second of the processor for every query of these tests."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module

from pyspark.daemon import manager

MODULES = (
    "pyspark.worker",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.plan_data_source_read",
    "lance_core.spark.python_source",
)

if __name__ == "__main__":
    for module in MODULES:
        with suppress(ImportError):  # Spark 3.5 has no data sources in Python
            import_module(module)
    manager()
