"""Indices of old releases: their kinds are told, they are searched as the official library does, and nothing warns."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pytest

import lance_core
from tests.compatibility.old_tables import releases, unpack
from tests.compatibility.questions import differences

Q = np.linspace(-1, 1, 8).astype(np.float32)


VECTOR_KINDS = {
    "ivf-pq": "IVF_PQ",
    "ivf-pq-cosine": "IVF_PQ",
    "ivf-pq-dot": "IVF_PQ",
    "ivf-pq-optimised": "IVF_PQ",
    "ivf-flat": "IVF_FLAT",
    "ivf-sq": "IVF_SQ",
    "ivf-rq": "IVF_RQ",
    "ivf-hnsw-pq": "IVF_HNSW_PQ",
    "ivf-hnsw-sq": "IVF_HNSW_SQ",
    "ivf-hnsw-flat": "IVF_HNSW_FLAT",
}
SEARCHES: tuple[dict[str, Any], ...] = (
    {"nprobes": 1},
    {"nprobes": 2},
    {"nprobes": 2, "refine_factor": 5},
    {"nprobes": 2, "metric": "l2"},
    {"nprobes": 2, "metric": "cosine"},
)
NOT_SEARCHED = {"ivf-hnsw-pq": (0, 25), "ivf-hnsw-sq": (0, 17)}
"""Graphs of older releases are refused by the official library, or every row is measured (but HNSW_SQ up to 0.13)."""


def numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def is_searched(release: str, name: str) -> bool:
    """Whether the index is one that is searched; releases before 0.8 are asked to upgrade by the official library."""
    if name == "ivf-hnsw-sq" and numbers(release) < (0, 14):
        return True
    return numbers(release) >= max((0, 8), NOT_SEARCHED.get(name, (0, 8)))


def are_tied(ours: Any, theirs: Any, nearest: dict[str, Any]) -> bool:
    """Whether other candidates were chosen because codes say that some are equally far: which are the last is by chance."""
    few, many = ({"columns": ["id"], "fast_search": True, "nearest": {**nearest, "k": k}} for k in (8, 30))
    found = theirs.to_table(**many)
    far = dict(zip(found.column("id").to_pylist(), found.column("_distance").to_pylist(), strict=True))
    mine, wanted = (set(dataset.to_table(**few).column("id").to_pylist()) for dataset in (ours, theirs))
    told = [far.get(row, np.inf) for row in mine ^ wanted]
    return bool(told) and max(told) - min(told) <= 1e-5 * abs(max(told))


def compare(path: Path, release: str) -> list[str]:
    """Where the libraries answer otherwise about the vector index of a table: other rows, or other distances."""
    ours, theirs = lance_core.dataset(str(path)), lance.dataset(path)
    problems = []
    used = "vector_idx" in ours.scanner(nearest={"column": "vector", "q": Q, "k": 8}).explain_plan()
    if used is not is_searched(release, path.name):
        problems.append(f"searched by index: {used}")
    for options in SEARCHES:
        nearest = {"column": "vector", "q": Q, "k": 8, **options}
        # Codes of one bit a number, and bytes of a query that is rounded there and not here: near rows may change places.
        most = 2 if path.name.endswith(("-rq", "-sq")) else 0
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            got = ours.to_table(["id"], nearest=nearest)
        try:
            expected = theirs.to_table(columns=["id"], nearest=nearest)
        except (OSError, ValueError, RuntimeError):
            continue
        ids, wanted = got.column("id").to_pylist(), expected.column("id").to_pylist()
        if len(ids) != len(wanted) or (len(set(wanted) - set(ids)) > most and not are_tied(ours, theirs, nearest)):
            problems.append(f"{options}: {ids}, expected {wanted}")
        far = dict(zip(wanted, expected.column("_distance").to_numpy(), strict=True))
        for row, distance in zip(ids, got.column("_distance").to_numpy(), strict=True):
            # Rows that no index covers came later, so every distance was measured.
            if row in far and abs(distance - far[row]) > 1e-4 * abs(far[row]) + 1e-5:
                problems.append(f"{options}: row {row} is {distance} away, expected {far[row]}")
    return problems


@pytest.mark.parametrize(
    ("release", "name"),
    [
        ("0.7.5", "ivf-pq"),
        ("0.8.0", "ivf-pq-dot"),
        ("0.8.21", "ivf-pq-optimised"),
        ("0.9.19", "ivf-pq-cosine"),
        ("0.10.18", "ivf-hnsw-sq"),
        ("0.12.3", "ivf-hnsw-sq"),
        ("0.18.2", "ivf-hnsw-pq"),
        ("0.24.1", "ivf-hnsw-pq"),
        ("0.28.0", "ivf-hnsw-pq"),
        ("0.29.0", "ivf-pq-cosine"),
        ("0.30.0", "ivf-pq-dot"),
        ("0.38.3", "ivf-rq"),
        ("0.39.0", "ivf-flat"),
        ("6.1.0", "ivf-pq-cosine"),
        ("6.1.0", "ivf-hnsw-flat"),
        ("7.1.0", "ivf-rq"),
        ("9.0.1", "ivf-hnsw-pq"),
    ],
)
def test_vector_indices_of_old_releases_are_searched(release: str, name: str, tmp_path: Path) -> None:
    unpack(release, tmp_path)
    (index,) = lance_core.dataset(str(tmp_path / name)).describe_indices()
    assert index.index_type == VECTOR_KINDS[name]
    assert not compare(tmp_path / name, release)


@pytest.mark.slow
@pytest.mark.parametrize("release", releases())
def test_all_vector_indices_of_old_releases_are_searched(release: str, tmp_path: Path) -> None:
    made = unpack(release, tmp_path)
    found = [f"{name}: {problem}" for name in made if name in VECTOR_KINDS for problem in compare(tmp_path / name, release)]
    assert not found, "\n".join(found[:20])


@pytest.mark.parametrize(
    ("release", "name", "compared"),
    [
        ("0.8.0", "ivf-pq-cosine", 1),
        ("0.13.0", "ivf-hnsw-sq", 1),
        ("0.29.0", "ivf-hnsw-pq", 1),
        ("0.10.18", "ivf-pq-dot", 0),
        ("2.0.1", "ivf-rq", 0),
    ],
)
def test_old_vector_indices_are_compared_and_prewarmed(release: str, name: str, compared: int, tmp_path: Path) -> None:
    unpack(release, tmp_path)
    dataset = lance_core.dataset(str(tmp_path / name))
    assert dataset.check_indices() == compared
    dataset.prewarm_index("vector_idx")
    assert dataset.index_statistics("vector_idx")["indices"][0]["num_partitions"] == 2


@pytest.mark.parametrize("kind", ["l2", "cosine"])
def test_damaged_files_of_the_first_layout_are_left_out(kind: str, tmp_path: Path) -> None:
    unpack("0.21.0", tmp_path)
    path = tmp_path / ("ivf-pq" if kind == "l2" else f"ivf-pq-{kind}")
    (file,) = path.glob("_indices/*/index.idx")
    data = bytearray(file.read_bytes())
    data[:400] = b"\xff" * 400  # codes of the first partition
    file.write_bytes(data)
    nearest = {"column": "vector", "q": Q, "k": 8, "nprobes": 2}
    with pytest.warns(RuntimeWarning, match="vector_idx"):
        found = lance_core.dataset(str(path)).to_table(["id"], nearest=nearest, unsealed_indices="compare")
    flat = lance.dataset(path).to_table(columns=["id"], nearest={**nearest, "use_index": False, "metric": kind})
    assert found.column("id").to_pylist() == flat.column("id").to_pylist()


@pytest.mark.parametrize("release", ["0.21.0", "0.34.0", "4.0.2", "8.0.1"])
def test_scalar_indices_of_old_releases(release: str, tmp_path: Path) -> None:
    unpack(release, tmp_path)
    assert not list(differences(tmp_path / "indices", every_version=False))
    dataset = lance_core.dataset(str(tmp_path / "indices"))
    assert "number_idx" in dataset.scanner(filter="number = 37").explain_plan()
    assert "few_idx" in dataset.scanner(filter="few = 'v1'").explain_plan()
    assert dataset.check_indices(["number_idx", "few_idx"]) == 2


@pytest.mark.parametrize(
    ("release", "name"),
    [
        ("0.30.0", "ivf-pq-dot"),
        ("0.18.2", "ivf-hnsw-sq"),
        ("6.1.0", "ivf-pq-cosine"),
        ("0.8.21", "ivf-pq-dot"),
        ("0.13.0", "ivf-hnsw-sq"),
        ("2.0.1", "ivf-rq"),
    ],
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
