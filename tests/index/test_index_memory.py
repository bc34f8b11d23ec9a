"""Indices that are built in little memory say what those say that were built in much, and too little is refused."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InputError
from lance_core.file.open import open_file
from lance_core.index.base import ID, VALUE
from lance_core.index.memory import MEMORY_VARIABLE
from lance_core.index.scalar.bitmap import KIND as BITMAP
from lance_core.index.scalar.external_sort import in_order
from lance_core.index.scalar.label_list import KIND as LABEL_LIST
from lance_core.index.scalar.ngram import KIND as NGRAM
from lance_core.index.scalar.postings import sets_by_key
from lance_core.rowids.selection import AddressSet

rng = np.random.default_rng(11)
ROWS = 20_000
WORDS = ["Straße", "café", "naïve", "42nd", "über", "plain", "text", "of", "words", "ünï", "x", "Émile", "", "co-op"]


def some(values: list[Any]) -> list[Any]:
    return [values[number] for number in rng.integers(0, len(values), ROWS)]


def texts() -> list[str | None]:
    found: list[str | None] = [" ".join(rng.choice(WORDS, 4)) + f" {number % 1009}" for number in range(ROWS)]
    found[5] = found[6_000] = None
    return found


COLUMNS: dict[str, Any] = {
    "few": pa.array(some([3, 1, None, 2])),
    "many": pa.array(rng.integers(0, 9_000, ROWS)),
    "floats": pa.array(some([0.5, -0.0, 0.0, float("nan"), None])),
    "names": pa.array([f"name {number % 700}" for number in range(ROWS)]),
    "labels": pa.array([None if n % 91 == 0 else [f"l{n % 13}", f"l{n % 7}", None][: n % 4] for n in range(ROWS)]),
    "texts": pa.array(texts()),
}
KINDS = {"few": "BITMAP", "many": "BITMAP", "floats": "BITMAP", "names": "BITMAP", "labels": "LABEL_LIST", "texts": "NGRAM"}


def stored(ds: Any, name: str) -> pa.Table:
    """What the one file of an index holds, and its metadata."""
    (entry,) = [item for item in ds._snapshot.manifest.indices if item.name == name]
    (file,) = entry.files
    opened = open_file(ds._snapshot.store, f"_indices/{entry.uuid}/{file.path}", size=file.size_bytes)
    return pa.Table.from_batches([*opened.read()]).replace_schema_metadata(dict(opened.schema.metadata))


@pytest.mark.parametrize("column", KINDS)
def test_spilled_builds_hold_the_same(column: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ds = lance_core.write_dataset(pa.table({column: COLUMNS[column]}), tmp_path / "t", max_rows_per_file=3_000)
    ds.create_scalar_index(column, KINDS[column], name="roomy")
    monkeypatch.setattr("lance_core.index.memory.DEFAULT_MEMORY", 200_000)
    ds.create_scalar_index(column, KINDS[column], name="narrow")
    roomy, narrow = stored(ds, "roomy"), stored(ds, "narrow")
    assert roomy.schema.metadata == narrow.schema.metadata
    assert [str(row) for row in narrow.to_pylist()] == [str(row) for row in roomy.to_pylist()]
    assert ds.check_indices() == 2


def test_the_sort_of_such_a_build_spills(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound of the test before is one that these rows pass."""
    ids = pa.array(np.arange(ROWS, dtype=np.uint64))
    for column in ("few", "many", "floats", "names"):
        batch = pa.RecordBatch.from_arrays([COLUMNS[column], ids], [VALUE, ID])
        batches = (batch.slice(start, 500) for start in range(0, ROWS, 500))
        assert len([*in_order(batches, COLUMNS[column].type, limit=200_000)]) > 2


def test_values_spread_over_parts_are_one_key() -> None:
    def parts() -> Iterator[tuple[Any, Any]]:
        for values, first in (([], 0), ([1, 1], 0), ([1], 2), ([1, 2], 3), ([2], 5), ([3, 4], 6), ([4, 4], 8)):
            yield pa.array(values, pa.int64()), np.arange(first, first + len(values), dtype=np.uint64)

    def listed(rows: AddressSet) -> bytes:
        return bytes(rows.to_array().tolist())

    found = [(key, [*rows]) for keys, sets in sets_by_key(parts(), listed) for key, rows in zip(keys.to_pylist(), sets)]
    assert found == [(1, [0, 1, 2, 3]), (2, [4, 5]), (3, [6]), (4, [7, 8, 9])]


