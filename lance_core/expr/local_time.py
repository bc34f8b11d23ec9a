"""The local time of a point in time that has a zone, and back: the one place where zones are reckoned with.

::

    2024-03-31T01:30:00Z of Europe/Berlin -> 2024-03-31 03:30:00        +05:30: an offset is a zone too
    2024-03-31 02:30:00, which Berlin's clocks leave out -> 03:00:00+02:00
    2024-10-27 02:30:00, which they show twice -> the first, 02:30:00+02:00

A point in time with a zone is stored as UTC; what people write and read is the local time.
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
from pyarrow import compute

from lance_core.arrow_numpy import constant

pc: Any = compute  # the stubs know only some of what the kernels take
Value = Any
_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})\Z")
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def zone_of(kind: pa.DataType) -> str | None:
    """The zone of a type; None: it has none."""
    return kind.tz if pa.types.is_timestamp(kind) else None


def to_local(value: Value) -> Value:
    """What a clock of its zone shows, as a timestamp without a zone; one without a zone as it is."""
    zone = zone_of(value.type)
    if zone is None:
        return value
    bare = without_zone(value)
    shift = _offset(zone)
    return pc.local_timestamp(value) if shift is None else _shifted(bare, shift)


def to_zone(value: Value, zone: str) -> Value:
    """The point in time at which clocks of a zone show a timestamp that has none."""
    target = pa.timestamp(value.type.unit, zone)
    shift = _offset(zone)
    if shift is None:
        return pc.assume_timezone(value, zone, ambiguous="earliest", nonexistent="latest")
    return cast_ticks(_shifted(value, -shift), target)


def without_zone(value: Value) -> Value:
    """The same instant as UTC without a zone."""
    return cast_ticks(value, pa.timestamp(value.type.unit))


def with_zone(value: Value, zone: str | None) -> Value:
    """UTC without a zone as the same instant in a zone."""
    return cast_ticks(value, pa.timestamp(value.type.unit, zone))


def cast_ticks(value: Value, target: pa.DataType) -> Value:
    """The same 64 bits as another type of one unit."""
    if value.type == target:
        return value
    return value.cast(pa.int64()).cast(target)


def _offset(zone: str) -> int | None:
    """Seconds ahead of UTC, of a zone that is an offset."""
    if zone in ("UTC", "Etc/UTC", "Z"):
        return 0
    found = _OFFSET.match(zone)
    if found is None:
        return None
    return (1 if found[1] == "+" else -1) * (int(found[2]) * 3600 + int(found[3]) * 60)


def _shifted(value: Value, seconds: int) -> Value:
    if not seconds:
        return value
    ticks = pc.add_checked(value.cast(pa.int64()), constant(seconds * PER_SECOND[value.type.unit], pa.int64()))
    return ticks.cast(value.type)
