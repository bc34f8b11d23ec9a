"""Limits and offsets of searches of vectors and of text, with and without an index, as the official library applies them."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InputError

ROWS, SIZE = 300, 4
BOUNDS: list[dict[str, Any]] = [
    {},
    {"limit": 0},
    {"limit": 2},
    {"limit": 7},
    {"offset": 3},
    {"offset": 5},
    {"offset": 400},
    {"limit": 0, "offset": 2},
    {"limit": 2, "offset": 4},
    {"limit": 2, "offset": 400},
    {"limit": 3, "filter": "a > 50", "prefilter": True},
    {"limit": 3, "filter": "a > 50"},
    {"limit": 0, "filter": "a > 50"},
    {"offset": 9, "filter": "a > 50"},
]


def _vectors(kind: Any, rows: int = ROWS, size: int = SIZE) -> pa.Array[Any]:
    numbers = np.random.default_rng(3).integers(-100 if kind == np.int8 else 0, 100, rows * size).astype(kind)
    return pa.FixedSizeListArray.from_arrays(pa.array(numbers), size)


@pytest.fixture(scope="module", params=[False, True], ids=["scan", "index"])
def searched(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp("bounds") / "t.lance")
    texts = ["some words" + " more" * (number % 9) for number in range(ROWS)]
    lance.write_dataset(pa.table({"a": range(ROWS), "t": texts, "v": _vectors(np.float32)}), uri, max_rows_per_file=100)
    if request.param:
        lance.dataset(uri).create_scalar_index("t", "INVERTED")
        lance.dataset(uri).create_index("v", "IVF_FLAT", num_partitions=1)
    return uri


def _rows(library: Any, uri: str, **options: Any) -> list[Any]:
    """The rows found; those of a limit of zero, which the official library cannot plan, are none."""
    if library is lance and options.get("limit") == 0:
        return []
    found = library.dataset(uri).to_table(columns=["a"], **options)
    return [tuple(row.values())[:-1] for row in found.to_pylist()]


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@pytest.mark.parametrize("queries", [1, 2, 3])
def test_bounds_of_nearest_rows(searched: str, bounds: dict[str, Any], queries: int) -> None:
    q = np.linspace(1, 90, queries * SIZE, dtype=np.float32).reshape(queries, SIZE)
    nearest = {"column": "v", "q": q[0] if queries == 1 else q, "k": 5}
    found = _rows(lance_core, searched, nearest=nearest, **bounds)
    assert found == _rows(lance, searched, nearest=nearest, **bounds)


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_bounds_of_text_searches(searched: str, bounds: dict[str, Any]) -> None:
    """Of rows with one score any may come first, so that their number is compared."""
    query = {"columns": ["t"], "query": "words"}
    found = _rows(lance_core, searched, full_text_query=query, **bounds)
    assert len(found) == len(_rows(lance, searched, full_text_query=query, **bounds))


@pytest.mark.parametrize("columns", [["a"], []])
def test_an_offset_beyond_the_end_keeps_the_columns(searched: str, columns: list[str]) -> None:
    nearest = {"column": "v", "q": np.zeros(SIZE, np.float32), "k": 5}
    found = lance_core.dataset(searched).to_table(columns=columns, nearest=nearest, offset=9)
    assert found.num_rows == 0
    assert found.schema == lance_core.dataset(searched).to_table(columns=columns, nearest=nearest).schema


def test_official_graphs_over_bytes(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"a": range(600), "v": _vectors(np.uint8, 600, 8)}), uri)
    lance.dataset(uri).create_index("v", "IVF_HNSW_FLAT", metric="hamming", num_partitions=2)
    for number in range(5):
        q = np.random.default_rng(number).integers(0, 100, 8).astype(np.uint8)
        nearest = {"column": "v", "q": q, "k": 5, "nprobes": 2}
        exact = lance_core.dataset(uri).to_table(columns=["a"], nearest={**nearest, "use_index": False})
        found = lance_core.dataset(uri).to_table(columns=["a"], nearest=nearest)
        assert found["_distance"].to_pylist() == exact["_distance"].to_pylist()
        theirs = lance.dataset(uri).to_table(columns=["a"], nearest={**nearest, "ef": 200})
        assert sorted(found["_distance"].to_pylist()) == sorted(theirs["_distance"].to_pylist())


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_HNSW_FLAT"])
def test_int8_by_cosine_is_refused_where_unit_vectors_are_stored(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "t.lance")
    ds = lance_core.write_dataset(pa.table({"a": range(600), "v": _vectors(np.int8, 600, 8)}), uri)
    with pytest.raises(InputError, match="IVF_PQ, IVF_SQ"):
        ds.create_index("v", kind, metric="cosine", num_partitions=2)
    assert not lance_core.dataset(uri).list_indices()
    nearest = {"column": "v", "q": [3, -9, 7, 0, 0, 1, 2, 50], "k": 5, "metric": "cosine", "nprobes": 2}
    exact = ds.to_table(columns=["a"], nearest={**nearest, "use_index": False})
    # One that an earlier release has built is passed over.
    importlib.import_module("lance_core.dataset.indexing.maintain")  # it takes the function by name, before it is replaced
    with monkeypatch.context() as patch:
        patch.setattr("lance_core.dataset.indexing.vector_build.is_unstorable", lambda *_: False)
        ds.create_index("v", kind, metric="cosine", num_partitions=2)
    with pytest.warns(RuntimeWarning, match="length one"):
        found = lance_core.dataset(uri).to_table(columns=["a"], nearest=nearest)
    assert found.equals(exact)
    # Nor does upkeep spend anything on it.
    grown = lance_core.write_dataset(pa.table({"a": range(600, 620), "v": _vectors(np.int8, 20, 8)}), uri, mode="append")
    for options in ({}, {"num_indices_to_merge": 0}, {"retrain": True}):
        with pytest.warns(RuntimeWarning, match="left as it is"):
            grown.optimize.optimize_indices(**options)
        assert lance_core.dataset(uri).version == grown.version


@pytest.mark.parametrize("kind", ["IVF_PQ", "IVF_SQ", "IVF_RQ", "IVF_HNSW_PQ", "IVF_HNSW_SQ"])
def test_the_kinds_that_the_refusal_names_find_int8_by_cosine(tmp_path: Path, kind: str) -> None:
    uri = str(tmp_path / "t.lance")
    ds = lance_core.write_dataset(pa.table({"a": range(600), "v": _vectors(np.int8, 600, 8)}), uri)
    options = {"num_sub_vectors": 8} if kind.endswith("PQ") else {}
    ds.create_index("v", kind, metric="cosine", num_partitions=2, **options)
    nearest = {"column": "v", "q": [3, -9, 7, 0, 0, 1, 2, 50], "k": 10, "metric": "cosine"}
    exact = ds.to_table(columns=["a"], nearest={**nearest, "use_index": False})["a"].to_pylist()
    found = ds.to_table(columns=["a"], nearest={**nearest, "nprobes": 2, "refine_factor": 10})["a"].to_pylist()
    assert len({*found} & {*exact}) >= 9
