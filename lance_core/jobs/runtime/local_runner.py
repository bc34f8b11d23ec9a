"""Runs a job's work in this process: one task, streaming, memory bounded by batches and page buffers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from lance_core.errors import InputError
from lance_core.jobs.runtime.progress import HERE, Ticker
from lance_core.jobs.runtime.protocols import JobSource, Read, Runner, Shape, TaskResult, Work
from lance_core.jobs.sources.lance_table import OptionsOf, no_options
from lance_core.jobs.sources.open_source import LocalSource, open_local_source
from lance_core.jobs.specs.spec import SourceSpec


class LocalRunner(Runner):
    """For small tables, tests, and machines without Spark.

    `options_of`: the storage options of Lance tables that are sources. `functions`: those of declared columns, by name, for
    callers who have more than a name. `opened`: by name in the query, the versions of those that were opened.
    """

    name = "local"

    def __init__(self, options_of: OptionsOf = no_options, *, functions: Mapping[str, Any] | None = None) -> None:
        self.options_of = options_of
        self.functions = dict(functions or {})
        self.opened: dict[str, int] = {}

    def open_source(self, spec: SourceSpec, *, table: pa.Schema | None = None) -> LocalSource:
        """A source read through pyarrow."""
        source = open_local_source(spec, self.options_of, table=table)
        self.opened |= {name or spec.paths[0]: table.version for name, table in source.tables.items()}
        return source

    def open_tasks(self, num_tasks: int) -> LocalSource:
        """Task numbers, each a separate partition, done one after the other."""
        numbers = pa.table({"id": pa.array(range(num_tasks), pa.int64())})
        return LocalSource(numbers.schema, lambda: iter(numbers.to_batches(max_chunksize=1)), num_tasks=num_tasks)

    def open_expressions(self, read: Read, num_tasks: int, schema: pa.Schema, columns: Mapping[str, str]) -> LocalSource:
        """There is no engine here. InputError."""
        raise InputError(
            'columns with engine="spark" need Spark, but this is not a Spark job',
            cure='Run it with Spark (execution="spark-submit" or "spark-connect"), or write them as Lance SQL expressions.',
        )

    def run(self, work: Work, source: JobSource, shape: Shape, on_tick: Callable[[], None]) -> Sequence[TaskResult]:
        """One task over the whole source, or one for each number of `open_tasks`."""
        if not isinstance(source, LocalSource):
            raise TypeError(f"the local runner cannot read a source of type {type(source).__name__}")
        with Ticker(shape.tick_seconds, on_tick):
            if source.num_tasks is None:
                return [work(0, HERE, source.batches())]
            return [work(number, HERE, iter([batch])) for number, batch in enumerate(source.batches())]
