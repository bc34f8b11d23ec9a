"""The rows of a declared column for which its function failed, as the refreshes that tried them noted it.

::

    _lance_core/columns/{id}/failed     {"format": 1, "left_out": 0, "rows": [{"row": 4294967296, "digest": "…", "error":
                                         "TimeoutError 504 at client.py:31", "tries": 2, "when": "…", "task": "…"}]}

That a row failed is its evidence's to say; this is a note for people, and for how often a row was tried. It holds no message
of an exception and no input, only the input's digest. It is bounded: of more rows it tells the number.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lance_core.commit.naming import COLUMNS
from lance_core.errors import LanceError, NotFoundError
from lance_core.io.store import Store

log = logging.getLogger(__name__)
MAX_ROWS = 10_000
_FORMAT = 1
_MAX_BYTES = 16 << 20


@dataclass(frozen=True)
class FailedNote:
    """A failed row: its address when it was tried, the digest of its inputs in hex, the error's class, status and place, how
    often it was tried, when (ISO 8601, UTC), and by which task."""

    row: int
    digest: str
    error: str
    tries: int
    when: str
    task: str = ""


@dataclass(frozen=True)
class FailedRows:
    """The failed rows that are known, and how many more there were."""

    rows: tuple[FailedNote, ...] = ()
    left_out: int = 0

    @property
    def total(self) -> int:
        """How many rows failed."""
        return len(self.rows) + self.left_out


def read_failed(store: Store, column_id: str) -> FailedRows:
    """What is noted of a column. Nothing where there is no note, or where it cannot be read."""
    path = _path(column_id)
    try:
        data = bytes(store.get(path))
        if len(data) > _MAX_BYTES:
            raise ValueError("too large")
        plain = json.loads(data)
        if plain["format"] != _FORMAT:
            raise ValueError(f"format {plain['format']!r}")
        return FailedRows(tuple(map(_note, plain["rows"])), int(plain["left_out"]))
    except NotFoundError:
        return FailedRows()
    except (LanceError, ValueError, KeyError, TypeError, RecursionError) as error:
        log.warning("%s/%s, the note of failed rows, cannot be read: %s", store.uri, path, type(error).__name__)
        return FailedRows()


def write_failed(store: Store, column_id: str, rows: Iterable[FailedNote]) -> None:
    """Note these rows in place of those that are noted. Never fails: what is true stands beside the values."""
    found = list(rows)
    plain = {"format": _FORMAT, "left_out": max(0, len(found) - MAX_ROWS), "rows": [asdict(row) for row in found[:MAX_ROWS]]}
    try:
        store.put(_path(column_id), json.dumps(plain).encode(), durable=False)
    except LanceError as error:
        log.warning("%s: the note of failed rows was not written: %s", store.uri, error)


def _path(column_id: str) -> str:
    return f"{COLUMNS}/{column_id}/failed"


def _note(plain: Mapping[str, Any]) -> FailedNote:
    return FailedNote(
        int(plain["row"]), str(plain["digest"]), str(plain["error"]), int(plain["tries"]), str(plain["when"]),
        str(plain.get("task", "")),
    )  # fmt: skip
