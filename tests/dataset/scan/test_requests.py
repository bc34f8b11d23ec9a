"""How many requests the verbs send, how much they hold in memory, and what one look at a table tells."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.conditions import (
    CONDITIONS,
    IndexCovers,
    NeedsMaintenance,
    RowsAtLeast,
    StagedAtMost,
    TableFacts,
    TagReached,
    VersionAtLeast,
    VersionChangedSince,
    condition_from_dict,
)
from lance_core.dataset.handle.dataset import LanceDataset
from lance_core.dataset.maintain.table_facts import table_facts
from lance_core.dataset.snapshot.snapshot import snapshot_of
from lance_core.errors import InputError
from lance_core.fragment import write_fragments
from lance_core.io.cache import shared_cache
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.io.wrapped import CountingStore, WrappedStore
from lance_core.table.operations.append import Append
from tests.dataset.dataset_tables import flat, mixed


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("requests") / "t.lance")
    rng = np.random.default_rng(0)
    columns = {f"c{i}": rng.normal(size=200_000) for i in range(6)}
    lance_core.write_dataset(pa.table({"id": np.arange(200_000), **columns}), path)
    return path


def counted(uri: str) -> tuple[CountingStore, LanceDataset]:
    shared_cache().clear()
    store = CountingStore(resolve_store(uri))
    return store, LanceDataset.from_snapshot(snapshot_of(store))


def test_opening_is_a_listing_and_a_read(uri: str) -> None:
    store, ds = counted(uri)
    assert ds.count_rows() == 200_000
    assert dict(store.counts.by_name) == {"list_names": 1, "get": 1}


@pytest.mark.parametrize(
    ("options", "calls", "columns"),
    [
        ({"columns": ["c1"]}, 2, 1),
        ({"columns": ["c1", "c4"]}, 3, 2),
        ({"columns": ["id"], "filter": "id < 0"}, 2, 1),
        ({"columns": ["c1"], "filter": "id = 777"}, 4, 2),
        ({"columns": [], "with_row_id": True}, 0, 0),
    ],
    ids=str,
)
def test_a_scan_reads_the_end_of_the_file_and_the_pages_it_needs(uri: str, options, calls: int, columns: int) -> None:
    store, ds = counted(uri)
    store.reset()
    ds.to_table(**options)
    # A call may ask for several ranges of one file: those of a column that do not be side by side.
    assert store.counts.calls <= calls
    assert store.counts.requests <= calls + columns
    first = store.counts.requests
    store.reset()
    ds.to_table(**options)
    assert store.counts.requests <= first


def test_only_what_is_asked_is_read(uri: str) -> None:
    store, ds = counted(uri)
    store.reset()
    ds.to_table(columns=["c1"])
    one = store.counts.bytes_read
    store.reset()
    ds.head(5, columns=["c2"])
    assert store.counts.bytes_read < one / 10
    store.reset()
    ds.take([5, 150_000], columns=["c3"])
    assert store.counts.bytes_read < one / 5
    assert store.counts.requests <= 4


def test_streaming_holds_a_window_of_a_table_larger_than_that(tmp_path: Path) -> None:
    path = str(tmp_path / "big.lance")
    width, rows = 1024, 60_000
    schema = pa.schema([("id", pa.int64()), ("v", pa.list_(pa.float32(), width))])

    def batches():
        for first in range(0, rows, 5000):
            values = np.arange(5000 * width, dtype=np.float32)
            vectors = pa.FixedSizeListArray.from_arrays(pa.array(values), width)
            yield pa.record_batch([pa.array(range(first, first + 5000), pa.int64()), vectors], schema=schema)

    before = pa.total_allocated_bytes()
    ds = lance_core.write_dataset(batches(), path, schema=schema)
    peak = seen = 0
    for batch in ds.to_batches(batch_size=1000):
        seen += batch.num_rows
        peak = max(peak, pa.total_allocated_bytes() - before)
    total = rows * width * 4
    assert seen == rows
    assert peak < total
    filtered = sum(batch.num_rows for batch in ds.to_batches(filter="id % 2 = 0", columns=["v"], batch_size=1000))
    assert filtered == rows // 2


class Overlap(WrappedStore):
    """A store that is not local, notes how many reads wait at once, and lets each wait for company for a moment."""

    is_local = False

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.now = self.most = 0
        self.lock = threading.Condition()

    def _call(self, name, path, action):
        return action()

    def get_ranges(self, path, ranges):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.lock.notify_all()
            self.lock.wait_for(lambda: self.now > 3, timeout=0.02)
        try:
            return super().get_ranges(path, ranges)
        finally:
            with self.lock:
                self.now -= 1


def test_files_of_a_remote_table_are_opened_ahead() -> None:
    uri = "memory://ahead/t.lance"
    lance_core.write_dataset(flat(200), uri, max_rows_per_file=10)
    shared_cache().clear()
    store = Overlap(resolve_store(uri))
    ds = LanceDataset.from_snapshot(snapshot_of(store))
    assert [batch.num_rows for batch in ds.to_batches()] == [10] * 20
    assert store.most > 3
    store.most = 0
    fresh = LanceDataset.from_snapshot(snapshot_of(store))
    assert fresh.to_table()["id"].to_pylist() == list(range(200))
    assert store.most > 3


def test_facts(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    assert table_facts(path) == TableFacts(uri=path, exists=False)
    assert table_facts(path, staged=True).num_staged == 0
    lance_core.write_dataset(mixed(300), path, max_rows_per_file=100)
    theirs = lance.dataset(path)
    theirs.delete("id < 30")
    theirs.create_scalar_index("id", "BTREE")
    theirs.tags.create("good", 1)
    lance.write_dataset(mixed(2000, first=300), path, mode="append")
    facts = table_facts(path, {}, predicates=("id >= 100", "name = 'none'"), staged=True)
    assert (facts.version, facts.num_rows, facts.physical_rows, facts.num_deleted_rows) == (4, 2270, 2300, 30)
    assert (facts.num_fragments, facts.num_small_fragments, facts.num_data_files) == (4, 3, 4)
    assert facts.tags == {"good": 1}
    assert facts.index_coverage == {"id_idx": 0.75}
    assert facts.matching_rows == {"id >= 100": 2200, "name = 'none'": 0}
    assert facts.bytes > 0
    assert TableFacts.from_dict(json.loads(json.dumps(facts.to_dict()))) == facts


FACTS = TableFacts(
    uri="t",
    version=5,
    num_rows=90,
    physical_rows=100,
    num_fragments=10,
    num_small_fragments=4,
    tags={"good": 3},
    index_coverage={"i": 0.5},
    matching_rows={"x": 7},
    num_staged=2,
)
NOTHING = TableFacts(uri="t", exists=False)


@pytest.mark.parametrize(
    ("condition", "met"),
    [
        (VersionAtLeast(5), True),
        (VersionAtLeast(6), False),
        (VersionChangedSince(4), True),
        (VersionChangedSince(5), False),
        (RowsAtLeast(90), True),
        (RowsAtLeast(91), False),
        (RowsAtLeast(7, "x"), True),
        (RowsAtLeast(1, "y"), False),
        (NeedsMaintenance(max_fragments=9), True),
        (NeedsMaintenance(max_small_fragments=4), False),
        (NeedsMaintenance(max_deleted_ratio=0.05), True),
        (NeedsMaintenance(), False),
        (IndexCovers("i", 0.5), True),
        (IndexCovers("i"), False),
        (IndexCovers("j", 0.0), False),
        (TagReached("good"), True),
        (TagReached("good", 4), False),
        (TagReached("bad"), False),
        (StagedAtMost(), False),
        (StagedAtMost(2), True),
    ],
    ids=str,
)
def test_conditions(condition, met: bool) -> None:
    assert condition.is_met(FACTS) is met
    assert not condition.is_met(NOTHING)
    assert condition.explain(FACTS)
    assert condition.explain(NOTHING)
    assert condition_from_dict(json.loads(json.dumps(condition.to_dict()))) == condition


def test_unknown_conditions_are_refused() -> None:
    assert len(CONDITIONS) == 8
    for plain in ({}, {"kind": "nope"}, {"kind": "version_at_least"}):
        with pytest.raises(InputError):
            condition_from_dict(plain)


def test_fragments_for_a_commit_of_ones_own(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    lance_core.write_dataset(flat(5), path)
    fragments = write_fragments(flat(10, first=5), path, max_rows_per_file=4)
    assert lance_core.dataset(path).version == 1
    assert [(fragment.id, fragment.physical_rows) for fragment in fragments] == [(0, 4), (0, 4), (0, 2)]
    ds = LanceDataset.commit(path, Append(tuple(fragments)), read_version=1, commit_message="mine")
    assert (ds.version, ds.count_rows()) == (2, 15)
    transaction = write_fragments(flat(3), path, mode="overwrite", return_transaction=True)
    assert LanceDataset.commit(ds, transaction).count_rows() == 3
    lance.dataset(path).validate()
    with pytest.raises(InputError):
        LanceDataset.commit(path, Append(()))
    with pytest.raises(InputError):
        LanceDataset.commit(path, "append", read_version=1)
