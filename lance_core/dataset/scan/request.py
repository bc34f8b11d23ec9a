"""The arguments of a scan, before anything is checked.

::

    ScanRequest(columns=["id"], filter="id > 3", limit=10, order_by=(ColumnOrdering("id", ascending=False),))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lance_core.dataset.scan.index_policy import DEFAULT_POLICY, IndexPolicy
from lance_core.dataset.scan.order_by import ColumnOrdering
from lance_core.dataset.scan.projection import Columns
from lance_core.dataset.scan.statistics import StatsCallback
from lance_core.errors import InputError
from lance_core.expr import Expr, from_pyarrow, parse_filter
from lance_core.format.fragment import Fragment
from lance_core.io.cache import shared_cache


@dataclass(frozen=True)
class ScanRequest:
    """What a user asked of a scan, unchecked. `fragments` None means all."""

    columns: Columns = None
    filter: Any = None
    limit: int | None = None
    offset: int | None = None
    batch_size: int | None = None
    with_row_id: bool = False
    with_row_address: bool = False
    fragments: Sequence[Fragment] | None = None
    use_scalar_index: bool = True
    trust: IndexPolicy = DEFAULT_POLICY
    nearest: Any = None
    full_text_query: Any = None
    prefilter: bool = False
    fast_search: bool = False
    scoring_autoprojection: bool = True
    order_by: tuple[ColumnOrdering, ...] = ()
    include_deleted_rows: bool = False
    blob_handling: str | None = None
    strict_batch_size: bool = False
    batch_size_bytes: int | None = None
    scan_stats_callback: StatsCallback | None = None


_PARSED_BYTES = 4096


def as_filter(value: Any, schema: pa.Schema) -> Expr | None:
    """A filter given as SQL text or as a pyarrow expression. Raises FilterError, InputError for anything else."""
    if value is None:
        return None
    if isinstance(value, str):
        return _parsed(value, schema)
    if type(value).__module__.startswith("pyarrow") and type(value).__name__ == "Expression":
        return from_pyarrow(value, schema)
    raise InputError(f"a filter must be an SQL string or a pyarrow expression, got {type(value).__name__}")


def _parsed(text: str, schema: pa.Schema) -> Expr:
    """A filter of a version's schema: asked again and again, it is parsed once."""
    key = ("filter", text, id(schema))
    found: tuple[pa.Schema, Expr] | None = shared_cache().get(key)
    if found is None or found[0] is not schema:  # an id may be that of another one only while nobody holds the first
        found = schema, parse_filter(text, schema)
        shared_cache().put(key, found, _PARSED_BYTES + 64 * len(text))
    return found[1]
