"""Fragments as users meet them: the handle, what a manifest says about one, and writing some for a commit of one's own.

::

    from lance_core.fragment import write_fragments
    fragments = write_fragments(table, "/t.lance")
"""

from __future__ import annotations

from lance_core.dataset.handle.fragment import LanceFragment
from lance_core.dataset.handle.write_fragments import write_fragments
from lance_core.format.fragment import DataFile, DeletionFile
from lance_core.format.fragment import Fragment as FragmentMetadata

__all__ = ["DataFile", "DeletionFile", "FragmentMetadata", "LanceFragment", "write_fragments"]
