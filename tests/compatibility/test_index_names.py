"""Names of scalar indices that the user did not name: those the official library gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core

ROWS = pa.table({"a": range(50), "b": [f"x{i % 5}" for i in range(50)]})
Step = tuple[str, str, dict[str, Any]]
STEPS: list[list[Step]] = [
    [("a", "BTREE", {}), ("a", "BITMAP", {})],
    [("a", "BTREE", {}), ("a", "BTREE", {})],
    [("a", "BTREE", {}), ("a", "BITMAP", {}), ("a", "ZONEMAP", {})],
    [("a", "BTREE", {}), ("a", "BITMAP", {}), ("a", "BITMAP", {}), ("a", "BTREE", {})],
    [("a", "BTREE", {"name": "a_idx"}), ("a", "BITMAP", {"name": "a_idx"})],
    [("b", "BTREE", {"name": "a_idx"}), ("a", "BITMAP", {})],
    [("a", "BTREE", {}), ("a", "BITMAP", {"replace": False}), ("a", "BTREE", {"replace": False})],
    [("b", "NGRAM", {}), ("b", "INVERTED", {}), ("b", "BTREE", {})],
    [("a", "BTREE", {"name": "q"}), ("a", "BITMAP", {})],
    [("b", "BITMAP", {"name": "a_idx"}), ("a", "BTREE", {"name": "a_idx"})],
]


def build(library: Any, path: Path, steps: list[Step]) -> tuple[list[tuple[str, str]], list[bool]]:
    """Name and kind of each index afterwards, and which steps were refused."""
    lance.write_dataset(ROWS, path)
    refused = []
    for column, kind, options in steps:
        try:
            library.dataset(str(path)).create_scalar_index(column, kind, **options)
            refused.append(False)
        except (RuntimeError, OSError, ValueError):
            refused.append(True)
    return sorted((index.name, index.index_type) for index in lance.dataset(path).describe_indices()), refused


@pytest.mark.parametrize("number", range(len(STEPS)))
def test_indices_are_named_as_by_the_official_library(number: int, tmp_path: Path) -> None:
    steps = STEPS[number]
    assert build(lance_core, tmp_path / "ours", steps) == build(lance, tmp_path / "theirs", steps)
