"""Index configurations, descriptions and models, under the names the official library has in `lance.indices`.

::

    from lance_core.indices import IndexConfig
    dataset.create_scalar_index("doc", IndexConfig("json", {"path": "a.b", "target_index_type": "btree"}))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.lazy import lazy_face

if TYPE_CHECKING:
    from lance_core.dataset.handle.index_verbs import IndexConfig as IndexConfig
    from lance_core.dataset.handle.indices_builder import IndicesBuilder as IndicesBuilder
    from lance_core.dataset.handle.indices_builder import IvfModel as IvfModel
    from lance_core.dataset.handle.indices_builder import PqModel as PqModel
    from lance_core.dataset.indexing.describe import IndexDescription as IndexDescription
    from lance_core.dataset.indexing.describe import IndexSegmentDescription as IndexSegmentDescription
    from lance_core.format.index import IndexMetadata as IndexSegment
else:
    __getattr__, __dir__ = lazy_face(
        __name__,
        {
            "IndexConfig": "lance_core.dataset.handle.index_verbs",
            "IndexDescription": "lance_core.dataset.indexing.describe",
            "IndexSegment": "lance_core.format.index:IndexMetadata",
            "IndexSegmentDescription": "lance_core.dataset.indexing.describe",
            "IndicesBuilder": "lance_core.dataset.handle.indices_builder",
            "IvfModel": "lance_core.dataset.handle.indices_builder",
            "PqModel": "lance_core.dataset.handle.indices_builder",
        },
    )

__all__ = [
    "IndexConfig",
    "IndexDescription",
    "IndexSegment",
    "IndexSegmentDescription",
    "IndicesBuilder",
    "IvfModel",
    "PqModel",
]
