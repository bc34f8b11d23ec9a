"""200k vectors of 768 float32 in clusters: IVF_PQ built (256 partitions, 96 sub-vectors), the nearest ten found."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lance_core
from bench.measure import Case

DIMENSION, K, PROBES, QUERIES = 768, 10, 20, 50
JUDGED = 400
"""Queries that recall is taken over: two trainings differ by chance in the second digit over fewer."""
CLUSTERS = 2000


def cases(folder: Path, scale: float) -> Iterator[Case]:
    """Build once each, search by index, search by scan; recall is noted beside the searches."""
    rows = int(200_000 * scale)
    uris = {name: str(folder / f"{name}.lance") for name in ("lance_core", "pylance")}
    judged, truth = _write(uris, rows)
    queries = judged[:QUERIES]
    parameters: dict[str, Any] = {
        "index_type": "IVF_PQ",
        "num_partitions": max(4, int(256 * min(1.0, scale * 2))),
        "num_sub_vectors": 96,
        "replace": True,
    }
    yield Case(
        "build IVF_PQ",
        {
            "lance_core": lambda: lance_core.dataset(uris["lance_core"]).create_index("vector", **parameters),
            "pylance": lambda: lance.dataset(uris["pylance"]).create_index("vector", **parameters),
        },
        num_bytes=rows * DIMENSION * 4,
        rows=rows,
        repeats=1,
    )
    tables = {"lance_core": lance_core.dataset(uris["lance_core"]), "pylance": lance.dataset(uris["pylance"])}
    for name, options in (
        ("nearest 10, nprobes 20", {"nprobes": PROBES}),
        ("nearest 10, nprobes 20, refine 5", {"nprobes": PROBES, "refine_factor": 5}),
        ("nearest 10, nprobes 20, refine 10", {"nprobes": PROBES, "refine_factor": 10}),
    ):
        yield Case(
            f"{name} ({QUERIES} queries)",
            {who: _run(table, queries, options) for who, table in tables.items()},
            notes={f"recall@10 of {who}": _recall(table, judged, truth, options) for who, table in tables.items()},
        )
    flat = {"use_index": False}
    yield Case("nearest 10, every row", {who: _run(table, queries[:1], flat) for who, table in tables.items()})


def _write(uris: Mapping[str, str], rows: int) -> tuple[np.ndarray, list[list[int]]]:
    """Write the tables; queries, and the rows that are truly nearest to each."""
    rng = np.random.default_rng(2)
    centers = rng.normal(size=(CLUSTERS, DIMENSION)).astype(np.float32)
    values = centers[rng.integers(0, CLUSTERS, rows)]
    values += rng.normal(size=values.shape).astype(np.float32) * np.float32(0.7)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), DIMENSION)
    table = pa.table({"id": pa.array(np.arange(rows)), "vector": vectors})
    first, *others = uris.values()
    lance.write_dataset(table, first, mode="overwrite", max_rows_per_file=100_000)
    for other in others:
        shutil.copytree(first, other, dirs_exist_ok=True)
    noise = rng.normal(size=(JUDGED, DIMENSION)).astype(np.float32) * np.float32(0.7)
    queries: np.ndarray = centers[rng.integers(0, CLUSTERS, JUDGED)] + noise
    lengths = np.einsum("ij,ij->i", values, values)
    truth = []
    for first_query in range(0, JUDGED, 50):
        far = lengths - 2 * (queries[first_query : first_query + 50] @ values.T)
        truth.extend(np.argpartition(far, K, axis=1)[:, :K].tolist())
    return queries, truth


def _ids(table: Any, q: np.ndarray, options: Mapping[str, Any]) -> list[int]:
    nearest = {"column": "vector", "q": q, "k": K, **options}
    found = table.to_table(columns=["id"], nearest=nearest, disable_scoring_autoprojection=True)
    return [*found["id"].to_pylist()]


def _run(table: Any, queries: np.ndarray, options: Mapping[str, Any]) -> Any:
    return lambda: [_ids(table, q, options) for q in queries]


def _recall(table: Any, queries: np.ndarray, truth: list[list[int]], options: Mapping[str, Any]) -> float:
    hits = sum(len(set(_ids(table, q, options)) & set(true)) for q, true in zip(queries, truth, strict=True))
    return hits / (K * len(queries))
