"""Blobs below structs are described or read as the official library does it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core

COUNT = 12
OLD = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})


def rows(first: int, *, new: bool, null_structs: bool) -> pa.Table:
    values = [None if number % 5 == 3 else bytes([65 + number]) * (number % 4) for number in range(first, first + COUNT)]
    blob: Any = lance.blob_array(values) if new else pa.array(values, pa.large_binary())
    field = lance.blob_field("b") if new else OLD
    numbers = pa.array(range(first, first + COUNT))
    mask = pa.array([null_structs and number % 6 == 4 for number in range(COUNT)])
    deep = pa.StructArray.from_arrays([blob], fields=[field], mask=mask)
    fields = [pa.field("deep", deep.type), pa.field("n", pa.int64()), field]
    whole = pa.StructArray.from_arrays([deep, numbers, blob], fields=fields, mask=mask)
    return pa.table({"id": numbers, "s": whole})


@pytest.mark.parametrize(("version", "new"), [("2.0", False), ("2.1", False), ("2.2", False), ("2.2", True)])
def test_blobs_below_structs(version: str, new: bool, tmp_path: Path) -> None:
    null_structs = version != "2.0"
    for first in (0, COUNT):
        lance.write_dataset(
            rows(first, new=new, null_structs=null_structs), tmp_path, mode="append", data_storage_version=version
        )
    lance.dataset(tmp_path).delete("id % 7 = 2")
    theirs, ours = lance.dataset(tmp_path), lance_core.dataset(str(tmp_path))
    asked: tuple[dict[str, Any], ...] = (
        {}, {"columns": ["s"]}, {"columns": ["s.b", "id"]}, {"columns": ["s.deep"]}, {"columns": ["s.deep.b"]},
        {"filter": "id > 9"}, {"limit": 4, "offset": 3}, {"columns": {"x": "s", "y": "id * 2"}}, {"columns": ["s.n"]},
    )  # fmt: skip
    for handling in ("all_binary", "blobs_descriptions", "all_descriptions"):
        for request in asked:
            wanted = theirs.to_table(blob_handling=handling, **request)
            found = ours.to_table(blob_handling=handling, **request)
            assert found.column_names == wanted.column_names
            assert [field.type for field in found.schema] == [field.type for field in wanted.schema], (handling, request)
            assert found.to_pylist() == wanted.to_pylist(), (handling, request)
            assert ours.scanner(blob_handling=handling, **request).projected_schema.equals(found.schema)
