"""Fold old decisions into sorted segments, so that the decisions about a million identities are a dozen objects.

::

    fold_ledger(store)                  records older than 30 days that count -> the next generation
    remove_folded(store, ["5d2c…"])     the next generation without some records

    1 find the newest generation          past the hint, by number
    2 read the records                    behind 1: what is forgotten in between takes the number that this fold wants
    3 put the segments                    under fresh names
    4 put the index, if absent            **this decides**; who loses removes its own segments and begins again
    5 write the hint
    6 remove the segments it replaces     from here on nobody can rest on the generation before
    7 remove the records                  only now, the lowest number of an identity first

A generation is finished (5 to 7) by whoever makes the next one, so a fold may be killed at any point. It is never part of a
commit.
"""

from __future__ import annotations

import datetime as dt
import logging
import time
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, zip_longest

from lance_core.commit import naming
from lance_core.errors import CorruptFileError, LanceError, NotFoundError, RetryableConflictError, StoreError
from lance_core.io.many import delete_all
from lance_core.io.parallel import each
from lance_core.io.store import Store
from lance_core.publish.attempts import started_keys
from lance_core.publish.decisions import DecisionState, decision_path, list_identities, look_many, parse_decision
from lance_core.publish.intent import list_intents
from lance_core.publish.records import Record
from lance_core.publish.segments import (
    FOLDED,
    HINT_PATH,
    SEGMENT_BLOCKS,
    LedgerIndex,
    LedgerSegment,
    cut_into_blocks,
    encode_index,
    generation_of,
    hinted_index,
    new_segment_name,
    newest_index,
    read_blocks,
    read_hint,
)

log = logging.getLogger(__name__)

DEFAULT_FOLD_AGE = dt.timedelta(days=30)
_MOST = 100_000
"""Records that are folded at once; more take further generations."""
_WORTH = 1000
_MAX_TURNS = 5
_AT_ONCE = 1000


def aside_path(path: str) -> str:
    """Where a record of this path is set aside."""
    return f"{naming.PRIVATE}/aside/{path.removeprefix(naming.PRIVATE + '/')}"


@dataclass(frozen=True, slots=True)
class LedgerFold:
    """What a fold did: records folded, records of one identity removed, records in all segments, the generation."""

    folded: int
    removed: int
    total: int
    generation: int


def fold_again(store: Store, *, now: float | None = None) -> LedgerFold | None:
    """Fold a ledger that somebody has folded before, when it is worth it; None when it is not. Best effort."""
    try:
        if hinted_index(store) is None or len(list_identities(store)) < _WORTH:
            return None
        return fold_ledger(store, now=now)
    except LanceError as error:
        log.warning("%s: the ledger was not folded: %s", store.uri, error)
        return None


def fold_ledger(store: Store, *, older_than: dt.timedelta = DEFAULT_FOLD_AGE, now: float | None = None) -> LedgerFold:
    """Fold the records that are older than `older_than` and that count; killed or run twice at once, nothing is lost.

    Raises RetryableConflictError when others fold or forget at the same time again and again, and StoreError.
    """
    limit = (time.time() if now is None else now) - older_than.total_seconds()
    folded = removed = 0
    after = ""
    while True:
        share, index = _fold_some(store, limit, after)
        if share:
            folded += len(share)
            removed += _remove_plain(store, share)
            after = max(share)
        if len(share) < _MOST:
            return LedgerFold(folded, removed, 0 if index is None else index.count, 0 if index is None else index.number)


def remove_folded(store: Store, identities: Collection[str], *, with_damaged: bool = False) -> list[Record]:
    """Make a generation without these identities, which have no records of their own any more; returns what it held of them.

    A generation is made whether or not it holds any: a fold that has read the records while they were there must not
    publish them. `with_damaged`: blocks that cannot be read are left out, too, and their segments kept aside.
    """
    for _ in range(_MAX_TURNS):
        index = newest_index(store)
        if index is None:
            return []
        _finish(store, index)
        gone: list[Record] = []
        if _publish(store, index, {}, without=frozenset(identities), gone=gone, with_damaged=with_damaged) is not None:
            return gone
    raise _too_many(store)


