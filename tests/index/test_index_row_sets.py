"""Sets of rows read where they are in a file: the same rows as the decoders find, and no damage they would refuse."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_core.errors import CorruptFileError
from lance_core.index.scalar.bloom import hashes_of
from lance_core.index.scalar.id_lookup import Once, Places
from lance_core.index.scalar.row_sets import Holding, RowSets
from lance_core.kernels.bloom import hash_texts
from lance_core.kernels.roaring import find_containers
from lance_core.rowids.selection import (
    address_set,
    decode_address_set,
    decode_address_treemap,
    encode_address_set,
    encode_address_treemap,
)


@pytest.fixture(autouse=True)
def worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find_containers, "is_worth_loading", lambda *_: True)


def sets_of_rows() -> list[Any]:
    """Empty ones, sparse and dense ones, of one to three fragments, with runs."""
    rng, found = np.random.default_rng(0), []
    for number in range(40):
        count, most = (0, 1, 5, 3000, 60000)[number % 5], (3, 10, 300_000, 70_000)[number % 4]
        offsets = rng.integers(0, most, count).astype(np.uint64)
        found.append(np.unique(offsets | (rng.integers(0, 1 + number % 3, count).astype(np.uint64) << np.uint64(32))))
    return [*found, np.arange(70_000, 140_000, dtype=np.uint64)]


def encoded(rows: Any, has_sizes: bool) -> bytes:
    return encode_address_set(address_set(rows)) if has_sizes else encode_address_treemap(address_set(rows))


@pytest.mark.parametrize("has_sizes", [False, True])
def test_rows_of_sets(has_sizes: bool) -> None:
    expected = sets_of_rows()
    data = [encoded(rows, has_sizes) for rows in expected]
    columns = [pa.array([b"", *data[:7]], pa.binary()).slice(1), pa.array(data[7:], pa.large_binary())]
    sets = RowSets.of(columns, has_sizes=has_sizes)
    assert sets is not None
    assert set(sets.kinds.tolist()) == ({1, 2} if has_sizes else {1, 2, 3})
    numbers, rows = (np.concatenate(parts) for parts in zip(*sets.pairs(), strict=True))
    assert np.array_equal(rows, np.concatenate(expected))
    assert np.array_equal(numbers, np.repeat(np.arange(len(expected)), [len(one) for one in expected]))
    order = np.lexsort((numbers, rows))
    numbers, rows = numbers[order].astype(np.int32), rows[order]
    holding, middle = Holding(sets), len(rows) // 2
    held = [holding.count(numbers[part], rows[part]) for part in (slice(0, middle), slice(middle, None))]
    assert sum(held) == len(rows)
    rng = np.random.default_rng(1)
    for _ in range(300):
        number, row = (
            int(rng.integers(0, len(expected))),
            np.uint64(int(rng.integers(0, 12)) | int(rng.integers(0, 3)) << 32),
        )
        found = Holding(sets).count(np.array([number, number], np.int32), np.array([row, row], np.uint64))
        assert found == (1 if row in expected[number] else -1)


@pytest.mark.parametrize("has_sizes", [False, True])
def test_damaged_sets_are_left_to_the_decoders(has_sizes: bool) -> None:
    rng, refused = random.Random(2), 0
    data = [encoded(rows, has_sizes) for rows in sets_of_rows()]
    decode = decode_address_set if has_sizes else decode_address_treemap
    for _ in range(1500):
        whole = bytearray(rng.choice(data))
        whole[rng.randrange(min(len(whole), rng.choice([40, len(whole)])))] ^= 1 << rng.randrange(8)
        if rng.random() < 0.1:
            del whole[rng.randrange(len(whole)) :]
        sets = RowSets.of([pa.array([bytes(whole)], pa.binary())], has_sizes=has_sizes)
        refused += sets is None
        if sets is not None:
            found = [rows for _, rows in sets.pairs()]
            rows = np.concatenate(found) if found else np.empty(0, np.uint64)
            assert np.array_equal(rows, decode(bytes(whole)).to_array())
    assert refused > 500


def test_hashes_are_the_same_in_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(3)
    values = pa.array([rng.randbytes(rng.randrange(150)) for _ in range(800)] + [None, b""], pa.binary()).slice(7)
    found = []
    for is_worth in (False, True):
        monkeypatch.setattr(hash_texts, "is_worth_loading", lambda *_, is_worth=is_worth: is_worth)
        found.append(hashes_of(values))
    assert np.array_equal(*found) and len(found[0]) == 794


@pytest.mark.parametrize("kind", ["run", "few", "runs", "holes", "fragments", "far", "none"])
def test_places(kind: str) -> None:
    rng = np.random.default_rng(4)
    high = np.uint64(1 << 32)
    ids = {
        "run": np.arange(100, 5000, dtype=np.uint64),
        "few": np.concatenate([np.arange(n, n + 900, dtype=np.uint64) + n * high for n in (2, 0, 1)]),
        "runs": np.concatenate([np.arange(n * 100, n * 100 + 50, dtype=np.uint64) + n % 3 * high for n in range(20)]),
        "holes": rng.permutation(6000)[:4000].astype(np.uint64) + high,
        "fragments": rng.permutation(6000)[:4000].astype(np.uint64) + rng.integers(3, 40, 4000).astype(np.uint64) * high,
        "far": rng.integers(0, 1 << 63, 3000).astype(np.uint64),
        "none": np.empty(0, np.uint64),
    }[kind]
    ids = ids[np.sort(np.unique(ids, return_index=True)[1])]
    stored = np.concatenate([rng.permutation(ids), rng.integers(0, 1 << 63, 500).astype(np.uint64), ids[:5] + high * 5000])
    where = {int(row): place for place, row in enumerate(ids.tolist())}
    assert Places(ids).of(stored).tolist() == [where.get(row, -1) for row in stored.tolist()]
    if len(ids):
        for wrong in (np.append(stored, ids[:1]), stored[1:]):
            once, found = Once(len(ids)), Places(ids).of(wrong)
            once.note(found[found >= 0])
            with pytest.raises(CorruptFileError, match="missing or contained twice"):
                once.require_all()
