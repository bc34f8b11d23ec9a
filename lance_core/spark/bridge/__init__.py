"""The optional bridge: `format("lance")` in columns, by a small jar and warm Python workers beside the JVM.

::

    builder = configure(SparkSession.builder)              before the session: the jar, and Arrow's fast access to memory
    enable(spark)                                          or after it has begun, on classic Spark
    spark.read.format("lance").load("/t.lance")            the same rows and options as without, without a row in Python

Without the jar everything goes on as before: `register(spark)` makes the Python source known. The jar holds no table format:
it asks `worker` processes of this library, in the interpreter of `spark.pyspark.python`, and refuses another release of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lance_core.errors import InputError
from lance_core.spark.names import is_enabled as is_enabled

JAR = "lance-bridge.jar"
CATALOG = "lancecore.spark.LanceCatalog"
CATALOG_WITH_CALL = "lancecore.spark.v4.LanceCatalog"
EXTENSIONS = "lancecore.spark.Extensions"
_FAST = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
_EXTENSIBLE = (".MutableURLClassLoader", ".ChildFirstURLClassLoader")
"""Spark's own loaders of an application's classes."""
_FAST_OPTIONS = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")


def jar_path() -> str:
    """Where the jar lies in this installation, for `--jars` and `spark.jars`."""
    return str(Path(__file__).with_name(JAR))


def configure(builder: Any, *, catalogs: Mapping[str, Mapping[str, str]] | None = None) -> Any:
    """A session builder whose sessions have the bridge; what it says of jars, extensions and Java options already is kept.

    `catalogs`: name in SQL -> settings of a catalog, such as `{"lake": {"uri": "s3://lake", "region": "eu-west-1"}}`.

    >>> configure(SparkSession.builder.master("local[2]")).getOrCreate()                          # doctest: +SKIP
    """
    given = dict(getattr(builder, "_options", {}))
    jars = [jar for jar in str(given.get("spark.jars", "")).split(",") if jar]
    builder = builder.config("spark.jars", ",".join(dict.fromkeys([*jars, jar_path()])))
    for name in _FAST_OPTIONS:
        options = str(given.get(name, ""))
        builder = builder.config(name, options if _FAST in options else f"{options} {_FAST}".strip())
    others = [name for name in str(given.get("spark.sql.extensions", "")).split(",") if name]
    builder = builder.config("spark.sql.extensions", ",".join(dict.fromkeys([*others, EXTENSIONS])))
    for name, settings in (catalogs or {}).items():
        builder = builder.config(f"spark.sql.catalog.{name}", catalog_class())
        for setting, value in settings.items():
            builder = builder.config(f"spark.sql.catalog.{name}.{setting}", str(value))
    return builder


def catalog_class() -> str:
    """The class for `spark.sql.catalog.NAME` in this Spark: from 4.0 on its SQL has CALL, for which it is another one."""
    from pyspark import __version__ as release

    return CATALOG if int(release.split(".")[0]) < 4 else CATALOG_WITH_CALL


def enable(spark: Any) -> None:
    """Make the bridge known to an application that has begun: `format("lance")` is read and written in columns from then on,
    in all of its sessions and threads.

    Nothing happens where it is known already, as on a Spark Connect server that was started with the jar. InputError for one
    that was not, and where lance-spark's source has the name `lance`.
    """
    if is_enabled(spark):
        return
    if not hasattr(spark, "_jvm"):
        raise InputError(
            "the bridge cannot be enabled from a client of Spark Connect: this server was started without its jar",
            cure="Start the server with --jars and the lance-bridge.jar of this release (here it is "
            f"{jar_path()}), or register the Python source: lance_core.spark.source.register(spark).",
        )
    _add_to_driver(spark)
    spark._jsc.addJar(jar_path())  # for executors
    if not is_enabled(spark):
        raise InputError(
            'format("lance") is another source in this Spark, of a jar on its class path',
            cure="Leave that jar out, or read with lance_core.spark.frame.read_table.",
        )


def _add_to_driver(spark: Any) -> None:
    # ADD JAR gives it to one session and to the thread that says so; the loader below is that of all threads.
    loader = spark._jvm.Thread.currentThread().getContextClassLoader()
    while loader is not None and not loader.getClass().getName().endswith(
        (".MutableURLClassLoader", ".ChildFirstURLClassLoader")
    ):
        loader = loader.getParent()
    if loader is None:
        raise InputError(
            "this application's class path cannot be extended",
            cure="Use lance_core.spark.bridge.configure(builder), or --jars.",
        )
    loader.addURL(spark._jvm.java.io.File(jar_path()).toURI().toURL())
