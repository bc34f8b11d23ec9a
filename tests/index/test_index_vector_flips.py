"""Flipped bits in vector indices of the official library, which have no checksums: found, or without effect."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.dataset.handle.open import dataset
from lance_core.index.vector.parameters import KINDS as VECTOR_KINDS
from lance_core.io.cache import shared_cache
from tests.index.bit_flips import ask_flipped

COUNT, DIMENSION, K = 400, 16, 10
QUERIES = np.random.default_rng(9).normal(size=(6, DIMENSION)).astype(np.float32)
METRICS = dict(zip(VECTOR_KINDS, ("l2", "cosine", "dot") * 3, strict=False))


def make(uri: str, kind: str, metric: str, **given: Any) -> str:
    values = np.random.default_rng(1).normal(size=(COUNT, DIMENSION)).astype(np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), DIMENSION)
    table = lance.write_dataset(pa.table({"x": np.arange(COUNT), "v": vectors}), uri, max_rows_per_file=COUNT // 2)
    options: dict[str, Any] = {"num_partitions": 4, **({"num_sub_vectors": 4} if "PQ" in kind else {}), **given}
    table.create_index("v", kind, metric=metric, **options)
    table.delete("x % 17 = 4")
    return uri


def ask(uri: str, **options: Any) -> list[dict[int, float]]:
    table, found = dataset(uri), []
    for q in QUERIES:
        nearest = {"column": "v", "q": q, "k": K, "nprobes": 4, "ef": 300, **options}
        told = table.to_table(["x", "_distance"], nearest=nearest, unsealed_indices="compare")
        found.append(dict(zip(told["x"].to_pylist(), told["_distance"].to_pylist(), strict=True)))
    return found


def apart(mine: dict[int, float], theirs: dict[int, float]) -> float:
    """How far the distances of the same rows are apart, as a share of the largest."""
    scale = max(abs(value) for value in theirs.values())
    return max((abs(mine[row] - theirs[row]) / scale for row in mine.keys() & theirs.keys()), default=0.0)


def differs(found: list[dict[int, float]], intact: list[dict[int, float]], own: float) -> bool:
    """Whether rows of the intact answer lack, or a distance is another, by more than the codes' `own` error."""
    for mine, theirs in zip(found, intact, strict=True):
        most = 1 if own < 0.01 else 2
        if len(mine.keys() & theirs.keys()) < K - most or len(mine) != K or apart(mine, theirs) > max(own, 0.01):
            return True
    return False


def flip(uri: str, metric: str, count: int, seed: str) -> tuple[int, int]:
    """(flips that were noticed, flips that were not and changed an answer)."""
    rng, noticed, wrong = random.Random(seed), 0, 0
    shared_cache().clear()
    intact, scanned = ask(uri), ask(uri, use_index=False, metric=metric)
    # Codes stand for vectors with an error; who trusts the codes of an intact index must live with as much.
    own = max(apart(mine, theirs) for mine, theirs in zip(intact, scanned, strict=True))
    files = sorted(Path(uri, "_indices").glob("*/*.idx"))
    for number in range(count):
        path = files[number % len(files)]
        found, is_noticed = ask_flipped(path, rng, lambda: ask(uri))
        if is_noticed:
            noticed += 1
            wrong += differs(found, scanned, 0.0)
        else:
            # A word of its metadata that is not known: then the index is for a later release, and rows are scanned.
            wrong += differs(found, intact, own) and differs(found, scanned, 0.0)
    return noticed, wrong


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_RQ"])
def test_flipped_bits_change_no_answer(tmp_path: Path, kind: str) -> None:
    noticed, wrong = flip(make(str(tmp_path / "t.lance"), kind, METRICS[kind]), METRICS[kind], 24, kind)
    assert noticed > 0 and wrong == 0, (noticed, wrong)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "bits", "metric"),
    [(kind, None, METRICS[kind]) for kind in VECTOR_KINDS]
    + [("IVF_RQ", bits, metric) for bits, metric in ((1, "l2"), (2, "cosine"), (4, "dot"), (8, "l2"))],
)
def test_many_flipped_bits_change_no_answer(tmp_path: Path, kind: str, bits: int | None, metric: str) -> None:
    uri = make(str(tmp_path / "t.lance"), kind, metric, **({} if bits is None else {"num_bits": bits}))
    noticed, wrong = flip(uri, metric, 400 if bits is None else 600, f"many {kind} {bits}")
    print(kind, bits, noticed, wrong)
    assert noticed > 0 and wrong == 0, (noticed, wrong)
