"""Where a path without a scheme is, seen from a Spark job.

::

    source  {"format": "parquet", "paths": ["/raw/a"]}     on the cluster's default file system (`fs.defaultFS`)
    table   /lake/t.lance                                  on the disk of the machine, or container, that a task runs in

On one machine both are its disk. On a cluster whose default file system is HDFS the second is a folder that goes with the
container, so it is refused there; `file:///mnt/lake/t.lance` says that all machines share the folder.
"""

from __future__ import annotations

import re
from typing import Any

from lance_core.errors import InputError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_DEFAULT_FS = "fs.defaultFS"


def check_place(spark: Any, uri: str) -> None:
    """InputError for a table's path without a scheme where Spark's default file system is not the machines' own.

    A Spark Connect server does not say which it has, except where its configuration names `spark.hadoop.fs.defaultFS`.
    """
    default = "" if _SCHEME.match(uri) else default_file_system(spark)
    if not default or default.lower().startswith("file:"):
        return
    raise InputError(
        f"the table {uri!r} has no scheme: it would be a folder on the disk of each container, "
        f"while the sources of this Spark without a scheme are on {default}",
        uri=uri,
        cure=f"Write file://{uri} if all machines share that folder, or the uri of a store (s3://, gs://, az://).",
    )


def default_file_system(spark: Any) -> str:
    """`fs.defaultFS` of a session, "" where it does not say."""
    context = getattr(spark, "_jsc", None)
    if context is not None:
        return str(context.hadoopConfiguration().get(_DEFAULT_FS) or "")
    return str(spark.conf.get(f"spark.hadoop.{_DEFAULT_FS}", "") or "")
