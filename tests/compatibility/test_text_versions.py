"""Full text indices of a version that is not searched here: found without naming the column, their rows read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core


@pytest.mark.parametrize("options", [{"format_version": 3}, {"block_size": 256}])
def test_version_three_is_found_without_the_columns_name(options: dict[str, Any], tmp_path: Path) -> None:
    texts = [f"the quick fox {i % 7} jumps {i}" for i in range(300)]
    lance.write_dataset(pa.table({"id": range(300), "s": texts}), tmp_path)
    lance.dataset(tmp_path).create_scalar_index("s", "INVERTED", **options)
    for query in ("foxes", "jumps 7", {"query": "quick 250", "columns": ["s"]}):
        theirs = lance.dataset(tmp_path).to_table(columns=["id"], full_text_query=query, limit=1000)
        ours = lance_core.dataset(str(tmp_path)).to_table(["id"], full_text_query=query, limit=1000)
        assert sorted(ours.column("id").to_pylist()) == sorted(theirs.column("id").to_pylist())
        assert ours.num_rows > 0
