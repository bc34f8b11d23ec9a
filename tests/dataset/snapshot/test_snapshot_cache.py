"""What is kept with a snapshot is made once, belongs to that snapshot alone, and never travels in a pickle."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from lance_core.dataset import write_dataset
from lance_core.dataset.snapshot.row_id_index import row_id_index
from lance_core.dataset.snapshot.snapshot import CacheSlot, KeyedCache, Snapshot, open_snapshot


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(Path(tmp_path_factory.mktemp("cache")) / "t.lance")
    write_dataset(pa.table({"a": list(range(10)), "b": list("abcdefghij")}), path, enable_stable_row_ids=True)
    return path


def test_a_slot_is_filled_once_and_per_snapshot(uri: str) -> None:
    made: list[int] = []

    def make(snapshot: Snapshot) -> tuple[int, int]:
        made.append(snapshot.version)
        return snapshot.version, len(made)

    first, second, slot = open_snapshot(uri), open_snapshot(uri), CacheSlot(make)
    assert [first.cached(slot), first.cached(slot), second.cached(slot)] == [(1, 1), (1, 1), (1, 2)]


def test_two_slots_of_the_same_shape_do_not_meet(uri: str) -> None:
    snapshot = open_snapshot(uri)
    numbers, texts = CacheSlot[Snapshot, int](lambda _: 1), CacheSlot[Snapshot, str](lambda _: "one")
    assert (snapshot.cached(numbers), snapshot.cached(texts)) == (1, "one")


def test_a_slot_keeps_none_as_a_value(uri: str) -> None:
    made: list[None] = []
    slot = CacheSlot[Snapshot, None](lambda _: made.append(None))
    snapshot = open_snapshot(uri)
    assert snapshot.cached(slot) is snapshot.cached(slot) is None and len(made) == 1


def test_an_error_leaves_the_slot_empty(uri: str) -> None:
    asked: list[int] = []

    def make(_: Snapshot) -> int:
        asked.append(len(asked))
        if len(asked) == 1:
            raise ValueError("not yet")
        return 7

    snapshot, slot = open_snapshot(uri), CacheSlot(make)
    with pytest.raises(ValueError, match="not yet"):
        snapshot.cached(slot)
    assert snapshot.cached(slot) == 7


def test_threads_share_the_first_value(uri: str) -> None:
    snapshot, barrier = open_snapshot(uri), threading.Barrier(4)

    def make(_: Snapshot) -> object:
        barrier.wait(10)
        return object()

    slot, found = CacheSlot(make), list[object]()
    threads = [threading.Thread(target=lambda: found.append(snapshot.cached(slot))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(found) == 4 and len(set(map(id, found))) == 1


def test_a_pickled_snapshot_carries_nothing_that_was_kept(uri: str) -> None:
    snapshot = open_snapshot(uri)
    slot = CacheSlot[Snapshot, object](lambda _: threading.Lock())  # cannot be pickled
    snapshot.cached(slot)
    again = pickle.loads(pickle.dumps(snapshot))
    assert again.version == 1 and again.cached(slot) is not snapshot.cached(slot)


def test_the_row_id_index_is_built_once(uri: str) -> None:
    snapshot = open_snapshot(uri)
    assert row_id_index(snapshot) is row_id_index(snapshot)
    assert row_id_index(open_snapshot(uri)) is not row_id_index(snapshot)


def test_parts_of_a_schema_are_the_same_object(uri: str) -> None:
    snapshot = open_snapshot(uri)
    field = snapshot.manifest.schema.fields[0].id
    part = snapshot.part_of_schema(frozenset({field}))
    assert part is snapshot.part_of_schema(frozenset({field})) and [item.name for item in part.fields] == ["a"]


def test_a_keyed_cache_never_holds_more_than_its_bound() -> None:
    cache, made = KeyedCache[int, int](max_items=3), list[int]()

    def square(number: int) -> int:
        made.append(number)
        return number * number

    for number in [1, 2, 3, 1, 2, 3]:
        assert cache.get(number, lambda number=number: square(number)) == number * number  # type: ignore[misc]
    assert made == [1, 2, 3]
    for number in range(50):
        assert cache.get(number, lambda number=number: square(number)) == number * number  # type: ignore[misc]
        assert 1 <= len(cache) <= 3
