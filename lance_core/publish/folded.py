"""Look for ledger records that were folded into sorted segments. A look-up reads one block.

::

    _lance_core/ledger/5d2c….json                 404: not there any more, or never (the caller has asked)
    _lance_core/segments/_newest.json              the newest index, as far as whoever wrote it last knew (a hint)
    _lance_core/segments/00000003-….seg      the block that 5d2c… belongs to

Nothing is ever written over but the hint, so the hint may be old. That does no harm: before a fold removes the record
`5d2c….json`, it removes each segment of an earlier generation to whose range it has added a record. So a block that can
still be read **after** the record was found missing has everything that had been folded by then; and where it cannot be
read, the generations that follow are requested by their numbers. No listing matters, and an index may be kept by a process
for as long as it likes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from lance_core.errors import CorruptFileError, NotFoundError, StoreError
from lance_core.fetch import ByteRange
from lance_core.io.cache import shared_cache
from lance_core.io.parallel import each
from lance_core.io.store import Store
from lance_core.publish.records import Record
from lance_core.publish.segments import (
    HINT_PATH,
    LedgerIndex,
    LedgerSegment,
    decode_block,
    decode_index,
    index_path,
)

_MAX_LOOKS = 10
_MANY_BLOCKS = 16
"""So many blocks of a segment are sooner read with all that is between them."""

Found = Mapping[str, Record | CorruptFileError]


def folded_records(store: Store, identities: Sequence[str]) -> Found:
    """The folded records of identities that have no record of their own, as was found out **before** this call.

    An identity whose block is damaged has the error. StoreError when the generations change as fast as they are read.
    """
    if not identities:
        return {}
    index = _remembered(store) or hinted_index(store)
    for _ in range(_MAX_LOOKS):
        if index is None:
            return {}  # the hint comes before the first record is removed
        found = _look(store, index, identities)
        if found is not None:
            _remember(store, index)
            return found
        _forget(store)
        index = newest_index(store)
    raise StoreError(
        f"{store.uri}: segments of the folded ledger are missing, and no later generation replaces them",
        uri=store.uri,
        cure="Retry; if it persists, files below _lance_core/segments/ were removed: run `lance ledger repair`.",
    )


def hinted_index(store: Store) -> LedgerIndex | None:
    """An index that was the newest one at some time; None if no record was ever removed by a fold."""
    try:
        return read_index(store, HINT_PATH)
    except CorruptFileError:
        return newest_index(store, known=None)


def newest_index(store: Store, *, known: LedgerIndex | None = None) -> LedgerIndex | None:
    """The index of the newest generation: what follows the hint is requested by number. None before the first fold."""
    index = known
    if index is None:
        try:
            index = read_index(store, HINT_PATH)
        except CorruptFileError:
            index = None
    while True:
        following = read_index(store, index_path(1 if index is None else index.number + 1))
        if following is None:
            return index
        index = following


def read_segment(store: Store, segment: LedgerSegment, blocks: Collection[int]) -> list[bytes]:
    """The bytes of some blocks of a segment. NotFoundError when the segment was replaced."""
    ranges = [segment.range_of(block) for block in blocks]
    if len(ranges) < _MANY_BLOCKS:
        return [bytes(data) for data in store.get_ranges(segment.path, [ByteRange(*item) for item in ranges])]
    data = bytes(store.get(segment.path))
    if len(data) != segment.ends[-1]:
        raise CorruptFileError(f"{store.uri}: {segment.path} has {len(data)} bytes, expected {segment.ends[-1]}")
    return [data[start:end] for start, end in ranges]


def where_is(store: Store, segment: LedgerSegment, block: int) -> str:
    """A block as an error names it."""
    return f"{store.uri}: {segment.path}, block {block}"


def _look(store: Store, index: LedgerIndex, identities: Sequence[str]) -> Found | None:
    """What the blocks of an index say; None when one of them is gone."""
    wanted: dict[LedgerSegment, dict[int, list[str]]] = {}
    for identity in identities:
        segment, block = index.place_of(identity)
        wanted.setdefault(segment, {}).setdefault(block, []).append(identity)

    def look(store: Store, segment: LedgerSegment) -> Sequence[bytes] | CorruptFileError | None:
        try:
            return read_segment(store, segment, wanted[segment])
        except NotFoundError:
            return None
        except CorruptFileError as error:
            return error  # it is shorter than the index says

    found: dict[str, Record | CorruptFileError] = {}
    for segment, data in zip(wanted, each(store, [*wanted], look), strict=True):
        if data is None:
            return None
        for number, (block, asked) in enumerate(wanted[segment].items()):
            where = where_is(store, segment, block)
            try:
                records = decode_block(_given(data, number), where=where)
            except CorruptFileError as error:
                found.update(dict.fromkeys(asked, _damaged(error)))
                continue
            found.update({identity: records[identity] for identity in asked if identity in records})
    return found


def _given(data: Sequence[bytes] | CorruptFileError, number: int) -> bytes:
    if isinstance(data, CorruptFileError):
        raise data
    return data[number]


def _damaged(error: CorruptFileError) -> CorruptFileError:
    return CorruptFileError(
        f"{error}; whether work was committed whose record was folded into it cannot be determined",
        cure="Run `lance ledger repair`; it sets what is damaged aside, and names it.",
    )


def read_index(store: Store, path: str) -> LedgerIndex | None:
    """The index at a path, None when there is none."""
    try:
        data = bytes(store.get(path))
    except NotFoundError:
        return None
    return decode_index(data, where=f"{store.uri}: {path}")


def _remembered(store: Store) -> LedgerIndex | None:
    found = shared_cache().get(_key(store)) if store.is_wide else None
    return found if isinstance(found, LedgerIndex) else None


def _remember(store: Store, index: LedgerIndex) -> None:
    if store.is_wide:  # elsewhere reading it costs less than looking for it
        blocks = sum(len(item.firsts) for item in index.segments)
        shared_cache().put(_key(store), index, 100 * blocks + 1000)


def _forget(store: Store) -> None:
    if store.is_wide:
        shared_cache().discard(_key(store))


def _key(store: Store) -> tuple[str, str]:
    return ("folded ledger", store.uri)
