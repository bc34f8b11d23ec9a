"""A manifest that claims more rows of a fragment than its files have: damage by name, whichever verb reads them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import CorruptFileError
from lance_core.wire.pb import table_pb2

VERBS: dict[str, Callable[[Any], Any]] = {
    "take": lambda table: table.take([0, 15]),
    "take many": lambda table: table.take(range(18)),
    "scan": lambda table: table.to_table(),
    "batches": lambda table: list(table.to_batches(batch_size=4)),
    "filter": lambda table: table.to_table(filter="id >= 0"),
    "count": lambda table: table.count_rows("id >= 0"),
    "row ids": lambda table: table.to_table(with_row_id=True),
}


def _claim(uri: Path, rows: int) -> None:
    """Rewrite the newest manifest: its first fragment has `rows` rows."""
    path = max((uri / "_versions").glob("*.manifest"))
    raw = path.read_bytes()
    (at,) = struct.unpack("<Q", raw[-16:-8])
    (size,) = struct.unpack("<I", raw[at : at + 4])
    manifest = table_pb2.Manifest()
    manifest.ParseFromString(raw[at + 4 : at + 4 + size])
    manifest.fragments[0].physical_rows = rows
    body = manifest.SerializeToString()
    path.write_bytes(raw[:at] + struct.pack("<I", len(body)) + body + raw[-16:])


@pytest.mark.parametrize("rows", [11, 20, 2**32 - 1])
@pytest.mark.parametrize("version", ["2.0", "2.1", "legacy"])
def test_more_rows_than_the_file_has(tmp_path: Path, version: str, rows: int) -> None:
    uri = tmp_path / "t.lance"
    lance.write_dataset(pa.table({"id": range(10), "t": [str(i) for i in range(10)]}), uri, data_storage_version=version)
    _claim(uri, rows)
    for name, verb in VERBS.items():
        if name.startswith("take") and rows == 11:  # row 15 is not there, whatever the file has
            continue
        with pytest.raises(CorruptFileError, match=rf"has 10 rows, fragment 0 declares {rows}"):
            verb(lance_core.dataset(str(uri)))
