"""Check that a vector index finds the vectors of the table.

::

    validate_vector_index(dataset, "vector", sample_size=100)      InputError when too few find themselves
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from lance_core.errors import InputError

_NEAR = 1e-6


class Searchable(Protocol):
    """A table that can be read and searched: `LanceDataset`."""

    def to_table(self, columns: Any = ..., *, nearest: Any = ...) -> pa.Table:
        """Rows."""
        ...

    def sample(self, num_rows: int, columns: Any = ...) -> pa.Table:
        """Random rows."""
        ...


def validate_vector_index(
    dataset: Searchable, column: str, refine_factor: int = 5, sample_size: int | None = None, pass_threshold: float = 1.0
) -> None:
    """Search every vector, or a sample of them, in one partition and expect to find it at distance 0.

    InputError when the share that found itself is below `pass_threshold`.
    """
    rows = dataset.to_table([column]) if sample_size is None else dataset.sample(sample_size, [column])
    vectors = [np.asarray(value) for value in rows.column(column).to_pylist() if value is not None]
    vectors = [vector for vector in vectors if np.isfinite(vector.astype(np.float64)).all()]
    found = 0
    for vector in vectors:
        query = {"column": column, "q": vector, "k": 1, "nprobes": 1, "refine_factor": refine_factor}
        distances: list[Any] = dataset.to_table([column], nearest=query).column("_distance").to_pylist()
        found += bool(distances) and abs(distances[0]) < _NEAR
    if vectors and found / len(vectors) < pass_threshold:
        raise InputError(
            f"the index on {column!r} found {found} of {len(vectors)} vectors at distance 0", cure="Build it again."
        )
