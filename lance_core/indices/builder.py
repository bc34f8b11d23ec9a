"""Training the models of a vector index, at the official library's path `lance.indices.builder`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.lazy import lazy_face

if TYPE_CHECKING:
    from lance_core.dataset.handle.index_verbs import IndexConfig as IndexConfig
    from lance_core.dataset.handle.indices_builder import IndicesBuilder as IndicesBuilder
else:
    __getattr__, __dir__ = lazy_face(
        __name__,
        {
            "IndexConfig": "lance_core.dataset.handle.index_verbs",
            "IndicesBuilder": "lance_core.dataset.handle.indices_builder",
        },
    )

__all__ = [
    "IndexConfig",
    "IndicesBuilder",
]
