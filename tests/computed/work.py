"""Twenty numbers in two fragments, and a declared column of them that a passed function computes, four rows a call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import lance_core

NAME = "our.models:work"
"""What the table names; it is never loaded."""


def write_numbers(folder: Path) -> str:
    """The table's place."""
    place = str(folder / "t.lance")
    lance_core.write_dataset(pa.table({"x": range(20)}), place, max_rows_per_file=10)
    return place


def declare(uri: str, **options: Any) -> None:
    """Column `y`, a number for each."""
    given: dict[str, Any] = {"function": NAME, "inputs": ["x"], "type": pa.int64(), "batch_size": 4, **options}
    lance_core.declare_column(uri, "y", **given)


def refresh(uri: str, work: Callable[[pa.RecordBatch], Any], **options: Any) -> Any:
    """The report of a refresh by a function."""
    return lance_core.refresh_columns(uri, functions={NAME: work}, **options)
