"""A DuckDB connection that only sees registered tables: no files, no network, no extensions, no settings.

::

    SELECT * FROM read_text('/etc/passwd')     refused
    COPY t TO '/tmp/x', ATTACH 'x.db'          refused
    SET enable_external_access = true          refused: the settings are locked

Queries come from DAGs and from users of a table; both may be filled from templates. A folder to spill to is the one place
where a query may read and write files: it is the query's own, empty at first, and removed afterwards.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from typing import Any

from lance_core.errors import InputError

_UNKNOWN_TABLE = re.compile(r"Table with name (.+?) does not exist")
_MEMORY_SHARE = 0.5
_AT_LEAST = 256 << 20


def connect(duckdb: Any, *, spill: str = "") -> Any:
    """A connection in memory, with at most half of the machine's memory; what needs more goes to the folder `spill`."""
    connection = duckdb.connect(config={"memory_limit": f"{_memory_limit() >> 20}MiB", "temp_directory": spill})
    for setting in ("enable_external_access = false", "python_enable_replacements = false", "lock_configuration = true"):
        connection.execute(f"SET {setting}")
    return connection


def refusal(error: Exception, tables: Collection[str], *, what: str) -> InputError:
    """What the engine refused, as an InputError; for a table that is not there it names the ones that are."""
    found = _UNKNOWN_TABLE.search(str(error))
    if found is None or not tables:
        return InputError(f"{what} failed: {error}")
    import difflib  # few queries have a name wrong

    name = found[1].strip('"')
    near = difflib.get_close_matches(name.lower(), [*tables], n=2, cutoff=0.5)
    guess = f"Did you mean {' or '.join(near)}? " if near else ""
    return InputError(
        f"{what} failed: there is no table {name!r} in it", cure=f"{guess}The query may read: {', '.join(tables)}."
    )


def _memory_limit() -> int:
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # no such question on this system
        return 2 << 30
    return max(_AT_LEAST, int(total * _MEMORY_SHARE))
