"""One file out of the pages of several: the bytes of pages are copied, nothing is decoded.

::

    a.lance   column 0: page rows 0-99               c.lance   column 0: page rows 0-99, page rows 100-149
    b.lance   column 0: page rows 0-49         ->              (descriptions as they were, first rows moved on)

Pages of 2.1 and 2.2 stand alone: what decodes them is in their description and their own buffers. (2.0 has columns that
count items over all pages, blobs have addresses in them: those are not for copying.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lance_core.errors import UnsupportedFeatureError
from lance_core.file.blob.read import stored_schema
from lance_core.file.blob.write import is_blob
from lance_core.file.convert.tree import build_tree, leaves
from lance_core.file.metadata import fetch_tail, load_metadata
from lance_core.file.v2.paged_body import ContainerWriter, encoder_for
from lance_core.file.writer import WrittenFile
from lance_core.format.fragment import DataFile
from lance_core.format.layout import BlobLayout, FileColumn, Page
from lance_core.format.schema import Schema
from lance_core.format.version import FileVersion
from lance_core.io.fetcher import drive_one
from lance_core.io.store import Store
from lance_core.wire.file import FileDescriptor, encode_file_descriptor

COPYABLE = frozenset({FileVersion.V2_1, FileVersion.V2_2})
_BATCH_BYTES = 16 << 20


@dataclass(frozen=True)
class FilePart:
    """Some columns of one file: field id -> its column there."""

    store: Store
    path: str
    size: int | None
    columns: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class RowRun:
    """The files that together hold all columns of some rows."""

    parts: tuple[FilePart, ...]
    num_rows: int


def copy_pages(runs: Sequence[RowRun], store: Store, path: str, schema: Schema, version: FileVersion) -> WrittenFile:
    """Write the rows of all runs, one after another, as one file at `path`.

    Raises UnsupportedFeatureError when something cannot be copied (the version, a field no file holds, blobs); nothing is
    left then.
    """
    if version not in COPYABLE:
        raise UnsupportedFeatureError(f"pages of version {version.text} cannot be copied", cure="Encode the rows again.")
    if any(is_blob(leaf.field, version) for field in schema.top_level for leaf in leaves(build_tree(schema, field, {}))):
        raise UnsupportedFeatureError(
            f"{path}: pages with blobs cannot be copied, because blob addresses refer to the old file"
        )
    fields = encoder_for(schema, version).fields
    out = store.open_writer(path)
    try:
        container = ContainerWriter(out)
        pages: dict[int, list[Page]] = {field: [] for field in fields}
        first_row = 0
        for run in runs:
            found = {field for part in run.parts for field, _ in part.columns}
            if not found.issuperset(fields):
                raise UnsupportedFeatureError(f"{path}: the file has no data for some columns, which are read as null")
            for part in run.parts:
                for field, column in _columns_of(part, version):
                    if field in pages:
                        pages[field] += _copied(part, column, container, first_row)
            first_row += run.num_rows
        descriptor = encode_file_descriptor(FileDescriptor(stored_schema(schema), first_row))
        size = container.finish([FileColumn(tuple(pages[field])) for field in fields], descriptor, version)
        out.close()
    except BaseException:
        out.abort()
        raise
    major, minor = version.data_file_numbers
    entry = DataFile(path.removeprefix("data/"), fields, tuple(range(len(fields))), major, minor, size)
    return WrittenFile(entry, first_row, size)


def _columns_of(part: FilePart, version: FileVersion) -> list[tuple[int, FileColumn]]:
    size = part.store.size(part.path) if part.size is None else part.size
    tail = drive_one(part.store, part.path, fetch_tail(size))
    metadata = drive_one(part.store, part.path, load_metadata(tail, file_size=size))
    if metadata.footer.version is not version:
        raise UnsupportedFeatureError(f"{part.path} has version {metadata.footer.version.text}, expected {version.text}")
    columns = drive_one(part.store, part.path, metadata.load_columns([column for _, column in part.columns]))
    for column in columns:
        if (
            column.buffers
            or column.encoding is not None
            or any(isinstance(page.layout, BlobLayout) for page in column.pages)
        ):
            raise UnsupportedFeatureError(
                f"{part.path}: pages with blobs cannot be copied, because blob addresses refer to the old file"
            )
    return [(field, column) for (field, _), column in zip(part.columns, columns, strict=True)]


def _copied(part: FilePart, column: FileColumn, container: ContainerWriter, first_row: int) -> Iterator[Page]:
    for pages in _batches(column.pages):
        ranges = [item for page in pages for item in page.buffers]
        data = iter(part.store.get_ranges(part.path, ranges))
        for page in pages:
            buffers = tuple(container.add_buffer(next(data)) for _ in page.buffers)
            yield replace(page, buffers=buffers, priority=first_row + page.priority)


def _batches(pages: Sequence[Page]) -> Iterator[list[Page]]:
    """Pages of about 16 MiB at a time."""
    batch: list[Page] = []
    size = 0
    for page in pages:
        batch.append(page)
        size += sum(item.size for item in page.buffers)
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
