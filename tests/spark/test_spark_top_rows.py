"""The first rows of a group and its totals, as a worker finds them: no JVM takes part."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.errors import InputError
from lance_core.io.resolve import resolve_store
from lance_core.io.wrapped import CountingStore
from lance_core.spark import table_reader
from lance_core.spark.column_totals import TotalsReader, parse_totals
from lance_core.spark.options import parse_options
from lance_core.spark.table_reader import ADDRESS, TableReader
from lance_core.spark.top_rows import SortKey, TopReader, TopRows, parse_keys

NAN, OTHER_NAN = float("nan"), np.frombuffer(b"\x01\x00\x00\x00\x00\x00\xf8\xff", np.float64)[0]
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [True, False]),
    "tiny": (pa.int8(), [-128, 127, 0, 1]),
    "long": (pa.int64(), [-(2**63), 2**63 - 1, 0, *range(50)]),
    "float": (pa.float32(), [NAN, -0.0, 0.0, float("inf"), float("-inf"), 1e-45, -1e-45]),
    "double": (pa.float64(), [NAN, OTHER_NAN, -NAN, -0.0, 0.0, float("inf"), float("-inf"), 5e-324, *range(30)]),
    "decimal": (pa.decimal128(38, 2), [Decimal("-9.99"), Decimal("12345678.90"), Decimal("0.00"), Decimal("1.00")]),
    "text": (pa.string(), ["", "a", "B", "\x7f", "\x80", "ÿ", "\U0001f600", "\ue000", "ab"]),
    "bytes": (pa.binary(), [b"", b"\x00", b"\x7f", b"\x80", b"\xff", b"\x80\x00"]),
    "date": (pa.date32(), [-719162, 2932896, 0, 5]),
    "zoned": (pa.timestamp("us", "UTC"), [-(2**62), 2**62, 0, 7]),
}


def _rank(value: Any, key: SortKey) -> tuple[Any, ...]:
    """What Python sorts by as Spark sorts by a key."""
    if value is None:
        return (0 if key.nulls_first else 2,)
    if isinstance(value, float):
        order: Any = (1, 0.0) if math.isnan(value) else (0, value)
    else:
        order = (0, value.encode() if isinstance(value, str) else value)
    return (1, _Reversed(order) if key.descending else order)


class _Reversed:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _Reversed) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reversed) and self.value == other.value


def _plain(column: Any) -> list[Any]:
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    return list(column.to_pylist())


@pytest.mark.parametrize("seed", range(60))
def test_first_rows_of_any_batches(seed: int) -> None:
    by = random.Random(seed)
    names = by.sample([*VALUES], by.randint(1, 3))
    keys = [SortKey(name, by.random() < 0.5, by.random() < 0.5) for name in names]
    nulls = by.choice([0, 0.05, 0.6])
    rows, most = by.choice([0, 1, 30, 3_000, 20_000]), by.choice([1, 10, 100, 5_000])
    made = {
        name: pa.array([None if by.random() < nulls else by.choice(VALUES[name][1]) for _ in range(rows)], VALUES[name][0])
        for name in names
    }
    table = pa.table({**made, ADDRESS: pa.array(range(7, rows + 7), pa.uint64())})
    if by.random() < 0.5 and rows:  # each batch better than the last
        table = table.sort_by([(names[0], "ascending" if keys[0].descending else "descending")])
    top = TopRows(keys, most)
    for batch in table.to_batches(max_chunksize=by.choice([100, 700, 8_192])):
        top.add(batch)
    found = top.addresses()
    assert len(found) == min(most, rows)
    assert (np.diff(found.astype(np.int64)) > 0).all()
    columns = [_plain(table.column(name)) for name in names]
    ranked = {
        address: [_rank(value, key) for value, key in zip(values, keys, strict=True)]
        for address, *values in zip(table.column(ADDRESS).to_pylist(), *columns, strict=True)
    }
    expected = sorted(ranked.values())[:most]
    assert sorted(ranked[address] for address in found.tolist()) == expected


def test_no_more_rows_are_held_than_are_wanted() -> None:
    before = pa.total_allocated_bytes()
    top = TopRows([SortKey("a", True, False)], 10)
    for number in range(300):  # ascending: all rows of each batch are better than all before
        values = pa.array(np.arange(number * 8_192, (number + 1) * 8_192))
        top.add(pa.record_batch({"a": values, ADDRESS: values.cast(pa.uint64())}))
        del values
        assert pa.total_allocated_bytes() - before < 2 << 20
    assert top.addresses().tolist() == list(range(300 * 8_192 - 10, 300 * 8_192))


def test_a_column_that_comes_again_decides_nothing() -> None:
    described = [
        {"column": "a", "descending": True, "nulls_first": False},
        {"column": "b", "descending": False, "nulls_first": True},
        {"column": "a", "descending": False, "nulls_first": True},
    ]
    assert parse_keys(described) == (SortKey("a", True, False), SortKey("b", False, True))


@pytest.fixture
def uri(tmp_path: Path) -> str:
    rows, where = 60_000, str(tmp_path / "t.lance")
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, rows * 100, np.uint8).tobytes()
    table = pa.table({"a": rng.random(rows), "wide": [noise[row * 100 : row * 100 + 100] for row in range(rows)]})
    lance.write_dataset(table, where, max_rows_per_file=20_000, data_storage_version="2.1")
    return where


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[CountingStore]:
    stores: list[CountingStore] = []

    def counting(place: str, storage: Any) -> CountingStore:
        stores.append(CountingStore(resolve_store(place, storage)))
        return stores[-1]

    monkeypatch.setattr(table_reader, "resolve_store", counting)
    return stores


def test_other_columns_are_read_of_the_first_rows_alone(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = lance.dataset(uri).to_table()
    rows = TableReader(parse_options({"path": uri}), whole.column_names, whole.schema)
    top = TopReader(rows, pa.schema([whole.schema.field("a")]), (SortKey("a", False, False),), 10)
    (group,) = rows.groups(parallelism=1)
    stores = _counted(monkeypatch)
    found = pa.Table.from_batches(top.read(group)).sort_by("a")
    read = sum(store.counts.bytes_read for store in stores)
    assert found.equals(whole.sort_by("a").slice(0, 10).combine_chunks())
    keys = 60_000 * 8
    assert read < keys + 1_000_000, "the wide column has 6,000,000 bytes"
    stores.clear()
    many = TopReader(rows, top.columns, top.keys, 50_000)
    assert sum(batch.num_rows for batch in many.read(group)) == 60_000
    assert sum(store.counts.bytes_read for store in stores) > 6_000_000


@pytest.mark.parametrize("kind", ["float", "double"])
def test_extremes_with_values_that_are_no_numbers(tmp_path: Path, kind: str) -> None:
    type_, cases = VALUES[kind][0], ([NAN, None, NAN], [None, None], [], [1.0, NAN, -1.0], [-1.0, None, 2.0])
    for number, values in enumerate(cases):
        where = str(tmp_path / f"{number}.lance")
        lance.write_dataset(pa.table({"a": pa.array(values, type_)}), where)
        schema = pa.schema([("a", type_)])
        rows = TableReader(parse_options({"path": where, "batchSize": "1"}), ["a"], schema)
        target = pa.schema([("n", pa.int64()), ("c", pa.int64()), ("l", type_), ("m", type_)])
        totals = parse_totals(
            [{"function": "count"}, *({"function": name, "column": "a"} for name in ("count", "min", "max"))]
        )
        groups = rows.groups() or [table_reader.FragmentGroup(0, 0)]
        found = [batch.to_pylist() for group in groups for batch in TotalsReader(rows, totals, target).read(group)]
        numbers = [value for value in values if value is not None and not math.isnan(value)]
        present = [value for value in values if value is not None]
        least = (min(numbers) if numbers else NAN) if present else None
        most = (NAN if len(numbers) < len(present) else max(numbers)) if present else None
        assert repr(found) == repr([[{"n": len(values), "c": len(present), "l": least, "m": most}]])


def test_totals_that_are_none() -> None:
    with pytest.raises(InputError, match="no total 'sum' of 'a'"):
        parse_totals([{"function": "sum", "column": "a"}])
    with pytest.raises(InputError, match="no total 'min' of None"):
        parse_totals([{"function": "min"}])
