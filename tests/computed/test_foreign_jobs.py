"""Jobs whose source or expression brings a declared column: refused, as every other writer of this library is; and what a
new table takes over from the declared columns of its source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import lance_core
from lance_core.errors import LanceError
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.edits import AddColumnsSpec, ReplaceWhereSpec, UpdateSpec
from lance_core.jobs.specs.merge import MergeSpec
from lance_core.jobs.specs.spec import AppendSpec, CommitSpec, OverwriteSpec, SourceSpec


@pytest.fixture
def uri(tmp_path: Path) -> str:
    place = str(tmp_path / "t.lance")
    lance_core.write_dataset(pa.table({"id": [1, 2], "x": [10, 20]}), place)
    lance_core.declare_column(place, "y", sql="x + 1")
    lance_core.refresh_columns(place)
    return place


def source(tmp_path: Path, **columns: Any) -> SourceSpec:
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({"id": [2, 3], "x": [21, 30], **columns}), path)
    return SourceSpec(format="parquet", paths=(str(path),))


def published(spec: Any) -> None:
    run_job(CommitSpec.of([run_job(spec)], uri=spec.uri))


@pytest.mark.parametrize("name", ["y", "_evidence_2"])
@pytest.mark.parametrize("drift", ["fail", "drop_extra", "fill_missing"])
@pytest.mark.parametrize("kind", ["append", "merge", "replace", "update"])
def test_rows_with_a_declared_column_are_refused(uri: str, tmp_path: Path, kind: str, drift: Any, name: str) -> None:
    before = lance_core.dataset(uri).version
    values = [22, 31] if name == "y" else pa.array([b"\1" * 12] * 2, pa.binary(12))
    rows = source(tmp_path, **{name: values})
    specs = {
        "append": lambda: AppendSpec(uri=uri, source=rows, schema_drift=drift),
        "merge": lambda: MergeSpec(uri=uri, source=rows, on=("id",), schema_drift=drift),
        "replace": lambda: ReplaceWhereSpec(uri=uri, source=rows, predicate="id >= 2", schema_drift=drift),
        "update": lambda: UpdateSpec(uri=uri, updates={name: "'x'" if name != "y" else "x + 2"}),
    }
    with pytest.raises(LanceError, match="declared"):
        run_job(specs[kind]())
    assert lance_core.dataset(uri).version == before


@pytest.mark.parametrize("kind", ["append", "merge", "replace", "update"])
def test_rows_without_it_make_what_they_change_stale_and_nothing_else(uri: str, tmp_path: Path, kind: str) -> None:
    rows = source(tmp_path)
    specs = {
        "append": lambda: AppendSpec(uri=uri, source=rows),
        "merge": lambda: MergeSpec(uri=uri, source=rows, on=("id",)),
        "replace": lambda: ReplaceWhereSpec(uri=uri, source=rows, predicate="id >= 2"),
        "update": lambda: UpdateSpec(uri=uri, updates={"x": "x + 5"}, where="id = 2"),
    }
    published(specs[kind]())
    stale = {"append": 2, "merge": 2, "replace": 2, "update": 1}[kind]
    report = lance_core.refresh_columns(uri)
    assert report.columns["y"].stale == stale
    assert all(row["y"] == row["x"] + 1 for row in lance.dataset(uri).to_table(columns=["x", "y"]).to_pylist())


@pytest.mark.parametrize("fields", [{"columns": {"y": "x + 2"}}, {"function": "tests.computed.test_foreign_jobs:twice"}])
def test_adding_a_declared_column_once_more_fills_nothing(uri: str, fields: dict[str, Any]) -> None:
    """Its nulls may be the declaration's own, and a value of another expression would be computed again."""
    lance_core.write_dataset(pa.table({"id": [3], "x": [30]}), uri, mode="append")
    before = lance_core.dataset(uri).version
    with pytest.raises(LanceError, match="'y' is declared"):
        run_job(AddColumnsSpec(uri=uri, if_exists="fill", **fields))
    published(AddColumnsSpec(uri=uri, if_exists="skip", **fields))
    assert lance_core.dataset(uri).version == before
    assert lance_core.refresh_columns(uri).columns["y"].new == 1


def twice(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Another definition of the column."""
    return pa.record_batch({"y": [2 * value for value in batch.column("x").to_pylist()]})


def test_a_table_made_of_a_declared_one_has_no_row_that_seems_fresh(uri: str, tmp_path: Path) -> None:
    """The declaration comes along in the column's metadata; evidence does not come along, so all is computed once."""
    lance.dataset(uri).update({"x": "99"}, where="id = 1")
    for target in (uri, str(tmp_path / "copy.lance")):
        rows = SourceSpec(format="lance", paths=(uri,))
        published(OverwriteSpec(uri=target, source=rows, if_moved="overwrite"))
        table = lance_core.dataset(target)
        assert table.schema.field("y").metadata[b"computed_column"] == b"true"
        report = lance_core.refresh_columns(target)
        assert report.columns["y"].stale == 2
        assert sorted(lance.dataset(target).to_table(columns=["y"])["y"].to_pylist()) == [21, 100]
