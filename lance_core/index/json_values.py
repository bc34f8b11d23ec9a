"""The values at a path in JSON documents, typed by all of them; what does not fit the memory goes to this machine's disk.

::

    batches of documents     {"a": 3} {"a": 5}  |  {}  |  {"a": 0.5}
    extracted, one by one    int64              |  null|  float64        the type of the whole: float64
    handed on                3.0 5.0            |  null|  0.5            the batches in their order, in that type
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa

from lance_core.arrow_numpy import arrow_of
from lance_core.errors import InputError
from lance_core.expr.coerce import plain
from lance_core.expr.json_path import MISSING, parse_path, select
from lance_core.expr.json_path import Path as Steps
from lance_core.index.base import ID, VALUE, gather

_DECODER: Any = json.JSONDecoder()  # the stubs do not know its scanner
_SHARE = 8
"""What the index under it may use is for that: values that wait for it get an eighth."""
_STEP = 1 << 16
_NAMES = {pa.int64(): "int", pa.float64(): "float", pa.bool_(): "bool", pa.string(): "str"}


@dataclass(frozen=True)
class Extracted:
    """Values with their ids, in parts: in memory, or in files."""

    type: pa.DataType
    parts: tuple[pa.RecordBatch | Path, ...]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """One after the other, in the type of the whole."""
        schema = pa.schema([pa.field(VALUE, self.type), pa.field(ID, pa.uint64())])
        for part in self.parts:
            for batch in _read(part) if isinstance(part, Path) else (part,):
                values = batch.column(0).cast(self.type, safe=self.type != pa.float64())
                yield pa.RecordBatch.from_arrays([values, batch.column(1)], schema=schema)


def extracted(
    batches: Iterable[pa.RecordBatch], value_type: pa.DataType, path: str, *, place: Path, limit: int
) -> Extracted:
    """What is at a path in each document; beyond its share of `limit` bytes it is kept in files in the folder `place`.

    Raises InputError for mixed or other values.
    """
    parts: list[pa.RecordBatch | Path] = []
    waiting: list[pa.RecordBatch] = []
    types: set[pa.DataType] = set()
    size = 0
    for batch in batches:
        documents, ids = gather([batch], value_type)
        for first in range(0, len(ids), _STEP):
            values = extract(documents.slice(first, _STEP), path)
            if values.null_count == len(values):
                values = pa.nulls(len(values))
            else:
                types.add(values.type)
            made = pa.RecordBatch.from_arrays([values, arrow_of(ids[first : first + _STEP])], names=[VALUE, ID])
            waiting.append(made)
            size += made.nbytes
        if size > limit // _SHARE:
            parts += _written(waiting, place, first=len(parts))
            waiting, size = [], 0
    return Extracted(_joint_type(path, types), (*parts, *waiting))


def _written(batches: list[pa.RecordBatch], place: Path, *, first: int) -> Iterator[Path]:
    """The batches in files, in their order: neighbours of one type share a file."""
    for number, (schema, group) in enumerate(groupby(batches, key=lambda batch: batch.schema), first):
        file = place / f"{number}.arrow"
        with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
            for batch in group:
                writer.write_batch(batch)
        yield file


def _read(file: Path) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(str(file), "rb") as source:
        yield from pa.ipc.open_stream(source)


def _joint_type(path: str, types: set[pa.DataType]) -> pa.DataType:
    if types == {pa.int64(), pa.float64()}:
        return pa.float64()
    if len(types) > 1:
        raise _mixed(path, {_NAMES[found] for found in types})
    return next(iter(types), pa.string())


def extract(documents: Any, path: str) -> Any:
    """What is at a path in each document, as int64, float64, bool or string. Raises InputError for mixed or other values."""
    values = _found(plain(documents).to_pylist(), parse_path(path))
    kinds = {*map(type, values)} - {type(None)}
    if kinds == {int}:
        with suppress(OverflowError, pa.ArrowInvalid):
            return pa.array(values, pa.int64())
    if kinds and kinds <= {int, float}:
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    if kinds == {bool}:
        return pa.array(values, pa.bool_())
    if kinds <= {str}:
        return pa.array(values, pa.string())
    raise _mixed(path, {kind.__name__ for kind in kinds})


def _mixed(path: str, names: Collection[str]) -> InputError:
    return InputError(
        f"the values at {path!r} have the types {', '.join(sorted(names))}; expected only numbers, only strings or only "
        "booleans",
        cure="Index a path whose values have one type.",
    )


def _found(texts: list[str | None], steps: Steps) -> list[Any]:
    """What is at a path in each text; None where there is nothing."""
    found: list[Any] = []
    for text in texts:
        value: Any = None
        if text is not None:
            try:
                value, end = _DECODER.scan_once(text, 0)
            except StopIteration:
                end = -1
            if end != len(text):
                value = json.loads(text)
        if len(steps) == 1 and type(steps[0]) is str:
            value = value.get(steps[0]) if type(value) is dict else None
        elif value is not None:
            value = select(value, steps)
        found.append(None if value is MISSING else value)
    return found
