"""This process, with a local Spark session for work that only Spark can do: a commit that fills in Spark's columns, or
does a statement of Spark's SQL again.

::

    with LocalOrSpark() as runner:
        run_job(CommitSpec(...), runner=runner)       no Spark is started unless some staged work asks for it
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from lance_core.errors import InputError
from lance_core.jobs.runtime.local_runner import LocalRunner
from lance_core.jobs.runtime.protocols import JobSource, Read, Shape, TaskResult, Work
from lance_core.jobs.sources.lance_table import OptionsOf, no_options
from lance_core.jobs.specs.spec import SourceSpec
from lance_core.spark.lance_tables import LanceTables
from lance_core.spark.runner import SparkRows, SparkRunner

_PYTHON = "PYSPARK_PYTHON"


class OnDemandSpark(LocalRunner):
    """The local runner; what is Spark's SQL runs in a session on this machine, which ends with the `with` block."""

    def __init__(self, options_of: OptionsOf = no_options) -> None:
        super().__init__(options_of)
        self._session: Any = None
        self._is_ours = False
        self._spark = SparkRunner(self._open, LanceTables(options_of))

    def __enter__(self) -> OnDemandSpark:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_ours:
            with suppress(Exception):  # the result stands, whatever the JVM says about its end
                self._session.stop()

    def open_source(self, spec: SourceSpec, *, table: pa.Schema | None = None) -> Any:
        """Through Spark where the query is in its SQL."""
        opened = self._spark.open_source if spec.engine == "spark" else super().open_source
        return opened(spec, table=table)

    def open_expressions(self, read: Read, num_tasks: int, schema: pa.Schema, columns: Mapping[str, str]) -> Any:
        """Through Spark."""
        return self._spark.open_expressions(read, num_tasks, schema, columns)

    def run(self, work: Work, source: JobSource, shape: Shape, on_tick: Callable[[], None]) -> Sequence[TaskResult]:
        """Where the source is."""
        runs_in_spark = isinstance(source, SparkRows)
        return (self._spark.run if runs_in_spark else super().run)(work, source, shape, on_tick)

    def _open(self) -> Any:
        """The session of this process, one of our own where there is none."""
        if self._session is None:
            try:
                from pyspark.sql import SparkSession

                self._session = SparkSession.getActiveSession()
                self._is_ours = self._session is None
                self._session = self._session or _start(SparkSession.builder)
            except Exception as error:
                text = f"this work needs Spark, but Spark cannot be started: {type(error).__name__}: {error}"
                raise InputError(
                    text.split("\n", 1)[0],
                    cure="Install pyspark and Java where commits run; or run a statement, or write columns, without Spark.",
                ) from error
        return self._session


def _start(builder: Any) -> Any:
    """A session whose Python workers are this interpreter, unless the environment names another."""
    named = os.environ.get(_PYTHON)
    os.environ[_PYTHON] = named or sys.executable
    try:
        return builder.master("local[*]").appName("lance-commit").config("spark.ui.enabled", "false").getOrCreate()
    finally:
        if named is None:
            del os.environ[_PYTHON]
