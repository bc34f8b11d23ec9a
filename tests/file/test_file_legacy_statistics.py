"""Page statistics of legacy files: ours are those of the official writer, value by value, and its reader heeds them."""

from __future__ import annotations

import datetime
import decimal
import math
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_core
from lance_core.file.open import open_file
from lance_core.file.v1.reader import LegacyFile
from lance_core.file.v1.writer import StatisticsCollector
from lance_core.io.local.store import LocalStore
from tests.file import file_tables as tables

NAN, INF = math.nan, math.inf
OLD = Path(__file__).parents[1] / "bytes" / "fixtures" / "old"
N = 60


def _of(values: list[Any], kind: pa.DataType | None = None) -> pa.Array:
    return pa.array((values * N)[:N], kind)


NUMBERS = {
    "i8": _of([5, -3, None], pa.int8()),
    "u64": _of([2**64 - 1, 0, 1], pa.uint64()),
    "f16": _of([np.float16(1), np.float16(NAN)], pa.float16()),
    "f32": _of([1.0, NAN, -0.0], pa.float32()),
    "only_nan": _of([NAN]),
    "zeros": _of([0.0, -0.0]),
    "lowest": _of([-0.0]),
    "highest": _of([0.0]),
    "infinities": _of([INF, -INF, NAN]),
    "bool": _of([True, True, False]),
    "true": _of([True]),
    "date": _of([datetime.date(2020, 1, 1), None]),
    "date64": _of([86_400_000, 0], pa.date64()),
    "timestamp": _of([1, None], pa.timestamp("us")),
    "decimal": _of([decimal.Decimal("1.5"), None, decimal.Decimal("-2")], pa.decimal128(10, 2)),
    "dictionary": _of(["a", "b"]).dictionary_encode(),
    "list": _of([[1], [2]]),
    "struct": _of([{"x": 5, "y": "a"}, {"x": None, "y": "b"}]),
}
BYTES = {
    "text": _of(["b", None, ""]),
    "large": _of(["b", None, ""], pa.large_string()),
    "long": _of(["x" * 100, "y" * 64, "é" * 50]),
    "edge": _of(["a" * 63 + "é" * 5]),
    "top": _of(["\U0010ffff" * 30]),
    "binary": _of([b"b", None, b"\xff" * 100]),
    "top_bytes": _of([b"\xff" * 100]),
    "carried": _of([b"\xff" * 63 + b"a" * 10]),
    "raised": _of([b"\xfe" * 100]),
    "large_binary": _of([b"b" * 70], pa.large_binary()),
    "fixed": _of([b"abc"], pa.binary(3)),
}
KINDS = (pa.int8(), pa.uint64(), pa.float32(), pa.date32(), pa.date64(), pa.decimal128(10, 2), pa.bool_(), pa.string())
NOTHING = {str(kind): pa.nulls(N, kind) for kind in KINDS}


def opened(root: Path) -> LegacyFile:
    (path,) = (root / "data").glob("*.lance")
    found = open_file(LocalStore(root), f"data/{path.name}")
    assert isinstance(found, LegacyFile)
    return found


@pytest.mark.parametrize("columns", [NUMBERS, BYTES, NOTHING], ids=["numbers", "bytes", "nothing"])
def test_ours_are_the_official_ones(tmp_path: Path, columns: dict[str, pa.Array]) -> None:
    given_table = pa.table(columns)
    lance.write_dataset(given_table, tmp_path / "theirs", data_storage_version="0.1")
    lance_core.write_dataset(given_table, str(tmp_path / "ours"), data_storage_version="0.1")
    theirs, ours = opened(tmp_path / "theirs"), opened(tmp_path / "ours")
    for field in theirs.schema.fields:
        expected, found = theirs.statistics(field.id), ours.statistics(field.id)
        # The text tells signed zeros apart.
        assert str(found) == str(expected), field.name
    assert ours.tables.metadata.statistics is not None and theirs.tables.metadata.statistics is not None
    assert ours.tables.metadata.statistics.schema == theirs.tables.metadata.statistics.schema
    assert ours.tables.metadata.statistics.fields == theirs.tables.metadata.statistics.fields


