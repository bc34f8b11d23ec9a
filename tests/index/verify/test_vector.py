"""Vector indices of the official library agree with their vectors, handed over at once or in parts; damaged ones do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.dataset.handle.open import dataset
from lance_core.dataset.indexing.folder import folder_of, training_batches
from lance_core.dataset.indexing.verify import UNREADABLE
from lance_core.errors import CorruptFileError
from lance_core.format.index_details import Metric
from lance_core.format.schema import column_of
from lance_core.index.vector.distances import parse_metric
from lance_core.index.vector.parameters import KINDS
from lance_core.index.vector.searcher import OpenVectorIndex
from lance_core.index.vector.segment import Codes
from lance_core.index.vector.verify.graph_check import Ends, require_sound
from lance_core.index.vector.verify.rows import require_agreement

COUNT, METRICS = 900, ("l2", "cosine", "dot")
OFFICIAL_SEED = 4
SHAPES = (
    "normal", "clustered", "far", "dups", "dups only", "zeros", "sparse", "one hot", "tiny", "small", "huge", "heavy",
    "whole",
)  # fmt: skip


def shaped(shape: str, count: int, dim: int, dtype: str, rng: np.random.Generator) -> np.ndarray:
    """Rows of a kind that has its own way of being hard."""
    x = rng.normal(size=(count, dim))
    is_half = dtype == "f2"
    if shape == "clustered":
        x = rng.normal(size=(20, dim))[rng.integers(0, 20, count)] + 0.1 * x
    elif shape == "far":
        x = x + (10 if is_half else 100)
    elif shape == "dups":
        x[count // 2 :] = x[rng.integers(0, 20, count - count // 2)]
    elif shape == "dups only":
        x = x[rng.integers(0, 6, count)]
    elif shape == "zeros":
        x[: count // 10] = 0
    elif shape == "sparse":
        x *= rng.random((count, dim)) < 0.1
    elif shape == "one hot":
        x *= np.arange(dim) == rng.integers(0, dim, (count, 1))
    elif shape in ("tiny", "small", "huge"):
        x *= {"tiny": 1e-4 if is_half else 1e-8, "small": 1e-3, "huge": 100.0 if is_half else 1e8}[shape]
    elif shape == "heavy":
        x *= np.exp((1 if is_half else 2) * rng.normal(size=(count, 1)))
    elif shape == "whole":
        x = np.round(4 * x)
    return x.astype(dtype)


def table(rows: np.ndarray, first: int = 0, nulls: Sequence[int] = ()) -> pa.Table:
    mask = np.isin(np.arange(len(rows)), nulls)
    vectors = pa.FixedSizeListArray.from_arrays(
        pa.array(rows.ravel(), pa.from_numpy_dtype(rows.dtype)), rows.shape[1], mask=pa.array(mask)
    )
    return pa.table({"x": np.arange(first, first + len(rows)), "v": vectors})


def options_of(kind: str, **options: Any) -> dict[str, Any]:
    return {"num_partitions": 4, **({"num_sub_vectors": 4} if "PQ" in kind else {}), **options}


def opened(uri: str) -> list[tuple[OpenVectorIndex, list[pa.RecordBatch]]]:
    """Each segment with the rows it covers, in batches of a few hundred."""
    snapshot = dataset(uri)._snapshot
    found = []
    manifest = snapshot.manifest
    for index in manifest.indices:
        covered = [item for item in manifest.fragments if index.fragment_bitmap and item.id in index.fragment_bitmap]
        name = "_rowid" if manifest.uses_stable_row_ids else "_rowaddr"
        batches = [*training_batches(snapshot, column_of(manifest.schema, index.fields[0]), covered, name)]
        parts = [batch.slice(first, 170) for batch in batches for first in range(0, batch.num_rows, 170)]
        found.append((OpenVectorIndex(folder_of(snapshot, index)), parts))
    return found


def built(path: Path, rows: np.ndarray, kind: str, metric: str, **options: Any) -> str:
    uri = str(path / "t.lance")
    table_of_theirs = lance.write_dataset(table(rows), uri, mode="overwrite")
    table_of_theirs.create_index("v", kind, metric=metric, **options_of(kind, **options))
    return uri


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_whole_indices_agree_in_parts(tmp_path: Path, kind: str, stable: bool) -> None:
    rng = np.random.default_rng(OFFICIAL_SEED)
    for metric in METRICS if kind in ("IVF_PQ", "IVF_RQ") else METRICS[int(stable) :: 2]:
        uri = str(tmp_path / f"{metric}.lance")
        rows = shaped("clustered", COUNT, 16, "f4", rng)
        rows[7, 3] = np.nan
        options: dict[str, Any] = {"max_rows_per_file": 400, "enable_stable_row_ids": stable}
        theirs = lance.write_dataset(table(rows, nulls=[3, 500]), uri, **options)
        theirs.create_index("v", kind, metric=metric, **options_of(kind))
        theirs.delete("x % 11 = 2")
        lance.write_dataset(table(shaped("normal", 200, 16, "f4", rng), COUNT), uri, mode="append")
        theirs = lance.dataset(uri)
        # What is added later is coded in its own way with dot products.
        theirs.optimize.optimize_indices(num_indices_to_merge=0)
        segments = opened(uri)
        assert len(segments) == 2
        for segment, parts in segments:
            segment.verify_rows(parts)
            for part in parts:
                segment.verify_rows([part])
            segment.verify_rows([])


def refuses(segment: OpenVectorIndex, batches: Sequence[pa.RecordBatch]) -> bool:
    try:
        segment.verify_rows(batches)
    except (*UNREADABLE, ValueError, LookupError, ArithmeticError, TypeError):
        return True
    return False


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_SQ", "IVF_RQ", "IVF_HNSW_PQ"])
def test_parts_find_what_the_whole_finds(tmp_path: Path, kind: str) -> None:
    uri = built(tmp_path, shaped("normal", COUNT, 16, "f4", np.random.default_rng(1)), kind, "l2")
    ((_, parts),) = opened(uri)
    rng, found = np.random.default_rng(2), 0
    for path in sorted(Path(uri, "_indices").glob("*/*.idx")):
        whole = path.read_bytes()
        for _ in range(12):
            data = bytearray(whole)
            data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
            path.write_bytes(data)
            try:
                segment = opened(uri)[0][0]
            except UNREADABLE:
                continue
            at_once = refuses(segment, parts)
            # Graphs are looked at once only.
            segment._graphs_are_sound = False
            in_parts = [refuses(segment, [part]) for part in parts]
            # Among few rows fewer may be nearer to another centroid.
            assert any(in_parts) or not at_once
            found += at_once
        path.write_bytes(whole)
    assert found >= 4


def changed(codes: Codes, name: str, row: int, values: Any) -> Codes:
    column = codes.columns[name].copy()
    column[row] = values
    return replace(codes, columns={**codes.columns, name: column})


@pytest.mark.parametrize(("bits", "metric"), [(1, "l2"), (2, "cosine"), (4, "dot"), (8, "l2")])
def test_factors_signs_and_levels_of_rabit_codes(tmp_path: Path, bits: int, metric: str) -> None:
    uri = built(tmp_path, shaped("normal", COUNT, 32, "f4", np.random.default_rng(1)), "IVF_RQ", metric, num_bits=bits)
    ((segment, batches),) = opened(uri)
    (codes,) = segment.codes()
    told: Metric = parse_metric(metric)

    def agree(changes: Codes) -> None:
        require_agreement(told, segment.quantizer, segment.centroids, [changes], batches)

    agree(codes)
    names = [name for name in codes.columns if "factors" in name]
    assert len(names) == (3 if bits == 1 else 5)
    for name in names:
        row = int(np.abs(codes.columns[name]).argmax())
        for factor in (1.01, 0.99, -1.0, 0.0, np.nan, np.inf):
            with pytest.raises(CorruptFileError, match="codes"):
                agree(changed(codes, name, row, codes.columns[name][row] * np.float32(factor)))
    seen = {"_rabit_codes": 0, "__blocked_ex_codes": 0}
    for at in range(32):
        for name in seen.keys() & codes.columns.keys():
            values = codes.columns[name][at].copy()
            # Numbers 0 to 31 fill the first half of a block of levels, wherever a layout has them.
            values[at // 8 if name == "_rabit_codes" else at % (len(values) // 2)] ^= 1 << (at % 8)
            try:
                agree(changed(codes, name, at, values))
            except CorruptFileError:
                seen[name] += 1
    # A number may be so near to zero that its sign is noise; many bits of levels stand for numbers that are not there.
    assert seen["_rabit_codes"] >= 30
    assert bits == 1 or seen["__blocked_ex_codes"] >= 10


def test_rows_that_should_not_be_there(tmp_path: Path) -> None:
    rows = shaped("normal", COUNT, 16, "f4", np.random.default_rng(1))
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(table(rows, nulls=[5]), uri).create_index("v", "IVF_SQ", metric="l2", num_partitions=4)
    ((segment, batches),) = opened(uri)
    (codes,) = segment.codes()
    assert 5 not in codes.ids
    for number, message in ((5, "without a vector"), (int(codes.ids[9]), "twice|codes"), (COUNT + 5, "missing")):
        ids = codes.ids.copy()
        ids[3] = number
        with pytest.raises(CorruptFileError, match=message):
            require_agreement("l2", segment.quantizer, segment.centroids, [replace(codes, ids=ids)], batches)
    # A row that is not handed over is not judged: it may be of another part, or be deleted.
    handed = [batch for batch in batches if int(codes.ids[3]) not in batch.column("id").to_pylist()]
    require_agreement("l2", segment.quantizer, segment.centroids, [replace(codes, ids=ids)], handed)


def test_centroids_that_moved(tmp_path: Path) -> None:
    uri = built(tmp_path, shaped("far", COUNT, 16, "f4", np.random.default_rng(1)), "IVF_SQ", "l2")
    ((segment, batches),) = opened(uri)
    for value in (0.5, -0.5, 3.0, 1e6, np.nan, np.inf):
        centroids = segment.centroids.copy()
        centroids[1, 2] = centroids[1, 2] + np.float32(value)
        with pytest.raises(CorruptFileError, match="centroid"):
            require_agreement("l2", segment.quantizer, centroids, segment.codes(), batches)


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_RQ"])
def test_the_only_centroid_as_another_number(tmp_path: Path, kind: str) -> None:
    """No row is nearer to another one, and of a distance that large single precision keeps nothing of the row."""
    rows = shaped("clustered", COUNT, 16, "f4", np.random.default_rng(6))
    for metric in METRICS:
        uri = built(tmp_path, rows, kind, metric, num_partitions=1)
        ((segment, batches),) = opened(uri)
        for value in (1e38, -3e20, 1e12, 1e6, np.inf, np.nan):
            centroids = segment.centroids.copy()
            centroids[0, 5] = value
            with pytest.raises(CorruptFileError, match=r"centroid|codes of a row"):
                require_agreement(parse_metric(metric), segment.quantizer, centroids, segment.codes(), batches)
        require_agreement(parse_metric(metric), segment.quantizer, segment.centroids, segment.codes(), batches)


@pytest.mark.slow
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("shape", ["normal", "clustered"])
def test_centroids_that_the_official_library_does_not_find(tmp_path: Path, shape: str, metric: str) -> None:
    """With a million numbers of centroids it looks for the nearest along a graph: half of the rows are elsewhere."""
    rows = shaped(shape, 24_000, 256, "f4", np.random.default_rng(1))
    uri = built(tmp_path, rows, "IVF_SQ", metric, num_partitions=4500, sample_rate=5, max_iters=3)
    ((segment, batches),) = opened(uri)
    segment.verify_rows(batches)
    segment.verify_rows(batches[3:7])
    if metric != "dot":
        centroids = segment.centroids.copy()
        centroids[int(segment._full[9]), 2] = 1e6
        with pytest.raises(CorruptFileError, match="centroid"):
            require_agreement(parse_metric(metric), segment.quantizer, centroids, segment.codes(), batches)


def test_graphs_that_changed(tmp_path: Path) -> None:
    uri = built(tmp_path, shaped("normal", COUNT, 16, "f4", np.random.default_rng(1)), "IVF_HNSW_SQ", "cosine")
    ((segment, _),) = opened(uri)
    (part,) = segment._files.read([int(segment._full[0])])
    good = part.graph
    assert good is not None
    ends = Ends(segment.quantizer, "cosine", part.columns, 16)

    def check(**changes: Any) -> None:
        require_sound(replace(good, **changes), ends, measured=1e9)

    check()
    edges = good.neighbours.copy()
    # The graph is another one each time: only the node that is farthest away is certainly too far.
    rows = ends.rows(np.arange(good.level_offsets[1], dtype=np.uint32))
    source = np.repeat(good.ids, np.diff(good.offsets))[100]
    edges[100] = ((rows - rows[source]) ** 2).sum(axis=1).argmax()
    with pytest.raises(CorruptFileError, match="has a wrong length"):
        check(neighbours=edges)
    with pytest.raises(CorruptFileError, match="highest level"):
        check(entry=(good.entry + 1) % good.level_offsets[1])
    above = good.ids.copy()
    above[good.level_offsets[1]] = above[good.level_offsets[1] + 1]
    with pytest.raises(CorruptFileError, match="too many nodes"):
        check(ids=above)
    alone = np.full_like(good.neighbours, good.entry)
    with pytest.raises(CorruptFileError, match="a graph"):
        check(neighbours=alone)


QUICK = [(1, "cosine", "f4"), (2, "l2", "f2"), (5, "dot", "f4"), (9, "cosine", "f2")]


@pytest.mark.parametrize(
    ("bits", "metric", "dtype"),
    [
        pytest.param(bits, metric, dtype, marks=() if (bits, metric, dtype) in QUICK else pytest.mark.slow)
        for bits in range(1, 10)
        for metric in METRICS
        for dtype in ("f2", "f4", "f8")
    ],
)
def test_whole_rabit_indices_are_never_refused(tmp_path: Path, bits: int, metric: str, dtype: str) -> None:
    rng = np.random.default_rng(bits)
    for shape in SHAPES:
        for dim in (8, 104) if (bits, metric, dtype) in QUICK else (24, 64, *((768,) if shape in SHAPES[:4] else ())):
            rows = shaped(shape, 200, dim, dtype, rng)
            try:
                uri = built(tmp_path, rows, "IVF_RQ", metric, num_bits=bits, num_partitions=3)
            except (OSError, ValueError):
                assert dtype == "f2"  # the official library cannot divide what overflows
                continue
            ((segment, batches),) = opened(uri)
            segment.verify_rows(batches)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "IVF_RQ"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_whole_indices_are_never_refused(tmp_path: Path, kind: str, dtype: str) -> None:
    rng = np.random.default_rng(8)
    for metric in METRICS:
        for shape in SHAPES:
            for dim in (8, 96):
                rows = shaped(shape, 700, dim, dtype, rng)
                try:
                    uri = built(tmp_path, rows, kind, metric, num_partitions=3)
                except (OSError, ValueError):
                    assert dtype == "f2"
                    continue
                ((segment, batches),) = opened(uri)
                segment.verify_rows(batches)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_our_own_indices_agree(tmp_path: Path, dtype: str) -> None:
    rng = np.random.default_rng(3)
    uri = str(tmp_path / "t.lance")
    for number, kind in enumerate(KINDS):
        for shape in ("far", "heavy"):
            lance.write_dataset(table(shaped(shape, 300, 16, dtype, rng)), uri, mode="overwrite")
            options = options_of(kind, metric=METRICS[(number + (shape == "far")) % 3])
            dataset(uri).create_index("v", kind, **options)
            assert dataset(uri).check_indices() == 1
