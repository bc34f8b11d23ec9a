"""The log of a table, as any writer of the format keeps it: manifests, transactions, the commit loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.lazy import lazy_face

if TYPE_CHECKING:
    from lance_core.errors import CommitConflictError as CommitConflictError
else:
    __getattr__, __dir__ = lazy_face(
        __name__,
        {
            "CommitConflictError": "lance_core.errors",
        },
    )

__all__ = [
    "CommitConflictError",
]
