"""Index configurations, under the names the official library has in `lance.indices`.

::

    from lance_core.indices import IndexConfig
    dataset.create_scalar_index("doc", IndexConfig("json", {"path": "a.b", "target_index_type": "btree"}))
"""

from __future__ import annotations

from lance_core.dataset.handle.index_verbs import IndexConfig
from lance_core.dataset.indexing.describe import IndexDescription, IndexSegmentDescription

__all__ = ["IndexConfig", "IndexDescription", "IndexSegmentDescription"]
