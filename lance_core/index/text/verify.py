"""Compare a full-text index with the texts themselves: every document, every token, how often, where, and all lengths.

::

    stored    doc 0 = row 7 of 2 tokens, "fox": [doc 0 twice]
    texts     row 7: "fox fox"                                       they agree

Each document comes down to its length and its mark (see `marks`); those of the texts must be those of the lists. Documents
of rows that are gone still count in scores; of those the lists must add up to the stored length.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrow_numpy import numpy_of
from lance_core.errors import CorruptFileError
from lance_core.format.index import IndexDetails
from lance_core.format.index_details import InvertedDetails
from lance_core.index.base import ID
from lance_core.index.scalar.verify import require
from lance_core.index.text.fingerprints import TextMarks, Told, slices
from lance_core.index.text.params import TextParams, params_of_details
from lance_core.wire.index import decode_details


def require_documents(told: Told, texts: TextMarks, batches: Iterable[pa.RecordBatch]) -> None:
    """Raises CorruptFileError unless each row (value, id) is one of the stored documents, or none when it has no tokens."""
    for batch in slices(batches):
        lengths, marks = texts.of(batch)
        ids = numpy_of(batch.column(ID))
        places, is_there = _places(told.ids, ids)
        has_tokens = lengths > 0
        require(is_there[has_tokens].all(), "a document is missing")
        found = places[is_there]
        require(not told.is_repeated[found].any(), "a document is contained twice")
        require(np.array_equal(told.lengths[found], lengths[is_there]), "the length of a document differs from the table's")
        same = told.marks[found] == marks[is_there]
        if not same.all():
            row = int(ids[is_there][np.flatnonzero(~same)[0]])
            require(False, f"the tokens of row {row} differ from the table's")


def _places(ascending: Any, wanted: Any) -> tuple[Any, Any]:
    """(the first place where each id is or would be, whether it is there)."""
    if len(ascending) == 0:
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    places = np.searchsorted(ascending, wanted)
    places[places == len(ascending)] = 0
    return places, ascending[places] == wanted


def require_options(params: TextParams, stored: bytes, details: IndexDetails | None) -> None:
    """The tokenizer must be described alike by the index's file and by the manifest, which has all but a user's own stop
    words."""
    told = decode_details(details) if details is not None else None
    if not isinstance(told, InvertedDetails) or told.base_tokenizer is None:
        return
    words = params.custom_stop_words
    if "custom_stop_words" not in json.loads(stored):
        raise CorruptFileError(f"the options of the index do not state its stop words: {stored[:80]!r}")
    wanted = params_of_details(told)
    for name in TextParams.__dataclass_fields__:
        mine, theirs = getattr(params, name), words if name == "custom_stop_words" else getattr(wanted, name)
        require(mine == theirs, f"the option {name} is {mine!r}, the manifest has {theirs!r}")
