"""Tables for the tests of the dataset room, and how two results are compared."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa


def mixed(num_rows: int, *, first: int = 0, seed: int = 7) -> pa.Table:
    """Columns of many types with nulls; `id` counts from `first`."""
    rng = np.random.default_rng(seed + first)
    ids = np.arange(first, first + num_rows)
    holes = rng.random(num_rows) < 0.2
    words = np.array(["", "a", "alpha", "beta", "über", "x" * 40])
    stamps = [None if h else dt.datetime(2020, 1, 1) + dt.timedelta(hours=int(i)) for i, h in zip(ids, holes)]
    tags = [None if h else [str(k) for k in range(i % 4)] for i, h in zip(ids.tolist(), holes)]
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "small": pa.array(ids % 7, pa.int8(), mask=holes),
            "x": pa.array(rng.normal(size=num_rows), mask=rng.random(num_rows) < 0.1),
            "flag": pa.array(rng.random(num_rows) < 0.5, mask=holes),
            "name": pa.array(words[rng.integers(0, len(words), num_rows)], mask=holes),
            "blob": pa.array([None if h else bytes([i % 256]) * (i % 5) for i, h in zip(ids.tolist(), holes)], pa.binary()),
            "ts": pa.array(stamps, pa.timestamp("us")),
            "dec": pa.array([None if h else Decimal(int(i)) / 4 for i, h in zip(ids, holes)], pa.decimal128(20, 2)),
            "point": pa.array(
                [None if h else {"x": float(i), "label": f"p{i % 3}"} for i, h in zip(ids.tolist(), holes)],
                pa.struct([("x", pa.float32()), ("label", pa.string())]),
            ),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=num_rows * 4).astype(np.float32)), 4),
            "tags": pa.array(tags, pa.list_(pa.string())),
        }
    )


def flat(num_rows: int, *, first: int = 0) -> pa.Table:
    """Two columns without nulls: small, and quick to compare."""
    ids = list(range(first, first + num_rows))
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [f"n{i % 10}" for i in ids]})


def same(ours: pa.Table, theirs: pa.Table) -> None:
    """Assert that schema, order and values agree; NaN equals NaN."""
    assert ours.schema.names == theirs.schema.names
    assert [str(t) for t in ours.schema.types] == [str(t) for t in theirs.schema.types]
    assert ours.num_rows == theirs.num_rows
    for name in ours.schema.names:
        left, right = ours.column(name).combine_chunks(), theirs.column(name).combine_chunks()
        if not left.equals(right):
            assert _plain(left.to_pylist()) == _plain(right.to_pylist()), name


def _plain(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def snapshot_of_files(root: Path) -> dict[str, int]:
    """Every file below a folder and its size: to see that a failed call left nothing behind."""
    return {str(path.relative_to(root)): path.stat().st_size for path in sorted(root.rglob("*")) if path.is_file()}
