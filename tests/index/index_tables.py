"""Tables that have something to find for every kind of index: several fragments, nulls, NaN, deleted rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

WORDS = ("alpha", "Beta", "gamma ray", "crème", "Straße", "x", "", "delta42", "epsilon")


def rows(count: int, *, seed: int = 0, first: int = 0) -> pa.Table:
    """`x` counts up and is never null, so that rows can be told apart."""
    rng = np.random.default_rng(seed)
    whole = rng.integers(-50, 400, count)
    floats = np.where(rng.random(count) < 0.05, np.nan, rng.integers(-3, 40, count) / 2.0)
    texts = [None if rng.random() < 0.05 else f"{WORDS[n % len(WORDS)]} {n % 60}" for n in whole]
    tags: list[Any] = [None if n % 19 == 0 else [WORDS[(n + k) % 5] for k in range(n % 4)] for n in whole.tolist()]
    tags = [value if value is None or len(value) != 2 else [value[0], None] for value in tags]
    return pa.table(
        {
            "x": np.arange(first, first + count),
            "i": pa.array(whole, pa.int32(), mask=rng.random(count) < 0.05),
            "f": pa.array(floats, mask=rng.random(count) < 0.05),
            "s": pa.array(texts, pa.string()),
            "b": pa.array(whole % 3 == 0, mask=rng.random(count) < 0.05),
            "t": pa.array(whole.astype("datetime64[D]").astype("datetime64[us]")),
            "d": pa.array([pa.scalar(int(n), pa.int64()).as_py() for n in whole], pa.decimal128(10, 2)),
            "tags": pa.array(tags, pa.list_(pa.string())),
            "n": pa.array([{"a": int(n), "b": str(n)} for n in whole]),
        }
    )


def make(path: Path, *, stable: bool = False, count: int = 1200) -> str:
    """A table of four fragments with deleted rows in two of them."""
    uri = str(path)
    table = lance.write_dataset(rows(count), uri, max_rows_per_file=count // 4, enable_stable_row_ids=stable)
    table.delete(f"x < {count // 2} and x % 5 = 1")
    return uri


CASES: dict[str, dict[str, list[str]]] = {
    "BTREE": {
        "i": ["i = 7", "i > 350", "i <= -40", "i between 5 and 9", "i in (1, 2, 3, 9999)", "i is null",
              "i is not null and i < 0", "not (i = 3)", "i != 3 and i < 10", "i = 3 or i > 390", "i = 3 and x > 500",
              "i = 3 or x = 9", "i > 1000"],
        "f": ["f = 3", "f > 15", "f = 0", "f is null", "f < 0", "f in (1.5, 2)"],
        "s": ["s = 'alpha 0'", "s like 'alpha%'", "s < 'a'", "s >= 'x'", "starts_with(s, 'gamma')", "s is null"],
        "b": ["b", "b = true", "not b", "b is null"],
        "t": ["t > timestamp '1970-12-01 00:00:00'", "t = timestamp '1970-02-01 00:00:00'"],
        "d": ["d = 7", "d > 390"],
        "n.a": ["n.a = 7", "n.a > 390"],
    },
    "BITMAP": {
        "i": ["i = 7", "i > 350", "i in (1, 2, 3)", "i is null", "not (i = 3)", "i = 3 and x > 100"],
        "s": ["s = 'alpha 0'", "s in ('alpha 0', 'Beta 1')", "s is null"],
        "b": ["b = true", "b is null"],
    },
    "LABEL_LIST": {
        "tags": ["array_has(tags, 'alpha')", "array_has_any(tags, ['Beta', 'nothing'])",
                 "array_has_all(tags, ['alpha', 'Beta'])",
                 "array_has(tags, 'none')", "array_contains(tags, 'crème') and x < 300"],
    },
    "NGRAM": {"s": ["contains(s, 'gamma')", "contains(s, 'ray 1')", "contains(s, 'nope')", "contains(s, 'a')",
                    "contains(s, 'traße')", "contains(s, 'rème')"]},
    "ZONEMAP": {
        "x": ["x = 700", "x > 1100", "x < 20", "x in (3, 900)", "x is null"],
        "i": ["i = 7", "i is null", "i > 395"],
        "f": ["f > 15", "f is null", "f = 3"],
        "s": ["s = 'alpha 0'", "s is null"],
    },
    "BLOOMFILTER": {
        "x": ["x = 700", "x in (3, 900)"],
        "i": ["i = 7", "i = 12345", "i is null", "i in (1, 2)"],
        "s": ["s = 'alpha 0'", "s = 'nothing'", "s is null"],
    },
}  # fmt: skip
