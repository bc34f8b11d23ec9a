"""Decisions that were folded into sorted segments: their bytes, and the look-up, which reads one block.

::

    _newest.json          the newest index, as far as whoever wrote it last knew (a hint)
    00000003.json         {"number": 3, "count": 1000000, "segments": [{"name": …, "firsts": ["", "01f", …]}], …}
    00000003-….seg        block after block; a block is compressed lines, each a record {"identity": "5d2c…", …}

    index.place_of("5d2c…")    -> the segment and the block in which this identity's record is, if it was folded

The first block begins with "": every identity belongs to exactly one block, also one that was never folded, because reading
that block shows that the index still counts. Everything here is data from whoever may write to the table: names, sizes and
counts are checked before they are used.

Nothing is ever written over but the hint, so the hint may be old, and a process may keep an index for as long as it likes:
before a fold removes the numbers of an identity, it removes each segment of an earlier generation to whose range it has
added a record. So a block that can still be read **after** the numbers were found missing has everything that had been
folded by then; and where it cannot be read, the generations that follow are requested by their numbers.
"""

from __future__ import annotations

import re
import secrets
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

from lance_core.commit import naming
from lance_core.errors import CorruptFileError, NotFoundError, StoreError
from lance_core.fetch import ByteRange
from lance_core.io.cache import shared_cache
from lance_core.io.parallel import each
from lance_core.io.store import Store
from lance_core.publish.records import FORMAT, MAX_RECORD_SIZE, Record, decode_record, encode_record, parse_record

FOLDED = naming.SEGMENTS
HINT_PATH = f"{FOLDED}/_newest.json"

BLOCK_RECORDS = 1000
SEGMENT_BLOCKS = 128
_BLOCK_BYTES = 1 << 20
_NAME = re.compile(r"(\d{8})-[0-9a-f]{16}\.seg")


@dataclass(frozen=True, slots=True)
class LedgerSegment:
    """One file of blocks: `firsts` are the identities at which its blocks begin, `ends` the offsets at which they end."""

    name: str
    count: int
    firsts: tuple[str, ...]
    ends: tuple[int, ...]

    @property
    def path(self) -> str:
        """Where the file is."""
        return f"{FOLDED}/{self.name}"


@dataclass(frozen=True, slots=True)
class LedgerIndex:
    """A generation of the folded ledger. `replaces`: segments of the generation before that this one no longer has."""

    number: int
    count: int
    segments: tuple[LedgerSegment, ...]
    replaces: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """Where it is: the number is given once."""
        return index_path(self.number)

    def place_of(self, identity: str) -> tuple[LedgerSegment, int]:
        """The segment and the number of the block that an identity belongs to."""
        segment = self.segments[bisect_right(self.segments, identity, key=lambda item: item.firsts[0]) - 1]
        return segment, bisect_right(segment.firsts, identity) - 1


def index_path(number: int) -> str:
    """Where the index of a generation is."""
    return f"{FOLDED}/{number:08d}.json"


def new_segment_name(number: int) -> str:
    """A fresh name for a segment of a generation: no name is used twice, so that a put that takes effect late brings none
    back."""
    return f"{number:08d}-{secrets.token_hex(8)}.seg"


def generation_of(name: str) -> int | None:
    """The generation that a segment was written for; None for any other name."""
    found = _NAME.fullmatch(name)
    return None if found is None else int(found[1])


def encode_index(index: LedgerIndex) -> bytes:
    """The bytes of an index."""
    return encode_record({"format": FORMAT, **asdict(index)})


def decode_index(data: bytes, *, where: str) -> LedgerIndex:
    """The index in some bytes. CorruptFileError for one that contradicts itself."""
    index = parse_record(LedgerIndex, decode_record(data, where=where), where=where)
    firsts = [first for item in index.segments for first in item.firsts]
    is_whole = all(
        len(item.firsts) == len(item.ends) > 0
        and item.ends[0] > 0
        and all(one < other for one, other in pairwise(item.ends))
        for item in index.segments
    )
    names = [item.name for item in index.segments] + [*index.replaces]
    is_sorted = bool(firsts) and firsts[0] == "" and all(one < two for one, two in pairwise(firsts))
    if not is_whole or not is_sorted or any(generation_of(name) is None for name in names):
        raise CorruptFileError(f"{where}: the segments contradict each other, or have invalid names")
    return index


def encode_block(records: Sequence[Record]) -> bytes:
    """The bytes of a block."""
    return zlib.compress(b"\n".join(map(encode_record, records)), 6)


def decode_block(data: bytes, *, where: str) -> dict[str, Record]:
    """The records in a block by identity, in their order. CorruptFileError for anything that is not a block."""
    unpacker = zlib.decompressobj()
    try:
        plain = unpacker.decompress(data, MAX_RECORD_SIZE + 1)
    except zlib.error as error:
        raise CorruptFileError(f"{where} cannot be decompressed: {error}") from error
    if len(plain) > MAX_RECORD_SIZE:
        raise CorruptFileError(f"{where} has more than {MAX_RECORD_SIZE} bytes, the limit for a block")
    if not unpacker.eof:
        raise CorruptFileError(f"{where} is cut off")
    records = [decode_record(line, where=where) for line in plain.split(b"\n") if line]
    return {str(record.get("identity", "")): record for record in records}


def cut_into_blocks(records: Iterable[Record], first: str) -> Iterator[tuple[str, bytes, int]]:
    """Blocks of sorted records as (first identity, bytes, number of records); there is one also of no records."""
    share: list[Record] = []
    size, before = 0, first
    for record in records:
        size += len(encode_record(record))
        if share and (len(share) >= BLOCK_RECORDS or size > _BLOCK_BYTES):
            yield first, encode_block(share), len(share)
            first, share, size = _separator(before, str(record["identity"])), [], len(encode_record(record))
        share.append(record)
        before = str(record["identity"])
    yield first, encode_block(share), len(share)


