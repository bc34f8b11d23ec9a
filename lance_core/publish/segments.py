"""The bytes of folded ledger records: an index, and blocks of records sorted by identity. Pure: no store.

::

    index     {"number": 3, "count": 1000000, "segments": [{"name": "00000003-5d2c….seg", "firsts": ["", "01f"], …}], …}
    segment   block after block; a block is compressed lines, each a record {"identity": "5d2c…", "version": 7, …}

    index.place_of("5d2c…")    -> the segment and the block in which this identity's record is, if it was folded

The first block begins with "": every identity belongs to exactly one block, also one that was never folded, because reading
that block shows that the index still counts (see `folded`). Everything here is data from whoever may write to the
table: names, sizes and counts are checked before they are used.
"""

from __future__ import annotations

import re
import secrets
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from lance_core.commit import naming
from lance_core.errors import CorruptFileError
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

    def range_of(self, block: int) -> tuple[int, int]:
        """First byte and end of a block."""
        return (self.ends[block - 1] if block else 0), self.ends[block]


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


@dataclass(frozen=True, slots=True)
class _PlainIndex:
    number: int
    count: int
    segments: tuple[Mapping[str, Any], ...]
    replaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _PlainSegment:
    name: str
    count: int
    firsts: tuple[str, ...]
    ends: tuple[int, ...]


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
    segments = [
        {"name": item.name, "count": item.count, "firsts": item.firsts, "ends": item.ends} for item in index.segments
    ]
    plain = {"number": index.number, "count": index.count, "segments": segments, "replaces": index.replaces}
    return encode_record({"format": FORMAT, **plain})


def decode_index(data: bytes, *, where: str) -> LedgerIndex:
    """The index in some bytes. CorruptFileError for one that contradicts itself."""
    plain = parse_record(_PlainIndex, decode_record(data, where=where), where=where)
    segments = tuple(
        LedgerSegment(item.name, item.count, item.firsts, item.ends)
        for item in (parse_record(_PlainSegment, _mapping(found, where), where=where) for found in plain.segments)
    )
    firsts = [first for item in segments for first in item.firsts]
    is_whole = all(
        len(item.firsts) == len(item.ends) > 0
        and item.ends[0] > 0
        and all(one < other for one, other in pairwise(item.ends))
        for item in segments
    )
    names = [item.name for item in segments] + [*plain.replaces]
    is_sorted = bool(firsts) and firsts[0] == "" and all(one < two for one, two in pairwise(firsts))
    if not is_whole or not is_sorted or any(generation_of(name) is None for name in names):
        raise CorruptFileError(f"{where}: the segments contradict each other, or have invalid names")
    return LedgerIndex(plain.number, plain.count, segments, plain.replaces)


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


def _mapping(plain: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(plain, Mapping):
        raise CorruptFileError(f"{where}: expected an object")
    return plain