def test_the_official_reader_skips_by_them(tmp_path: Path) -> None:
    values = pa.table({"i": range(5000), "s": [f"v{i:05d}" for i in range(5000)], "f": [i / 2 for i in range(5000)]})
    lance_core.write_dataset(values, str(tmp_path), data_storage_version="0.1")
    dataset = lance.dataset(tmp_path)
    for text in ("i >= 2000 and i < 2010", "s = 'v04999'", "f < 1", "f > 2498", "i is null", "i = 1023 or i = 1024"):
        assert dataset.to_table(filter=text).equals(lance_core.dataset(str(tmp_path)).to_table(filter=text))
    assert opened(tmp_path).statistics(0).to_pylist()[4] == {"null_count": 0, "min_value": 4096, "max_value": 4999}  # type: ignore[union-attr]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.none() | st.text(max_size=90), min_size=1), st.lists(st.none() | st.binary(max_size=90), min_size=1))
def test_bounds_hold(texts: list[str | None], data: list[bytes | None]) -> None:
    for values, kind in ((texts, pa.string()), (data, pa.binary())):
        collector = StatisticsCollector()
        collector.add(7, pa.array(values, kind))
        (column,) = collector._columns.values()
        low, high = column.lows[0][0].as_py(), column.highs[0][0].as_py()
        for value in (value for value in values if value is not None):
            key = value.encode() if isinstance(value, str) else value
            assert (low.encode() if isinstance(low, str) else low) <= key
            assert high is None or key <= (high.encode() if isinstance(high, str) else high)
        for bound in (low, high):
            size = 0 if bound is None else len(bound.encode() if isinstance(bound, str) else bound)
            assert size <= 64 + 3  # a raised character may be longer


def _expected(values: list[Any]) -> tuple[Any, Any]:
    known = [value for value in values if value is not None and value == value]
    return (min(known), max(known)) if known else (None, None)


@pytest.mark.parametrize("release", sorted(path.name for path in OLD.iterdir()))
def test_statistics_of_old_releases(release: str) -> None:
    """NaN, signed zeros, nothing but nulls, bounds that were cut; of each old release that wrote any."""
    root = OLD / release / "statistics"
    with pa.ipc.open_file(root / "expected-1.arrow") as reader:
        values = reader.read_all()
    file = opened(root)
    for name in values.column_names:
        found = file.statistics(file.schema.find(name).id)
        if found is None:
            assert name not in ("floats", "zeros", "edges") or file.tables.metadata.statistics is None
            continue
        column = values.column(name).to_pylist()
        assert len(found) == 1
        item = found[0].as_py()
        low, high = _expected(column)
        if name.startswith("all_null"):
            assert item["null_count"] == len(column)
        elif name == "only_nan":
            assert (item["min_value"], item["max_value"]) == (-INF, INF)
        else:
            assert item["null_count"] == 0
            assert item["min_value"] is None or item["min_value"] <= low
            assert item["max_value"] is None or item["max_value"] >= high
        if name == "zeros":
            assert [math.copysign(1, item[key]) for key in ("min_value", "max_value")] == [-1, 1]
        if name in ("edges", "flag"):
            assert (item["min_value"], item["max_value"]) == (low, high)
        if name in ("long_text", "high_bytes"):
            assert len(item["min_value"]) <= 64 and (item["max_value"] is None or len(item["max_value"]) <= 64)


def test_tables_of_ours_have_them_per_batch(tmp_path: Path) -> None:
    written = tables.write_ours(tmp_path, pa.table({"c": list(range(3000))}), "0.1", batch_size=700)
    file = tables.open_ours(tmp_path, written)
    assert isinstance(file, LegacyFile)
    assert file.statistics(0).field("min_value").to_pylist() == [0, 1024, 2048]  # type: ignore[union-attr]