def _separator(before: str, first: str) -> str:
    """The shortest text that sorts behind `before` and not behind `first`."""
    return next(first[:length] for length in range(1, len(first) + 1) if first[:length] > before)


_MAX_LOOKS = 10
_MANY_BLOCKS = 16
"""So many blocks of a segment are sooner read with all that is between them."""

Found = Mapping[str, Record | CorruptFileError]


def folded_records(store: Store, identities: Sequence[str], *, is_newest: bool = False) -> Found:
    """The folded records of identities that have no record of their own, as was found out **before** this call.

    For those that have one an older generation may answer, which lacks theirs; with `is_newest` the newest one does.

    An identity whose block is damaged has the error. StoreError when the generations change as fast as they are read.
    """
    if not identities:
        return {}
    index = newest_index(store) if is_newest else _remembered(store) or hinted_index(store)
    for _ in range(_MAX_LOOKS):
        if index is None:
            return {}  # the hint comes before the first record is removed
        found = _look(store, index, identities)
        _remember(store, None if found is None else index)
        if found is not None:
            return found
        index = newest_index(store)
    what = f"{store.uri}: segments of the folded ledger are missing, and no later generation replaces them"
    cure = "Retry; if it persists, files below _lance_core/segments/ were removed: run `lance ledger repair`."
    raise StoreError(what, uri=store.uri, cure=cure)


def read_hint(store: Store) -> LedgerIndex | None:
    """The index that the hint has; None without a hint, or where it is damaged."""
    try:
        return read_index(store, HINT_PATH)
    except CorruptFileError:
        return None


def hinted_index(store: Store) -> LedgerIndex | None:
    """An index that was the newest one at some time; None if no record was ever removed by a fold."""
    try:
        return read_index(store, HINT_PATH)
    except CorruptFileError:
        return newest_index(store)


def newest_index(store: Store) -> LedgerIndex | None:
    """The index of the newest generation: what follows the hint is requested by number. None before the first fold."""
    index = read_hint(store)
    while (following := read_index(store, index_path(1 if index is None else index.number + 1))) is not None:
        index = following
    return index


def read_blocks(
    store: Store, segment: LedgerSegment, blocks: Sequence[int]
) -> list[Mapping[str, Record] | CorruptFileError]:
    """The records of some blocks of a segment, or what is wrong with a block. NotFoundError when it was replaced."""
    where, starts = f"{store.uri}: {segment.path}", (0, *segment.ends)
    ranges = [ByteRange(starts[block], segment.ends[block]) for block in blocks]
    try:
        if len(ranges) < _MANY_BLOCKS:
            data = [bytes(item) for item in store.get_ranges(segment.path, ranges)]
        else:
            whole = bytes(store.get(segment.path))
            if len(whole) != segment.ends[-1]:
                raise CorruptFileError(f"{where} has {len(whole)} bytes, expected {segment.ends[-1]}")
            data = [whole[start:end] for start, end in ranges]
    except CorruptFileError as error:
        return [error] * len(ranges)  # it is shorter than the index says
    return [_read(item, f"{where}, block {block}") for block, item in zip(blocks, data, strict=True)]


def _read(data: bytes, where: str) -> Mapping[str, Record] | CorruptFileError:
    try:
        return decode_block(data, where=where)
    except CorruptFileError as error:
        return error


def _look(store: Store, index: LedgerIndex, identities: Sequence[str]) -> Found | None:
    """What the blocks of an index say; None when one of them is gone."""
    wanted: dict[LedgerSegment, dict[int, list[str]]] = {}
    for identity in identities:
        segment, block = index.place_of(identity)
        wanted.setdefault(segment, {}).setdefault(block, []).append(identity)

    def look(store: Store, segment: LedgerSegment) -> Sequence[Mapping[str, Record] | CorruptFileError] | None:
        try:
            return read_blocks(store, segment, [*wanted[segment]])
        except NotFoundError:
            return None

    found: dict[str, Record | CorruptFileError] = {}
    for segment, blocks in zip(wanted, each(store, [*wanted], look), strict=True):
        if blocks is None:
            return None
        for asked, records in zip(wanted[segment].values(), blocks, strict=True):
            if isinstance(records, CorruptFileError):
                what = f"{records}; whether work was committed whose record was folded into it cannot be determined"
                cure = "Run `lance ledger repair`; it sets what is damaged aside, and names it."
                found.update(dict.fromkeys(asked, CorruptFileError(what, cure=cure)))
            else:
                found.update({identity: records[identity] for identity in asked if identity in records})
    return found


def read_index(store: Store, path: str) -> LedgerIndex | None:
    """The index at a path, None when there is none."""
    try:
        data = bytes(store.get(path))
    except NotFoundError:
        return None
    return decode_index(data, where=f"{store.uri}: {path}")


def _remembered(store: Store) -> LedgerIndex | None:
    found = shared_cache().get(("folded ledger", store.uri)) if store.is_wide else None
    return found if isinstance(found, LedgerIndex) else None


def _remember(store: Store, index: LedgerIndex | None) -> None:
    """Keep an index, or with None forget it."""
    key = ("folded ledger", store.uri)
    if not store.is_wide:
        return  # reading it costs less than looking for it
    if index is None:
        shared_cache().discard(key)
    else:
        blocks = sum(len(item.firsts) for item in index.segments)
        shared_cache().put(key, index, 100 * blocks + 1000)
