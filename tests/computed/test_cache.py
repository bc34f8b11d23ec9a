"""The lasting cache: equal inputs are computed once, whatever becomes of the rows, and an erasure reaches what is kept."""

from __future__ import annotations

import datetime as dt
import pickle
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.arrow.digests import row_digests
from lance_core.computed import cache as caches
from lance_core.computed import value_objects
from lance_core.computed.cache import CacheListing, ValueCache
from lance_core.computed.value_objects import FoundValues, ValueObject, encode_values
from lance_core.errors import InputError
from lance_core.io.local.store import LocalStore
from lance_core.jobs.plans import refresh_declared
from lance_core.jobs.run import run_job
from lance_core.jobs.runtime.local_runner import LocalRunner
from lance_core.jobs.specs.columns import RefreshColumnsSpec
from lance_core.jobs.specs.maintenance import BranchSpec
from lance_core.maintenance.erasure import Erasure, erase, find_holders
from tests.computed.dying_store import dies_at
from tests.computed.work import NAME, refresh, write_numbers
from tests.computed.work import declare as declare_numbers

MEGABYTE = 1 << 20


class Work:
    """Doubles numbers and remembers which it was given."""

    def __init__(self, *, during: Any = None) -> None:
        self.given: list[int] = []
        self.during = during

    def __call__(self, batch: pa.RecordBatch) -> list[Any]:
        numbers = batch.column("x").to_pylist()
        self.given += numbers
        if self.during is not None:
            act, self.during = self.during, None
            act()
        return [number * 2 for number in numbers]


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return write_numbers(tmp_path)


def declare(uri: str, **options: Any) -> None:
    declare_numbers(uri, **{"cache_bytes": MEGABYTE, **options})


def given(uri: str, **options: Any) -> list[int]:
    """What a refresh gives the function; behind it all is right."""
    work = Work()
    refresh(uri, work, **options)
    assert all(row["y"] == 2 * row["x"] for row in lance_core.dataset(uri).to_table().to_pylist())
    return sorted(work.given)


def kept(uri: str) -> list[str]:
    return sorted(path.name for path in Path(uri, "_lance_core", "columns").rglob("cache/*.values"))


def append(uri: str, *numbers: int) -> None:
    lance_core.write_dataset(pa.table({"x": numbers}), uri, mode="append")


def test_equal_inputs_are_computed_once_whatever_becomes_of_the_rows(uri: str) -> None:
    append(uri, 3, 3, 100, 100)
    declare(uri)
    assert given(uri) == [*range(20), 100], "also within a batch"
    assert [*Path(uri, "_lance_core").rglob("results/*.values")] == []
    version = lance_core.dataset(uri).version
    lance_core.dataset(uri).delete("true")
    append(uri, *range(5, 25), 100)
    assert given(uri) == [20, 21, 22, 23, 24]
    lance_core.dataset(uri).update({"x": "x + 1"})
    assert given(uri) == [25, 101]
    lance_core.dataset(uri).checkout_version(version).restore()
    lance_core.dataset(uri).update({"x": "x + 2"})
    assert given(uri) == [102]


def test_another_definition_is_another_value_and_a_former_one_costs_nothing(uri: str) -> None:
    declare(uri)
    assert given(uri) == [*range(20)]
    declare(uri, version="2")
    assert given(uri) == [*range(20)]
    declare(uri)
    assert given(uri) == []


def test_without_a_cache_values_are_computed_again(uri: str) -> None:
    declare(uri, cache_bytes=0)
    assert given(uri) == [*range(20)]
    assert not [*Path(uri, "_lance_core").rglob("cache/*")]
    lance_core.dataset(uri).delete("x < 5")
    append(uri, 1, 2)
    assert given(uri) == [1, 2]


def test_a_cache_that_is_declared_no_more_goes_with_the_next_refresh(uri: str) -> None:
    declare(uri)
    given(uri)
    assert kept(uri)
    declare(uri, cache_bytes=0)
    append(uri, 1)
    assert given(uri) == [1]
    assert kept(uri) == []


