"""The environment of a submit, and the part that a driver may receive.

A standalone cluster in cluster mode is handed the whole environment of the process that submits: its master keeps it, with
what it writes down to recover, and gives it to the driver. So `spark-submit` is started there through a small program that
passes on the variables of `PASSED_ON` only; an Airflow worker's connections, keys and tokens stay where they are.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from airflow_lance.execution.options import VARIABLE, environment
from lance_core.errors import InputError

PASSED_ON = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "PYTHONPATH", "LD_LIBRARY_PATH",
    "JAVA_HOME", "SPARK_HOME", "SPARK_CONF_DIR", "SPARK_LOCAL_IP", "SPARK_LOCAL_HOSTNAME", "SPARK_LOCAL_DIRS",
    "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "HADOOP_HOME", "HADOOP_CONF_DIR", "HADOOP_USER_NAME", "YARN_CONF_DIR",
    "KRB5CCNAME", "KRB5_CONFIG", "LANCE_ALLOWED_CALLABLES",
)  # fmt: skip
"""What spark-submit needs to find Java, Spark, its settings and a Kerberos ticket. None of these is a secret's name."""

_PROGRAM = """\
import os
import sys

passed_on = {{name: os.environ[name] for name in {names!r} if name in os.environ}}
passed_on["PATH"] = {path!r}
os.execve({binary!r}, [{binary!r}, *sys.argv[1:]], passed_on)
"""


def client_environment(options: str, runs_here: bool) -> dict[str, str]:
    """What the driver's process needs: our options, this interpreter, and the spark-submit that is beside it."""
    # Only where executors run on this machine may they get its interpreter; elsewhere the cluster knows its own.
    pythons = ("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON") if runs_here else ("PYSPARK_DRIVER_PYTHON",)
    chosen = {name: os.environ.get(name, sys.executable) for name in pythons}
    return {"PATH": _path(), **({VARIABLE: options} if options else {}), **chosen}


@contextmanager
def limited_submit(binary: str = "spark-submit") -> Iterator[None]:
    """Inside, a `spark-submit` found on the path starts the real one with the variables of `PASSED_ON` alone.

    InputError for a binary that is a path: it would be started past this one, and be written over by it.
    """
    if Path(binary).name != binary:
        raise InputError(
            f"spark_submit['spark_binary'] is the path {binary!r}, but with deploy mode 'cluster' on a standalone cluster "
            "it must be a name",
            cure="Put the folder of the program on the PATH of the worker and give its name.",
        )
    path = _path()
    real = shutil.which(binary, path=path)
    if real is None:
        raise InputError(f"{binary} is not on the PATH of this worker", cure="Install pyspark, or put Spark's bin on PATH.")
    with TemporaryDirectory(prefix="lance-") as folder, environment(_spark_home(real)):
        program, command = Path(folder) / "submit.py", Path(folder) / binary
        program.write_text(_PROGRAM.format(names=PASSED_ON, path=path, binary=real), encoding="utf-8")
        python = shlex.quote(sys.executable)
        command.write_text(f'#!/bin/sh\nexec {python} -I {shlex.quote(str(program))} "$@"\n', encoding="utf-8")
        command.chmod(0o700)
        with environment({"PATH": os.pathsep.join([folder, path])}):
            yield


def _path() -> str:
    return os.pathsep.join(filter(None, [os.environ.get("PATH", ""), str(Path(sys.executable).parent)]))


def _spark_home(binary: str) -> dict[str, str]:
    """Where Spark is when it is the pyspark of this environment: its spark-submit asks the driver's Python for that, and
    which Python a driver on the cluster has is not for us to say."""
    found = importlib.util.find_spec("pyspark")
    if "SPARK_HOME" in os.environ or found is None or found.origin is None:
        return {}
    beside = Path(sys.executable).parent
    return {"SPARK_HOME": str(Path(found.origin).parent)} if Path(binary).parent == beside else {}
