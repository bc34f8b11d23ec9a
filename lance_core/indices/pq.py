"""The codebook of a vector index, at the official library's path `lance.indices.pq`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.lazy import lazy_face

if TYPE_CHECKING:
    from lance_core.dataset.handle.indices_builder import PqModel as PqModel
else:
    __getattr__, __dir__ = lazy_face(
        __name__,
        {
            "PqModel": "lance_core.dataset.handle.indices_builder",
        },
    )

__all__ = [
    "PqModel",
]