def folded_states(store: Store, *, damaged: dict[str, str]) -> Iterator[DecisionState]:
    """Every folded state, sorted by identity. Blocks that cannot be read are put into `damaged`: reasons by path."""
    index = newest_index(store)
    for segment in () if index is None else index.segments:
        for _, records in _blocks(store, segment, damaged=damaged):
            for identity, record in records.items():
                yield parse_decision(record, identity, where=segment.path)


def _fold_some(store: Store, limit: float, after: str) -> tuple[dict[str, DecisionState], LedgerIndex | None]:
    """The states that are in the newest generation now, which was made for them, and that generation."""
    for _ in range(_MAX_TURNS):
        index = newest_index(store)
        if index is not None:
            _finish(store, index)
        share = _idle(store, [name for name in list_identities(store) if name > after][:_MOST], limit)
        if not share:
            return {}, index
        made = _publish(store, index, share)
        if made is not None:
            return share, made
    raise _too_many(store)


def _idle(store: Store, identities: Sequence[str], limit: float) -> dict[str, DecisionState]:
    """The states of those that nothing is going on with: what is decided, no intent names, and has no attempt at work."""
    states = look_many(store, identities, damaged={})
    old = {name: state for name, state in states.items() if state.number and not state.finished and state.decided_at < limit}
    if not old:
        return {}
    busy = {name for intent in list_intents(store) for name in intent.attempts}
    busy |= {name for name, attempt in started_keys(store) if name in old and not old[name].is_decided(attempt)}
    return {name: state for name, state in old.items() if name not in busy}


def _publish(
    store: Store,
    index: LedgerIndex | None,
    share: Mapping[str, DecisionState],
    *,
    without: Collection[str] = frozenset(),
    gone: list[Record] | None = None,
    with_damaged: bool = False,
) -> LedgerIndex | None:
    """Make the generation behind `index`; None when somebody else has made it."""
    number, before = (1, ()) if index is None else (index.number + 1, index.segments)
    writer = _SegmentWriter(store, number, share, without, [] if gone is None else gone)
    try:
        writer.merge(before, with_damaged=with_damaged)
        kept = {item.name for item in writer.segments}
        replaced = tuple(item.name for item in before if item.name not in kept)
        made = LedgerIndex(number, sum(item.count for item in writer.segments), tuple(writer.segments), replaced)
        is_ours = _decide(store, made)
    except NotFoundError:
        is_ours = False  # replaced while it was read
    if not is_ours:
        delete_all(store, [item.path for item in writer.written])
        return None
    _finish(store, made)
    return made


def _decide(store: Store, made: LedgerIndex) -> bool:
    """Put the index of a generation if absent; whether it is ours. StoreError leaves it open, and the segments where they
    are: whoever makes the generation instead removes them."""
    data = encode_index(made)
    try:
        store.put_if_absent(made.path, data)
        return True
    except StoreError as error:
        try:
            return bytes(store.get(made.path)) == data
        except NotFoundError:
            raise error from None


def _finish(store: Store, index: LedgerIndex) -> None:
    """The hint, then what the generation replaces, and segments that no generation names any more."""
    hint = read_hint(store)
    if hint is None or hint.number < index.number:
        store.put(HINT_PATH, encode_index(index))
    delete_all(store, [f"{FOLDED}/{name}" for name in index.replaces])
    named = {item.name for item in index.segments}
    left = [
        name
        for name in store.list_names(f"{FOLDED}/")
        # Those of the next generation belong to whoever is making it.
        if name not in named and (made_for := generation_of(name)) is not None and made_for <= index.number
    ]
    delete_all(store, [f"{FOLDED}/{name}" for name in left])


def _folded(state: DecisionState) -> Record:
    return {name: value for name, value in state.to_plain().items() if name != "format"}


def _remove_plain(store: Store, share: Mapping[str, DecisionState]) -> int:
    """Remove the numbers that are in a segment now, the lowest of an identity first."""
    numbers = list_identities(store)
    groups = [
        [decision_path(identity, number) for number in numbers.get(identity, ()) if number <= state.number]
        for identity, state in share.items()
    ]
    for start in range(0, len(groups), _AT_ONCE):
        each(store, groups[start : start + _AT_ONCE], _delete_in_order)
    return sum(map(len, groups))


