"""Indices of old releases: their kinds are told, they are searched where their layout is known, and nothing warns."""

from __future__ import annotations

import warnings
from pathlib import Path

import lance
import numpy as np
import pytest

import lance_core
from tests.compatibility.old_tables import unpack
from tests.compatibility.questions import differences

Q = np.linspace(-1, 1, 8).astype(np.float32)


@pytest.mark.parametrize(
    ("release", "name", "kind", "is_searched"),
    [
        ("0.8.21", "ivf-pq", "IVF_PQ", False),
        ("0.24.1", "ivf-pq-cosine", "IVF_PQ", False),
        ("0.21.0", "ivf-pq-dot", "IVF_PQ", False),
        ("0.18.2", "ivf-hnsw-sq", "IVF_HNSW_SQ", True),
        ("0.30.0", "ivf-pq-dot", "IVF_PQ", True),
        ("0.39.0", "ivf-flat", "IVF_FLAT", True),
        ("6.1.0", "ivf-pq-cosine", "IVF_PQ", True),
        ("6.1.0", "ivf-hnsw-flat", "IVF_HNSW_FLAT", True),
        ("9.0.1", "ivf-hnsw-pq", "IVF_HNSW_PQ", True),
    ],
)
def test_vector_indices_of_old_releases(release: str, name: str, kind: str, is_searched: bool, tmp_path: Path) -> None:
    unpack(release, tmp_path)
    dataset = lance_core.dataset(str(tmp_path / name))
    (index,) = dataset.describe_indices()
    assert index.index_type == kind
    nearest = {"column": "vector", "q": Q, "k": 8, "nprobes": 64, "refine_factor": 20}
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        plan = dataset.scanner(nearest=nearest).explain_plan()
        found = dataset.to_table(["id"], nearest=nearest)
    assert ("vector_idx" in plan) is is_searched
    expected = lance.dataset(tmp_path / name).to_table(columns=["id"], nearest=nearest)
    assert found.column("id").to_pylist() == expected.column("id").to_pylist()
    # Distances are measured as the index does, searched or not.
    np.testing.assert_allclose(found.column("_distance"), expected.column("_distance"), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("release", ["0.21.0", "0.34.0", "4.0.2", "8.0.1"])
def test_scalar_indices_of_old_releases(release: str, tmp_path: Path) -> None:
    unpack(release, tmp_path)
    assert not list(differences(tmp_path / "indices", every_version=False))
    dataset = lance_core.dataset(str(tmp_path / "indices"))
    assert "number_idx" in dataset.scanner(filter="number = 37").explain_plan()
    assert "few_idx" in dataset.scanner(filter="few = 'v1'").explain_plan()
    assert dataset.check_indices(["number_idx", "few_idx"]) == 2


@pytest.mark.parametrize(
    ("release", "name"), [("0.30.0", "ivf-pq-dot"), ("0.18.2", "ivf-hnsw-sq"), ("6.1.0", "ivf-pq-cosine")]
)
def test_old_vector_indices_are_extended_and_moved(release: str, name: str, tmp_path: Path) -> None:
    unpack(release, tmp_path)
    path = tmp_path / name
    lance_core.dataset(str(path)).optimize.optimize_indices()
    lance_core.dataset(str(path)).optimize.compact_files()
    (described,) = lance_core.dataset(str(path)).describe_indices()
    assert described.num_rows_indexed == lance.dataset(path).count_rows()
    (theirs,) = lance.dataset(path).describe_indices()
    assert theirs.index_type == described.index_type
    assert not list(differences(path, every_version=False))
