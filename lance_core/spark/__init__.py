"""Spark: jobs on executors, and the data source `lance`. The only package that imports pyspark.

::

    from lance_core.spark import run_connected
    run_connected(spec, url="sc://spark:15002")

Nothing is imported before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.lazy import lazy_face

if TYPE_CHECKING:
    from lance_core.spark.archive import write_application as write_application
    from lance_core.spark.archive import write_archive as write_archive
    from lance_core.spark.argument import encode_spec as encode_spec
    from lance_core.spark.connect import run_connected as run_connected
    from lance_core.spark.on_demand import OnDemandSpark as OnDemandSpark
    from lance_core.spark.runner import SparkRunner as SparkRunner
else:
    __getattr__, __dir__ = lazy_face(
        __name__,
        {
            "OnDemandSpark": "lance_core.spark.on_demand",
            "SparkRunner": "lance_core.spark.runner",
            "encode_spec": "lance_core.spark.argument",
            "run_connected": "lance_core.spark.connect",
            "write_application": "lance_core.spark.archive",
            "write_archive": "lance_core.spark.archive",
        },
    )

__all__ = [
    "OnDemandSpark",
    "SparkRunner",
    "encode_spec",
    "run_connected",
    "write_application",
    "write_archive",
]
