"""A few rows are read value by value and become one array for each column: they must be what the official library gives."""

from __future__ import annotations

import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.dataset.scan import take
from lance_core.errors import LanceError
from lance_core.file import projection

ROWS = 4_000
PER_FILE = 900
VERSIONS = ("2.0", "2.1", "2.2", "2.3")


def _plain(rng: np.random.Generator, mask: Any) -> dict[str, pa.Array]:
    numbers = rng.integers(-(1 << 30), 1 << 30, ROWS)
    small = rng.integers(0, 100, ROWS)
    kinds: dict[str, pa.DataType] = {
        "int8": pa.int8(),
        "uint16": pa.uint16(),
        "int32": pa.int32(),
        "uint64": pa.uint64(),
        "half": pa.float16(),
        "date": pa.date32(),
        "time": pa.time64("us"),
        "stamp": pa.timestamp("ms", "UTC"),
        "duration": pa.duration("s"),
    }
    columns = {name: pa.array(small.tolist(), pa.int64(), mask=mask) for name in kinds}
    columns = {name: _as(column, kinds[name]) for name, column in columns.items()}
    return columns | {
        "int64": pa.array(numbers, mask=mask),
        "real": pa.array(rng.normal(size=ROWS), mask=mask),
        "single": pa.array(rng.normal(size=ROWS).astype(np.float32), mask=mask),
        "flag": pa.array(small > 40, mask=mask),
        "decimal": pa.array([Decimal(number) / 100 for number in numbers.tolist()], pa.decimal128(20, 2), mask=mask),
        "wide": pa.array([Decimal(number) for number in numbers.tolist()], pa.decimal256(50, 0), mask=mask),
        "key": pa.array([number.to_bytes(8, "little", signed=True) for number in numbers.tolist()], pa.binary(8), mask=mask),
    }


