"""Index configurations, under the names the official library has in `lance.indices`.

::

    from lance_core.indices import IndexConfig
    dataset.create_scalar_index("doc", IndexConfig("json", {"path": "a.b", "target_index_type": "btree"}))
"""

from __future__ import annotations

from lance_core.dataset.indices import IndexConfig, IndexDescription, IndexSegmentDescription

__all__ = ["IndexConfig", "IndexDescription", "IndexSegmentDescription"]
