"""Functions that declared columns of tests are computed by."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pyarrow as pa

from lance_core import Computed

PLACE = "tests.computed.functions"
EMBED = f"{PLACE}:embed"
SHOUT = f"{PLACE}:shout"
MODEL = f"{PLACE}:Model"


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


class Model:
    """Counts letters; a line of its log says what was done with it in which process."""

    def __init__(self, log: str, plus: int = 0) -> None:
        self._log, self._plus = Path(log), plus

    def _note(self, what: str) -> None:
        with self._log.open("a", encoding="utf-8") as file:
            file.write(f"{what} {self._plus} {os.getpid()}\n")

    def setup(self) -> None:
        """Load it."""
        self._note("setup")

    def __call__(self, batch: pa.RecordBatch) -> list[int]:
        """The letters of each text; one is refused."""
        texts = batch.column("text").to_pylist()
        self._note("call")
        if "broken" in texts:
            raise OSError("the device is gone")
        return [len(text) + self._plus for text in texts]

    def close(self) -> None:
        """Let go of it."""
        self._note("close")