def _as(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column.cast(pa.int32()).cast(kind) if pa.types.is_date32(kind) else column.cast(kind)


def _texts(rng: np.random.Generator, mask: Any) -> dict[str, pa.Array]:
    words = [f"wört {number:x}" * (number % 4) for number in rng.integers(0, 1 << 40, ROWS).tolist()]
    picks = rng.integers(0, 400, (ROWS, 60))
    long = [" ".join(f"word{pick}" for pick in row) for row in picks.tolist()]
    noise = [rng.bytes(700) if number % 3 else b"\xff" * 500 for number in range(ROWS)]
    return {
        "text": pa.array(words, mask=mask),
        "large": pa.array(words, pa.large_string(), mask=mask),
        "bytes": pa.array([word.encode() for word in words], pa.binary(), mask=mask),
        "long": pa.array(long, mask=mask),
        "large_long": pa.array(long, pa.large_string(), mask=mask),
        "mixed_sizes": pa.array([one if at % 50 else two for at, (one, two) in enumerate(zip(words, long))], mask=mask),
        "noise": pa.array(noise, pa.large_binary(), mask=mask),
        "kind": pa.array(["red", "green", "", "blue"]).take(pa.array(rng.integers(0, 4, ROWS))),
        "runs": pa.array(np.repeat(np.arange(ROWS // 100), 100)),
        "coded": pa.array(["x", "y", None, "zz"]).take(pa.array(rng.integers(0, 4, ROWS))).dictionary_encode(),
    }


def _others(rng: np.random.Generator, mask: Any) -> dict[str, pa.Array]:
    numbers = pa.array(rng.integers(0, 1000, ROWS), mask=mask)
    words = pa.array([f"w{number}" for number in range(ROWS)], mask=None if mask is None else mask[::-1].copy())
    own = None if mask is None else pa.array(np.roll(mask, 1))
    inner = pa.StructArray.from_arrays([numbers, words], ["n", "word"], mask=own)
    outer = pa.StructArray.from_arrays([inner, numbers, pa.array(rng.random(ROWS) < 0.5)], ["inner", "n", "flag"], mask=own)
    firm = pa.StructArray.from_arrays([numbers, words], fields=[pa.field("n", pa.int64()), pa.field("word", pa.string())])
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=4 * ROWS).astype(np.float32)), 4)
    return {
        "inner": inner,
        "outer": outer,
        "firm": firm,
        "half_list": pa.StructArray.from_arrays([numbers, pa.array([[at] * (at % 3) for at in range(ROWS)])], ["n", "list"]),
        "list": pa.array([[at] * (at % 3) for at in range(ROWS)]),
        "vector": vectors,
        "json": pa.array([f'{{"a": {at}}}' for at in range(ROWS)], pa.json_(pa.utf8()), mask=mask),
        "uuid": pa.array([at.to_bytes(16, "big") for at in range(ROWS)], pa.uuid(), mask=mask),
        "nothing": pa.nulls(ROWS, pa.int32()),
        "same": pa.array([7] * ROWS),
        "null": pa.nulls(ROWS),
    }


def _table(share: float, version: str) -> pa.Table:
    rng = np.random.default_rng(21)
    mask = rng.random(ROWS) < share if share else None
    columns = _plain(rng, mask) | _texts(rng, mask) | _others(rng, mask)
    if version == "2.0":
        # Structs that are null themselves are not kept by files 2.0, nor are some of the types.
        for name in ("inner", "outer", "wide", "null", "half", "coded", "json", "uuid"):
            columns.pop(name)
    return pa.table(columns)


def _picks(num_rows: int) -> list[list[int]]:
    rng = np.random.default_rng(22)
    edges = [row for start in range(0, num_rows, PER_FILE) for row in (start - 1, start, start + 1) if 0 <= row < num_rows]
    some = [rng.choice(num_rows, size, replace=False).tolist() for size in (1, 2, 3, 10, 40, 64, 65, 150, 300)]
    repeated = [[5, 5], [9, 3, 3, num_rows - 1, 9], rng.integers(0, num_rows, 30).tolist()]
    return [[0], [num_rows - 1], [1, 2, 3], edges, edges[::-1], *some, *repeated, [*range(100, 164)], [*range(100, 165)]]


def _check(uri: str, *, columns: list[str] | None = None) -> None:
    ours, theirs = lance_core.dataset(uri), lance.dataset(uri)
    for round_number in range(2):  # cold, then with every chunk table known
        for number, rows in enumerate(_picks(theirs.count_rows())):
            found = ours.take(rows, columns=columns)
            found.validate(full=True)
            if round_number or number % 3 == 0:
                expected = theirs.take(rows, columns=columns)
                assert found.schema.equals(expected.schema), rows
                for name in expected.column_names:
                    assert found[name].to_pylist() == expected[name].to_pylist(), (name, rows)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("share", [0, 0.2, 0.95])
def test_few_rows_of_several_files(version: str, share: float, tmp_path: Path) -> None:
    """Every type, many nulls and none, rows at the edges of files, in any order, repeated."""
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(_table(share, version), uri, data_storage_version=version, max_rows_per_file=PER_FILE)
    _check(uri)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_few_rows_of_our_own_files(version: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance_core.write_dataset(_table(0.2, version), uri, data_storage_version=version, max_rows_per_file=PER_FILE)
    _check(uri)


def test_files_that_differ(tmp_path: Path) -> None:
    """Fragments with nulls and without, with deleted rows, with columns in files of their own."""
    uri = str(tmp_path / "t.lance")
    keep = ["int64", "flag", "text", "long", "inner", "kind", "same"]
    lance.write_dataset(_table(0, "2.1").select(keep), uri, data_storage_version="2.1", max_rows_per_file=PER_FILE)
    lance.write_dataset(_table(0.2, "2.1").select(keep), uri, mode="append", max_rows_per_file=PER_FILE)
    theirs = lance.dataset(uri)
    theirs.delete("int64 % 7 = 1")
    _check(uri)
    _check(uri, columns=["text", "int64"])
    lance.dataset(uri).add_columns({"twice": "int64 * 2"})
    lance.write_dataset(lance.dataset(uri).to_table().slice(0, 500), uri, mode="append")
    _check(uri)


def test_compressed_columns_go_the_long_way(tmp_path: Path) -> None:
    table = _table(0.2, "2.2").select(["int64", "text", "long", "inner"])
    metadata = {"lance-encoding:compression": "zstd"}
    schema = pa.schema([field.with_metadata(metadata) for field in table.schema])
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(table.cast(schema), uri, data_storage_version="2.2", max_rows_per_file=PER_FILE)
    _check(uri)


def test_both_ways_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the short way the same rows come out of the same file, whatever the type."""
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(_table(0.3, "2.1"), uri, data_storage_version="2.1", max_rows_per_file=PER_FILE)
    picks = _picks(ROWS)
    short = [lance_core.dataset(uri).take(rows) for rows in picks]
    for module in (projection, take):
        monkeypatch.setattr(module, "FEW_ROWS", 0)
    for rows, found in zip(picks, short, strict=True):
        assert found.combine_chunks().equals(lance_core.dataset(uri).take(rows).combine_chunks()), rows


@pytest.mark.parametrize("column", ["int64", "kind", "text", "long", "noise", "outer", "flag"])
def test_damage_is_noticed(column: str, tmp_path: Path) -> None:
    """Bytes that are flipped anywhere give an error of the library or rows, never anything else."""
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(_table(0.2, "2.1").select([column]), uri, data_storage_version="2.1")
    (path,) = (tmp_path / "t.lance" / "data").iterdir()
    good, rng = path.read_bytes(), np.random.default_rng(24)
    for place in rng.integers(0, len(good) * 9 // 10, 60).tolist():
        damaged = bytearray(good)
        damaged[place : place + 8] = b"\xff" * 8
        path.write_bytes(bytes(damaged))
        for rows in ([100], [7, 900, 901, 3_000]):
            try:
                lance_core.dataset(uri).take(rows).validate(full=True)
            except (LanceError, pa.ArrowInvalid):
                continue


_COLD = """
import json, sys, lance_core
table = lance_core.dataset(sys.argv[1])
for start in range(200):
    table.take([start, start + 700, start + 1500])
print(json.dumps(sorted({"numba", "pandas"} & set(sys.modules))))
"""


def test_few_rows_need_no_compiler(tmp_path: Path) -> None:
    """A fresh process takes rows without the import of numba, nor of what pyarrow imports for lists of objects."""
    uri = str(tmp_path / "t.lance")
    table = _table(0.2, "2.1").drop_columns(["list", "half_list", "noise", "json"])
    lance.write_dataset(table, uri, data_storage_version="2.1", max_rows_per_file=PER_FILE)
    printed = subprocess.run([sys.executable, "-c", _COLD, uri], check=True, capture_output=True, text=True).stdout
    assert json.loads(printed) == []
