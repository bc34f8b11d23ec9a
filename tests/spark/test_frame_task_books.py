"""However long a task of a DataFrame write runs, it keeps its books in two requests, as no log shows it. Without Spark."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

import lance_core
from bench.object_client import object_server
from lance_core.jobs.runtime import progress
from lance_core.spark.options import parse_options
from tests.spark.conftest import needs_sources

pytestmark = needs_sources


def test_a_long_task_of_a_frame_keeps_its_books_in_two_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock.now))

    from lance_core.spark.python_writer import LanceWriter

    def slow() -> Iterator[pa.RecordBatch]:
        for start in (0, 10, 20):
            clock.now += 60.0
            yield pa.record_batch({"id": pa.array(range(start, start + 10), pa.int64())})

    with object_server() as server:
        uri = f"s3://b{uuid.uuid4().hex}/t"
        options = parse_options({"uri": uri, **server.options})
        writer = LanceWriter(options, StructType([StructField("id", LongType())]), overwrite=False)
        with server.watch() as seen:
            message = writer.write(slow())
        assert seen.operations == {"PUT": 2, "GET": 1}, str(seen)  # one of them is the data
        writer.commit([message])
        assert lance_core.dataset(uri, storage_options=server.options).count_rows() == 30