def test_no_value_of_a_function_that_is_not_deterministic_stands_for_another(uri: str) -> None:
    append(uri, 3, 3)
    declare(uri, deterministic=False, cache_bytes=0)

    class EndedError(Exception):
        pass

    def end() -> None:
        raise EndedError

    first = Work()
    with pytest.raises(EndedError):
        refresh(uri, first)
        refresh(uri, Work(during=end), deep=True)
        append(uri, 50)
        refresh(uri, Work(during=end))
    assert sorted(first.given) == sorted([*range(20), 3, 3])
    assert not [*Path(uri, "_lance_core").rglob("results/*")]
    assert given(uri) == [50]
    append(uri, 50)
    assert given(uri) == [50]


@pytest.mark.parametrize("options", [
    {"cache_bytes": -1}, {"cache_bytes": True}, {"cache_bytes": 1.5}, {"deterministic": False},
    {"cache_bytes": 5, "function": None, "inputs": None, "sql": "x * 2"},
    {"cache_bytes": 0, "deterministic": False, "function": None, "inputs": None, "sql": "x * 2"}])  # fmt: skip
def test_what_cannot_be_kept_is_refused(uri: str, options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"cache_bytes|deterministic"):
        declare(uri, **options)
    assert lance_core.dataset(uri).version == 1


def test_the_cache_is_bounded_and_the_oldest_go_first(uri: str) -> None:
    declare(uri, cache_bytes=3000)
    for first in range(1000, 2000, 10):
        append(uri, *range(first, first + 10))
        assert len(given(uri, commit_every=1)) in (10, 30)
        sizes = [path.stat().st_size for path in Path(uri, "_lance_core").rglob("cache/*.values")]
        assert 0 < sum(sizes) <= 3000, sizes
    lance_core.dataset(uri).delete("true")
    append(uri, *range(1000, 1010), *range(1990, 2000))
    assert given(uri) == [*range(1000, 1010)]


def test_small_objects_are_put_together(uri: str) -> None:
    declare(uri)
    for number in range(1000, 1040):
        append(uri, number)
        given(uri)
        assert len(kept(uri)) <= 17
    lance_core.dataset(uri).delete("true")
    append(uri, *range(20), *range(1000, 1040))
    assert given(uri) == []


