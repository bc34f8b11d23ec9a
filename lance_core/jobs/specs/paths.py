"""Files as a source: a path says its format by its suffix. No IO happens here.

::

    source_of_paths(["/raw/flights.csv"])
    ->  {"format": "csv", "paths": ["/raw/flights.csv"], "options": {"header": "true", "inferSchema": "true"}}

A CSV given so has a header line, and its types are inferred.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from lance_core.errors import InputError

_SUFFIXES: Mapping[str, Mapping[str, Any]] = {
    ".parquet": {"format": "parquet"},
    ".orc": {"format": "orc"},
    ".csv": {"format": "csv", "options": {"header": "true", "inferSchema": "true"}},
    ".json": {"format": "json"},
    ".jsonl": {"format": "json"},
    ".ndjson": {"format": "json"},
    ".arrow": {"format": "arrow"},
    ".lance": {"format": "lance"},
}


def source_of_paths(paths: Sequence[str]) -> dict[str, Any]:
    """Paths of one format as a plain source. InputError where their suffix is not known, or they have several."""
    suffixes = {PurePosixPath(path.rstrip("/")).suffix.lower() for path in paths}
    known = _SUFFIXES.get(next(iter(suffixes))) if len(suffixes) == 1 else None
    if known is None:
        raise InputError(
            f"source: the name of {', '.join(paths[:3])} does not show its format",
            cure='Pass it: {"format": "parquet", "paths": [...]}; known suffixes are ' + ", ".join(_SUFFIXES) + ".",
        )
    return {**known, "paths": [*paths]}
