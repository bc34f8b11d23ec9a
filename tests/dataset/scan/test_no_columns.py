"""Reads of no columns keep the number of rows, as those of the official library do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core

READS: dict[str, Callable[[Any], Any]] = {
    "all": lambda ds: ds.to_table(columns=[]),
    "mapping": lambda ds: ds.to_table(columns={}),
    "limit": lambda ds: ds.to_table(columns=[], limit=25, offset=8),
    "filter": lambda ds: ds.to_table(columns=[], filter="a > 5"),
    "filter and limit": lambda ds: ds.to_table(columns=[], filter="a > 5", limit=14),
    "nothing": lambda ds: ds.to_table(columns=[], filter="a > 500"),
    "scanner": lambda ds: ds.scanner(columns=[], batch_size=3).to_table(),
    "reader": lambda ds: ds.scanner(columns=[]).to_reader().read_all(),
    "ordered": lambda ds: ds.to_table(columns=[], order_by=["a"], limit=13),
    "head": lambda ds: ds.head(13, columns=[]),
    "fragment": lambda ds: ds.get_fragments()[1].to_table(columns=[]),
    "row ids": lambda ds: ds.to_table(columns=[], with_row_id=True),
}


@pytest.fixture(scope="module", params=[10, 2])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp("none") / "t.lance")
    lance.write_dataset(pa.table({"a": range(40)}), uri, max_rows_per_file=request.param)
    lance.dataset(uri).delete("a in (3, 17)")
    return uri


@pytest.mark.parametrize("read", READS)
def test_no_columns_of_all_rows(table: str, read: str) -> None:
    found, expected = READS[read](lance_core.dataset(table)), READS[read](lance.dataset(table))
    assert found.shape == expected.shape
    assert found.column_names == expected.column_names


@pytest.mark.parametrize("rows", [[1], [1, 30], [30, 1, 1], []])
def test_takes_of_no_columns(table: str, rows: list[int]) -> None:
    """The official library raises NotFoundError here."""
    assert lance_core.dataset(table).take(rows, columns=[]).shape == (len(rows), 0)


def test_a_residue_that_is_a_match_alone(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"k": range(20), "s": [f"ab{number}" for number in range(20)]}), uri)
    lance.dataset(uri).create_scalar_index("k", "BTREE")
    for filter in ("k < 3 and regexp_match(s, 'b1')", "regexp_match(s, 'b1') and k in (1, 2, 12)"):
        expected = lance.dataset(uri).to_table(filter=filter)
        assert expected.num_rows
        assert lance_core.dataset(uri).to_table(filter=filter).equals(expected)
        assert lance_core.dataset(uri).count_rows(filter) == expected.num_rows
