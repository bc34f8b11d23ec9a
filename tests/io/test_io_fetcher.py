"""Planning of reads, driving of many readers, pools, cache."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_core.errors import NotFoundError
from lance_core.fetch import Buffer, ByteRange, Fetch, fetch_nothing
from lance_core.io.cache import LruCache, shared_cache
from lance_core.io.fetcher import drive, drive_one
from lance_core.io.local.store import LocalStore
from lance_core.io.memory import MemoryStore
from lance_core.io.pool import in_work_pool, io_pool, work_pool
from lance_core.io.ranges import plan_reads
from lance_core.io.store import Store
from lance_core.io.wrapped import CountingStore
from tests.io.faulty_stores import SlowStore

RANGES = st.lists(
    st.tuples(st.integers(0, 5000), st.integers(0, 300)).map(lambda x: ByteRange(x[0], x[0] + x[1])), max_size=40
)


@given(RANGES, st.integers(0, 500), st.integers(1, 2000))
def test_plan_gives_back_what_was_asked(ranges: list[ByteRange], gap: int, max_size: int) -> None:
    data = bytes(i * 7 % 251 for i in range(6000))
    plan = plan_reads(ranges, gap=gap, max_size=max_size)
    buffers = [data[read.start : read.end] for read in plan.reads]
    assert [bytes(part) for part in plan.cut(buffers)] == [data[item.start : item.end] for item in ranges]
    assert all(read.size > 0 for read in plan.reads)
    assert len(plan.reads) <= sum(item.size > 0 for item in ranges)
    starts = [read.start for read in plan.reads]
    assert starts == sorted(starts)


def test_plan_joins_neighbours_only() -> None:
    plan = plan_reads([ByteRange(900, 910), ByteRange(0, 10), ByteRange(12, 20)], gap=64)
    assert plan.reads == (ByteRange(0, 20), ByteRange(900, 910))
    assert plan_reads([ByteRange(0, 10), ByteRange(10, 20)], gap=0, max_size=15).reads == (
        ByteRange(0, 10),
        ByteRange(10, 20),
    )


def _words(positions: list[int]) -> Fetch[list[bytes]]:
    found = []
    for position in positions:
        (buffer,) = yield [ByteRange(position, position + 4)]
        found.append(bytes(buffer))
    return found


@pytest.mark.parametrize("wrap", [lambda store: store, lambda store: SlowStore(store, seconds=0.001)])
@pytest.mark.parametrize("size", [4096, 3 << 20])
def test_drive_many(wrap: Callable[[Store], Store], size: int) -> None:
    inner = MemoryStore(uuid.uuid4().hex)
    data = {name: os.urandom(size) for name in ("a", "b", "c")}
    for name, content in data.items():
        inner.put(name, content)
    store = wrap(inner)
    jobs = [(name, _words([i * 8 + start for i in range(5)])) for name in data for start in range(0, 1000, 100)]
    expected = [
        [data[name][p : p + 4] for p in [i * 8 + start for i in range(5)]] for name in data for start in range(0, 1000, 100)
    ]
    assert drive(store, jobs) == expected

    def whole(name: str) -> Fetch[bytes]:
        parts = yield [ByteRange(0, size // 2), ByteRange(size // 2, size)]
        return b"".join(parts)

    assert drive(store, [(name, whole(name)) for name in data]) == list(data.values())


def test_drive_joins_ranges_of_different_readers() -> None:
    store = CountingStore(MemoryStore(uuid.uuid4().hex))
    store.put("a", bytes(1000))
    store.reset()
    drive(store, [("a", _words([0])), ("a", _words([8])), ("a", _words([16]))])
    assert (store.counts.calls, store.counts.ranges, store.counts.bytes_read) == (1, 1, 20)


def test_drive_nothing_and_errors() -> None:
    store = MemoryStore(uuid.uuid4().hex)
    assert drive(store, []) == []
    assert drive(store, [("none", fetch_nothing(7))]) == [7]
    closed = threading.Event()

    def waits() -> Fetch[int]:
        try:
            yield [ByteRange(0, 1)]
        finally:
            closed.set()
        return 1

    with pytest.raises(NotFoundError):
        drive(store, [("missing", waits())])
    assert closed.is_set()

    def breaks() -> Fetch[int]:
        yield [ByteRange(0, 1)]
        raise ValueError("broken")

    store.put("a", b"x")
    with pytest.raises(ValueError, match="broken"):
        drive_one(store, "a", breaks())


def test_drive_inside_the_work_pool_does_not_starve() -> None:
    store = SlowStore(MemoryStore(uuid.uuid4().hex), seconds=0)
    store.put("a", bytes(4 << 20))

    waiting = threading.current_thread()  # it makes what no thread of the pool has begun

    def nested(_: int) -> bool:
        def part(start: int) -> Fetch[bool]:
            yield [ByteRange(start, start + (1 << 20))]
            return in_work_pool() or threading.current_thread() is waiting

        return all(drive(store, [("a", part(i << 20)) for i in range(4)]))

    assert all(work_pool().map(nested, range(8)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_pools_and_cache_are_born_again_after_fork() -> None:
    io_pool("").submit(int).result()
    shared_cache().put("k", 1, 1)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        answer = b"%d%d" % (io_pool("").submit(lambda: 5).result(timeout=10), shared_cache().get("k") is None)
        os.write(write, answer)
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 10) == b"51"


def test_cache_is_bounded_and_drops_the_oldest() -> None:
    cache = LruCache(max_bytes=100)
    for name in "abc":
        cache.put(name, name.upper(), 40)
    assert (cache.get("a"), cache.get("b"), cache.num_bytes, len(cache)) == (None, "B", 80, 2)
    cache.put("d", "D", 40)
    assert cache.get("c") is None
    cache.put("huge", "H", 101)
    assert cache.get("huge") is None
    assert cache.get_or_make("e", lambda: ("E", 10)) == "E"
    assert cache.get_or_make("e", lambda: ("other", 10)) == "E"
    cache.put("e", "F", 30)
    assert cache.num_bytes <= 100
    cache.clear()
    assert (len(cache), cache.num_bytes) == (0, 0)


def test_a_little_of_many_readers_is_one_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns by the hundred: the file is opened once, and no thread is handed a few kilobytes."""
    store = LocalStore(tmp_path)
    size, count = 8_192, 200
    store.put("a", bytes(range(256)) * (size * count // 256))
    opened: list[int] = []
    get_ranges = LocalStore.get_ranges

    def counted(self: LocalStore, path: str, ranges: Sequence[ByteRange]) -> Sequence[Buffer]:
        opened.append(len(ranges))
        return get_ranges(self, path, ranges)

    monkeypatch.setattr(LocalStore, "get_ranges", counted)
    monkeypatch.setattr("lance_core.io.fetcher.work_pool", None)

    def little(number: int) -> Fetch[bytes]:
        (buffer,) = yield [ByteRange(number * size, number * size + 6_000)]
        return bytes(buffer[-4:])

    found = drive(store, [("a", little(number)) for number in range(count)])
    assert found == [bytes([108, 109, 110, 111])] * count
    assert len(opened) == 1
