"""`nearest=` without an index: the rows, their order and their distances are the official library's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.dataset.handle.dataset import LanceDataset
from lance_core.dataset.handle.open import dataset
from lance_core.errors import InputError

ROWS, DIMENSION = 600, 24


def make(path: Path, dtype: str = "f4", *, stable: bool = False) -> str:
    rng = np.random.default_rng(3)
    values = (rng.random((ROWS, DIMENSION)) * (255 if dtype == "u1" else 1)).astype(dtype)
    kind = pa.from_numpy_dtype(values.dtype)
    if dtype != "u1":
        values[7] = 0
        values[8, 3] = np.nan
    whole = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel(), kind), DIMENSION)
    mask = pa.array(np.arange(ROWS) == 11)
    vectors = pa.FixedSizeListArray.from_arrays(whole.values, DIMENSION, mask=mask)
    table = pa.table({"id": np.arange(ROWS), "v": vectors, "s": [f"t{i % 7}" for i in range(ROWS)]})
    lance.write_dataset(table, str(path), max_rows_per_file=170, enable_stable_row_ids=stable)
    lance.dataset(str(path)).delete("id % 19 = 4")
    return str(path)


def same(uri: str, **options: Any) -> pa.Table:
    ours = dataset(uri).to_table(**options)
    theirs = lance.dataset(uri).to_table(**options)
    assert ours.column_names == theirs.column_names
    if "id" in ours.column_names:
        assert ours["id"].to_pylist() == theirs["id"].to_pylist()
    if "_distance" in ours.column_names:
        np.testing.assert_allclose(ours["_distance"], theirs["_distance"], rtol=1e-4, atol=2e-5)
    return ours


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "u1"])
@pytest.mark.parametrize("metric", [None, "l2", "Cosine", "dot", "euclidean", "hamming"])
def test_metrics_and_types(tmp_path: Path, dtype: str, metric: str | None) -> None:
    uri = make(tmp_path / "t.lance", dtype)
    q = dataset(uri).take([40])["v"][0].values.to_numpy(zero_copy_only=False)
    nearest = {"column": "v", "q": q, "k": 12} | ({"metric": metric} if metric else {})
    if (dtype == "u1") != (metric in ("hamming", None) if dtype == "u1" else metric == "hamming"):
        for table in (dataset(uri), lance.dataset(uri)):
            with pytest.raises(ValueError, match="istance"):
                table.to_table(nearest=nearest)
        return
    found = same(uri, columns=["id", "_distance"], nearest=nearest)
    assert found.num_rows == 12
    assert same(uri, columns=["id", "_distance"], nearest={**nearest, "k": 10_000}).num_rows > 500


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
def test_filters_projections_and_bounds(tmp_path: Path, stable: bool) -> None:
    uri = make(tmp_path / "t.lance", stable=stable)
    q = np.full(DIMENSION, 0.4, np.float32)
    nearest = {"column": "v", "q": q, "k": 20}
    same(uri, nearest=nearest)
    same(uri, nearest={"column": "v", "q": q})
    same(uri, columns=["id"], nearest=nearest)
    same(uri, columns=["_distance", "s", "id"], nearest=nearest)
    same(uri, columns={"id": "id", "far": "_distance * 2"}, nearest=nearest)
    same(uri, columns=["id"], nearest=nearest, with_row_id=True)
    same(uri, columns=["id"], nearest=nearest, filter="s = 't3'")
    assert same(uri, columns=["id"], nearest=nearest, filter="s = 't3'", prefilter=True).num_rows == 20
    same(uri, columns=["id"], nearest=nearest, filter="_distance < 1.2")
    same(uri, columns=["id"], nearest=nearest, limit=3, offset=2)
    same(uri, columns=["id"], nearest=nearest, limit=3, filter="s != 't1'")
    bounded = {**nearest, "distance_range": (1.0, 1.3)}
    assert min(same(uri, columns=["id"], nearest=bounded)["_distance"].to_pylist()) >= 1.0
    same(uri, columns=["id"], nearest={**nearest, "distance_range": (None, 1.1)})
    same(uri, columns=["id"], nearest={**nearest, "q": np.stack([q, q * 2])})
    assert dataset(uri).scanner(nearest=nearest).count_rows() == 20
    assert "KNNVectorDistance" in dataset(uri).scanner(nearest=nearest).explain_plan()
    batches = [*dataset(uri).to_batches(["id"], nearest=nearest, batch_size=6)]
    assert [batch.num_rows for batch in batches] == [6, 6, 6, 2]


def test_a_part_of_the_fragments(tmp_path: Path) -> None:
    table = dataset(make(tmp_path / "t.lance"))
    nearest = {"column": "v", "q": np.zeros(DIMENSION), "k": 5}
    found = table.to_table(["id"], nearest=nearest, fragments=table.get_fragments()[1:2])
    assert all(170 <= number < 340 for number in found["id"].to_pylist())


def test_refusals(tmp_path: Path) -> None:
    table: LanceDataset = dataset(make(tmp_path / "t.lance"))
    q = np.zeros(DIMENSION)
    for wrong in (
        {"column": "v"},
        {"column": "v", "q": q[:3]},
        {"column": "id", "q": q},
        {"column": "no", "q": q},
        {"column": "v", "q": q, "k": 0},
        {"column": "v", "q": q, "metric": "manhattan"},
        {"column": "v", "q": q, "nprobes": 0},
        {"column": "v", "q": ["x"]},
        {"column": "v", "q": q * np.nan},
        {"column": "v", "q": q, "distance_range": 3},
        {"column": "v", "q": q, "minimum_nprobes": 5, "maximum_nprobes": 2},
        [1],
    ):
        with pytest.raises(InputError):
            table.scanner(nearest=wrong)
    with pytest.raises(TypeError, match="unexpected key"):
        table.scanner(nearest={"column": "v", "q": q, "colour": 1})
