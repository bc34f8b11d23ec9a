"""Texts, their embedding and a search for `embeddings.py` and `declared_embeddings.py`; the same words give the same vector.

::

    "a list of names"  ->  words and pairs of neighbours, each hashed to a place and a sign, summed, of length one

Nothing is downloaded: the texts are the language reference of Python's own `help()`, about 1,900 paragraphs on 80 topics.
"""

from __future__ import annotations

import hashlib
import re
from itertools import pairwise
from typing import Any

DIMENSIONS = 256
_COMMON = re.compile(r"\b(a|an|and|are|as|at|be|by|can|for|from|if|in|is|it|its|not|of|on|or|that|the|this|to|with)\b")


def paragraphs() -> Any:
    """`id`, `topic`, `text` of every paragraph of some length."""
    import pyarrow as pa

    from airflow_provider_lance.example_dags.word_vectors import passages

    rows = [{"id": number, "topic": topic, "text": text} for number, (topic, text) in enumerate(passages())]
    return pa.Table.from_pylist(rows, schema=pa.schema([("id", pa.int64()), ("topic", pa.string()), ("text", pa.string())]))


def embed(batch: Any, salt: str = "") -> Any:
    """A batch with `text` -> a batch with `embedding`: 256 float32 for each row. Another `salt` is another model."""
    import numpy as np
    import pyarrow as pa

    vectors = np.array([vector_of(text or "", salt) for text in batch.column("text").to_pylist()], np.float32)
    values = pa.array(vectors.reshape(-1), pa.float32())
    return pa.record_batch([pa.FixedSizeListArray.from_arrays(values, DIMENSIONS)], names=["embedding"])


def vector_of(text: str, salt: str = "") -> Any:
    """The embedding of one text, of length one."""
    import numpy as np

    words = re.findall(r"[a-z_]+", _COMMON.sub(" ", text.lower()))
    vector = np.zeros(DIMENSIONS, np.float32)
    for token in [*words, *(f"{left} {right}" for left, right in pairwise(words))]:
        number = int.from_bytes(hashlib.blake2b(token.encode(), digest_size=8, salt=salt.encode()).digest(), "little")
        vector[number % DIMENSIONS] += 1.0 if number >> 63 else -1.0
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector


def nearest(uri: str, question: str, *, limit: int) -> list[dict[str, Any]]:
    """The paragraphs of a table nearest to a question: `id`, `topic`, `text`, `_distance`."""
    import lance_core as lance

    asked = {"column": "embedding", "q": vector_of(question), "k": limit, "nprobes": 8, "refine_factor": 10}
    rows: list[dict[str, Any]] = lance.dataset(uri).to_table(columns=["id", "topic", "text"], nearest=asked).to_pylist()
    return rows
