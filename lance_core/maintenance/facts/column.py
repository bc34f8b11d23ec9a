"""Statistics of one column: nulls, extremes, distinct and frequent values, its bytes. Bounded in rows, time and answer.

::

    column_page("/t.lance", "price") -> {"rows": 1000, "total_rows": 1000, "nulls": 3, "min": 0.5, "max": 49.0, "mean": 24.6,
                                         "distinct": 50, "top": [{"value": 7.0, "count": 20}, ...], "bytes": 8192}

At most `MOST_ROWS` rows are read, in the order of the table, and no more once half of the time is over: the answer says how
many that were. Distinct values are counted up to `MOST_VALUES`; above that `distinct` is None.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_core.dataset.handle.open import dataset
from lance_core.dataset.snapshot.snapshot import Snapshot
from lance_core.errors import InputError
from lance_core.maintenance.facts.cells import cell
from lance_core.maintenance.facts.writers import Json

MOST_ROWS = 1_000_000
MOST_VALUES = 10_000
MOST_FILES = 500
TOP = 5
BATCH_ROWS = 8192
SHARE_OF_TIME = 0.5


@dataclass
class _Sums:
    """What the batches so far add up to."""

    rows: int = 0
    nulls: int = 0
    low: Any = None
    high: Any = None
    total: float = 0.0
    num_nan: int = 0
    counts: Counter[Any] | None = field(default_factory=Counter)
    lengths: tuple[int, int] | None = None

    def add(self, values: Any) -> None:
        self.rows += len(values)
        self.nulls += values.null_count
        there = values.drop_null()
        if pa.types.is_floating(there.type):
            is_nan: Any = pc.is_nan(there)
            self.num_nan += is_nan.true_count
            there = there.filter(pc.invert(is_nan))
        if not len(there):
            return
        if _is_ordered(there.type):
            found: Any = pc.min_max(there).as_py()
            self.low = found["min"] if self.low is None else min(self.low, found["min"])
            self.high = found["max"] if self.high is None else max(self.high, found["max"])
            self._count(there)
        if _is_number(there.type):
            self.total += float(pc.sum(there.cast(pa.float64())).as_py())
        if _has_lengths(there.type):
            lengths: Any = pc.min_max(_lengths(there)).as_py()
            low, high = self.lengths or (lengths["min"], lengths["max"])
            self.lengths = min(low, lengths["min"]), max(high, lengths["max"])

    def _count(self, there: Any) -> None:
        if self.counts is None:
            return
        pairs: Any = pc.value_counts(there)
        for item in pairs.to_pylist():
            self.counts[item["values"]] += item["counts"]
        if len(self.counts) > MOST_VALUES:
            self.counts = None


def column_page(
    uri: str,
    path: str,
    *,
    version: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    seconds: float = 10.0,
) -> Json:
    """Return the statistics of a column, or of a field of a struct by dotted path. InputError when there is none."""
    began = time.monotonic()
    options = None if storage_options is None else dict(storage_options)
    table = dataset(uri, version=version, storage_options=options)
    schema = table.snapshot.manifest.schema
    known = {schema.path_of(item.id): item for item in schema.fields}
    if path not in known:
        raise InputError(f"the table has no column {path!r}", cure=f"Columns: {', '.join(list(known)[:20])}.")
    top = path.partition(".")[0] if path not in table.schema.names else path
    sums, is_whole = _Sums(), True
    for batch in table.scanner(columns=[top], batch_size=BATCH_ROWS).to_batches():
        sums.add(_at(batch.column(0), path[len(top) + 1 :])[: MOST_ROWS - sums.rows])
        if sums.rows >= MOST_ROWS or time.monotonic() - began > SHARE_OF_TIME * seconds:
            is_whole = sums.rows >= table.snapshot.manifest.num_rows
            break
    counts = sums.counts
    num_values = sums.rows - sums.nulls - sums.num_nan
    return {
        "path": path,
        "type": known[path].logical_type,
        "version": table.version,
        "rows": sums.rows,
        "total_rows": table.snapshot.manifest.num_rows,
        "complete": is_whole,
        "nulls": sums.nulls,
        "nan": sums.num_nan,
        "min": cell(sums.low),
        "max": cell(sums.high),
        "mean": cell(sums.total / num_values) if sums.total and num_values else None,
        "distinct": len(counts) if counts else None,
        "top": [{"value": cell(value), "count": count} for value, count in (counts or Counter()).most_common(TOP)],
        "lengths": None if sums.lengths is None else list(sums.lengths),
        "bytes": _bytes(table.snapshot, known[path].id),
        "seconds": time.monotonic() - began,
    }


def _at(values: Any, path: str) -> Any:
    """A field of structs; a list's items count for themselves."""
    for name in path.split(".") if path else ():
        if pa.types.is_struct(values.type):
            values = pc.struct_field(values, name)
        elif _is_list(values.type):
            values = pc.list_flatten(values)
        else:
            raise InputError(f"statistics of {name!r} are not known", cure="Ask for the column above it.")
    return values


def _bytes(snapshot: Snapshot, number: int) -> int | None:
    """Bytes of the field and of all below it in the data files; None where there are too many files to ask."""
    from lance_core.dataset.maintain.statistics import LanceStats

    if sum(len(item.files) for item in snapshot.manifest.fragments) > MOST_FILES:
        return None
    sizes = {item.id: item.bytes_on_disk for item in LanceStats(snapshot).data_stats().fields}
    return sum(sizes.get(item.id, 0) for item in snapshot.manifest.schema.descend(number))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_ordered(kind: pa.DataType) -> bool:
    is_time = pa.types.is_temporal(kind) and not pa.types.is_interval(kind)
    return bool(_is_number(kind) or is_time or _is_text(kind) or pa.types.is_boolean(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _has_lengths(kind: pa.DataType) -> bool:
    return bool(_is_list(kind) or _is_text(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _lengths(values: Any) -> Any:
    if _is_text(values.type):
        return pc.utf8_length(values)
    if pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type):
        return pc.binary_length(values)
    return pc.list_value_length(values)
