"""Fragments read ahead: order, errors, the budget in bytes, and what is left alone when nobody wants any more."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pyarrow as pa
import pytest

from lance_core.dataset.scan.sinks import ReadAhead

ROW = 8


def batch(number: int, rows: int = 100) -> pa.RecordBatch:
    return pa.record_batch({"a": pa.array([number] * rows, pa.int64())})


class Reader:
    """Reads tasks, slowly and out of step, and knows how much of what it read was never taken."""

    def __init__(self, *, batches: int = 3, rows: int = 100, fail_at: int = -1, seconds: float = 0.0) -> None:
        self.batches, self.rows, self.fail_at, self.seconds = batches, rows, fail_at, seconds
        self.started: list[int] = []
        self.made = self.running = self.widest = 0
        self._lock = threading.Lock()

    def __call__(self, task: int) -> Iterator[pa.RecordBatch]:
        with self._lock:
            self.started.append(task)
            self.running += 1
            self.widest = max(self.widest, self.running)
        try:
            for _ in range(self.batches):
                time.sleep(self.seconds * (1 + task % 3))
                if task == self.fail_at:
                    raise ValueError(f"task {task}")
                with self._lock:
                    self.made += self.rows * ROW
                yield batch(task, self.rows)
        finally:
            with self._lock:
                self.running -= 1


def ahead(reader: Reader, tasks: int, *, at_once: int = 8, max_bytes: int = 1 << 20, expected: int = 0) -> ReadAhead[int]:
    return ReadAhead(iter(range(tasks)), reader, size_of=lambda task: expected, at_once=at_once, max_bytes=max_bytes)


def test_batches_are_in_order_and_tasks_at_once() -> None:
    reader = Reader(seconds=0.003)
    found = [item.column(0)[0].as_py() for item in ahead(reader, 40).run()]
    assert found == [task for task in range(40) for _ in range(3)]
    assert 4 <= reader.widest <= 8


def test_tasks_without_rows_and_no_tasks() -> None:
    assert list(ahead(Reader(), 0).run()) == []
    reader = Reader(batches=0)
    assert list(ahead(reader, 30).run()) == []
    assert len(reader.started) == 30


@pytest.mark.parametrize("expected", [0, 800, 10_000])
def test_no_more_is_held_than_the_budget(expected: int) -> None:
    reader, taken, size = Reader(batches=5), 0, 100 * ROW
    for item in ahead(reader, 30, max_bytes=4 * size, expected=expected).run():
        time.sleep(0.001)
        taken += item.nbytes
        # The batch that is wanted next may always come, and every reader may hold the one it waits to hand over.
        assert reader.made - taken <= 4 * size + (1 + 8) * size
    assert taken == 30 * 5 * size


def test_a_batch_larger_than_the_budget_still_comes() -> None:
    assert len(list(ahead(Reader(), 5, max_bytes=1, expected=10).run())) == 15


def test_an_error_comes_in_its_place_and_ends_the_reading() -> None:
    reader, seen = Reader(fail_at=5, seconds=0.001), []
    with pytest.raises(ValueError, match="task 5"):
        for item in ahead(reader, 1000).run():
            seen.append(item.column(0)[0].as_py())
    assert seen == [task for task in range(5) for _ in range(3)]
    assert reader.running == 0
    assert len(reader.started) < 100


def test_who_stops_early_leaves_no_thread_behind() -> None:
    reader = Reader(seconds=0.001)
    before = threading.active_count()
    batches = ahead(reader, 1000).run()
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert reader.running == 0
    assert threading.active_count() == before
    assert len(reader.started) < 100
