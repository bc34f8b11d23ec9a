"""Columns that are NOT NULL, at every level: indices of all kinds built by either library, used, optimised and compacted."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core


def required(name: str, kind: pa.DataType) -> pa.Field[Any]:
    """A field that is NOT NULL."""
    return pa.field(name, kind, nullable=False)


SCHEMA = pa.schema(
    [
        required("id", pa.int64()),
        required("text", pa.string()),
        required("labels", pa.list_(required("item", pa.string()))),
        required("vector", pa.list_(required("item", pa.float32()), 8)),
        required("point", pa.struct([required("x", pa.int32())])),
    ]
)
COUNT = 300
ROWS = pa.table(
    {
        "id": range(COUNT),
        "text": [f"text number {i % 7}" for i in range(COUNT)],
        "labels": [[f"a{i % 3}"] for i in range(COUNT)],
        "vector": [[float(i + j) for j in range(8)] for i in range(COUNT)],
        "point": [{"x": i} for i in range(COUNT)],
    },
    schema=SCHEMA,
)
FILTERS = {
    "id < 5": 5,
    "text = 'text number 3'": 43,
    "array_has(labels, 'a1')": 100,
    "contains(text, 'number 4')": 43,
    "point.x = 3": 1,
}
SCALAR = [
    ("id", "BTREE"),
    ("id", "BITMAP"),
    ("id", "ZONEMAP"),
    ("id", "BLOOMFILTER"),
    ("text", "BTREE"),
    ("text", "BITMAP"),
    ("text", "ZONEMAP"),
    ("text", "BLOOMFILTER"),
    ("text", "NGRAM"),
    ("text", "INVERTED"),
    ("labels", "LABEL_LIST"),
    ("point.x", "BTREE"),
]
VECTOR = ["IVF_FLAT", "IVF_PQ", "IVF_HNSW_SQ"]


def counts(library: Any, path: Path) -> list[int]:
    """Rows of each filter."""
    return [library.dataset(str(path)).to_table(filter=text).num_rows for text in FILTERS]


def build(library: Any, path: Path, column: str, kind: str) -> None:
    """An index by one of the libraries."""
    dataset = library.dataset(str(path))
    if column == "vector":
        dataset.create_index(column, kind, num_partitions=2, **({"num_sub_vectors": 2} if kind == "IVF_PQ" else {}))
    else:
        dataset.create_scalar_index(column, kind)


@pytest.mark.parametrize("library", [lance_core, lance], ids=["ours", "theirs"])
@pytest.mark.parametrize(("column", "kind"), [*SCALAR, *(("vector", kind) for kind in VECTOR)])
def test_indices_on_columns_that_are_not_null(library: Any, column: str, kind: str, tmp_path: Path) -> None:
    lance.write_dataset(ROWS, tmp_path)
    build(library, tmp_path, column, kind)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert counts(lance_core, tmp_path) == list(FILTERS.values())
        lance_core.write_dataset(ROWS, str(tmp_path), mode="append")
        lance_core.dataset(str(tmp_path)).optimize.optimize_indices()
        assert counts(lance_core, tmp_path) == [2 * count for count in FILTERS.values()]
        lance.write_dataset(ROWS, tmp_path, mode="append")
        lance_core.dataset(str(tmp_path)).optimize.compact_files()
        assert counts(lance_core, tmp_path) == [3 * count for count in FILTERS.values()]
        assert lance_core.dataset(str(tmp_path)).check_indices() >= 0
        nearest = {"column": "vector", "q": [0.0] * 8, "k": 3}
        assert set(lance_core.dataset(str(tmp_path)).to_table(["id"], nearest=nearest).column("id").to_pylist()) == {0}
    assert counts(lance, tmp_path) == [3 * count for count in FILTERS.values()]
    assert lance.dataset(tmp_path).schema.equals(lance_core.dataset(str(tmp_path)).schema)


def test_a_key_of_not_null_columns_is_merged_on(tmp_path: Path) -> None:
    lance.write_dataset(ROWS, tmp_path)
    lance_core.dataset(str(tmp_path)).create_scalar_index("id", "BTREE")
    changed = ROWS.slice(290).set_column(1, SCHEMA.field("text"), pa.array(["new"] * 10))
    merge = lance_core.dataset(str(tmp_path)).merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(changed)
    assert lance.dataset(tmp_path).to_table(filter="text = 'new'").num_rows == 10
    assert lance.dataset(tmp_path).count_rows() == COUNT
