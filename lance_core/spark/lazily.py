"""This process, with a small Spark of its own for what only Spark can do: a commit that fills in Spark's columns.

::

    with LocalOrSpark() as runner:
        run_job(CommitSpec(...), runner=runner)       no Spark is started unless some staged work asks for it
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from lance_core.errors import InputError
from lance_core.jobs.base import Read, Shape, Source, TaskResult, Work
from lance_core.jobs.local import LocalRunner
from lance_core.spark.runner import SparkRows, SparkRunner


class LocalOrSpark(LocalRunner):
    """The local runner; expressions of Spark run in a session on this machine, which ends with the `with` block."""

    def __init__(self) -> None:
        self._sessions: list[Any] = []
        self._spark = SparkRunner(self._session)

    def __enter__(self) -> LocalOrSpark:
        return self

    def __exit__(self, *_: object) -> None:
        for session in self._sessions:
            with suppress(Exception):  # the result stands, whatever the JVM says about its end
                session.stop()

    def open_expressions(self, read: Read, num_tasks: int, schema: pa.Schema, columns: Mapping[str, str]) -> Any:
        """Through Spark."""
        return self._spark.open_expressions(read, num_tasks, schema, columns)

    def run(self, work: Work, source: Source, shape: Shape, on_tick: Callable[[], None]) -> Sequence[TaskResult]:
        """Where the source is."""
        runs_in_spark = isinstance(source, SparkRows)
        return (self._spark.run if runs_in_spark else super().run)(work, source, shape, on_tick)

    def _session(self) -> Any:
        if not self._sessions:
            self._sessions.append(_start())
        return self._sessions[-1]


def _start() -> Any:
    try:
        from pyspark.sql import SparkSession

        builder: Any = SparkSession.builder
        return builder.master("local[*]").appName("lance-commit").config("spark.ui.enabled", "false").getOrCreate()
    except Exception as error:
        raise InputError(
            f"columns of Spark must be filled in, and no Spark starts here: {type(error).__name__}: {error}".split("\n")[0],
            cure="Install pyspark and Java where commits run, or write the columns in Lance's own SQL.",
        ) from error
