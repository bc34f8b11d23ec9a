"""Tables of every type for the sweep of expressions: values at the edges of their types, ordinary ones, odd hours."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

NAN, INF = float("nan"), float("inf")
ZONES = {"utc": "UTC", "ber": "Europe/Berlin", "nyc": "America/New_York", "ind": "+05:30"}
_SECONDS = [
    0, 1, -1, 1711846799, 1711846800, 1711850400, 1729990799, 1729990800, 1729994400, 1730613600, -2208988800,
    951782400, 1609459199, -62135596800, 253402300799, None,
]  # fmt: skip
"""The epoch; the hours in which Berlin and New York change their clocks; 1900; a leap day; the last second of 2020; years 1
and 9999."""
_TEXTS = [
    "", "a", "A b", "  x ", "straße", "İstanbul", "ﬁn", "e\u0301", "日本語", "𝔘nicode\U0001f600", "12", "-3.5", "2020-02-29",
    "a_b%c\\d\n", "ΑΣ σς", None,
]  # fmt: skip
_FLOATS = [0.0, -0.0, 1.0, -1.5, 0.1, 2.5, 3.5, -2.5, 1e-7, 1e300, 5e-324, INF, -INF, NAN, 99.99, None]
_CLOCK_SECONDS = [1711846799, 1729990800, 1729998000, -1, 1730613600, None]
_ORDINARY_SECONDS = [0, 86399, 1583020799, 1717243200, 1735689600, None]


def _ints(bits: int, signed: bool) -> list[int | None]:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    values = [0, 1, 2, 3, 7, 10, 63, 64, 100, low, high, low + 1, high - 1, high // 2, high // 2 + 1]
    return [*values, None]


def _stamps(unit: str, zone: str | None, seconds: list[int | None]) -> pa.Array[Any]:
    factor = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    ticks = []
    for number, second in enumerate(seconds):
        far = second is not None and unit == "ns" and abs(second) > 9_000_000_000
        value = None if second is None or far else second * factor + (number * 123_456_789 * factor // 10**9)
        ticks.append(value)
    return pa.array(ticks, pa.int64()).cast(pa.timestamp(unit, zone))


def _columns(edge: bool, ordinary: list[int | None] = _ORDINARY_SECONDS) -> dict[str, pa.Array[Any]]:
    rows = 16 if edge else 6
    seconds = _SECONDS if edge else ordinary
    made: dict[str, pa.Array[Any]] = {}
    for sign in ("i", "u"):
        for bits in (8, 16, 32, 64):
            values = _ints(bits, sign == "i") if edge else [1, 2, 3, 5, 100, None]
            made[f"{sign}{bits}"] = pa.array(values, getattr(pa, f"{'u' * (sign == 'u')}int{bits}")())
    floats = _FLOATS if edge else [0.5, 1.0, 2.25, -3.5, 99.99, None]
    made["f64"] = pa.array(floats, pa.float64())
    made["g64"] = pa.array([*floats[3:], *floats[:3]], pa.float64())
    made["f32"] = made["f64"].cast(pa.float32(), safe=False)
    halves = [value if value is None else np.float16(np.clip(value, -6e4, 6e4) if abs(value) < INF else value)
              for value in floats]  # fmt: skip
    made["f16"] = pa.array(halves, pa.float16())
    edges = ["0", "1", "-1", "0.01", "-0.01", "99.99", "100.13", "2.50", "3.50", "-2.50", "99999999.99", "-99999999.99"]
    decimals = ([*edges, "12.34", "0.05", "7.00", None]) if edge else ["0.50", "1.00", "2.25", "-3.50", "99.99", None]
    exact = [None if text is None else Decimal(text) for text in decimals]
    made["dec"] = pa.array(exact, pa.decimal128(10, 2))
    made["dec5"] = pa.array([None if v is None else v % 100 for v in exact], pa.decimal128(5, 3))
    wide = [None if v is None else v * (10**17 if edge else 1) for v in exact]
    made["dec38"] = pa.array(wide, pa.decimal128(38, 10))
    made["whole"] = pa.array([None if v is None else v.to_integral_value() for v in wide], pa.decimal128(38, 0))
    made["huge"] = pa.array([None if v is None else v * (10**20 if edge else 1) for v in exact], pa.decimal256(60, 5))
    texts = _TEXTS if edge else ["a", "b c", "Abc", "12", "2020-02-29", None]
    made["s"] = pa.array(texts, pa.string())
    made["t"] = pa.array([*texts[2:], *texts[:2]], pa.string())
    made["ls"] = pa.array(texts, pa.large_string())
    made["dict"] = pa.array(texts, pa.string()).dictionary_encode()
    made["num"] = pa.array((["1", "-2", "3.5", "0", "1e3", None] * 3)[:rows], pa.string())
    made["raw"] = pa.array([None if text is None else text.encode() for text in texts], pa.binary())
    made["lraw"] = pa.array([None if text is None else text.encode() for text in texts], pa.large_binary())
    made["fixed"] = pa.array([None if text is None else (text.encode() + b"\0\0\0")[:3] for text in texts], pa.binary(3))
    made["b"] = pa.array(([True, False, None] * 6)[:rows], pa.bool_())
    made["c"] = pa.array(([True, True, False, False, None, None] * 3)[:rows], pa.bool_())
    days = [None if second is None else second // 86400 for second in seconds]
    made["d32"] = pa.array(days, pa.int32()).cast(pa.date32())
    made["d64"] = pa.array(days, pa.int32()).cast(pa.date32()).cast(pa.date64())
    for unit in ("s", "ms", "us", "ns"):
        made[f"ts_{unit}"] = _stamps(unit, None, seconds)
        durations = [None if s is None else (s % 200_000 - 1000) for s in seconds]
        made[f"dur_{unit}"] = pa.array(durations, pa.int64()).cast(pa.duration(unit))
        clock = [None if s is None else s % 86400 * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit] for s in seconds]
        kind = pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
        made[f"time_{unit}"] = pa.array(clock, pa.int32() if unit in ("s", "ms") else pa.int64()).cast(kind)
    for name, zone in ZONES.items():
        made[f"z_{name}"] = _stamps("us", zone, seconds)
        made[f"zn_{name}"] = _stamps("ns" if name in ("utc", "nyc") else "ms", zone, seconds)
    made.update(_nested(rows, edge))
    made["k"] = pa.array(range(rows), pa.int64())
    made["one"] = pa.array([1, 2, 3, 0, 5, None, *([4] * 10)][:rows], pa.int64())
    return made


def _nested(rows: int, edge: bool) -> dict[str, pa.Array[Any]]:
    def cycle(values: list[Any], kind: pa.DataType) -> pa.Array[Any]:
        return pa.array((values * rows)[:rows], kind)

    floats = [[0.0, -0.0], [NAN, 1.0, NAN], [INF, None], [], None, [2.5]] if edge else [[1.0, 2.0], [], None, [3.5, 0.5]]
    return {
        "li": cycle([[1, 2, 3, 2], [], None, [None, 5], [7], [2**31 - 1, -(2**31)]], pa.list_(pa.int32())),
        "ll": cycle([[1, 2], [2, None], [], None, [9]], pa.list_(pa.int64())),
        "lf": cycle(floats, pa.list_(pa.float64())),
        "lt": cycle([["a", "b"], ["b", None], None, [], ["x", "A", ""]], pa.list_(pa.string())),
        "lb": cycle([[True, None], [], None, [False]], pa.list_(pa.bool_())),
        "ldt": cycle([[dt.date(2020, 2, 29), None], [], None, [dt.date(1969, 12, 31)] * 2], pa.list_(pa.date32())),
        "lll": cycle([[1, 3], [2, None, 2], None, []], pa.large_list(pa.int64())),
        "vec": cycle([[1.0, 2.0], [0.0, 0.0], [-3.5, 4.0]], pa.list_(pa.float32(), 2)),
        "deep": cycle([[[1], [2, None]], [], None, [[], None]], pa.list_(pa.list_(pa.int64()))),
        "st": cycle([{"x": 1, "y": "a"}, {"x": None, "y": "b"}, None], pa.struct([("x", pa.int32()), ("y", pa.string())])),
        "m": cycle([[("a", 1), ("b", None)], [("c", 3)], [], None], pa.map_(pa.string(), pa.int64())),
    }


def edge_rows() -> pa.Table:
    """Values at the edges of their types; the last row is null in most columns."""
    return pa.table(_columns(edge=True))


def ordinary_rows() -> pa.Table:
    """Values for which few operations fail, so that one row does not hide the others."""
    return pa.table(_columns(edge=False))


def clock_rows() -> pa.Table:
    """Ordinary values, times in the hours in which clocks change and before 1970, none of them far."""
    return pa.table(_columns(edge=False, ordinary=_CLOCK_SECONDS))
