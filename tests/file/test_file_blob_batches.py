"""The blobs of a batch are written together: the same bytes in the same places as one by one, in few writes."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_core.arrow import schema_from_arrow
from lance_core.file.blob.external import KEEP
from lance_core.file.blob.write import BlobSink, BlobStore
from lance_core.file.convert.tree import build_tree
from lance_core.file.v2.paged_body import ContainerWriter
from lance_core.format.version import FileVersion
from lance_core.io.memory import MemoryStore

LIMITS = {
    "lance-encoding:blob": "true",
    "lance-encoding:blob-inline-size-threshold": "300",
    "lance-encoding:blob-dedicated-size-threshold": "900",
    "lance-encoding:blob-pack-file-size-threshold": "2000",
}
SIZES = [0, 5, 64, 300, 301, 64, 900, 899, 700, 500, 901, 1_500, 400, 0, 1, 350, 900, 900, 900, 900, 63, 65, 901, 310]


class CountingWriter:
    """The data file's bytes, and how often it was written."""

    def __init__(self) -> None:
        self.data, self.writes = bytearray(), 0

    def write(self, data: Any) -> None:
        self.data += data
        self.writes += 1


class Blobs:
    """A column of blobs that is written in parts."""

    def __init__(self, column: pa.Array, version: FileVersion) -> None:
        kind = {"ARROW:extension:name": "lance.blob.v2"} if version >= FileVersion.V2_2 else {}
        schema = schema_from_arrow(pa.schema([pa.field("c", column.type, metadata={**LIMITS, **kind})]), version=version)
        self.store, self.out, self.column = MemoryStore(secrets.token_hex(8)), CountingWriter(), column
        container: Any = ContainerWriter(self.out)  # type: ignore[arg-type]
        self.sink = BlobSink(self.store, "data/a.lance", container.add_buffers)
        self._blobs = BlobStore(version, self.sink, KEEP)
        self._node = build_tree(schema, schema.top_level[0], {})

    def write(self, size: int) -> list[Any]:
        """The descriptors, so many rows at a time."""
        parts = [self._blobs.replaced(self._node, self.column.slice(at, size)) for at in range(0, len(self.column), size)]
        self.sink.close()
        return [row for part in parts for row in part.to_pylist()]

    def files(self) -> dict[str, bytes]:
        """What is beside the data file."""
        return {str(item.path): bytes(self.store.get(item.path)) for item in self.store.list("data")}


def values(count: int) -> list[bytes | None]:
    sizes = np.random.default_rng(3).permutation(SIZES * (count // len(SIZES)))
    return [None if row % 11 == 3 else bytes([row % 256]) * int(size) for row, size in enumerate(sizes)]


def column_of(version: FileVersion) -> pa.Array:
    """A slice, some of whose values are elsewhere."""
    data = pa.array([b"before", *values(240), b"behind"], pa.large_binary())
    if version < FileVersion.V2_2:
        return data.slice(1, 240)
    uris = pa.array([f"s3://b/{row}" if row % 22 == 4 else None for row in range(242)])
    absent = pa.array([row % 33 == 15 for row in range(242)])
    fields = [pa.field("data", pa.large_binary()), pa.field("uri", pa.string())]
    return pa.StructArray.from_arrays([data, uris], fields=fields, mask=absent).slice(1, 240)


@pytest.mark.parametrize("version", [FileVersion.V2_0, FileVersion.V2_1, FileVersion.V2_2], ids=lambda item: item.text)
@pytest.mark.parametrize("size", [7, 240])
def test_blobs_written_together_are_where_those_written_one_by_one_are(version: FileVersion, size: int) -> None:
    single, many = Blobs(column_of(version), version), Blobs(column_of(version), version)
    assert many.write(size) == single.write(1)
    assert many.out.data == single.out.data
    assert many.files() == single.files()
    assert (len(single.files()) > 20) == (version >= FileVersion.V2_2)


def test_small_blobs_are_written_together() -> None:
    """A batch was written value by value, each after its gap."""
    blobs = Blobs(pa.array([b"x" * 100] * 5_000, pa.large_binary()), FileVersion.V2_1)
    found = blobs.write(5_000)
    assert blobs.out.writes == 1
    assert [row["position"] for row in found[:3]] == [0, 128, 256]
    assert len(blobs.out.data) == 4_999 * 128 + 100
