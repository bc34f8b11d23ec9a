"""Format a value of a table for a message or a report, also one without a Python object.

::

    shown(pa.scalar("a"))                                       "'a'"
    shown(pa.scalar(2**31 - 1, pa.date32()))                    "a value of type date32[day]"      no calendar has that day
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def shown(value: Any, text_of: Callable[[object], str] = repr) -> str:
    """The text of an Arrow scalar; of one whose text is not UTF-8, or whose time is out of range, its type."""
    try:
        return text_of(value.as_py())
    except (ValueError, OverflowError):
        return f"a value of type {value.type}"
