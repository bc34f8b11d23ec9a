"""Rows as a task's result: bounded in bytes, without vectors that nobody named, and the result says what it lacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lance_core
from lance_core.errors import InputError
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.definition import RESULT_BYTES, QuerySpec, SqlSpec
from lance_core.jobs.specs.spec import SourceSpec

ROWS, WIDTH = 1000, 384
COLUMNS = {
    "texts": pa.array(["é" * 100] * ROWS),
    "long texts": pa.array(["x" * 100_000] * ROWS),
    "lists": pa.array([[float(number)] * 50 for number in range(ROWS)]),
    "structs": pa.array([{"a": "x" * 80, "b": [1, 2]} for _ in range(ROWS)]),
    "bytes": pa.array([b"\x00\xff" * 60] * ROWS),
}


@pytest.fixture
def uri(tmp_path: Path) -> str:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(ROWS * WIDTH, np.float32)), WIDTH)
    path = str(tmp_path / "t.lance")
    lance_core.write_dataset(pa.table({"id": range(ROWS), "embedding": vectors}), path)
    return path


def _query(uri: str, **fields: Any) -> dict[str, Any]:
    facts: dict[str, Any] = run_job(QuerySpec(uri=uri, **fields)).to_dict()
    return facts


def _size(rows: object) -> int:
    return len(json.dumps(rows).encode())


def test_vectors_are_left_out_unless_they_are_named(uri: str) -> None:
    found = _query(uri)
    assert (found["num_rows"], len(found["rows"]), found["rows"][0]) == (ROWS, ROWS, {"id": 0})
    assert found["left_out"]["columns"] == ["embedding"]
    assert "unless columns names them" in found["left_out"]["why"]
    named = _query(uri, columns=("id", "embedding"))
    assert len(named["rows"][0]["embedding"]) == WIDTH
    assert _size(named["rows"]) <= RESULT_BYTES
    assert named["left_out"]["rows"] == ROWS - len(named["rows"])
    assert named["num_rows"] == ROWS
    for word in ("max_bytes", "target"):
        assert word in named["left_out"]["why"]


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("bound", [1, 5_000, RESULT_BYTES])
def test_no_values_make_a_result_larger_than_its_bound(kind: str, bound: int, tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    lance_core.write_dataset(pa.table({"id": range(ROWS), "value": COLUMNS[kind]}), path)
    results = [
        _query(path, max_bytes=bound),
        run_job(
            SqlSpec(
                uri=path, sql="SELECT * FROM t", tables={"t": SourceSpec(format="lance", paths=(path,))}, max_bytes=bound
            )
        ).to_dict(),
    ]
    for found in results:
        assert _size(found["rows"]) <= max(bound, 2)
        assert found["left_out"]["rows"] == found["num_rows"] - len(found["rows"]) > 0
        assert [row["id"] for row in found["rows"]] == [*range(len(found["rows"]))]


def test_a_result_that_fits_says_nothing_of_it(uri: str) -> None:
    assert "left_out" not in _query(uri, columns=("id",), limit=10)
    with pytest.raises(InputError, match="more than 10 rows"):
        _query(uri, columns=("id",), max_rows=10)
    with pytest.raises(InputError, match="max_bytes must be at least 1"):
        QuerySpec(uri=uri, max_bytes=0)


def test_a_target_takes_everything(uri: str, tmp_path: Path) -> None:
    found = _query(uri, target=str(tmp_path / "all.parquet"))
    assert found["num_rows"] == ROWS
    assert "left_out" not in found
    assert pq.read_table(tmp_path / "all.parquet").column_names == ["id", "embedding"]


def test_a_table_of_nothing_but_vectors_gives_them(tmp_path: Path) -> None:
    path = str(tmp_path / "v.lance")
    lance_core.write_dataset(pa.table({"v": pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2))}), path)
    assert _query(path)["rows"] == [{"v": [1.0, 2.0]}]


def test_a_search_gives_distances_without_the_vectors(uri: str) -> None:
    found = _query(uri, nearest={"column": "embedding", "q": [0.0] * WIDTH, "k": 3})
    assert [sorted(row) for row in found["rows"]] == [["_distance", "id"]] * 3
