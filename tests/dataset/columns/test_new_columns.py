"""Columns added from rows and from functions that remember what they computed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InputError


@pytest.fixture
def ds(tmp_path: Path) -> lance_core.LanceDataset:
    """20 rows in 4 fragments; the first rows of one and all but one of another are deleted."""
    made = lance_core.write_dataset(pa.table({"a": [*range(20)]}), tmp_path / "t", max_rows_per_file=5)
    made.delete("a IN (5, 6) OR a BETWEEN 11 AND 14")
    return made


LIVING = [a for a in range(20) if a not in (5, 6, 11, 12, 13, 14)]


def both(ds: lance_core.LanceDataset, column: str) -> list[Any]:
    ds.validate()
    lance.dataset(ds.uri).validate()
    found = ds.to_table(columns=["a", column])
    assert found.equals(lance.dataset(ds.uri).to_table(columns=["a", column]))
    return found.column(column).to_pylist()


def test_rows_in_order(ds: lance_core.LanceDataset) -> None:
    rows = pa.table({"b": [f"b{a}" for a in LIVING], "v": [[float(a)] for a in LIVING]})
    ds.add_columns(rows)
    assert both(ds, "b") == [f"b{a}" for a in LIVING]
    assert both(ds, "v") == [[float(a)] for a in LIVING]


def test_batches_of_any_size_and_columns_without_nulls(ds: lance_core.LanceDataset) -> None:
    schema = pa.schema([pa.field("b", pa.int64(), nullable=False)])

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, len(LIVING), 3):
            yield pa.record_batch([pa.array([a * 2 for a in LIVING[start : start + 3]])], schema=schema)

    ds.add_columns(batches(), reader_schema=schema)
    assert both(ds, "b") == [a * 2 for a in LIVING]


@pytest.mark.parametrize("count", [0, len(LIVING) - 1, len(LIVING) + 1])
def test_other_numbers_of_rows_are_refused(ds: lance_core.LanceDataset, count: int) -> None:
    files = sorted(Path(ds.uri).rglob("*.lance"))
    with pytest.raises(InputError, match="stream"):
        ds.add_columns(pa.table({"b": pa.array([1] * count, pa.int64())}))
    assert ds.schema.names == ["a"]
    assert sorted(Path(ds.uri).rglob("*.lance")) == files
    with pytest.raises(InputError, match="already"):
        ds.add_columns(pa.table({"a": LIVING}))


def test_a_checkpoint_goes_on_where_it_stopped(ds: lance_core.LanceDataset, tmp_path: Path) -> None:
    seen: list[list[int]] = []
    file = tmp_path / "checkpoint.db"

    def function(batch: pa.RecordBatch) -> pa.RecordBatch:
        values = batch.column(0).to_pylist()
        if len(seen) == limit:
            raise KeyboardInterrupt
        seen.append(values)
        return pa.record_batch({"b": pa.array([value * 3 for value in values])})

    schema = pa.schema([("b", pa.int64())])
    for limit in (3, 6, 100):
        udf = lance_core.batch_udf(output_schema=schema, checkpoint_file=file)(function)
        if limit < 100:
            with pytest.raises(KeyboardInterrupt):
                ds.add_columns(udf, read_columns=["a"], batch_size=2)
            assert ds.schema.names == ["a"]
        else:
            ds.add_columns(udf, read_columns=["a"], batch_size=2)
    flat = [value for values in seen for value in values]
    assert len(flat) == len(set(flat)) == 20
    assert both(ds, "b") == [a * 3 for a in LIVING]
    assert not file.exists()


def test_a_checkpoint_of_another_table_counts_for_nothing(ds: lance_core.LanceDataset, tmp_path: Path) -> None:
    file = tmp_path / "checkpoint.db"

    @lance_core.batch_udf(output_schema=pa.schema([("b", pa.int64())]), checkpoint_file=file)
    def first(batch: pa.RecordBatch) -> pa.RecordBatch:
        if batch.column(0)[0].as_py() >= 10:
            raise KeyboardInterrupt
        return pa.record_batch({"b": pa.array([1] * batch.num_rows)})

    with pytest.raises(KeyboardInterrupt):
        ds.add_columns(first)
    other = lance_core.write_dataset(pa.table({"a": [*range(20)]}), tmp_path / "other", max_rows_per_file=5)
    second = lance_core.batch_udf(output_schema=first.output_schema, checkpoint_file=file)(
        lambda batch: pa.record_batch({"b": pa.array([2] * batch.num_rows)})
    )
    other.add_columns(second)
    assert both(other, "b") == [2] * 20


def test_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("this is no database, nor will it ever be one" * 50)
    with pytest.raises(InputError, match="checkpoint"):
        lance_core.batch_udf(checkpoint_file=tmp_path / "text")(lambda batch: batch)


def test_a_marked_function_is_called_as_it_was_written() -> None:
    assert lance_core.batch_udf()(lambda batch: batch)(3) == 3