def test_objects_that_were_put_together_meanwhile_are_found(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refresh that listed them before; the keys are known, the values are elsewhere."""
    declare(uri)
    for number in range(1000, 1014):
        append(uri, number)
        given(uri)
    lance_core.dataset(uri).delete("true")
    append(uri, 5000)
    append(uri, *range(1000, 1014))
    before = {*kept(uri)}

    def meanwhile() -> None:
        append(uri, 6000)
        other = Work()
        lance_core.refresh_columns(uri, functions={NAME: other})

    monkeypatch.setattr(value_objects, "_SMALL", 0)  # values are read when they are requested
    work = Work(during=meanwhile)
    refresh(uri, work, commit_every=1)
    assert not before <= {*kept(uri)}, "they were put together"
    assert work.given == [5000]


def test_a_row_that_is_erased_leaves_the_cache(uri: str) -> None:
    declare(uri)
    given(uri)
    names = kept(uri)
    assert {holder.name.rpartition("/")[2] for holder in find_holders(uri, "x = 1", options={})} >= {*names}
    report = erase(Erasure(uri=uri, predicate="x = 1", delete_unverified=True), options={})
    assert (report["lines"][0]["computed_values_removed"], report["is_gone"]) == (len(names), True)
    assert kept(uri) == []
    append(uri, 1)
    assert given(uri) == [1]


def test_a_refresh_that_an_erasure_overtakes_puts_nothing_back(uri: str) -> None:
    declare(uri)
    erasure = Erasure(uri=uri, predicate="x = 1")
    work = Work(during=lambda: erase(erasure, options={}))
    refresh(uri, work)
    assert 1 in work.given
    assert kept(uri) == []
    append(uri, 1)
    assert given(uri) == [1]
    assert len(kept(uri)) == 1


def test_an_erasure_is_known_to_one_that_died(uri: str) -> None:
    """Its object was put behind the erasure; the next refresh removes it and does not use it."""
    declare(uri)
    given(uri)
    (name,) = kept(uri)
    (folder,) = Path(uri, "_lance_core").rglob("cache")
    data = (folder / name).read_bytes()
    erase(Erasure(uri=uri, predicate="x = 1", delete_unverified=True), options={})
    (folder / name).write_bytes(data)
    append(uri, 1)
    assert given(uri) == [1]
    assert name not in kept(uri)


def test_two_erasures_at_once_are_two(tmp_path: Path) -> None:
    store, column = LocalStore(str(tmp_path)), "ab" * 8
    caches.remove_cached(store, [column])
    assert CacheListing.of(store.list("")).erasures == 1
    plain, calls = store.put_if_absent, list[str]()

    def put(path: str, data: Any, **options: Any) -> None:
        calls.append(path)
        if len(calls) == 1:
            plain(path, data, **options)  # another one comes first, and a third behind it
            plain(path.replace("2", "3"), data, **options)
        plain(path, data, **options)

    store.put_if_absent = put  # type: ignore[method-assign]
    caches.remove_cached(store, [column])
    assert CacheListing.of(store.list("")).erasures == 4


@pytest.mark.parametrize("how", ["undeclared", "dropped", "dropped by others"])
def test_it_goes_with_the_declaration(uri: str, how: str) -> None:
    declare(uri)
    given(uri)
    assert kept(uri)
    if how == "undeclared":
        lance_core.undeclare_column(uri, "y")
    elif how == "dropped":
        lance_core.dataset(uri).drop_columns(["y"])
    else:
        lance = pytest.importorskip("lance")
        lance.dataset(uri).drop_columns(["y"])
        assert kept(uri)
        lance_core.dataset(uri).cleanup_old_versions(dt.timedelta(0))
    left = [path for path in Path(uri, "_lance_core", "columns").rglob("*") if path.is_file()]
    assert [path for path in left if path.parent.name != "refreshes"] == []


def test_a_cleanup_leaves_what_is_declared(uri: str) -> None:
    declare(uri)
    given(uri)
    lance_core.dataset(uri).cleanup_old_versions(dt.timedelta(0))
    assert kept(uri)


def test_branches_and_clones_have_their_own(uri: str, tmp_path: Path) -> None:
    declare(uri)
    given(uri)
    clone = str(tmp_path / "clone.lance")
    lance_core.dataset(uri).shallow_clone(clone, lance_core.dataset(uri).version)
    run_job(BranchSpec(uri=uri, name="b"))
    for place in (clone, f"{uri}/tree/b"):
        lance_core.dataset(place).delete("x = 1")
        append(place, 1)
        assert given(place) == [1]


def test_failed_rows_are_not_kept_and_equal_ones_fail_together(uri: str) -> None:
    declare(uri, on_error="skip")
    append(uri, 7, 7, 7)

    class Refuses(Work):
        def __call__(self, batch: pa.RecordBatch) -> list[Any]:
            if 7 in batch.column("x").to_pylist():
                self.given += batch.column("x").to_pylist()
                raise ValueError
            return super().__call__(batch)

    report = refresh(uri, Refuses())
    assert report.columns["y"].failed_now == 4
    assert lance_core.dataset(uri).count_rows("y IS NULL") == 4
    assert given(uri) == [7]


@pytest.mark.parametrize("at", range(1, 60, 4))
def test_killed_at_a_change_of_the_store(uri: str, at: int) -> None:
    append(uri, 3, 500)
    declare(uri)
    work = Work()
    with dies_at(at, under=uri) as death:
        refresh(uri, work, commit_every=1)
    rest = given(uri)
    assert len(work.given) + len(rest) <= 21 + 4 * death.is_dead, "one batch is repeated at most"
    lance_core.dataset(uri).delete("true")
    append(uri, *range(20), 500)
    assert given(uri) == []
    assert [*Path(uri, "_lance_core").rglob("results/*.values")] == []


def test_damaged_objects_are_computed_again(uri: str) -> None:
    declare(uri)
    given(uri)
    (place,) = Path(uri, "_lance_core").rglob("cache/*.values")
    whole = place.read_bytes()
    for cut in (0, 3, 40, len(whole) - 1):
        for data in (whole[:cut], whole[:cut] + bytes([whole[cut] ^ 1]) + whole[cut + 1 :]):
            place.write_bytes(data)
            lance_core.dataset(uri).delete("x = 1")
            append(uri, 1)
            assert given(uri) == [1], cut
            for other in Path(uri, "_lance_core").rglob("cache/*.values"):
                other.unlink()


def test_an_unchanged_table_lists_nothing_for_its_cache(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(uri)
    given(uri)
    listed, plain = list[str](), LocalStore.list

    def spy(self: LocalStore, prefix: str) -> Any:
        listed.append(prefix)
        return plain(self, prefix)

    monkeypatch.setattr(LocalStore, "list", spy)
    assert given(uri) == []
    assert listed == []


class Engine(LocalRunner):
    """Another engine, as a refresh sees it: its tasks are pickled, one fragment each."""

    name = "spark"

    def run(self, work: Any, source: Any, shape: Any, on_tick: Any) -> Any:
        sent = pickle.dumps(work)
        results = []
        for number in range(len(work.groups)):
            batch = pa.record_batch({"id": pa.array([number], pa.int64())})
            results.append(pickle.loads(sent)(number, f"{number}.0", iter([batch])))
        return results


def test_tasks_of_an_engine_share_it(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What they gave, what a task that died left behind, and nothing twice."""
    append(uri, 3, 500)
    lance_core.declare_column(
        uri, "y", function=f"{__name__}:treble", inputs=["x"], type=pa.int64(), batch_size=4, cache_bytes=MEGABYTE
    )
    TREBLED.clear()
    name = f"{__name__}:treble"
    with dies_at(9, under=uri) as death:
        lance_core.refresh_columns(uri, functions=[name], commit_every=1)
    assert death.is_dead
    for numbers in ([], [500, 7, 600]):
        if numbers:
            append(uri, *numbers)
        spec = RefreshColumnsSpec(uri=uri, functions=(name,), rows_per_task=1, identity=str(uuid.uuid4()))
        refresh_declared.refresh_columns(spec, Engine())
    assert set(TREBLED) == {*range(20), 500, 600}
    assert len(TREBLED) <= 22 + 4, "one batch was repeated at most"
    assert not [*Path(uri, "_lance_core").rglob("results/*.values")]
    lance_core.dataset(uri).delete("true")
    append(uri, *range(20), 500, 600)
    TREBLED.clear()
    lance_core.refresh_columns(uri, functions=[name])
    assert TREBLED == []
    assert lance_core.dataset(uri).count_rows("y = 3 * x") == 22


TREBLED: list[int] = []


def treble(batch: pa.RecordBatch) -> list[int]:
    """What a table names."""
    numbers = batch.column("x").to_pylist()
    TREBLED.extend(numbers)
    return [3 * number for number in numbers]


def test_keys_have_256_bits() -> None:
    """Both halves depend on all that is within the inputs."""
    rows = pa.array([{"t": "a", "l": ["b", None]}, {"t": "a", "l": ["c", None]}, {"t": "b", "l": ["b", None]}])
    first, second = row_digests([rows], seed=b"s" * 16), row_digests([rows], seed=b"s" * 16, salt=b"other")
    assert len({row.tobytes() for row in [*first, *second]}) == 6


def test_many_keys_are_found(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    kind = pa.int64()
    random = np.random.default_rng(7)
    keys = random.integers(0, 256, (5000, 32)).astype(np.uint8)
    keys[100:200, :8] = 7  # the same first bytes
    objects = []
    for number, first in enumerate(range(0, 5000, 500)):
        data = encode_values(keys[first : first + 500], pa.array(range(first, first + 500), kind))
        store.put(f"{number}", data)
        objects.append(ValueObject(f"{number}", len(data), 500))
    found = FoundValues(store, kind)
    found.read(objects)
    asked = np.concatenate([keys[::-1], random.integers(0, 256, (50, 32)).astype(np.uint8)])
    mask, values = found.find(asked)
    assert values.to_pylist() == [number for number in range(4999, -1, -1) if mask[4999 - number]]
    assert mask[:5000].sum() >= 4901
    assert not mask[5000:].any()
    assert ValueCache(store, "ab" * 8, bytes(16), 1 << 30, CacheListing()).pack_bytes == 16 << 20
