"""The types of data that can be written to a table, by the official library's names (`lance.types`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.lazy import lazy_face

if TYPE_CHECKING:
    from lance_core.dataset.write.sources import ReaderLike as ReaderLike
else:
    __getattr__, __dir__ = lazy_face(
        __name__,
        {
            "ReaderLike": "lance_core.dataset.write.sources",
        },
    )

__all__ = [
    "ReaderLike",
]
