"""Scalar indices of the official library are compared with their column in parts: each part judges its own rows."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.indices import IndexConfig

from lance_core.arrow.to_arrow import value_type_of
from lance_core.dataset.handle.open import dataset
from lance_core.dataset.indexing.folder import folder_of, training_batches
from lance_core.dataset.indexing.scalar_search import usable_segments
from lance_core.errors import LanceError
from lance_core.index.base import OpenIndex
from lance_core.io.cache import shared_cache
from lance_core.kernels.bloom import hash_texts, lacks_block_bits
from lance_core.kernels.roaring import find_containers
from lance_core.table.coverage import is_address_based
from tests.index.bit_flips import flipped
from tests.index.index_tables import CASES, rows

KERNELS = (find_containers, hash_texts, lacks_block_bits)
TABLE = {f"{kind}-{column}": (kind, column) for kind, columns in CASES.items() for column in columns if column != "n.a"}
TABLE |= {f"JSON-{target}": (f"JSON {target}", "j") for target in ("btree", "bitmap", "zonemap")}
QUICK = ("BTREE-i", "BTREE-f", "BTREE-s", "BITMAP-i", "LABEL_LIST-tags", "NGRAM-s", "ZONEMAP-f", "ZONEMAP-s",
         "BLOOMFILTER-i", "BLOOMFILTER-s", "JSON-btree")  # fmt: skip


@pytest.fixture(params=[False, True], ids=["plain", "kernels"])
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether few rows are compared as many are."""
    use_kernels(monkeypatch, request.param)
    return bool(request.param)


def use_kernels(monkeypatch: pytest.MonkeyPatch, is_worth: bool) -> None:
    for kernel in KERNELS:
        monkeypatch.setattr(kernel, "is_worth_loading", lambda *_: is_worth)


def table(count: int, first: int = 0) -> pa.Table:
    base = rows(count, seed=first, first=first)
    texts = [None if n is None else json.dumps({"a": n, "b": {"c": str(n)}}) for n in base["i"].to_pylist()]
    return base.append_column("j", pa.array(texts, pa.json_()))


def build(uri: str, name: str, *, stable: bool = False) -> str:
    """Several fragments, some rows deleted, some moved, some indexed later, some not covered."""
    kind, column = TABLE[name]
    config: Any = kind
    if kind == "ZONEMAP":
        config = IndexConfig(index_type="zonemap", parameters={"rows_per_zone": 32})
    if kind.startswith("JSON"):
        config = IndexConfig(index_type="json", parameters={"path": "a", "target_index_type": kind.split()[1]})
    lance.write_dataset(table(360), uri, max_rows_per_file=120, enable_stable_row_ids=stable)
    lance.dataset(uri).create_scalar_index(column, config)
    lance.dataset(uri).delete("x % 13 = 5")
    if not kind.startswith("JSON"):
        lance.write_dataset(table(90, 360), uri, mode="append")
        lance.dataset(uri).optimize.optimize_indices()
        lance.dataset(uri).update({"i": "i"}, where="x % 47 = 3")
    lance.write_dataset(table(30, 450), uri, mode="append")
    return uri


def opened(uri: str, column: str) -> list[tuple[OpenIndex, list[pa.RecordBatch]]]:
    """The segments, opened anew, each with the living rows it covers."""
    shared_cache().clear()
    snapshot = dataset(uri).snapshot
    manifest, found = snapshot.manifest, []
    for segment in usable_segments(snapshot)[column]:
        item = manifest.schema.find(column)
        index = segment.kind.open(folder_of(snapshot, segment.index), value_type_of(manifest.schema, item), (column,))
        fragments = [fragment for fragment in manifest.fragments if fragment.id in segment.coverage]
        by_id = manifest.uses_stable_row_ids and not is_address_based(segment.index)
        batches = training_batches(snapshot, column, fragments, "_rowid" if by_id else "_rowaddr")
        found.append((index, [*batches]))
    assert found
    return found


def parts(batches: Sequence[pa.RecordBatch], count: int) -> Iterator[list[pa.RecordBatch]]:
    """The same rows in about so many parts of several batches each."""
    whole = pa.Table.from_batches(batches)
    step = max(1, -(-whole.num_rows // count))
    for first in range(0, whole.num_rows, step):
        yield whole.slice(first, step).to_batches(max_chunksize=max(1, step // 2))


def agrees(uri: str, column: str, count: int) -> bool:
    try:
        for index, batches in opened(uri, column):
            for part in parts(batches, count):
                index.verify_rows(part)
    except (LanceError, pa.ArrowException, ValueError, LookupError):
        return False
    return True


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in TABLE])
def test_whole_indices_agree_in_parts(tmp_path: Path, name: str, stable: bool, kernels: bool) -> None:
    if stable and name.startswith("JSON"):
        pytest.skip("most indices over JSON are of no use in a table with stable row ids")
    uri = build(str(tmp_path / "t.lance"), name, stable=stable)
    for index, batches in opened(uri, TABLE[name][1]):
        for count in (1, 3, 40):
            for part in parts(batches, count):
                index.verify_rows(part)
        index.verify_rows([])
        index.verify_rows(batches[::-1])


@pytest.mark.parametrize("name", QUICK)
def test_parts_find_what_the_whole_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    _compare_flips(tmp_path, monkeypatch, name, 24)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLE)
def test_parts_find_what_the_whole_does_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    _compare_flips(tmp_path, monkeypatch, name, 300)


def _compare_flips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, count: int) -> None:
    uri, column = build(str(tmp_path / "t.lance"), name), TABLE[name][1]
    files = sorted(Path(uri, "_indices").glob("*/*"))
    rng, found = random.Random(name), 0
    for number in range(count):
        path = files[number % len(files)]
        # Of bloom filters few bits are set, and setting one more does no harm.
        with flipped(path, rng, zeroed=2000 if name.startswith("BLOOM") else 0):
            use_kernels(monkeypatch, False)
            at_once = agrees(uri, column, 1)
            use_kernels(monkeypatch, True)
            in_parts = agrees(uri, column, 7)
        assert at_once == in_parts, path.name
        found += not at_once
    assert agrees(uri, column, 7)
    assert found > count // 8
