"""How large Spark shall take a `read_table` frame to be, so that its joins are planned by true sizes.

::

    range(0, n, 1, n).mapInArrow(...)                               8 bytes a task: every join broadcasts it
    range(0, n * k, 1, n).where(id % k = 0).mapInArrow(...)         n tasks of one row each, and n * k rows to the planner

Spark takes the result of a function over batches for as large as what goes in, and a filter does not lower that. Counting to
k costs about a nanosecond a step, so k stops where the size is beyond what may be broadcast.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from lance_core.format.fragment import Fragment

_ROW_OVERHEAD = 8
_STEP_BYTES = 8
"""What Spark takes a row of a range to be; a function over batches and a filter leave a size as it is."""
_TEXT_BYTES, _BINARY_BYTES = 20, 100
"""What Spark takes a row and the values of a column without a fixed width to be (`DataType.defaultSize`)."""
_MOST_STEPS = 100_000_000
_THRESHOLDS = ("spark.sql.autoBroadcastJoinThreshold", "spark.sql.adaptive.autoBroadcastJoinThreshold")
_DEFAULT_THRESHOLD = 10 << 20
_UNITS = {"": 0, "b": 0, "k": 10, "kb": 10, "m": 20, "mb": 20, "g": 30, "gb": 30, "t": 40, "tb": 40}


def steps_per_task(spark: Any, num_tasks: int, *, size: int) -> int:
    """`k` above, at least 1, for a frame of `size` bytes."""
    # Far beyond the threshold a size need not be exact.
    most = max(_MOST_STEPS, 4 * _threshold(spark) // _STEP_BYTES)
    return max(1, -(-min(size // _STEP_BYTES, most) // max(1, num_tasks)))


def estimated_size(*, read: pa.Schema, table: pa.Schema, fragments: Sequence[Fragment]) -> int:
    """Bytes of the columns of `read` in Spark: rows by the widths of their types, or their part of the files, if more."""
    rows = sum(fragment.num_rows for fragment in fragments)
    stored = sum(file.file_size_bytes or 0 for fragment in fragments for file in fragment.files)
    part = _width(read) / max(1, _width(table))
    return max(rows * (_ROW_OVERHEAD + _width(read)), int(stored * part))


def _width(schema: pa.Schema) -> int:
    return sum(_bytes_of(field.type) for field in schema)


def _bytes_of(kind: Any) -> int:
    """Of one value; of a list of no fixed size, one element."""
    if pt.is_struct(kind):
        return sum(_bytes_of(kind.field(index).type) for index in range(kind.num_fields))
    if pt.is_map(kind):
        return _bytes_of(kind.key_type) + _bytes_of(kind.item_type)
    if pt.is_fixed_size_list(kind):
        return _bytes_of(kind.value_type) * int(kind.list_size)
    if pt.is_list(kind) or pt.is_large_list(kind):
        return _bytes_of(kind.value_type)
    if pt.is_string(kind) or pt.is_large_string(kind):
        return _TEXT_BYTES
    if pt.is_binary(kind) or pt.is_large_binary(kind):
        return _BINARY_BYTES
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:
        return 8


def _threshold(spark: Any) -> int:
    found = (_bytes(spark.conf.get(name, None)) for name in _THRESHOLDS)
    return max([value for value in found if value is not None], default=_DEFAULT_THRESHOLD)


def _bytes(text: str | None) -> int | None:
    """Of a setting such as `10485760b`, `100MB` or `-1`; None where it is none."""
    found = re.fullmatch(r"(-?\d+)\s*([A-Za-z]*)", (text or "").strip())
    if found is None or found[2].lower() not in _UNITS:
        return None
    return max(0, int(found[1]) << _UNITS[found[2].lower()])
