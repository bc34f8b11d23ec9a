"""A few rows of a table: a sample, a filter, a full-text or a vector search, as bounded plain data.

::

    rows_page("/t.lance", RowsRequest(filter="price < 20", limit=20))
    -> {"version": 144, "columns": [{"name": "id", "type": "int64"}, ...], "rows": [[7, ...], ...], "truncated": false}
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lance_core.dataset.handle.open import dataset
from lance_core.errors import InputError, StoreError
from lance_core.maintenance.facts.cells import cell
from lance_core.maintenance.facts.writers import Json

MAX_ROWS = 200
MAX_OFFSET = 1_000_000
MAX_VECTOR = 65_536
MAX_COLUMNS = 200
BATCH_ROWS = 256


@dataclass(frozen=True, kw_only=True)
class RowsRequest:
    """Which rows: of a version (None: the newest), matching `filter`, best first for `text` or `vector`."""

    version: int | None = None
    limit: int = 50
    offset: int = 0
    filter: str | None = None
    columns: tuple[str, ...] | None = None
    text: str | None = None
    text_column: str | None = None
    vector: tuple[float, ...] | None = None
    vector_column: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.limit <= MAX_ROWS:
            raise InputError(f"limit must be between 1 and {MAX_ROWS}, got {self.limit}")
        if not 0 <= self.offset <= MAX_OFFSET:
            raise InputError(f"offset must be between 0 and {MAX_OFFSET}, got {self.offset}")
        if self.text and self.vector:
            raise InputError("a text search cannot be combined with a vector search", cure="Omit one of them.")
        if self.vector is not None and not 1 <= len(self.vector) <= MAX_VECTOR:
            raise InputError(f"a vector has 1 to {MAX_VECTOR} numbers, got {len(self.vector)}")


def rows_page(
    uri: str, request: RowsRequest, *, storage_options: Mapping[str, str] | None = None, seconds: float = 10.0
) -> Json:
    """Return the rows. InputError for a wrong filter, column or vector; StoreError when `seconds` do not suffice."""
    began = time.monotonic()
    options = None if storage_options is None else dict(storage_options)
    table = dataset(uri, version=request.version, storage_options=options)
    names = _columns(table.schema, request.columns)
    batches, got, truncated = table.scanner(columns=names, **_question(table.schema, request)).to_batches(), 0, False
    found: list[list[object]] = []
    schema: pa.Schema | None = None
    for batch in batches:
        schema = batch.schema
        for row in batch.slice(0, request.limit - got).to_pylist():
            found.append([cell(row[name]) for name in batch.schema.names])
        got = len(found)
        if got >= request.limit:
            truncated = True
            break
        if time.monotonic() - began > seconds:
            raise StoreError(f"{uri}: no answer within {seconds:.0f} s", uri=uri, cure="Request fewer rows or columns.")
    shown = schema if schema is not None else pa.schema([table.schema.field(name) for name in names])
    return {
        "version": table.version,
        "columns": [{"name": field.name, "type": str(field.type)} for field in shown],
        "rows": found,
        "truncated": truncated,
        "seconds": time.monotonic() - began,
        "text_columns": [field.name for field in table.schema if _is_text(field.type)],
        "vector_columns": [
            {"name": field.name, "dimension": field.type.list_size} for field in table.schema if _is_vector(field.type)
        ],
    }


def _columns(schema: pa.Schema, wanted: tuple[str, ...] | None) -> list[str]:
    unknown = sorted(set(wanted or ()) - set(schema.names))
    if unknown:
        raise InputError(f"the table has no column {unknown[0]!r}", cure=f"Columns: {', '.join(schema.names[:20])}.")
    return list(wanted or schema.names[:MAX_COLUMNS])


def _question(schema: pa.Schema, request: RowsRequest) -> dict[str, Any]:
    asked: dict[str, Any] = {"limit": request.limit, "batch_size": BATCH_ROWS}
    if request.filter:
        asked["filter"] = request.filter
    if request.text:
        asked["full_text_query"] = (
            {"columns": [request.text_column], "query": request.text} if request.text_column else request.text
        )
    elif request.vector is not None:
        asked["nearest"] = _nearest(schema, request)
    elif request.offset:
        asked["offset"] = request.offset
    if request.filter and (request.text or request.vector is not None):
        asked["prefilter"] = True
    return asked


def _nearest(schema: pa.Schema, request: RowsRequest) -> dict[str, Any]:
    assert request.vector is not None
    vectors = [item for item in schema if _is_vector(item.type)]
    name = request.vector_column or (vectors[0].name if vectors else "")
    column = next((item for item in vectors if item.name == name), None)
    if column is None:
        raise InputError(f"the table has no vector column {name!r}", cure="Search by text or filter instead.")
    if column.type.list_size != len(request.vector):
        size = column.type.list_size
        raise InputError(
            f"{name} has {size} dimensions, the vector has {len(request.vector)}", cure=f"Search with {size} numbers."
        )
    return {"column": name, "q": pa.array(request.vector, column.type.value_type), "k": request.limit}


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_vector(kind: pa.DataType) -> bool:
    return bool(pa.types.is_fixed_size_list(kind) and pa.types.is_floating(kind.value_type))
