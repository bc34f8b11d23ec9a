"""Texts and vectors for an example: nothing is downloaded, and the same words give the same vector.

The texts are paragraphs of the language reference that Python ships for its `help()`. A model would replace `vector_of`.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

DIMENSIONS = 64


def passages() -> list[tuple[str, str]]:
    """Topic and text of every paragraph of some length."""
    from pydoc_data.topics import topics

    return [
        (topic, words)
        for topic, text in sorted(topics.items())
        for part in re.split(r"\n\s*\n", text)
        if len(words := " ".join(part.split())) >= 80
    ]


def paragraphs(first: int, count: int) -> list[dict[str, Any]]:
    """So many paragraphs from a number on; after the last one they begin again."""
    found = passages()
    rows = ((number, *found[number % len(found)]) for number in range(first, first + count))
    return [{"id": number, "topic": topic, "text": text} for number, topic, text in rows]


def embed(batch: Any) -> Any:
    """A batch with `text` -> a batch with `embedding`; null for a text that is null."""
    import pyarrow as pa

    vectors = [None if text is None else vector_of(text) for text in batch.column("text").to_pylist()]
    return pa.record_batch([pa.array(vectors, pa.list_(pa.float32(), DIMENSIONS))], names=["embedding"])


def vector_of(text: str) -> list[float]:
    """The sum of the words' places and signs, of length one."""
    vector = [0.0] * DIMENSIONS
    for word in re.findall(r"[a-z_]{3,}", text.lower()):
        number = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")
        vector[number % DIMENSIONS] += 1.0 if number >> 63 else -1.0
    length = sum(value * value for value in vector) ** 0.5
    return [value / length for value in vector] if length else vector
