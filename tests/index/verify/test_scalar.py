"""Whole indices of the official library agree with their columns, of whatever type: nothing that is whole is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.dataset.handle.open import dataset
from lance_core.errors import CorruptFileError
from lance_core.index.scalar.verify import Zones

COUNT = 2500
KINDS = ("BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER", "LABEL_LIST", "NGRAM", "INVERTED")
WORDS = (
    "a",
    "Zürich",
    "naïve",
    "ΑΒΓ",
    "ﬁne",
    "straße",
    "x" * 300,
    "",
    "İstanbul",
    "日本語",
    "e\u0301cole",
    "K\u212aelvin",
    "a-b_c",
)


def columns() -> dict[str, Any]:
    """A column of every type, with nulls, NaN and both zeros."""
    rng = np.random.default_rng(0)
    whole = rng.integers(-1000, 1000, COUNT)
    floats = np.where(rng.random(COUNT) < 0.02, np.nan, rng.normal(size=COUNT))
    floats[:20], floats[20:40], floats[40:44], floats[44:48] = -0.0, 0.0, np.inf, -np.inf
    texts = [f"{WORDS[n % len(WORDS)]} {n % 97}" for n in whole.tolist()]
    missing = rng.random(COUNT) < 0.05
    found: dict[str, Any] = {
        str(kind): pa.array(np.abs(whole) % 100, kind, mask=missing)
        for kind in (pa.int8(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64())
    }
    for name in ("float16", "float32", "float64"):
        found[name] = pa.array(floats.astype(name), mask=missing)
    plain = {
        "bool": (whole % 3 == 0, pa.bool_()), "date32": (whole.astype(np.int32), pa.date32()),
        "timestamp": (whole * 10**6, pa.timestamp("ns", "UTC")), "time": (np.abs(whole) * 1000, pa.time64("us")),
        "duration": (whole, pa.duration("s")), "const": (np.full(COUNT, 5), pa.int64()),
    }  # fmt: skip
    found.update({name: pa.array(values, kind, mask=missing) for name, (values, kind) in plain.items()})
    lists = {
        "string": (texts, pa.string()), "large": (texts, pa.large_string()),
        "binary": ([text.encode() for text in texts], pa.binary()),
        "fixed": ([abs(n).to_bytes(4, "big") for n in whole.tolist()], pa.binary(4)),
        "decimal": (whole.tolist(), pa.decimal128(12, 3)),
        "numbers": ([[k if k % 3 else None for k in range(n % 5)] for n in whole.tolist()], pa.list_(pa.int32())),
        "labels": ([texts[: n % 4] for n in whole.tolist()], pa.list_(pa.string())),
        "none": ([None] * COUNT, pa.int32()),
    }  # fmt: skip
    for name, (values, kind) in lists.items():
        found[name] = pa.array([None if gone else value for gone, value in zip(missing, values, strict=True)], kind)
    return found


COLUMNS = columns()
QUICK = {
    ("string", "NGRAM"), ("binary", "BLOOMFILTER"), ("fixed", "ZONEMAP"), ("numbers", "ZONEMAP"), ("numbers", "LABEL_LIST"),
    ("float16", "BITMAP"), ("float64", "BTREE"), ("float32", "ZONEMAP"), ("decimal", "BTREE"), ("none", "BTREE"),
    ("string", "INVERTED"), ("bool", "BITMAP"), ("uint64", "BLOOMFILTER"), ("labels", "INVERTED"),
}  # fmt: skip


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(name, kind, marks=[] if (name, kind) in QUICK else [pytest.mark.slow])
        for name in COLUMNS
        for kind in KINDS
    ],
)
def test_whole_indices_agree(tmp_path: Path, name: str, kind: str, stable: bool) -> None:
    uri = str(tmp_path / "t.lance")
    rows = pa.table({"c": COLUMNS[name], "id": range(COUNT)})
    theirs = lance.write_dataset(rows, uri, max_rows_per_file=1000, enable_stable_row_ids=stable)
    try:
        theirs.create_scalar_index("c", kind)
    except (OSError, ValueError, TypeError):
        assert (name, kind) not in QUICK
        pytest.skip("not a type the official library indexes so")
    theirs.delete("id % 11 = 4")
    if name != "float16":
        theirs.update({"c": "c"}, where="id < 20")
    assert dataset(uri).check_indices() == 1


@pytest.mark.parametrize("seed", range(20))
def test_zones_of_ascending_rows_are_those_of_the_same_rows_in_any_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    owners, starts, lengths = [], [], []
    for owner in rng.permutation(4).tolist():
        edges = np.cumsum(rng.integers(0, 40, 6))
        owners += [owner] * 5
        starts += edges[:-1].tolist()
        lengths += (np.diff(edges) - (rng.random(5) < 0.1)).clip(0).tolist()
    fields = {"fragment_id": owners, "zone_start": starts, "zone_length": lengths}
    zones = Zones(pa.RecordBatch.from_pydict({name: pa.array(values, pa.uint64()) for name, values in fields.items()}))
    spans = zip(owners, starts, lengths, strict=True)
    rows = np.concatenate([np.arange(at, at + size) + (owner << 32) for owner, at, size in spans])
    ids = np.sort(rng.choice(rows, int(rng.integers(1, len(rows))), replace=False)).astype(np.uint64)
    if seed % 3 == 0:
        ids = np.unique(np.append(ids, rng.integers(0, 200, 2).astype(np.uint64)))

    def told(wanted: Any) -> Any:
        try:
            return zones.of(wanted).tolist()
        except CorruptFileError:
            return None

    backwards = told(ids[::-1])
    assert told(ids) == (None if backwards is None else backwards[::-1])
