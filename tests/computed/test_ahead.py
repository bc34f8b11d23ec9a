"""Inputs are read while a function computes: in order, one piece ahead, and nobody waits for them when it ends early."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_core
from lance_core.computed import blob_inputs
from lance_core.io.ahead import ahead
from tests.computed.work import declare, refresh, write_numbers


def test_one_piece_is_read_ahead_and_no_more() -> None:
    read = list[int]()
    next_read = threading.Event()

    def pieces() -> Iterator[int]:
        for number in range(5):
            read.append(number)
            next_read.set()
            yield number

    taken = []
    with closing(ahead(pieces())) as coming:
        for number in coming:
            taken.append(number)
            if number < 4:
                while len(read) < number + 2:  # it is read while this one is used
                    assert next_read.wait(timeout=30)
                    next_read.clear()
                time.sleep(0.01)
                assert read == [*range(number + 2)]
    assert taken == read == [*range(5)]
    assert list(ahead(iter([]))) == []


def test_an_error_of_reading_comes_where_its_piece_would() -> None:
    def pieces() -> Iterator[int]:
        yield 1
        raise OSError("no disk")

    coming = ahead(pieces())
    assert next(coming) == 1
    with pytest.raises(OSError, match="no disk"):
        next(coming)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_who_ends_early_does_not_wait(error: Any) -> None:
    goes_on = threading.Event()

    def pieces() -> Iterator[int]:
        yield 1
        goes_on.wait(timeout=60)
        yield 2

    began = time.monotonic()
    with pytest.raises(error), closing(ahead(pieces())) as coming:
        for _ in coming:
            raise error
    assert time.monotonic() - began < 30
    goes_on.set()


def test_the_next_blobs_are_read_while_the_function_computes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call waits until the blobs of the next one are read, which would never be if they came one after the other."""
    uri = str(tmp_path / "t.lance")
    blobs = [bytes([number]) * 1_000 for number in range(6)]
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    lance_core.write_dataset(pa.table([pa.array(blobs, pa.large_binary())], schema=pa.schema([field])), uri)
    monkeypatch.setenv("LANCE_BATCH_BYTES", "1500")
    read, changed = list[int](), threading.Condition()
    plain = blob_inputs._bytes_of

    def noted(places: Any) -> Any:
        found = plain(places)
        with changed:
            read.extend(data[0] for data in found if data)
            changed.notify_all()
        return found

    monkeypatch.setattr(blob_inputs, "_bytes_of", noted)
    most = list[int]()

    def work(batch: pa.RecordBatch) -> list[int]:
        (data,) = batch.column("b").to_pylist()
        with changed:
            assert changed.wait_for(lambda: len(read) >= min(6, data[0] + 2), timeout=30)
            most.append(len(read) - data[0])
        return [data[0]]

    lance_core.declare_column(uri, "y", function="our.models:work", inputs=["b"], type=pa.int64())
    lance_core.refresh_columns(uri, functions={"our.models:work": work})
    assert lance_core.dataset(uri).to_table(columns=["y"])["y"].to_pylist() == [*range(6)]
    assert max(most) == 2


def test_a_refresh_that_is_interrupted_ends_while_inputs_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = write_numbers(tmp_path)
    declare(uri)

    def work(batch: pa.RecordBatch) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        refresh(uri, work)
    report = refresh(uri, lambda batch: batch.column("x"))
    assert report.columns["y"].rows_given == 20
