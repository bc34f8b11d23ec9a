"""`spark.read.format("lance")` and `df.write.format("lance")`, on Spark's Python data source (PySpark 4.0 and later).

::

    from lance_core.spark.source import register
    register(spark)
    register(spark, name="lance_py")                                  where lance-spark's jar has the name already
    spark.read.format("lance").option("version", 3).load("/t.lance").where("id > 5").select("name")
    df.write.format("lance").mode("append").save("/t.lance")          mode is append or overwrite, and must be given

To read less, say so: `.option("columns", "id,name").option("filter", "id > 5")`.

Spark can also push filters down automatically (`register(spark, push_filters=True)`), but up to 4.2 it keeps what it pushed
with the DataFrame: `df.where("id > 5").count()` and then `df.count()` on the *same* `df` counts the filtered rows again.
With newer releases it is safe; with those, only where every `load()` serves one query.
"""

from __future__ import annotations

import re
from collections.abc import MutableMapping
from typing import Any

from pyspark.sql.datasource import DataSource

from lance_core.errors import InputError
from lance_core.spark.options import parse_options
from lance_core.spark.source_read import LanceReader, PushingReader
from lance_core.spark.source_write import LanceWriter
from lance_core.spark.table_reader import read_schema
from lance_core.spark.types import spark_schema

NAME = "lance"
_NAME = re.compile(r"[A-Za-z]\w*")


class LanceSource(DataSource):
    """The source named `lance`."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._parsed = parse_options(dict(options))

    @classmethod
    def name(cls) -> str:
        """What goes into `format(...)`."""
        return NAME

    def schema(self) -> Any:
        """Columns of the version that is read."""
        return spark_schema(read_schema(self._parsed))

    def reader(self, schema: Any) -> LanceReader:
        """A reader of the columns in `schema`."""
        return LanceReader(self._parsed, schema)

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        """Refused: Spark tells such a writer neither the query nor, while rows are written, the batch."""
        raise InputError(
            "the lance source cannot be used directly as a streaming sink",
            cure="Use stream.writeStream.foreachBatch(lance_core.spark.streaming.batches_into(uri)).",
        )

    def writer(self, schema: Any, overwrite: bool) -> LanceWriter:
        """A writer of rows with `schema`."""
        return LanceWriter(self._parsed, schema, overwrite=overwrite)


class PushingLanceSource(LanceSource):
    """The source with filters pushed down by Spark; see the module's head for when that is safe."""

    def reader(self, schema: Any) -> LanceReader:
        """A reader that takes filters."""
        return PushingReader(self._parsed, schema)


def register(spark: Any, *, name: str = NAME, push_filters: bool = False) -> None:
    """Make the source known to a session, as `spark.read.format(name)`.

    InputError where another source has that name already, such as lance-spark's with its jar on the class path: whoever
    went on would get that one, which knows other options.
    """
    from pyspark.errors import AnalysisException

    if not _NAME.fullmatch(name):
        raise InputError(f"{name!r} is not a name of a data source", cure="Use letters, digits and _.")
    if push_filters:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    base = PushingLanceSource if push_filters else LanceSource
    try:
        spark.dataSource.register(base if name == NAME else _named(base, name))
    except AnalysisException as error:
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise
        raise InputError(
            f"this Spark has a data source {name!r} of its own, of a jar on its class path (lance-spark's is {NAME!r})",
            cure='Register this one under another name: register(spark, name="lance_py") and spark.read.format("lance_py"); '
            "or use lance_core.spark.frame.read_table, which needs no name; or leave the jar out.",
        ) from None


def _named(base: type[LanceSource], text: str) -> type[LanceSource]:
    class Named(base):  # type: ignore[valid-type, misc]
        """The source under another name."""

        @classmethod
        def name(cls) -> str:
            """What goes into `format(...)`."""
            return text

    return Named
