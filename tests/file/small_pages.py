"""A file of many small pages in memory, as our writer makes it."""

from __future__ import annotations

import uuid

import pyarrow as pa

from lance_core.arrow import schema_from_arrow
from lance_core.file.open import ContainerFile, open_file
from lance_core.file.writer import FileWriter
from lance_core.format.schema import Schema
from lance_core.format.version import parse_storage_version
from lance_core.io.memory import MemoryStore


def opened_small_pages(
    table: pa.Table, version: str, *, max_page_bytes: int = 40_000, batch_rows: int = 8192
) -> tuple[ContainerFile, Schema, MemoryStore]:
    """The open file `data/x.lance` of a store of its own, the schema of the table, the store."""
    parsed = parse_storage_version(version)
    schema = schema_from_arrow(table.schema, version=parsed)
    store = MemoryStore(f"small-{uuid.uuid4()}")
    writer = FileWriter(store, "data/x.lance", schema, version=parsed, max_page_bytes=max_page_bytes)
    for batch in table.to_batches(max_chunksize=batch_rows):
        writer.write(batch)
    writer.finish()
    opened = open_file(store, "data/x.lance")
    assert isinstance(opened, ContainerFile)
    return opened, schema, store
