"""Values of a table as plain data for a page: cut where they are long, exact where they are short.

::

    cell(7) -> 7                                  cell(2 ** 60) -> "1152921504606846976"      (JavaScript has none such)
    cell([0.1, 0.2, ...]) of a vector             -> {"kind": "vector", "length": 768, "head": [0.1, 0.2, ...]}
    cell(b"\\x00\\xff")                             -> {"kind": "binary", "length": 2, "hex": "00ff"}
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

TEXT_LIMIT = 500
JSON_LIMIT = 1000
VECTOR_HEAD = 8
BINARY_HEAD = 32
_SAFE_INTEGER = 2**53


def cell(value: object) -> object:
    """Return one value as JSON-able data of bounded size."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) <= _SAFE_INTEGER else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return value if len(value) <= TEXT_LIMIT else {"kind": "text", "value": value[:TEXT_LIMIT], "length": len(value)}
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
        return {"kind": "binary", "length": len(data), "hex": data[:BINARY_HEAD].hex()}
    if _is_vector(value):
        assert isinstance(value, Sequence)
        return {"kind": "vector", "length": len(value), "head": [cell(item) for item in value[:VECTOR_HEAD]]}
    if isinstance(value, Mapping | Sequence):
        text = json.dumps(value, default=_plain, ensure_ascii=False)
        return {"kind": "json", "value": text[:JSON_LIMIT], "truncated": len(text) > JSON_LIMIT}
    return str(value)[:TEXT_LIMIT]


def _is_vector(value: object) -> bool:
    is_list = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    return is_list and len(value) > 0 and all(isinstance(item, float) for item in value[:VECTOR_HEAD])  # type: ignore[arg-type,index]


def _plain(value: object) -> object:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)[:BINARY_HEAD].hex()
    return str(value)
