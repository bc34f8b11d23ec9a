"""Evidence: twelve bytes beside a value that say what it was computed from, and what it was then.

::

    bytes 0..7     of the digest of the definition and the logical values of the inputs
    bytes 8..11    1: failed    2: not wanted    else filled: of the digest of the value, moved out of 0..3
    null           nothing is known: a row of a writer who knows nothing of the declaration

A value is fresh when its evidence is what its row would get now. Nothing else says so: no version, no time, no fragment.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrays import Bools
from lance_core.arrow.digests import row_digests, type_signature
from lance_core.arrow_numpy import arrow_of, numpy_of
from lance_core.format.declared import EVIDENCE_SIZE
from lance_core.pick import take

FAILED, NOT_WANTED = 1, 2
HEAD_BYTES = 8
"""Of a digest so many bytes, its first ones, are in the evidence of a row."""
_RESERVED = 4
_VALUE = b"lance:value".ljust(16, b"\0")
_SECOND = b"lance:second"
Digests = Any
"""(rows, 16) bytes."""


@dataclass(frozen=True)
class RowStates:
    """What evidence says of rows, an array for each; a row is fresh, or one of the others.

    `changed`: its inputs or the definition are others now. `overwritten`: its value is not the one that was computed.
    """

    fresh: Bools
    new: Bools
    changed: Bools
    failed: Bools
    overwritten: Bools


def input_digests(batch: pa.RecordBatch, names: tuple[str, ...], identity: bytes) -> Digests:
    """Sixteen bytes for each row: of the definition, the types of the inputs and their values."""
    return _digests(batch, names, identity, b"")


def input_keys(batch: pa.RecordBatch, names: tuple[str, ...], identity: bytes, digests: Digests) -> Any:
    """Thirty-two bytes for each row, its digest and another one: by them its value is found where it was computed before."""
    return np.concatenate([digests, _digests(batch, names, identity, _SECOND)], axis=1)


def pad_keys(digests: Digests) -> Any:
    """As wide as `input_keys`, for values that only wait for a commit: nobody finds them by the digest of another input."""
    return np.concatenate([digests, np.zeros_like(digests)], axis=1)


def _digests(batch: pa.RecordBatch, names: tuple[str, ...], identity: bytes, salt: bytes) -> Digests:
    columns = [batch.column(name) for name in names]
    told = hashlib.blake2b(identity, digest_size=16, salt=salt, person=b"lance:inputs")
    for name, column in zip(names, columns, strict=True):
        told.update(f"{len(name.encode())}:{name} {type_signature(column.type)}\n".encode())
    if not columns:
        return np.tile(np.frombuffer(told.digest(), np.uint8), (batch.num_rows, 1))
    return row_digests(columns, seed=told.digest(), salt=salt)


def value_marks(values: Any) -> Any:
    """uint32 for each value: of its digest, moved out of the numbers that stand for states."""
    marks = row_digests([values], seed=_VALUE)[:, :4].copy().view("<u4").ravel()
    marks[marks < _RESERVED] += _RESERVED
    return marks


def evidence_array(digests: Digests, marks: Any) -> Any:
    """The column: fixed-size binary, no nulls."""
    tails = np.ascontiguousarray(marks, "<u4").view(np.uint8).reshape(-1, 4)
    data = np.concatenate([digests[:, :HEAD_BYTES], tails], axis=1)
    kind = pa.binary(EVIDENCE_SIZE)
    return pa.Array.from_buffers(kind, len(data), [None, pa.py_buffer(np.ascontiguousarray(data).tobytes())])


def is_not_wanted(evidence: Any) -> Bools:
    """For each row whether its evidence says that `where` left it out."""
    wanted: Bools = _bytes_of(evidence)[:, HEAD_BYTES:].copy().view("<u4").ravel() == NOT_WANTED
    return wanted


def evidence_heads(evidence: Any) -> tuple[Bools, Any]:
    """Which rows have evidence, and the eight bytes of each that are of the definition and the inputs."""
    return numpy_of(evidence.is_valid(), may_copy=True), _bytes_of(evidence)[:, :HEAD_BYTES]


def judge(evidence: Any, digests: Digests, values: Any | None) -> RowStates:
    """What the evidence of rows says, given the digests of their inputs now. `values` None: they are not compared."""
    there = numpy_of(evidence.is_valid(), may_copy=True)
    stored = _bytes_of(evidence)
    same = there & (stored[:, :HEAD_BYTES] == digests[:, :HEAD_BYTES]).all(axis=1)
    marks = stored[:, HEAD_BYTES:].copy().view("<u4").ravel()
    failed = same & (marks == FAILED)
    overwritten = np.zeros(len(stored), np.bool_)
    asked = np.flatnonzero(same & ~failed)
    if values is not None and len(asked):
        values = values if len(asked) == len(values) else take(values, arrow_of(asked))
        is_null, marks = numpy_of(values.is_null(), may_copy=True), marks[asked]
        overwritten[asked] = ~np.where(marks == NOT_WANTED, is_null, value_marks(values) == marks)
    return RowStates(same & ~failed & ~overwritten, ~there, there & ~same, failed, overwritten)


def _bytes_of(evidence: Any) -> Any:
    data = evidence.buffers()[1]
    if data is None or not len(evidence):
        return np.zeros((len(evidence), EVIDENCE_SIZE), np.uint8)
    start = evidence.offset * EVIDENCE_SIZE
    flat = np.frombuffer(data, np.uint8, count=len(evidence) * EVIDENCE_SIZE, offset=start)
    return flat.reshape(-1, EVIDENCE_SIZE)
