"""Values for rows that are stale: those that were computed before, and calls of the function for the others.

::

    rows        0 1 2 3 4 5 6        calls of 2 rows, 2 at once
    wave 1      0 1 2 3              1 was computed before: the function gets 0 2 and 3
    wave 2      4 5 6                the budget allows one more row: it gets 4, and 5 and 6 stay stale

What a call gives is put aside before the next one begins, so whoever is killed repeats the calls that were under way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lance_core.arrays import Ints
from lance_core.arrow_numpy import arrow_of
from lance_core.computed.functions import Computation, row_by_row
from lance_core.computed.limits import Meter
from lance_core.computed.results import Results
from lance_core.io.threads import Threads
from lance_core.pick import take


@dataclass(frozen=True)
class Engine:
    """What computes the rows of a column. `results`: values that were computed before, None where none may be used.
    `concurrency`: calls that are made at once. `retry_failed`: whether rows that failed before are tried."""

    compute: Computation
    results: Results | None
    concurrency: int = 1
    retry_failed: bool = True

    @property
    def meter(self) -> Meter:
        """What bounds it."""
        return self.compute.meter


@dataclass(frozen=True)
class Answered:
    """Rows that have an answer: their places among those that were requested, ascending, the value of each, the error by
    place where the function failed; and for how many a value was there."""

    places: Ints
    values: Any
    errors: Mapping[int, str]
    num_reused: int


def settle(engine: Engine, inputs: pa.RecordBatch, rows: Ints, keys: Any, *, call_rows: int) -> Answered:
    """Answers for some rows of a batch, as far as the budget goes. `keys`: by which the value of each of them is found where
    it was computed before; not used where the engine has none."""
    places, values, errors, reused = [np.zeros(0, np.int64)], [pa.nulls(0, engine.compute.kind)], dict[int, str](), 0
    wave = call_rows * engine.concurrency
    with Threads(max_workers=engine.concurrency, thread_name_prefix="lance-column") as threads:
        for begin in range(0, len(rows), wave):
            due = np.arange(begin, min(begin + wave, len(rows)))
            if engine.results is not None:
                known, found = engine.results.find(keys[due])
                places.append(due[known])
                values.append(found)
                reused += len(found)
                due = due[~known]
            asked, others = _once(due, keys) if engine.results is not None and engine.results.is_lasting else (due, {})
            given = asked[: engine.meter.allowed(len(asked))]
            parts = [given[start : start + call_rows] for start in range(0, len(given), call_rows)]
            answers = _answers(engine, threads, [_rows_of(inputs, rows[part]) for part in parts])
            for part, (pieces, told) in zip(parts, answers, strict=True):
                made = pa.concat_arrays(pieces)
                if engine.results is not None:
                    _put_aside(engine.results, keys[part], made, told)
                if others:
                    part, made, told, more = _with_others(part, made, told, others)
                    reused += more
                errors.update((int(place), error) for place, error in zip(part, told, strict=True) if error)
                places.append(part)
                values.append(made)
    return _in_order(np.concatenate(places), pa.concat_arrays(values), errors, reused)


def _once(due: Ints, keys: Any) -> tuple[Ints, dict[int, list[int]]]:
    """Of the rows that are due the first one of each key, and for it the others, which get what it gets."""
    first, others = dict[bytes, int](), dict[int, list[int]]()
    for place in due.tolist():
        leader = first.setdefault(keys[place].tobytes(), place)
        if leader != place:
            others.setdefault(leader, []).append(place)
    return np.fromiter(first.values(), np.int64, len(first)), others


def _with_others(
    part: Ints, made: Any, told: list[str], others: Mapping[int, list[int]]
) -> tuple[Ints, Any, list[str], int]:
    """What a call gave, and for the rows with the same inputs what it gave for them; how many those are."""
    pairs = [(place, index) for index, one in enumerate(part.tolist()) for place in others.get(one, ())]
    if not pairs:
        return part, made, told, 0
    at = np.array(pairs, np.int64)
    values = pa.concat_arrays([made, take(made, arrow_of(at[:, 1].copy()))])
    return np.concatenate([part, at[:, 0]]), values, [*told, *(told[index] for index in at[:, 1])], len(pairs)


def _in_order(places: Ints, values: Any, errors: Mapping[int, str], reused: int) -> Answered:
    if (places[1:] > places[:-1]).all():
        return Answered(places, values, errors, reused)
    order = np.argsort(places)
    return Answered(places[order], take(values, arrow_of(order)), errors, reused)


def _rows_of(inputs: pa.RecordBatch, rows: Ints) -> pa.RecordBatch:
    """Ascending rows of a batch; not copied where they are neighbours."""
    if int(rows[-1]) - int(rows[0]) + 1 == len(rows):
        return inputs.slice(int(rows[0]), len(rows))
    return take(inputs, arrow_of(rows))


def _put_aside(results: Results, keys: Any, values: Any, errors: list[str]) -> None:
    """Keep what a call gave, without the rows for which it failed."""
    if any(errors):
        kept = np.flatnonzero([not error for error in errors])
        keys, values = keys[kept], take(values, arrow_of(kept))
    results.add(keys, values)


def _answers(engine: Engine, threads: Threads, parts: list[pa.RecordBatch]) -> Iterator[tuple[list[Any], list[str]]]:
    """What the function answers for each part, in order; several calls at once where that is requested."""
    if len(parts) < 2 or engine.concurrency < 2:
        for part in parts:
            yield row_by_row(engine.compute, part)
        return
    calls = [threads.submit(row_by_row, engine.compute, part) for part in parts]
    try:
        for call in calls:
            yield call.result()
    finally:
        for call in calls:
            call.cancel()
