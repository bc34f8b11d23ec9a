"""The rows of declared columns for which functions failed: where they are, what was raised, how often, when, and for whom.

::

    failed_page(store) -> {"columns": [{"name": "vector", "failed": 3}], "left_out": 0,
                           "rows": [{"column": "vector", "fragment": 1, "offset": 4, "error": "TimeoutError", "status": 504,
                                     "place": "client.py:31", "tries": 2, "when": 1764000000.0, "writer": {...}}]}

Neither what the function was given nor what the exception said is noted anywhere. Notes are data from strangers: what is not
of the form that a refresh writes is shown cut, or left out.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping

from lance_core.computed.failures import FailedNote, read_failed
from lance_core.dataset.snapshot.snapshot import snapshot_of
from lance_core.format.declared import ID, declared_fields, is_column_id, text_of
from lance_core.io.store import Store
from lance_core.maintenance.facts.writers import Json, place_of

MAX_ROWS = 1_000
_ERROR = re.compile(r"(?P<error>\w{1,100})(?: (?P<status>\d{3}))?(?: at (?P<place>[^/\\\s]{1,100}:\d{1,9}))?")


def failed_page(store: Store, *, storage_options: Mapping[str, str] | None = None) -> Json:
    """Return how many rows of each declared column failed, and `MAX_ROWS` of them. Raises NotFoundError, StoreError,
    FormatError."""
    snapshot = snapshot_of(store, storage_options=storage_options)
    columns: list[Json] = []
    rows: list[Json] = []
    total = 0
    for item in declared_fields(snapshot.manifest.schema):
        column_id = text_of(item.metadata, ID)
        if not is_column_id(column_id):
            continue
        found = read_failed(store, column_id)
        columns.append({"name": item.name, "failed": found.total})
        total += found.total
        rows += [_row(item.name, note) for note in found.rows[: MAX_ROWS - len(rows)]]
    return {"columns": columns, "rows": rows, "left_out": total - len(rows)}


def _row(column: str, note: FailedNote) -> Json:
    told = _ERROR.fullmatch(note.error)
    return {
        "column": column,
        "fragment": note.row >> 32,
        "offset": note.row & 0xFFFFFFFF,
        "error": "unknown" if told is None else told["error"],
        "status": None if told is None or told["status"] is None else int(told["status"]),
        "place": None if told is None else told["place"],
        "tries": note.tries,
        "when": _seconds(note.when),
        "writer": place_of(note.task),
    }


def _seconds(text: str) -> float | None:
    try:
        return dt.datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
