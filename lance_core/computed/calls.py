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
from lance_core.computed.call_sizes import CallBounds, CallSizes, bytes_of_rows
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


def settle(engine: Engine, inputs: pa.RecordBatch, rows: Ints, keys: Any, *, bounds: CallBounds) -> Answered:
    """Answers for some rows of a batch, as far as the budget goes. `keys`: by which the value of each of them is found where
    it was computed before; not used where the engine has none. `bounds`: of one call."""
    places, values, errors, reused = [np.zeros(0, np.int64)], [pa.nulls(0, engine.compute.kind)], dict[int, str](), 0
    sizes = _sizes(engine, inputs, rows, bounds)
    with Threads(max_workers=engine.concurrency, thread_name_prefix="lance-column") as threads:
        for due in _waves(sizes.cut(np.arange(len(rows))), engine.concurrency):
            if engine.results is not None:
                known, found = engine.results.find(keys[due])
                places.append(due[known])
                values.append(found)
                reused += len(found)
                due = due[~known]
            asked, others = _once(due, keys) if engine.results is not None and engine.results.is_lasting else (due, {})
            given = asked[: engine.meter.allowed(len(asked))]
            parts = sizes.cut(given)
            for number, pieces, told in _answers(engine, threads, [_rows_of(inputs, rows[part]) for part in parts]):
                part, made = parts[number], pa.concat_arrays(pieces)
                if engine.results is not None:
                    _put_aside(engine.results, keys[part], made, told)
                if others:
                    part, made, told, more = _with_others(part, made, told, others)
                    reused += more
                errors.update((int(place), error) for place, error in zip(part, told, strict=True) if error)
                places.append(part)
                values.append(made)
    return _in_order(np.concatenate(places), pa.concat_arrays(values), errors, reused)


def _sizes(engine: Engine, inputs: pa.RecordBatch, rows: Ints, bounds: CallBounds) -> CallSizes:
    """How these rows are cut into calls."""
    costs = list[tuple[Ints, int]]()
    if bounds.bytes is not None and len(rows):
        costs.append((bytes_of_rows(inputs)[rows], bounds.bytes))
    if bounds.tokens is not None and len(rows):
        costs.append((engine.compute.tokens_of(_rows_of(inputs, rows)), bounds.tokens))
    return CallSizes(bounds.rows, costs)


def _waves(parts: list[Ints], at_once: int) -> Iterator[Ints]:
    """The rows of so many calls together."""
    for begin in range(0, len(parts), at_once):
        yield np.concatenate(parts[begin : begin + at_once])


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


def _answers(engine: Engine, threads: Threads, parts: list[pa.RecordBatch]) -> Iterator[tuple[int, list[Any], list[str]]]:
    """What the function answers for each part, with its number, in order; several calls at once where that is requested.

    Where one of several fails, those that are under way are paid for: their answers come first, then its error.
    """
    if len(parts) < 2 or engine.concurrency < 2:
        for number, part in enumerate(parts):
            yield number, *row_by_row(engine.compute, part)
        return
    calls = [threads.submit(row_by_row, engine.compute, part) for part in parts]
    failure, number = None, 0
    try:
        for number, call in enumerate(calls):
            try:
                answer = call.result()
            except Exception as error:
                failure = error
                break
            yield number, *answer
    finally:
        for call in calls:
            call.cancel()
    if failure is None:
        return
    for later in range(number + 1, len(calls)):
        if not calls[later].cancelled() and calls[later].exception() is None:
            yield later, *calls[later].result()
    raise failure
