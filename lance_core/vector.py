"""Vectors as tables, by the official library's names (`lance.vector`).

::

    lance_core.write_dataset(vec_to_table(numpy.zeros((3, 8))), "/t.lance")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.lazy import lazy_face

if TYPE_CHECKING:
    from lance_core.arrow.vectors import vec_to_table as vec_to_table
else:
    __getattr__, __dir__ = lazy_face(
        __name__,
        {
            "vec_to_table": "lance_core.arrow.vectors",
        },
    )

__all__ = [
    "vec_to_table",
]
