"""The public API of blob columns: fields and values to write, files to read.

::

    from lance_core.blob import blob_array, blob_field
    table = pa.table([blob_array([b"...", None])], schema=pa.schema([blob_field("video")]))
    lance_core.write_dataset(table, "/t.lance").take_blobs("video", indices=[0])[0].read_range(0, 2)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.lazy import lazy_face

if TYPE_CHECKING:
    from lance_core.arrow.blob import Blob as Blob
    from lance_core.arrow.blob import BlobColumn as BlobColumn
    from lance_core.arrow.blob import BlobType as BlobType
    from lance_core.arrow.blob import blob_array as blob_array
    from lance_core.arrow.blob import blob_field as blob_field
    from lance_core.dataset.scan.blobs import BlobFile as BlobFile
else:
    __getattr__, __dir__ = lazy_face(
        __name__,
        {
            "Blob": "lance_core.arrow.blob",
            "BlobColumn": "lance_core.arrow.blob",
            "BlobFile": "lance_core.dataset.scan.blobs",
            "BlobType": "lance_core.arrow.blob",
            "blob_array": "lance_core.arrow.blob",
            "blob_field": "lance_core.arrow.blob",
        },
    )

__all__ = [
    "Blob",
    "BlobColumn",
    "BlobFile",
    "BlobType",
    "blob_array",
    "blob_field",
]