def _delete_in_order(store: Store, paths: Sequence[str]) -> None:
    for path in paths:
        store.delete(path)


class _SegmentWriter:
    """Puts the segments of a generation: those of the one before, with the states of a share, and without some identities,
    whose records are put into `gone`. Segments that nothing changes go through as they are."""

    def __init__(
        self, store: Store, number: int, share: Mapping[str, DecisionState], without: Collection[str], gone: list[Record]
    ) -> None:
        self._store, self._number = store, number
        self._share, self._without, self._gone = share, without, gone
        self._blocks: list[tuple[str, bytes, int]] = []
        self.segments: list[LedgerSegment] = []
        self.written: list[LedgerSegment] = []

    def merge(self, before: Sequence[LedgerSegment], *, with_damaged: bool) -> None:
        changed = sorted({*self._share, *self._without})
        if not before:
            self._add([_folded(self._share[identity]) for identity in sorted(self._share)], "")
        for segment, following in zip_longest(before, [item.firsts[0] for item in before[1:]]):
            mine = _between(changed, segment.firsts[0], following)
            if not mine and not with_damaged:
                self._flush()
                self.segments.append(segment)
                continue
            damaged = dict[str, str]()
            blocks = _blocks(self._store, segment, damaged=damaged if with_damaged else None)
            for (first, records), end in zip(blocks, [*segment.firsts[1:], following], strict=True):
                merged = self._merged(records, _between(mine, first, end))
                self._add([merged[identity] for identity in sorted(merged)], first)
            if damaged:
                with suppress(NotFoundError):
                    self._store.put(aside_path(segment.path), self._store.get(segment.path))
        self._flush()

    def _merged(self, records: Mapping[str, Record], changed: Iterable[str]) -> dict[str, Record]:
        merged = dict(records)
        for identity in changed:
            if identity in self._without and identity in merged:
                self._gone.append(merged.pop(identity))
            elif identity in self._share:
                merged[identity] = _folded(self._share[identity])
        return merged

    def _add(self, records: Sequence[Record], first: str) -> None:
        for block in cut_into_blocks(records, first):
            self._blocks.append(block)
            if len(self._blocks) == SEGMENT_BLOCKS:
                self._flush()

    def _flush(self) -> None:
        if not self._blocks:
            return
        ends = accumulate(len(data) for _, data, _ in self._blocks)
        count, firsts = sum(count for _, _, count in self._blocks), tuple(first for first, _, _ in self._blocks)
        segment = LedgerSegment(new_segment_name(self._number), count, firsts, tuple(ends))
        self.written.append(segment)
        self._store.put(segment.path, b"".join(data for _, data, _ in self._blocks))
        self.segments.append(segment)
        self._blocks = []


def _between(changed: Sequence[str], first: str, following: str | None) -> Sequence[str]:
    return changed[bisect_left(changed, first) : None if following is None else bisect_left(changed, following)]


def _blocks(
    store: Store, segment: LedgerSegment, *, damaged: dict[str, str] | None
) -> Iterator[tuple[str, Mapping[str, Record]]]:
    """The blocks of a segment. With `damaged`, one that cannot be read is put there, and counts as empty."""
    found: Sequence[Mapping[str, Record] | CorruptFileError]
    try:
        found = read_blocks(store, segment, range(len(segment.firsts)))
    except NotFoundError as error:
        if damaged is None:
            raise
        found = [CorruptFileError(str(error))] * len(segment.firsts)
    for first, records in zip(segment.firsts, found, strict=True):
        if not isinstance(records, CorruptFileError):
            yield first, records
        elif damaged is None:
            raise records
        else:
            damaged.setdefault(segment.path, str(records))
            yield first, {}


def _too_many(store: Store) -> RetryableConflictError:
    what = f"{store.uri}: other processes folded or repaired the ledger {_MAX_TURNS} times at the same time"
    return RetryableConflictError(what, uri=store.uri, cure="Retry when they have finished.")
