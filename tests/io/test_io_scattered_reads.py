"""Many small reads of a local file: what comes back is what was asked, and memory still in use is not used again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_core.errors import CorruptFileError
from lance_core.fetch import ByteRange, Fetch, ManyRanges
from lance_core.io.fetcher import drive
from lance_core.io.local.store import LocalStore
from lance_core.io.scattered_reads import is_ascending, plan_scatter
from lance_core.io.wrapped import CountingStore

DATA = np.random.default_rng(3).integers(0, 256, 200_000).astype(np.uint8).tobytes()


def many(pairs: list[tuple[int, int]]) -> ManyRanges:
    table = np.array(pairs, np.int64).reshape(-1, 2)
    return ManyRanges(table[:, 0], table[:, 1])


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    store = LocalStore(tmp_path)
    store.put("f", DATA)
    return store


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 60)), min_size=1, max_size=30), st.integers(0, 40))
def test_plan(steps: list[tuple[int, int]], gap: int) -> None:
    bounds = np.cumsum(np.array(steps).reshape(-1))
    ranges = many(bounds.reshape(-1, 2).tolist())
    plan = plan_scatter(ranges, gap=gap)
    memory = b"".join(DATA[start:end] for start, end in zip(plan.starts.tolist(), plan.ends.tolist(), strict=True))
    for item, position in zip(ranges, plan.positions.tolist(), strict=True):
        assert memory[position : position + item.size] == DATA[item.start : item.end]
    assert (plan.starts[1:] - plan.ends[:-1] > gap).all()


def test_answers_hold_the_ranges(store: LocalStore) -> None:
    asked = [many([(0, 10), (12, 20), (90_000, 90_100)]), many([(5, 6), (199_000, 200_000)])]
    kept = list(store.get_scattered("f", asked))
    for ranges, answer in zip(asked, kept, strict=True):
        assert [bytes(part) for part in answer] == [DATA[item.start : item.end] for item in ranges]
        assert [bytes(part) for part in answer[1:]] == [DATA[item.start : item.end] for item in ranges[1:]]


def test_memory_in_use_is_left_alone(store: LocalStore) -> None:
    ranges = [many([(number, number + 100), (150_000 + number, 150_100 + number)]) for number in range(50)]
    held = []
    for number, answer in enumerate(store.get_scattered("f", ranges)):
        if number % 3 == 0:
            held.append((number, np.frombuffer(answer[0], np.uint8)))
    for number, array in held:
        assert array.tobytes() == DATA[number : number + 100]


def test_ranges_behind_the_end_are_refused(store: LocalStore) -> None:
    for pairs in ([(0, 10), (199_990, 200_001)], [(0, 1 << 60)], [(-5, 3)]):
        with pytest.raises(CorruptFileError, match="ends at byte 200000"):
            list(store.get_scattered("f", [many(pairs)]))


def test_order() -> None:
    assert is_ascending(many([(0, 3), (3, 5)]))
    assert not is_ascending(many([(0, 4), (3, 5)]))
    assert not is_ascending(many([]))


@pytest.mark.parametrize(
    "pairs", [[(0, 10), (100, 120)], [(100, 120), (0, 10)], [(0, 50), (20, 30)], [(0, 90_000), (9, 180_000)]]
)
@pytest.mark.parametrize("counting", [False, True])
def test_drive_answers_in_order_whatever_is_asked(store: LocalStore, pairs: list[tuple[int, int]], counting: bool) -> None:
    def reader() -> Fetch[list[bytes]]:
        first = yield many(pairs)
        found = [bytes(part) for part in first]
        second = yield [ByteRange(7, 9)]
        third = yield many(pairs[:1])
        return [*found, bytes(second[0]), bytes(third[0])]

    expected = [DATA[start:end] for start, end in (*pairs, (7, 9), pairs[0])]
    used = CountingStore(store) if counting else store
    assert drive(used, [("f", reader()) for _ in range(3)]) == [expected] * 3
