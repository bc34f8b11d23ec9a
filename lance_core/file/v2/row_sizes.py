"""About how many bytes rows of a column take once decoded: by it, reads are cut into windows.

int32: 4 bytes an item        texts: 8 bytes for its offset, and twice what is stored
"""

from __future__ import annotations

import pyarrow as pa

from lance_core.file.blob_descriptors import BLOB_ROW_SIZE
from lance_core.format.layout import BlobLayout, FileColumn, FullZipLayout, MiniBlockLayout, Page


def row_size(column: FileColumn, rows: int, arrow_type: pa.DataType, *, described: bool) -> float:
    """About how many bytes a row of a column of so many rows takes once decoded; `described`: blobs as where they are."""
    if not rows:
        return 0.0
    pages = column.pages
    if not described and any(isinstance(page.layout, BlobLayout) for page in pages):
        return BLOB_ROW_SIZE
    items = sum(_num_items(page) for page in pages)
    width = fixed_size(arrow_type)
    if width is not None:
        return width * items / rows
    stored = sum(item.size for page in pages for item in page.buffers)
    # Offsets, and bytes that are about half as many once encoded.
    return 8.0 * items / rows + 2.0 * stored / rows


def fixed_size(arrow_type: pa.DataType) -> float | None:
    """Bytes of a value when all values of the type have the same width, else None."""
    types = pa.types
    if types.is_fixed_size_list(arrow_type):
        item = fixed_size(arrow_type.value_type)
        return None if item is None else item * arrow_type.list_size
    if types.is_dictionary(arrow_type):
        return fixed_size(arrow_type.index_type)
    if types.is_null(arrow_type) or types.is_nested(arrow_type):
        return 0.0 if types.is_null(arrow_type) else None
    try:
        return max(1.0, float(arrow_type.bit_width) / 8)
    except ValueError:
        return None


def _num_items(page: Page) -> int:
    return page.layout.num_items if isinstance(page.layout, MiniBlockLayout | FullZipLayout) else page.num_rows
