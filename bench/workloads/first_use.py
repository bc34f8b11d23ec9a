"""The first question to an index that the official library built, which has no checksums, and what comparing it costs.

The question is a look-up in a process that has not opened the index yet, before and after it was sealed, beside the official
library's first look-up. Beside the comparison stands what the official library takes to build that very index.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lance_core
from bench.measure import Case
from lance_core.io.cache import shared_cache

DIMENSION, LABELS, WORDS = 768, 500, 20_000
VALUES = (
    ("BTREE", "key", "shuffled int64"),
    ("BTREE", "name", "distinct strings"),
    ("BITMAP", "small", "int32, 1,000 distinct"),
    ("ZONEMAP", "rising", "nearly ascending int64"),
    ("BLOOMFILTER", "key", "shuffled int64"),
)
TEXTS = (("LABEL_LIST", "tags"), ("NGRAM", "text"), ("INVERTED", "text"))
VECTORS: Mapping[str, Mapping[str, int]] = {
    "IVF_FLAT": {},
    "IVF_SQ": {},
    "IVF_PQ": {"num_sub_vectors": 96},
    "IVF_RQ": {"num_bits": 1},
}


def cases(folder: Path, scale: float) -> Iterator[Case]:
    """Values (5,000,000 rows), texts and labels (1,000,000), vectors (200,000 of 768 float32)."""
    rng = np.random.default_rng(7)
    rows = int(5_000_000 * scale)
    uri = _written(folder / "values.lance", _values(rng, rows))
    for kind, column, label in VALUES:
        yield _case(f"{kind} ({label})", uri, f"{column}_{kind}", rows, partial(_scalar, uri, column, kind))
    for kind, column, label in VALUES:
        yield _first(f"{kind} ({label})", uri, f"{column}_{kind}", column, rows, "as built")
    lance_core.dataset(uri).seal_indices()
    for kind, column, label in VALUES:
        yield _first(f"{kind} ({label})", uri, f"{column}_{kind}", column, rows, "sealed")
    rows = int(1_000_000 * scale)
    uri = _written(folder / "texts.lance", _texts(rng, rows))
    for kind, column in TEXTS:
        yield _case(kind, uri, f"{column}_{kind}", rows, partial(_scalar, uri, column, kind))
    rows = int(200_000 * scale)
    uri = _written(folder / "vectors.lance", _vectors(rng, rows))
    for kind, options in VECTORS.items():
        partitions = max(4, int(256 * min(1.0, scale * 2)))
        build = partial(_vector, uri, kind, num_partitions=partitions, **options)
        yield _case(kind, uri, f"vector_{kind}", rows, build, repeats=1)


def _case(label: str, uri: str, name: str, rows: int, build: Any, *, repeats: int = 3) -> Case:
    build()
    return Case(
        f"compare {label}; pylance: build it",
        {"lance_core": partial(_compare, uri, name), "pylance": build},
        rows=rows,
        repeats=repeats,
    )


def _first(label: str, uri: str, name: str, column: str, rows: int, state: str) -> Case:
    value = lance.dataset(uri).take([rows // 2], columns=[column]).column(column)[0].as_py()
    question = f"{column} = {value!r}"
    return Case(
        f"first question, {label}, {state}",
        {"lance_core": partial(_ask_ours, uri, name, question), "pylance": partial(_ask_theirs, uri, question)},
        rows=rows,
        repeats=7,
    )


def _ask_ours(uri: str, name: str, question: str) -> None:
    shared_cache().clear()
    scanner = lance_core.dataset(uri).scanner(filter=question)
    if scanner.to_table().num_rows == 0:
        raise AssertionError(f"{name}: no row for {question}")


def _ask_theirs(uri: str, question: str) -> None:
    lance.dataset(uri).to_table(filter=question)


def _written(path: Path, table: pa.Table) -> str:
    lance.write_dataset(table, str(path))
    return str(path)


def _compare(uri: str, name: str) -> None:
    if lance_core.dataset(uri).check_indices([name]) != 1:
        raise AssertionError("there is no index to compare")


def _scalar(uri: str, column: str, kind: Any) -> None:
    lance.dataset(uri).create_scalar_index(column, kind, name=f"{column}_{kind}", replace=True)


def _vector(uri: str, kind: str, **options: Any) -> None:
    lance.dataset(uri).create_index("vector", kind, name=f"vector_{kind}", replace=True, **options)


def _values(rng: np.random.Generator, rows: int) -> pa.Table:
    shuffled = rng.permutation(rows)
    return pa.table(
        {
            "key": shuffled,
            "name": pa.array(np.char.add("name ", shuffled.astype("U7"))),
            "small": pa.array(rng.integers(0, 1000, rows), pa.int32()),
            "rising": np.arange(rows) + rng.integers(0, 50, rows),
        }
    )


def _texts(rng: np.random.Generator, rows: int) -> pa.Table:
    words = pa.array([f"w{number}" for number in range(WORDS)])
    ranks = np.minimum(rng.zipf(1.2, 8 * rows), WORDS) - 1
    each = pa.ListArray.from_arrays(pa.array(np.arange(0, 8 * rows + 1, 8), pa.int32()), words.take(pa.array(ranks)))
    labels = pa.array([f"t{number}" for number in range(LABELS)])
    drawn = labels.take(pa.array(rng.integers(0, LABELS, 2 * rows)))
    tags = pa.ListArray.from_arrays(pa.array(np.arange(0, 2 * rows + 1, 2), pa.int32()), drawn)
    return pa.table({"text": pa.compute.binary_join(each, " "), "tags": tags})


def _vectors(rng: np.random.Generator, rows: int) -> pa.Table:
    values = rng.normal(size=(500, DIMENSION)).astype(np.float32)[rng.integers(0, 500, rows)]
    values += rng.normal(size=values.shape).astype(np.float32) * np.float32(0.5)
    return pa.table({"vector": pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), DIMENSION)})
