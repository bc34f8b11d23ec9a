"""Functions that compute columns, by the official library's names (`lance.udf`).

::

    @batch_udf(checkpoint_file="embed.db")
    def embed(batch): ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.lazy import lazy_face

if TYPE_CHECKING:
    from lance_core.dataset.columns.udf import BatchUDF as BatchUDF
    from lance_core.dataset.columns.udf import Checkpoint as BatchUDFCheckpoint
    from lance_core.dataset.columns.udf import batch_udf as batch_udf
else:
    __getattr__, __dir__ = lazy_face(
        __name__,
        {
            "BatchUDF": "lance_core.dataset.columns.udf",
            "BatchUDFCheckpoint": "lance_core.dataset.columns.udf:Checkpoint",
            "batch_udf": "lance_core.dataset.columns.udf",
        },
    )

__all__ = [
    "BatchUDF",
    "BatchUDFCheckpoint",
    "batch_udf",
]