def test_full_text_in_little_memory_is_several_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"texts": COLUMNS["texts"], "id": np.arange(ROWS)}).slice(0, 5_000)
    ds = lance_core.write_dataset(table, tmp_path / "t", max_rows_per_file=1_000)
    queries = ("plain", "42nd words", "1008", "émile")
    answers = {}
    for limit in (1 << 30, 400_000):
        monkeypatch.setattr("lance_core.index.memory.DEFAULT_MEMORY", limit)
        ds.create_scalar_index("texts", "INVERTED", with_position=True)
        found = {}
        for query in queries:
            hits = ds.to_table(columns=["id"], full_text_query=query, limit=ROWS)
            found[query] = sorted(hits["id"].to_pylist())
        answers[limit] = found, ds.stats.index_stats("texts_idx")["indices"][0]["num_partitions"]
    assert answers[1 << 30][1] == 1 < answers[400_000][1]
    assert answers[1 << 30][0] == answers[400_000][0]
    assert all(answers[400_000][0].values())


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP", "NGRAM", "INVERTED", "LABEL_LIST"])
def test_too_little_memory_is_refused_before_anything_is_written(kind: str, tmp_path: Path) -> None:
    column = "labels" if kind == "LABEL_LIST" else "texts"
    ds = lance_core.write_dataset(pa.table({column: COLUMNS[column].slice(0, 50)}), tmp_path / "t")
    for limit in (31, 0, -1, "64", 1.5, True):
        with pytest.raises(InputError, match="at least 32"):
            ds.create_scalar_index(column, kind, memory_limit=limit)
    assert not ds.list_indices()
    ds.create_scalar_index(column, kind, memory_limit=32)
    assert len(ds.list_indices()) == 1


def test_the_option_goes_before_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ds = lance_core.write_dataset(pa.table({"a": [1, 2]}), tmp_path / "t")
    monkeypatch.setenv(MEMORY_VARIABLE, "12")
    with pytest.raises(InputError, match=MEMORY_VARIABLE):
        ds.create_scalar_index("a", "BTREE")
    ds.create_scalar_index("a", "BTREE", memory_limit=64)
    assert BITMAP.parameters == LABEL_LIST.parameters == NGRAM.parameters


CHILD = """
import sys, threading, numpy as np, pyarrow as pa, lance_core
kind, num_rows, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
rng = np.random.default_rng(0)
words = np.array([f"w{n}" for n in range(20_000)])
def values(count):
    if kind == "LABEL_LIST":
        offsets = np.arange(0, 2 * count + 1, 2, dtype=np.int32)
        return pa.ListArray.from_arrays(offsets, pa.array(rng.integers(0, 1000, 2 * count)))
    if kind in ("NGRAM", "INVERTED"):
        return pa.array([" ".join(row) for row in rng.choice(words, (count, 8))])
    return pa.array(rng.integers(0, 1000, count))
def batches():
    for _ in range(0, num_rows, 50_000):
        yield pa.RecordBatch.from_arrays([values(50_000)], ["v"])
first = next(batches())
ds = lance_core.write_dataset(pa.RecordBatchReader.from_batches(first.schema, batches()), path)
def anonymous():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon")) << 10
base = peak = anonymous()
done = threading.Event()
def watch():
    global peak
    while not done.wait(0.01):
        peak = max(peak, anonymous())
watcher = threading.Thread(target=watch)
watcher.start()
ds.create_scalar_index("v", kind, memory_limit=128)
done.set()
watcher.join()
print(peak - base)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize(
    ("kind", "num_rows"), [("BITMAP", 10_000_000), ("LABEL_LIST", 4_000_000), ("NGRAM", 500_000), ("INVERTED", 1_000_000)]
)
def test_memory_does_not_grow_with_the_rows(kind: str, num_rows: int, tmp_path: Path) -> None:
    """Unbounded, each of these took 400 MB and more."""

    def peak(rows: int) -> int:
        command = [sys.executable, "-c", textwrap.dedent(CHILD), kind, str(rows), str(tmp_path / f"{rows}")]
        return int(subprocess.run(command, capture_output=True, text=True, check=True, timeout=900).stdout)

    assert peak(num_rows) < 360 << 20
