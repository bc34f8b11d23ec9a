"""Columns every table has without storing them; a stored column of the same name wins.

::

    _rowid = 12      the row's id: its address, or its stable id where the table keeps those
"""

from __future__ import annotations

import pyarrow as pa

SYSTEM_COLUMNS: dict[str, pa.DataType] = {
    "_rowid": pa.uint64(),
    "_rowaddr": pa.uint64(),
    "_rowoffset": pa.uint64(),
    "_row_created_at_version": pa.uint64(),
    "_row_last_updated_at_version": pa.uint64(),
}
