"""Flipped bits, cut and missing files of every kind of index: the rows of a scan, never others; an error when strict."""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.dataset.handle.open import dataset
from lance_core.errors import CorruptFileError
from lance_core.fetch import ByteRange
from lance_core.index.checksums import CHUNK, CheckedStore, SummingStore, decode_sums, encode_sums
from lance_core.index.registry import KINDS
from lance_core.index.vector.parameters import KINDS as VECTOR_KINDS
from lance_core.indices import IndexConfig
from lance_core.io.cache import shared_cache
from lance_core.io.memory import MemoryStore
from tests.index.index_tables import rows

Q = np.random.default_rng(9).normal(size=8).astype(np.float32)


def ask_filter(where: str) -> Callable[..., Any]:
    return lambda table, **options: table.to_table(["x"], filter=where, **options)["x"].to_pylist()


def ask_words(table: Any, **options: Any) -> list[tuple[int, float]]:
    found = table.to_table(
        ["x", "_score"], full_text_query={"query": "alpha delta42", "columns": ["s"]}, limit=20, **options
    )
    return [
        (round(score, 4), number) for number, score in zip(found["x"].to_pylist(), found["_score"].to_pylist(), strict=True)
    ]


def ask_vectors(table: Any, **options: Any) -> list[int]:
    nearest = {"column": "v", "q": Q, "k": 10, "nprobes": 2, "refine_factor": 20, "ef": 200}
    return table.to_table(["x", "_distance"], nearest=nearest, **options)["x"].to_pylist()


CASES: dict[str, tuple[str, dict[str, Any], Callable[..., Any]]] = {
    "BTREE": ("i", {}, ask_filter("i = 7 or i > 350")),
    "BITMAP": ("s", {}, ask_filter("s = 'alpha 0' or s is null")),
    "LABEL_LIST": ("tags", {}, ask_filter("array_has_any(tags, ['alpha', 'Beta'])")),
    "NGRAM": ("s", {}, ask_filter("contains(s, 'gamma')")),
    "ZONEMAP": ("x", {"rows_per_zone": 32}, ask_filter("x = 70 or x > 190")),
    "BLOOMFILTER": ("x", {}, ask_filter("x in (3, 100)")),
    "JSON": ("j", {"path": "a"}, ask_filter("json_get_int(j, 'a') > 300")),
    "INVERTED": ("s", {"with_position": True}, ask_words),
    **{
        kind: ("v", {"num_partitions": 2, **({"num_sub_vectors": 4} if "PQ" in kind else {})}, ask_vectors)
        for kind in VECTOR_KINDS
    },
}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    base = rows(220)
    values = np.random.default_rng(1).normal(size=(220, 8)).astype(np.float32)
    texts = [None if n is None else json.dumps({"a": n}) for n in base["i"].to_pylist()]
    return base.append_column("j", pa.array(texts, pa.json_())).append_column(
        "v", pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), 8)
    )


def test_the_table_is_total() -> None:
    assert set(CASES) == {kind.name for kind in KINDS} | set(VECTOR_KINDS)


@pytest.mark.parametrize("kind", CASES)
def test_damage(tmp_path: Path, table: pa.Table, kind: str) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(table, uri)
    column, options, ask = CASES[kind]
    expected = ask(dataset(uri))
    if kind in VECTOR_KINDS:
        dataset(uri).create_index(column, kind, **options)
    elif kind == "JSON":
        dataset(uri).create_scalar_index(column, IndexConfig("json", options))
    else:
        dataset(uri).create_scalar_index(column, kind, **options)
    files = sorted((tmp_path / "t.lance" / "_indices").glob("*/*"))
    rng, noticed = random.Random(kind), 0
    assert ask(dataset(uri), strict_index=True) == expected
    for number in range(6 * len(files)):
        path = files[number % len(files)]
        whole = path.read_bytes()
        data = bytearray(whole)
        if number < len(files):
            path.unlink()
        elif number < 2 * len(files):
            path.write_bytes(data[: rng.randrange(len(data))])
        else:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            path.write_bytes(data)
        shared_cache().clear()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            assert ask(dataset(uri)) == expected, (path.name, number)
        shared_cache().clear()
        warn_skipped = [item for item in told if "not used" in str(item.message)]
        if warn_skipped:
            noticed += 1
            with pytest.raises(CorruptFileError, match="cannot be searched"):
                ask(dataset(uri), strict_index=True)
        elif path.name != "checksums":
            assert ask(dataset(uri), strict_index=True) == expected
        path.write_bytes(whole)
    # All but a missing `checksums`, which is no damage to what is searched; files that a search does not read stay unread.
    assert noticed >= 3 * len(files), (noticed, len(files))


def test_chunks() -> None:
    inner = MemoryStore("memory://sums")
    store = SummingStore(inner)
    data = np.random.default_rng(0).integers(0, 256, 3 * CHUNK + 77, np.uint8).tobytes()
    writer = store.open_writer("f")
    for start in range(0, len(data), 100_001):
        writer.write(data[start : start + 100_001])
    writer.close()
    told = decode_sums(encode_sums({"f": store.sums_of()}), what="sums")
    chunk, files = told.chunk, told.files
    assert files["f"].size == len(data) and len(files["f"].sums) == 4
    asked = [ByteRange(10, 20), ByteRange(CHUNK - 5, CHUNK + 5), ByteRange(3 * CHUNK + 70, 3 * CHUNK + 77), ByteRange(5, 5)]
    checked = CheckedStore(inner, files["f"], chunk=chunk)
    for _ in range(2):
        assert [bytes(part) for part in checked.get_ranges("f", asked)] == [data[item.start : item.end] for item in asked]
    rng, mixed = np.random.default_rng(1), CheckedStore(inner, files["f"], chunk=chunk)
    for count in (3, 40, 7):
        starts = rng.integers(0, len(data) - 50, count).tolist()
        wanted = [ByteRange(start, start + int(rng.integers(0, 50))) for start in starts]
        assert [bytes(part) for part in mixed.get_ranges("f", wanted)] == [data[item.start : item.end] for item in wanted]
    inner.put("f", data[: CHUNK + 9] + b"?" + data[CHUNK + 10 :])
    again = CheckedStore(inner, files["f"], chunk=chunk)
    assert bytes(again.get_ranges("f", asked[:1])[0]) == data[10:20]
    with pytest.raises(CorruptFileError, match="checksum of the bytes from"):
        again.get_ranges("f", asked[1:2])
    with pytest.raises(CorruptFileError, match="were requested"):
        again.get_ranges("f", [ByteRange(0, len(data) + 1)])
    with pytest.raises(CorruptFileError, match="is damaged"):
        decode_sums(b"00000000\n{}", what="sums")
