"""Scalar segments that executors built, published later: they are trusted for what is as it was when they were built."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lance_core.dataset.handle.open import dataset
from lance_core.dataset.handle.operation_aliases import LanceOperation
from lance_core.errors import InputError


def make(path: Path) -> str:
    uri = str(path / "t.lance")
    columns = {"a": range(300), "b": range(300), "tags": [[f"t{n}"] for n in range(300)]}
    lance.write_dataset(pa.table(columns), uri, max_rows_per_file=100)
    return uri


def rewrite(uri: str, fragment: int, column: str, values: pa.Array) -> None:
    """Other values in the rows of a fragment, in their place."""
    piece = dataset(uri).get_fragments()[fragment]
    keys = piece.to_table(["b"])
    changed, fields = piece.update_columns(keys.append_column(column, values), left_on="b")
    operation = LanceOperation.Update(updated_fragments=[changed], fields_modified=fields)
    dataset(uri).commit(uri, operation, read_version=dataset(uri).version)


@pytest.mark.parametrize(
    ("column", "kind", "values", "old", "new"),
    [
        ("a", "BTREE", pa.array(range(1000, 1100)), "a = 120", "a = 1020"),
        ("tags", "LABEL_LIST", pa.array([["x"]] * 100), "array_has(tags, 't120')", "array_has(tags, 'x')"),
    ],
)
def test_rewritten_fragments_are_not_covered(
    tmp_path: Path, column: str, kind: str, values: pa.Array, old: str, new: str
) -> None:
    uri = make(tmp_path)
    parts = [dataset(uri).create_scalar_index(column, kind, fragment_ids=[number]) for number in range(3)]
    rewrite(uri, 1, column, values)
    lance.dataset(uri).delete("b = 5")
    table = dataset(uri)
    table.commit_existing_index_segments("it", column, parts)
    assert table.index_statistics("it")["num_indexed_rows"] == 199
    for where in (old, new):
        plain = table.to_table(["b"], filter=where, use_scalar_index=False)
        assert table.to_table(["b"], filter=where).equals(plain), where
        assert lance.dataset(uri).to_table(columns=["b"], filter=where).num_rows == plain.num_rows, where


def test_other_columns_may_change(tmp_path: Path) -> None:
    uri = make(tmp_path)
    parts = [dataset(uri).create_scalar_index("a", "BTREE", fragment_ids=[0, 1, 2])]
    dataset(uri).add_columns({"c": "a + 1"})
    table = dataset(uri)
    table.commit_existing_index_segments("it", "a", parts)
    assert table.index_statistics("it")["num_indexed_rows"] == 300


def test_built_of_a_version_that_is_gone(tmp_path: Path) -> None:
    uri = make(tmp_path)
    part = dataset(uri).create_scalar_index("a", "BTREE", fragment_ids=[0])
    lance.dataset(uri).delete("b = 5")
    dataset(uri).cleanup_old_versions(older_than=timedelta(0))
    with pytest.raises(InputError, match="version 1, which was removed"):
        dataset(uri).commit_existing_index_segments("it", "a", [part])
    assert not dataset(uri).has_index
