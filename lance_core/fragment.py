"""The public API of fragments: the handle, the metadata, and writing fragments for a separate commit.

::

    from lance_core.fragment import write_fragments
    fragments = write_fragments(table, "/t.lance")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.lazy import lazy_face

if TYPE_CHECKING:
    from lance_core.dataset.handle.fragment import FragmentSession as FragmentSession
    from lance_core.dataset.handle.fragment import LanceFragment as LanceFragment
    from lance_core.dataset.handle.write_fragments import write_fragments as write_fragments
    from lance_core.dataset.write.stage import MAX_BYTES_PER_FILE as DEFAULT_MAX_BYTES_PER_FILE
    from lance_core.format.fragment import DataFile as DataFile
    from lance_core.format.fragment import DeletionFile as DeletionFile
    from lance_core.format.fragment import Fragment as FragmentMetadata
else:
    __getattr__, __dir__ = lazy_face(
        __name__,
        {
            "DEFAULT_MAX_BYTES_PER_FILE": "lance_core.dataset.write.stage:MAX_BYTES_PER_FILE",
            "DataFile": "lance_core.format.fragment",
            "DeletionFile": "lance_core.format.fragment",
            "FragmentMetadata": "lance_core.format.fragment:Fragment",
            "FragmentSession": "lance_core.dataset.handle.fragment",
            "LanceFragment": "lance_core.dataset.handle.fragment",
            "write_fragments": "lance_core.dataset.handle.write_fragments",
        },
    )

__all__ = [
    "DEFAULT_MAX_BYTES_PER_FILE",
    "DataFile",
    "DeletionFile",
    "FragmentMetadata",
    "FragmentSession",
    "LanceFragment",
    "write_fragments",
]
