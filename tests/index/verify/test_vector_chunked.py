"""The pieces of vector indices by themselves: bits laid out and back, clusters, graphs, masks of fragments."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_core.errors import CorruptFileError
from lance_core.index.vector import graph
from lance_core.index.vector.clustering import encode, owners_of, train, train_products
from lance_core.index.vector.model import model_from_bytes, train_model
from lance_core.index.vector.parameters import VectorParameters
from lance_core.index.vector.quantizers.rabit import pack_levels, pack_signs, unpack_levels, unpack_signs
from lance_core.index.vector.quantizers.rabit import train as train_rabit
from lance_core.kernels.rabit import LANES, rotate_rows


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 90), st.integers(1, 20), st.integers(0, 2**32 - 1))
def test_signs_come_back(count: int, width: int, seed: int) -> None:
    rows = np.random.default_rng(seed).integers(0, 256, (count, width), np.uint8)
    np.testing.assert_array_equal(unpack_signs(pack_signs(rows)), rows)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 9), st.integers(1, 150), st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_levels_come_back(count: int, dim: int, bits: int, seed: int) -> None:
    levels = np.random.default_rng(seed).integers(0, 1 << bits, (count, dim), np.uint8)
    packed = pack_levels(levels, bits)
    assert packed.shape == (count, -(-dim // 64) * 8 * bits)
    np.testing.assert_array_equal(unpack_levels(packed, bits, dim), levels)


@pytest.mark.parametrize("dim", [8, 16, 24, 72, 128])
def test_rotations_keep_lengths(dim: int) -> None:
    rng = np.random.default_rng(dim)
    rows = rng.normal(size=(5, dim)).astype(np.float32)
    turned = rows.copy()
    signs = rng.integers(0, 256, 4 * (dim // 8), np.uint8)
    assert rotate_rows(turned.reshape(-1), signs, dim) == 5
    np.testing.assert_allclose(turned @ turned.T, rows @ rows.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("num", [7, 600])
def test_clusters(num: int) -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(4000, 6)).astype(np.float32)
    centroids, loss = train(rows, num)
    assert centroids.shape == (num, 6) and np.isfinite(centroids).all()
    owners, far = owners_of(rows, centroids)
    brute = np.square(rows[:, None] - centroids[None]).sum(axis=2)
    np.testing.assert_array_equal(owners, brute.argmin(axis=1))
    np.testing.assert_allclose(far, brute.min(axis=1), atol=1e-4)
    assert far.sum() <= loss * 1.001 < np.square(rows - rows.mean(axis=0)).sum()


def test_more_centroids_than_rows() -> None:
    centroids, _ = train(np.ones((3, 4), np.float32), 10)
    assert centroids.shape == (10, 4) and np.isfinite(centroids).all()


def test_products_are_the_nearest() -> None:
    rows = np.random.default_rng(2).normal(size=(700, 8)).astype(np.float32)
    book = train_products(rows, 4, 16)
    codes = encode(rows, book)
    brute = np.square(rows.reshape(700, 4, 2, 1) - book[None]).sum(axis=2).argmin(axis=2)
    assert (codes == brute).mean() > 0.999


def reached(made: graph.Graph) -> int:
    """Rows that edges of level 0 lead to from the entry."""
    seen, waiting = {made.entry}, [made.entry]
    while waiting:
        node = waiting.pop()
        fresh = {*made.neighbours[made.offsets[node] : made.offsets[node + 1]].tolist()} - seen
        seen |= fresh
        waiting += fresh
    return len(seen)


def test_rows_with_short_vectors_are_reached_too() -> None:
    """By product everybody's neighbours are the longest rows: edges to the others were cut."""
    rows = np.random.default_rng(1).normal(size=(800, 2)).astype(np.float32)
    for m in (4, 20):
        made = graph.build(rows, "dot", VectorParameters("IVF_HNSW_FLAT", "dot", 1, m=m, ef_construction=100), seed=1)
        assert reached(made) == 800
        counts = np.diff(made.offsets)
        assert counts.max() <= 2 * m
        for node in range(800):
            far = made.apart[made.offsets[node] : made.offsets[node + 1]]
            assert (np.diff(far) >= 0).all(), "nearest first"


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 60), st.integers(0, 2**16), st.sampled_from(["l2", "dot"]))
def test_a_wide_walk_finds_everything(num: int, seed: int, metric: str) -> None:
    rows = np.random.default_rng(seed).normal(size=(num, 5)).astype(np.float32)
    made = graph.build(rows, metric, VectorParameters("IVF_HNSW_FLAT", metric, 1, m=4, ef_construction=20), seed=seed)
    q = rows[seed % num]
    mode = int(metric == "dot")
    places, far = made.walk(graph.Access(mode, q, 5, rows=rows.reshape(-1)), k=num, ef=num, kept=None)
    brute = -(rows @ q) if mode else np.square(rows - q).sum(axis=1)
    assert len({*places.tolist()}) == len(places)
    # Every row is reached from the entry; the walk may start elsewhere on level 0, where products lead to few rows.
    assert reached(made) == num and (metric == "dot" or len(places) >= num - 1 - num // 20)
    np.testing.assert_allclose(far, brute[places], atol=1e-4)
    assert (np.diff(far) >= 0).all()


def test_models_travel() -> None:
    rows = np.random.default_rng(3).normal(size=(600, 8)).astype(np.float32)
    for kind, options in (
        ("IVF_PQ", {"num_bits": 8, "num_sub_vectors": 2}),
        ("IVF_SQ", {"num_bits": 8}),
        ("IVF_RQ", {"num_bits": 5}),
    ):
        model = train_model(VectorParameters(kind, "cosine", 3, **options), rows, element=np.dtype(np.float32))
        again = model_from_bytes(model.to_bytes())
        assert again.parameters == model.parameters
        np.testing.assert_array_equal(again.centroids, model.centroids)
        assert again.quantizer.storage() == model.quantizer.storage()
    for damaged in (b"", b"nonsense", model.to_bytes()[:200]):
        with pytest.raises(CorruptFileError):
            model_from_bytes(damaged)


@pytest.mark.parametrize("dim", [8, 104, 256])
def test_many_rows_are_rotated_as_one_is(dim: int) -> None:
    quantizer = train_rabit(dim, 1, "l2", np.random.default_rng(1))
    rows = np.random.default_rng(2).normal(size=(2 * LANES + 7, dim)).astype(np.float32)
    one_by_one = np.concatenate([quantizer.rotate(row[None, :]) for row in rows])
    np.testing.assert_array_equal(quantizer.rotate(rows), one_by_one)
    np.testing.assert_allclose(np.linalg.norm(one_by_one, axis=1), np.linalg.norm(rows, axis=1), rtol=1e-5)
