"""Blob columns as users meet them: fields and values to write, files to read.

::

    from lance_core.blob import blob_array, blob_field
    table = pa.table([blob_array([b"...", None])], schema=pa.schema([blob_field("video")]))
    lance_core.write_dataset(table, "/t.lance").take_blobs("video", indices=[0])[0].read_range(0, 2)
"""

from __future__ import annotations

from lance_core.arrow.blob import Blob, BlobType, blob_array, blob_field
from lance_core.dataset.scan.blobs import BlobFile

__all__ = ["Blob", "BlobFile", "BlobType", "blob_array", "blob_field"]
