"""Nested columns that once were not kept as the official library keeps them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.bytes import byte_files as files


def json_under_nulls(metadata: dict[str, str]) -> pa.Table:
    """Rows of a struct with a null; the JSON in it is not nullable."""
    texts = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a":1}', "true", "[2]", "3"]))
    structs = pa.StructArray.from_arrays(
        [texts], fields=[pa.field("j", pa.json_(), nullable=False)], mask=pa.array([False, True, False, True])
    )
    return pa.table([structs], schema=pa.schema([pa.field("s", structs.type, metadata=metadata)]))


@pytest.mark.parametrize(("version", "packed"), [("2.1", False), ("2.2", False), ("2.2", True)])
def test_json_under_nulls_of_a_struct(tmp_path: Path, version: str, packed: bool) -> None:
    """A packed struct stores its nulls as empty bytes, which are no JSONB."""
    table = json_under_nulls({"lance-encoding:packed": "true"} if packed else {})
    files.write_official(tmp_path / "theirs", table, version)
    assert files.read_by_us(tmp_path / "theirs", table) == []
    files.write_ours(tmp_path / "ours", table, version)
    assert files.read_by_us(tmp_path / "ours", table) == []
    opened = files.open_at(tmp_path / "theirs")
    assert files.batches_of(opened, opened.schema).slice(1, 1).to_pylist() == [{"s": None}]
