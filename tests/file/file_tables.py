"""Writing and reading single files with both libraries, for the tests of this folder."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
from lance.fragment import DataFile as OfficialDataFile
from lance.fragment import FragmentMetadata

from lance_core.arrow import schema_from_arrow, schema_to_arrow
from lance_core.file.open import OpenFile, open_file
from lance_core.file.writer import FileWriter, WrittenFile
from lance_core.format.version import parse_storage_version
from lance_core.io.local.store import LocalStore


def write_ours(
    root: Path, table: pa.Table, version: str = "2.2", *, batch_size: int = 100_000, max_page_bytes: int = 8 << 20
) -> WrittenFile:
    """`data/a.lance` below root."""
    parsed = parse_storage_version(version)
    schema = schema_from_arrow(table.schema, version=parsed)
    writer = FileWriter(LocalStore(root), "data/a.lance", schema, version=parsed, max_page_bytes=max_page_bytes)
    for batch in table.to_batches(max_chunksize=batch_size):
        writer.write(batch)
    return writer.finish()


def open_ours(root: Path, written: WrittenFile) -> OpenFile:
    return open_file(LocalStore(root), "data/a.lance", data_file=written.data_file)


def write_official(root: Path, table: pa.Table, version: str = "2.2") -> OpenFile:
    """One fragment written by the official library, opened by us."""
    lance.write_dataset(table, root, data_storage_version=version)
    (path,) = (root / "data").glob("*.lance")
    return open_file(LocalStore(root), f"data/{path.name}")


def official(root: Path, table: pa.Table, written: WrittenFile, version: str = "2.2") -> lance.LanceDataset:
    """A table of the official library around a file of ours."""
    entry = written.data_file
    file = OfficialDataFile(
        entry.path,
        list(entry.fields),
        list(entry.column_indices),
        entry.file_major_version,
        entry.file_minor_version,
        entry.file_size_bytes,
    )
    fragment = FragmentMetadata(id=0, files=[file], physical_rows=written.num_rows)
    schema = schema_to_arrow(schema_from_arrow(table.schema, version=parse_storage_version(version)))
    return lance.LanceDataset.commit(root, lance.LanceOperation.Overwrite(schema, [fragment]))


def read_all(opened: OpenFile, batch_size: int = 1 << 20) -> pa.Table:
    schema = opened.schema
    return pa.Table.from_batches(list(opened.read(schema, batch_size=batch_size)), schema_to_arrow(schema))


def assert_same(got: pa.Table, expected: pa.Table) -> None:
    """Equal values in equal order; dictionaries and types may be spelled differently."""
    assert got.num_rows == expected.num_rows
    assert got.column_names == expected.column_names
    got.validate(full=True)
    for name in expected.column_names:
        assert got.column(name).to_pylist() == expected.column(name).to_pylist()
