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

With the bridge the name is its jar's, also in Spark 3.5, and nothing needs to be registered.
"""

from __future__ import annotations

import re
from typing import Any

from lance_core.errors import InputError
from lance_core.spark.names import NAME, is_enabled

_NAME = re.compile(r"[A-Za-z]\w*")


def register(spark: Any, *, name: str = NAME, push_filters: bool = False) -> None:
    """Make the source known to a session, as `spark.read.format(name)`.

    Nothing happens where the name `lance` is the bridge's, which reads and writes the same. InputError where another source
    has the name, such as lance-spark's with its jar on the class path: whoever went on would get that one, which knows other
    options; and in Spark 3.5 without the bridge.
    """
    if not _NAME.fullmatch(name):
        raise InputError(f"{name!r} is not a name of a data source", cure="Use letters, digits and _.")
    if not hasattr(spark, "dataSource"):
        if name == NAME and is_enabled(spark):
            return
        raise InputError(
            f"Spark {spark.version} has no Python data sources, which came with 4.0",
            cure="Use the bridge, lance_core.spark.bridge.configure(builder) or enable(spark), which brings "
            'format("lance"); or lance_core.spark.frame.read_table.',
        )
    from pyspark.errors import AnalysisException

    from lance_core.spark.python_source import LanceSource, PushingLanceSource

    if push_filters:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    base = PushingLanceSource if push_filters else LanceSource
    try:
        spark.dataSource.register(base if name == NAME else _named(base, name))
    except AnalysisException as error:
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise
        if name == NAME and is_enabled(spark):
            return
        raise InputError(
            f"this Spark has a data source {name!r} of its own, of a jar on its class path (lance-spark's is {NAME!r})",
            cure='Register this one under another name: register(spark, name="lance_py") and spark.read.format("lance_py"); '
            "or use lance_core.spark.frame.read_table, which needs no name; or leave the jar out.",
        ) from None


def _named(base: Any, text: str) -> Any:
    class Named(base):  # type: ignore[misc]
        """The source under another name."""

        @classmethod
        def name(cls) -> str:
            """What goes into `format(...)`."""
            return text

    return Named
