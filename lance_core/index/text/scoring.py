"""BM25 in 32-bit floats, as the official scorer does it.

::

    score of a document = sum over tokens of  idf(n, N) * 2.2 * count / (count + 1.2 * (0.25 + 0.75 * length / mean length))
    idf(n, N) = ln((N - n + 0.5) / (n + 0.5) + 1)        n documents of N have the token
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

K1, B = np.float32(1.2), np.float32(0.75)
SATURATION = np.float32(2.2)


def idf_of(with_token: Any, num_documents: int) -> npt.NDArray[np.float32]:
    """float32, of the shape of `with_token` (numbers of documents)."""
    total, half = np.float32(num_documents), np.float32(0.5)
    having = np.asarray(with_token, np.float32)
    found: npt.NDArray[np.float32] = np.log((total - having + half) / (having + half) + np.float32(1)).astype(np.float32)
    return found


def norms_of(lengths: Any, total_tokens: Any, num_documents: int) -> npt.NDArray[np.float32]:
    """What is added to a count, per document with so many tokens."""
    mean = np.float32(total_tokens) / np.float32(max(num_documents, 1)) if total_tokens else np.float32(1)
    norms: npt.NDArray[np.float32] = K1 * (np.float32(1) - B + B * np.asarray(lengths, np.float32) / mean)
    return norms


def length_codes(lengths: Any) -> npt.NDArray[np.uint8]:
    """Lengths in one byte, rounded down: up to 15 as they are, then by their first four bits."""
    values = np.asarray(lengths, np.uint32)
    shift = np.maximum(np.frexp(values.astype(np.float64))[1].astype(np.int64) - 4, 0)
    rest = (values >> shift.astype(np.uint32)) & np.uint32(7)
    codes = np.where(values < 8, values, ((shift + 1) << 3).astype(np.uint32) | rest)
    return codes.astype(np.uint8)


def rounded_lengths(lengths: Any) -> npt.NDArray[np.uint32]:
    """Lengths as their codes (`length_codes`) keep them: the least of each code."""
    values = np.asarray(lengths, np.uint32)
    shift = np.maximum(np.frexp(values.astype(np.float64))[1].astype(np.int64) - 4, 0).astype(np.uint32)
    rounded: npt.NDArray[np.uint32] = values >> shift << shift
    return rounded
