"""Run many readers at once: collect their ranges, join neighbours, fetch through one pool, return the buffers.

::

    round 1   reader A asks a.lance [0,8)      reader B asks a.lance [8,16) and b.lance [0,4)
    reads     a.lance [0,16)   b.lance [0,4)   two reads for three ranges
    answers   A gets its 8 bytes, B gets its 8 and 4 bytes; whoever returns is done, the others ask again

A reader is a `Fetch` (see `lance_core.fetch`). Readers that ask much of a local store run apart, each with its own reads,
so that one decodes while another reads. Small local reads happen in the calling thread: there a hand-over costs more
than the read; so do scattered ones (`ManyRanges`), however many, because threads would only pass the interpreter's lock to
and fro between them. Decoding (what a reader does between two questions) runs on the work pool when there is enough of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from typing import Any, TypeVar, cast

from lance_core.fetch import Buffer, ByteRange, Fetch, JointBuffers, ManyRanges
from lance_core.io.abilities import ReadsScattered
from lance_core.io.pool import in_io_pool, in_work_pool, io_pool, num_work_threads, work_pool
from lance_core.io.ranges import LOCAL_GAP, REMOTE_GAP, WIDE_GAP, ReadPlan, plan_reads
from lance_core.io.scattered_reads import is_ascending
from lance_core.io.store import Store

T = TypeVar("T")

SMALL_READ = 1 << 20
"""Local rounds up to this many bytes are read and decoded in the calling thread."""

_SHARE_SIZE = 4 << 20
"""Local rounds above SMALL_READ are cut into shares of about this many bytes, one task each."""

_MANY, _LITTLE = 64, 16 << 10
"""So many readers that ask for so little each on average are answered together, and decode one after the other."""

_SMALL_RANGE = 64 << 10
"""Ranges of this size on average are read and decoded one after the other, larger ones by several threads."""


def drive(store: Store, jobs: Sequence[tuple[str, Fetch[T]]]) -> list[T]:
    """Results of all readers, in order. Raises the first error; the other readers are closed."""
    rounds = _Rounds(store, jobs)
    try:
        rounds.step(dict.fromkeys(range(len(jobs))))
        rounds.answer_scattered()
        if rounds.are_heavy_and_local():
            rounds.finish_apart()
        while rounds.asked:
            rounds.step(rounds.fetch())
    finally:
        rounds.close()
    return cast("list[T]", rounds.results)


def drive_one(store: Store, path: str, fetch: Fetch[T]) -> T:
    """The result of one reader."""
    return drive(store, [(path, fetch)])[0]


class _Rounds:
    """The readers, what each has asked and what each has returned."""

    def __init__(self, store: Store, jobs: Sequence[tuple[str, Fetch[Any]]]) -> None:
        self._store = store
        self._jobs = jobs
        self._local = store.is_local
        self.asked: dict[int, Sequence[ByteRange]] = {}
        self.results: list[Any] = [None] * len(jobs)

    def close(self) -> None:
        for number in self.asked:
            with suppress(Exception):  # an error is already on its way
                self._jobs[number][1].close()

    def fetch(self) -> dict[int, Sequence[Buffer] | None]:
        """One round: every asked range of every reader."""
        by_path: dict[str, list[int]] = {}
        for number in self.asked:
            by_path.setdefault(self._jobs[number][0], []).append(number)
        gap = LOCAL_GAP if self._local else WIDE_GAP if self._store.is_wide else REMOTE_GAP
        plans = {}
        for path, numbers in by_path.items():
            plans[path] = plan_reads([item for number in numbers for item in self.asked[number]], gap=gap)
        buffers = self._read(plans)
        answers: dict[int, Sequence[Buffer] | None] = {}
        for path, numbers in by_path.items():
            cut = plans[path].cut(buffers[path])
            position = 0
            for number in numbers:
                count = len(self.asked[number])
                answers[number] = cut[position : position + count]
                position += count
        return answers

    def answer_scattered(self) -> None:
        """Answer whoever asks a local store for many small ranges, until nobody does."""
        store = self._store
        if not isinstance(store, ReadsScattered):
            return
        while by_path := self._scattered():
            for path, asked in by_path.items():
                with closing(store.get_scattered(path, [*asked.values()])) as answers:
                    for number in asked:
                        # No name for the answer: its memory is used again once the reader has dropped it.
                        self._step_one(number, next(answers))

    def _scattered(self) -> dict[str, dict[int, ManyRanges]]:
        found: dict[str, dict[int, ManyRanges]] = {}
        for number, asked in self.asked.items():
            if isinstance(asked, ManyRanges) and asked.num_bytes <= len(asked) * _SMALL_RANGE and is_ascending(asked):
                found.setdefault(self._jobs[number][0], {})[number] = asked
        return found

    def are_heavy_and_local(self) -> bool:
        """Whether the readers ask so much of a local store that each should read for itself and not wait for the others."""
        if not self._local:
            return False
        size = sum(map(_num_bytes, self.asked.values()))
        # Opening the file for each of many columns would take longer than reading a few kilobytes of it.
        return size > SMALL_READ and not _is_little_of_many(len(self.asked), size)

    def finish_apart(self) -> None:
        """Run each reader to its end, several at once; the calling thread does its share."""
        waiting = deque(self.asked)
        if len(waiting) < 2 or in_work_pool():
            self._finish_some(waiting)
            return
        helpers = [work_pool().submit(self._finish_some, waiting) for _ in range(min(num_work_threads(), len(waiting)) - 1)]
        try:
            self._finish_some(waiting)
        finally:
            waiting.clear()
            _wait([helper for helper in helpers if not helper.cancel()])

    def _finish_some(self, waiting: deque[int]) -> None:
        while waiting:
            try:
                number = waiting.popleft()
            except IndexError:
                return
            while number in self.asked:
                self._step_one(number, self._get(self._jobs[number][0], self.asked[number]))

    def step(self, answers: dict[int, Sequence[Buffer] | None]) -> None:
        """Send each reader its answer; collect what it asks next or returns."""
        size = sum(_num_answered(answer) for answer in answers.values() if answer)
        if len(answers) < 2 or size < SMALL_READ or in_work_pool() or _is_little_of_many(len(answers), size):
            for number, answer in answers.items():
                self._step_one(number, answer)
            return
        futures = [work_pool().submit(self._step_one, number, answer) for number, answer in answers.items()]
        _wait(futures)

    def _step_one(self, number: int, answer: Sequence[Buffer] | None) -> None:
        fetch = self._jobs[number][1]
        try:
            asked = next(fetch) if answer is None else fetch.send(answer)
        except StopIteration as stop:
            self.results[number] = stop.value
            self.asked.pop(number, None)
            return
        except BaseException:
            self.asked.pop(number, None)
            raise
        self.asked[number] = asked

    def _read(self, plans: dict[str, ReadPlan]) -> dict[str, Sequence[Buffer]]:
        total = sum(item.size for plan in plans.values() for item in plan.reads)
        if in_io_pool() or (self._local and total <= SMALL_READ) or (len(plans) == 1 and not self._local):
            return {path: self._get(path, plan.reads) for path, plan in plans.items()}
        shares = [(path, share) for path, plan in plans.items() for share in self._shares(plan.reads)]
        futures = [io_pool(self._store.uri).submit(self._get, path, share) for path, share in shares]
        found: dict[str, list[Buffer]] = {path: [] for path in plans}
        _wait(futures)
        for (path, _), future in zip(shares, futures, strict=True):
            found[path].extend(future.result())
        return cast("dict[str, Sequence[Buffer]]", found)

    def _get(self, path: str, reads: Sequence[ByteRange]) -> Sequence[Buffer]:
        return self._store.get_ranges(path, reads) if reads else ()

    def _shares(self, reads: Sequence[ByteRange]) -> Iterator[Sequence[ByteRange]]:
        # Remote stores fetch the ranges of one call at once by themselves.
        if not self._local:
            yield reads
            return
        share: list[ByteRange] = []
        size = 0
        for item in reads:
            share.append(item)
            size += item.size
            if size >= _SHARE_SIZE:
                yield share
                share, size = [], 0
        if share:
            yield share


def _is_little_of_many(num_readers: int, num_bytes: int) -> bool:
    return num_readers >= _MANY and num_bytes <= num_readers * _LITTLE


def _num_bytes(asked: Sequence[ByteRange]) -> int:
    return asked.num_bytes if isinstance(asked, ManyRanges) else sum(item.size for item in asked)


def _num_answered(answer: Sequence[Buffer]) -> int:
    return len(answer.data) if isinstance(answer, JointBuffers) else sum(map(len, answer))


def _wait(futures: Sequence[Future[Any]]) -> None:
    """Wait for all, then raise the first error: nobody may still be running a reader that is about to be closed."""
    errors = [error for future in futures if (error := future.exception()) is not None]
    if errors:
        raise errors[0]
