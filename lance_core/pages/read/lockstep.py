"""Run several readers in lockstep, and join their requests of each step.

::

    validity, values = yield from together([read(a), read(b)])         one round instead of two
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lance_core.fetch import Buffer, ByteRange, Fetch


def together(fetches: Sequence[Fetch[Any]]) -> Fetch[list[Any]]:
    """Results in the order of the readers."""
    results: list[Any] = [None] * len(fetches)
    answers: dict[int, Sequence[Buffer] | None] = dict.fromkeys(range(len(fetches)))
    while True:
        asked = _step(fetches, answers, results)
        if not asked:
            return results
        buffers = iter((yield [item for ranges in asked.values() for item in ranges]))
        answers = {number: [next(buffers) for _ in ranges] for number, ranges in asked.items()}


def _step(
    fetches: Sequence[Fetch[Any]], answers: dict[int, Sequence[Buffer] | None], results: list[Any]
) -> dict[int, Sequence[ByteRange]]:
    """Give each waiting reader its answer; what those that go on ask for next."""
    asked: dict[int, Sequence[ByteRange]] = {}
    for number, answer in answers.items():
        try:
            asked[number] = next(fetches[number]) if answer is None else fetches[number].send(answer)
        except StopIteration as stop:
            results[number] = stop.value
    return asked
