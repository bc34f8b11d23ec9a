"""What staged work assumes about the rows of the table, as a property of its transaction: read by `staleness`."""

from __future__ import annotations

import json
from collections.abc import Sequence

from lance_core.commit.identities import ASSUMES_PROPERTY


def assumes_predicate(predicate: str) -> dict[str, str]:
    """The property of a transaction that replaces the rows a filter selects."""
    return {ASSUMES_PROPERTY: json.dumps({"predicate": predicate})}


def assumes_keys(keys: Sequence[str], *, all_rows: bool) -> dict[str, str]:
    """The property of a transaction that merges by key columns; `all_rows`: it decides about every row of the table."""
    return {ASSUMES_PROPERTY: json.dumps({"keys": [*keys], "all_rows": all_rows})}
