"""Data files: opened, read and written.

::

    opened = open_file(store, "data/a.lance")                     lance_core.file.open
    for batch in opened.read(schema, batch_size=8192): ...
    LanceFileReader("/tmp/a.lance").read_all().to_table()         single files, by the names of the official `lance.file`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.lazy import lazy_face

if TYPE_CHECKING:
    from lance_core.file.single_file import LanceBufferDescriptor as LanceBufferDescriptor
    from lance_core.file.single_file import LanceColumnMetadata as LanceColumnMetadata
    from lance_core.file.single_file import LanceColumnStatistics as LanceColumnStatistics
    from lance_core.file.single_file import LanceFileMetadata as LanceFileMetadata
    from lance_core.file.single_file import LanceFileReader as LanceFileReader
    from lance_core.file.single_file import LanceFileStatistics as LanceFileStatistics
    from lance_core.file.single_file import LanceFileWriter as LanceFileWriter
    from lance_core.file.single_file import LancePageMetadata as LancePageMetadata
    from lance_core.file.single_file import ReaderResults as ReaderResults
    from lance_core.file.single_file import stable_version as stable_version
else:
    __getattr__, __dir__ = lazy_face(
        __name__,
        {
            "LanceBufferDescriptor": "lance_core.file.single_file",
            "LanceColumnMetadata": "lance_core.file.single_file",
            "LanceColumnStatistics": "lance_core.file.single_file",
            "LanceFileMetadata": "lance_core.file.single_file",
            "LanceFileReader": "lance_core.file.single_file",
            "LanceFileStatistics": "lance_core.file.single_file",
            "LanceFileWriter": "lance_core.file.single_file",
            "LancePageMetadata": "lance_core.file.single_file",
            "ReaderResults": "lance_core.file.single_file",
            "stable_version": "lance_core.file.single_file",
        },
    )

__all__ = [
    "LanceBufferDescriptor",
    "LanceColumnMetadata",
    "LanceColumnStatistics",
    "LanceFileMetadata",
    "LanceFileReader",
    "LanceFileStatistics",
    "LanceFileWriter",
    "LancePageMetadata",
    "ReaderResults",
    "stable_version",
]
