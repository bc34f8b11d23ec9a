"""What a machine lacks to open `hdfs://`: Arrow loads Hadoop's native client when it first connects, and it runs a JVM.

::

    libjvm.so     JAVA_HOME                             else in the usual places of a Java
    libhdfs.so    ARROW_LIBHDFS_DIR, HADOOP_HOME        else where the system's loader looks
    Hadoop's jars CLASSPATH                             as `hadoop classpath --glob` prints them

Arrow's own error is a list of a hundred paths, from the second time on "Prior attempt to load libhdfs failed", and without
the jars a number. WebHDFS needs none of the three. Standard library only.
"""

from __future__ import annotations

import ctypes.util
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from lance_core.errors import InputError, LanceError

_JVM = ("lib/server/libjvm.so", "jre/lib/amd64/server/libjvm.so", "lib/amd64/server/libjvm.so", "lib/server/libjvm.dylib")
_HDFS = ("libhdfs.so", "libhdfs.dylib")
_MOST = 200
"""Characters of Arrow's own words."""


def explained(error: Exception, *, uri: str, variables: Mapping[str, str] = os.environ) -> InputError | None:
    """The error of ours for one of Arrow as it connected; None for one of ours, and where the machine lacks nothing."""
    if isinstance(error, LanceError):
        return None
    text = " ".join(str(error).split())
    lacks = what_is_missing(variables, has_no_jvm="libjvm" in text)
    if not lacks:
        return None
    return InputError(
        f"{uri} cannot be opened, because this machine lacks {', '.join(lacks)} (Arrow: {text:.{_MOST}})",
        uri=uri,
        cure="Install Hadoop's client wherever the table is opened (workers, drivers, executors), and set JAVA_HOME, "
        'HADOOP_HOME and CLASSPATH="$(hadoop classpath --glob)"; or use webhdfs://, which needs none of them.',
    )


def what_is_missing(variables: Mapping[str, str], *, has_no_jvm: bool = False) -> list[str]:
    """Each with the variable that should lead there.

    >>> what_is_missing({"CLASSPATH": "/opt/hadoop/hadoop-common-3.5.0.jar"}, has_no_jvm=True)[0]
    'libjvm.so (JAVA_HOME is not set)'
    """
    java, own = variables.get("JAVA_HOME"), variables.get("ARROW_LIBHDFS_DIR")
    home, jars = variables.get("HADOOP_HOME"), variables.get("CLASSPATH", "")
    lacks = []
    # Arrow looks in further places, but says so where none has one.
    if has_no_jvm or (java and not _is_in(java, _JVM)):
        lacks.append(f"libjvm.so (JAVA_HOME {_set_to(java)})")
    if not (_is_in(own, _HDFS) or _is_in(home and f"{home}/lib/native", _HDFS) or ctypes.util.find_library("hdfs")):
        name = "ARROW_LIBHDFS_DIR" if own else "HADOOP_HOME"
        lacks.append(f"libhdfs.so ({name} {_set_to(own or home)})")
    if "hadoop" not in jars.lower():
        lacks.append(f"Hadoop's jars (CLASSPATH {'names none' if jars else 'is not set'})")
    return lacks


def _is_in(folder: str | None, names: Sequence[str]) -> bool:
    return bool(folder) and any((Path(folder or "") / name).exists() for name in names)


def _set_to(value: str | None) -> str:
    return f"is {value}" if value else "is not set"
