"""`spark.read.format("lance")` and `df.write.format("lance")`, on Spark's Python data source (PySpark 4.0 and later).

::

    from lance_core.spark.source import register
    register(spark)
    spark.read.format("lance").option("version", 3).load("/t.lance").where("id > 5").select("name")
    df.write.format("lance").mode("append").save("/t.lance")          mode is append or overwrite, and must be given

Column pruning and filter push-down need `spark.sql.python.filterPushdown.enabled`, which `register` turns on.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from pyspark.sql.datasource import DataSource

from lance_core.spark.options import parse_options
from lance_core.spark.source_read import LanceReader, open_read_snapshot
from lance_core.spark.source_write import LanceWriter
from lance_core.spark.types import spark_schema


class LanceSource(DataSource):
    """The source named `lance`."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._parsed = parse_options(dict(options))

    @classmethod
    def name(cls) -> str:
        """What goes into `format(...)`."""
        return "lance"

    def schema(self) -> Any:
        """Columns of the version that is read."""
        return spark_schema(open_read_snapshot(self._parsed).arrow_schema)

    def reader(self, schema: Any) -> LanceReader:
        """A reader of the columns in `schema`."""
        return LanceReader(self._parsed, schema)

    def writer(self, schema: Any, overwrite: bool) -> LanceWriter:
        """A writer of rows with `schema`."""
        return LanceWriter(self._parsed, schema, overwrite=overwrite)


def register(spark: Any) -> None:
    """Make the source known to a session."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(LanceSource)
