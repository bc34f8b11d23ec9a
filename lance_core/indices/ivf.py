"""The centres of a vector index, at the official library's path `lance.indices.ivf`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.lazy import lazy_face

if TYPE_CHECKING:
    from lance_core.dataset.handle.indices_builder import IvfModel as IvfModel
else:
    __getattr__, __dir__ = lazy_face(
        __name__,
        {
            "IvfModel": "lance_core.dataset.handle.indices_builder",
        },
    )

__all__ = [
    "IvfModel",
]
