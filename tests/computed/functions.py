"""Functions that declared columns of tests are computed by."""

from __future__ import annotations

import hashlib
from typing import Any

import pyarrow as pa

from lance_core import Computed

PLACE = "tests.computed.functions"
EMBED = f"{PLACE}:embed"
SHOUT = f"{PLACE}:shout"


def embed(batch: pa.RecordBatch, *, size: int = 4) -> Computed:
    """A vector of each text's digest, at a cent a row."""
    texts = batch.column("text").to_pylist()
    digests = [hashlib.sha256((text or "").encode()).digest() for text in texts]
    return Computed([[float(byte) for byte in digest[:size]] for digest in digests], spent={"cents": len(texts)})


def shout(batch: pa.RecordBatch) -> list[Any]:
    """Texts in capitals; those with an exclamation mark are refused."""
    texts = batch.column("text").to_pylist()
    if any("!" in text for text in texts):
        raise ValueError(f"a secret is in {texts}")
    return [text.upper() for text in texts]


def expected_vector(text: str, size: int = 4) -> list[float]:
    """What `embed` computes for one text."""
    return [float(byte) for byte in hashlib.sha256(text.encode()).digest()[:size]]
