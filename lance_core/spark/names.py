"""Whose `format("lance")` is: the bridge's jar, the Python source, or somebody else's jar, such as lance-spark's."""

from __future__ import annotations

from typing import Any

from lance_core.spark.options import NO_TABLE

NAME = "lance"
_OF_BRIDGE = "lance.DefaultSource"


def is_enabled(spark: Any) -> bool:
    """Whether `format("lance")` is the bridge in this session. A Spark Connect server is asked."""
    return _is_found(spark) if hasattr(spark, "_jvm") else _answers(spark)


def _answers(remote: Any) -> bool:
    from pyspark.errors import PySparkException

    try:  # a client cannot look at the server's classes, but at what they say of a table that is not named
        remote.read.format(NAME).load().schema  # noqa: B018
    except PySparkException as error:
        return NO_TABLE in str(error) and "PYTHON_DATA_SOURCE" not in str(error)
    return False


def _is_found(spark: Any) -> bool:
    jvm = spark._jvm
    try:
        found = jvm.org.apache.spark.sql.execution.datasources.DataSource.lookupDataSource(
            NAME, spark._jsparkSession.sessionState().conf()
        )
    except Exception as error:  # what Py4J raises for a class that is not found
        if "DATA_SOURCE_NOT_FOUND" in str(error) or "ClassNotFound" in str(error):
            return False
        raise
    return str(found.getName()) == _OF_BRIDGE
