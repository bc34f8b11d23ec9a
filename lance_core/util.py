"""Small helpers, by the official library's names (`lance.util`).

::

    model = KMeans(8)
    validate_vector_index(dataset, "vector", sample_size=100)
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from lance_core.errors import InputError
from lance_core.lazy import lazy_face

if TYPE_CHECKING:
    from lance_core.dataset.maintain.vector_check import validate_vector_index as validate_vector_index
    from lance_core.index.vector.kmeans import KMeans as KMeans
else:
    __getattr__, __dir__ = lazy_face(
        __name__,
        {
            "KMeans": "lance_core.index.vector.kmeans",
            "validate_vector_index": "lance_core.dataset.maintain.vector_check",
        },
    )

__all__ = [
    "KMeans",
    "sanitize_ts",
    "td_to_micros",
    "validate_vector_index",
]


def sanitize_ts(ts: str | dt.datetime) -> dt.datetime:
    """A moment given as text (ISO 8601), as a datetime or as a pandas Timestamp. InputError for anything else."""
    if isinstance(ts, str):
        try:
            return dt.datetime.fromisoformat(ts)
        except ValueError:
            raise InputError(f"{ts!r} is not a valid time", cure="Write it as 2024-01-31 12:00:00.") from None
    if not isinstance(ts, dt.datetime):
        raise InputError(f"expected a time, got {type(ts).__name__}")
    convert: Any = getattr(ts, "to_pydatetime", None)
    return ts if convert is None else convert()


def td_to_micros(td: dt.timedelta) -> int:
    """A duration in microseconds."""
    return td // dt.timedelta(microseconds=1)
