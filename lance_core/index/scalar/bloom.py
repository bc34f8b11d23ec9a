"""Bloom filter: 32 KiB of bits for each zone of rows, which exclude values that are certainly not in it.

::

    bloomfilter.lance     fragment_id, zone_start, zone_length, has_null, bloom_filter_data (1,024 blocks of 8 u32)
    value -> h = xxh64(its little-endian bytes) -> block (h >> 32) * 1024 >> 32 -> one bit in each of the block's words

Answers `=`, `IN` and `IS NULL`; what it picks is tested again. (Spec: FORMAT E.3; the split-block filter of Parquet.)

The hash xxh64 with seed 0 over many values at once (numpy; the algorithm is public, written from its description).

::

    hash_rows(np.array([[1, 0, 0, 0, 0, 0, 0, 0]], np.uint8))     one 64-bit hash per row of equally long inputs
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.arrow.buffers import fields_schema
from lance_core.arrow_numpy import array_of, numpy_of
from lance_core.errors import CorruptFileError
from lance_core.expr import ast
from lance_core.expr.ast import Expr
from lance_core.expr.split import bound_of
from lance_core.file.open_file import OpenFile
from lance_core.format.index import IndexFile
from lance_core.format.index_details import PlainDetails
from lance_core.index.base import Answer, IndexFolder, IndexKind, metadata_of, number_of, read_all
from lance_core.index.scalar.predicates import made_of
from lance_core.index.scalar.verify import NullCheck, Zones, in_pieces, null_mask, require
from lance_core.index.scalar.zones import PLACE, ROWS_PER_ZONE, Zone, Zoned, null_rows, require_told, zone_rows, zones_of
from lance_core.kernels.bloom import hash_texts, lacks_block_bits, set_block_bits
from lance_core.rowids.selection import AddressSet, address_set, decode_address_set, encode_address_set
from lance_core.shortage import ARROW_ERRORS

FILE = "bloomfilter.lance"
NUM_BYTES = 32768
_PROBABILITY = b"0.00057"
_BLOCK_BYTES = 32
_WORK_PER_TEXT = 16
_SALTS = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31], np.uint32
)
_SCHEMA = fields_schema(
    [
        *PLACE,
        pa.field("has_null", pa.bool_(), nullable=False),
        pa.field("bloom_filter_data", pa.binary(), nullable=False),
    ]
)
Hashes = npt.NDArray[np.uint64]


def train(folder: IndexFolder, batches: Iterable[pa.RecordBatch], value_type: pa.DataType) -> tuple[IndexFile, ...]:
    """Fill one filter per zone, zone by zone."""
    nulls: list[Any] = []
    zones = (_row(zone, nulls) for zone in zones_of(batches, ROWS_PER_ZONE))
    # The set of nulls is known last but is written first, so the filters wait in memory: 32 KiB per 8,192 rows.
    rows = [*zones]
    metadata = {"bloomfilter_item": b"8192", "bloomfilter_probability": _PROBABILITY, "null_bitmap": b"1"}
    buffer = encode_address_set(address_set(null_rows(nulls)))
    return (folder.write(FILE, rows, _SCHEMA, metadata=metadata, buffers=[buffer]),)


def _row(zone: Zone, nulls: list[Any]) -> pa.RecordBatch:
    values = zone.values
    if values.null_count:
        nulls.append(zone.addresses[numpy_of(values.is_null(), may_copy=True)])
    columns = [[zone.fragment_id], [zone.start], [zone.length], [values.null_count > 0], [_filter(hashes_of(values))]]
    arrays = [pa.array(column, item.type) for column, item in zip(columns, _SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def _filter(hashes: Hashes) -> bytes:
    words = np.zeros(NUM_BYTES // _BLOCK_BYTES * 8, np.uint32)
    set_block_bits(hashes, _SALTS, words)
    return words.astype("<u4").tobytes()


def blocks_of(hashes: Hashes, num_blocks: Any) -> npt.NDArray[np.int64]:
    """The block each hash falls into, of a number of blocks (one for all, or for each)."""
    counts = np.asarray(num_blocks, np.uint64)
    found: npt.NDArray[np.int64] = (((hashes >> np.uint64(32)) * counts) >> np.uint64(32)).astype(np.int64)
    return found


def masks_of(hashes: Hashes) -> npt.NDArray[np.uint32]:
    """[count, 8]: the bit each hash sets in each word of its block."""
    with np.errstate(over="ignore"):
        keys = (hashes & np.uint64(0xFFFFFFFF)).astype(np.uint32)[:, None] * _SALTS
    bits: npt.NDArray[np.uint32] = np.uint32(1) << (keys >> np.uint32(27))
    return bits


def hashes_of(values: Any) -> Hashes:
    """The hash of every value that is not null, in their order."""
    present = values.drop_null()
    if len(present) == 0:
        return np.empty(0, np.uint64)
    if not _is_variable(values.type):
        width = values.type.bit_width // 8
        raw = np.frombuffer(present.buffers()[1], np.uint8, len(present) * width, present.offset * width)
        return hash_rows(raw.reshape(len(present), width))
    wide = present.cast(pa.large_binary())
    offsets = np.frombuffer(wide.buffers()[1], np.int64, len(wide) + 1, wide.offset * 8)
    data = np.frombuffer(wide.buffers()[2] or b"", np.uint8)
    found = np.empty(len(wide), np.uint64)
    if hash_texts.is_worth_loading(len(wide) * _WORK_PER_TEXT + int(offsets[-1] - offsets[0])):
        part = np.concatenate([data[int(offsets[0]) : int(offsets[-1])], np.zeros(8, np.uint8)])
        hash_texts(offsets - offsets[0], part, found)
        return found
    lengths = np.diff(offsets)
    for length in np.unique(lengths).tolist():
        which = np.flatnonzero(lengths == length)
        found[which] = hash_rows(data[offsets[which][:, None] + np.arange(length)])
    return found


class BloomFilter(Zoned):
    """An open bloom filter index."""

    def __init__(self, folder: IndexFolder, value_type: pa.DataType, path: tuple[str, ...]) -> None:
        opened = folder.open(FILE)
        rows = read_all(opened, [item.name for item in _SCHEMA])
        self._places = rows
        self._note_ends(opened, rows)
        self._made_for = {
            "number_of_items": number_of(opened, "bloomfilter_item", ROWS_PER_ZONE),
            "probability": _probability(opened),
        }
        self._type = value_type
        require_told(rows, ("has_null",), where=opened.path)
        self._filters = Filters.of(rows.column("bloom_filter_data"), what=opened.path)
        self._has_null = numpy_of(rows.column("has_null"), may_copy=True)
        self._nulls: AddressSet | None = None
        where = opened.schema.metadata.get("null_bitmap")
        if where is not None and where.isdigit() and 0 < int(where) < opened.num_global_buffers:
            self._nulls = decode_address_set(opened.global_buffer(int(where)), what=f"the nulls of {opened.path}")

    def search(self, part: Expr) -> Answer | None:
        """The zones that may hold rows for the test; None when a constant is not of the column's type."""
        if isinstance(part, ast.IsNull) and self._nulls is not None:
            return Answer(self._nulls, is_exact=True)
        picked = self._may(part)
        return None if picked is None else Answer(zone_rows(self._places, picked), is_exact=False)

    def _may(self, part: Expr) -> npt.NDArray[np.bool_] | None:
        if isinstance(part, (ast.And, ast.Or)):
            known = [self._may(item) for item in part.items]
            picked = [mask for mask in known if mask is not None]
            if len(picked) < len(known):
                return None
            unite = np.logical_or if isinstance(part, ast.Or) else np.logical_and
            result: npt.NDArray[np.bool_] = unite.reduce(picked)
            return result
        if isinstance(part, ast.IsNull):
            return np.asarray(self._has_null, np.bool_)
        wanted = self._constants(part)
        if wanted is None:
            return None
        hashes = hashes_of(wanted)
        masks = masks_of(hashes)
        return np.array([_holds(words, hashes, masks) for words in self._filters.each()], np.bool_)

    def _constants(self, part: Expr) -> Any:
        """What is looked for, as the column's type; None when that does not go without loss."""
        values = [value.value for value in part.values if isinstance(value, ast.Literal)] if isinstance(part, ast.In) else []
        bound = bound_of(part)
        if bound is not None:
            values = [bound.value]
        plain = (str,) if _is_variable(self._type) else (int,)
        if any(value is not None and (isinstance(value, bool) or not isinstance(value, plain)) for value in values):
            return None
        try:
            return array_of([value for value in values if value is not None], self._type)
        except (*ARROW_ERRORS, OverflowError, TypeError, ValueError):
            return None

    streams: ClassVar[bool] = True

    def verify_rows(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Each row is in a zone whose filter has its value; the rows told to be null are."""
        zones_of_rows, told = Zones(self._places), NullCheck(self._nulls)
        for values, ids in in_pieces(batches, self._type):
            zones, is_null = zones_of_rows.of(ids), null_mask(values)
            require(self._has_null[zones[is_null]].all(), "a zone has nulls, but declares none")
            told.note(ids, is_null)
            require(self._filters.hold(zones[~is_null], hashes_of(values)), "a value is missing in its filter")
        told.require_same()

    def statistics(self) -> dict[str, Any]:
        """The number of zones, and what each filter was made for."""
        return {"type": "BloomFilter", "num_blocks": len(self._filters.firsts), **self._made_for}


def _probability(opened: OpenFile) -> float:
    text = metadata_of(opened, "bloomfilter_probability", _PROBABILITY)
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < 1:
        raise CorruptFileError(f"{opened.path}: bloomfilter_probability is {text[:20]!r}, expected a number between 0 and 1")
    return found


@dataclass(frozen=True, eq=False)
class Filters:
    """The filters of all zones: `words` [blocks, 8] one behind the other; where those of a zone begin, how many it has."""

    words: npt.NDArray[np.uint32]
    firsts: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    @staticmethod
    def of(data: Any, *, what: str) -> Filters:
        """From a column of bytes. Raises CorruptFileError for one that is not of whole blocks."""
        wide = data.cast(pa.large_binary())
        offsets = (
            np.frombuffer(wide.buffers()[1], np.int64, len(wide) + 1, wide.offset * 8) if len(wide) else np.zeros(1, int)
        )
        sizes = np.diff(offsets).astype(np.int64)
        wrong = (sizes <= 0) | (sizes % _BLOCK_BYTES != 0)
        if wide.null_count or wrong.any():
            size = int(sizes[wrong][0]) if wrong.any() else 0
            raise CorruptFileError(f"{what}: a filter has {size} bytes, expected a multiple of {_BLOCK_BYTES}")
        whole = np.frombuffer(wide.buffers()[2] or b"", np.uint8)[int(offsets[0]) : int(offsets[-1])]
        words = whole.view("<u4").reshape(-1, 8)
        return Filters(words, (offsets[:-1] - offsets[0]) // _BLOCK_BYTES, sizes // _BLOCK_BYTES)

    def each(self) -> Iterator[npt.NDArray[np.uint32]]:
        """The blocks of each zone."""
        return (self.words[first : first + count] for first, count in zip(self.firsts, self.counts, strict=True))

    def hold(self, zones: npt.NDArray[np.int64], hashes: Hashes) -> bool:
        """Whether each hash is in the filter of its zone."""
        if lacks_block_bits.is_worth_loading(_WORK_PER_TEXT * len(hashes)):
            return lacks_block_bits(hashes, _SALTS, self.words.reshape(-1), zones, self.firsts, self.counts) == 0
        blocks = blocks_of(hashes, self.counts[zones]) + self.firsts[zones]
        masks = masks_of(hashes)
        return bool(((self.words[blocks] & masks) == masks).all())


def _holds(words: npt.NDArray[np.uint32], hashes: Hashes, masks: npt.NDArray[np.uint32]) -> bool:
    """Whether one of the hashes may be in a filter."""
    found: Any = ((words[blocks_of(hashes, len(words))] & masks) == masks).all(axis=1).any()
    return bool(found)


def _is_variable(value_type: pa.DataType) -> bool:
    t = pa.types
    return any(test(value_type) for test in (t.is_string, t.is_large_string, t.is_binary, t.is_large_binary))


def _is_lookup(part: Expr) -> bool:
    bound = bound_of(part)
    if bound is not None:
        return bound.op == "="
    if isinstance(part, ast.In):
        return isinstance(part.item, ast.Column) and all(isinstance(value, ast.Literal) for value in part.values)
    return isinstance(part, ast.IsNull) and isinstance(part.item, ast.Column)


KIND = IndexKind(
    name="BLOOMFILTER",
    title="BloomFilter",
    details="BloomFilterIndexDetails",
    version=0,
    written_version=0,
    accepts=lambda value_type: pa.types.is_integer(value_type) or _is_variable(value_type),
    can_answer=lambda part: made_of(part, _is_lookup),
    train=train,
    open=BloomFilter,
    describe=lambda _type, _parameters: PlainDetails("BloomFilterIndexDetails"),
    needs_addresses=True,
)


UInt64Array = npt.NDArray[np.uint64]

_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(number)
    for number in (
        11400714785074694791,
        14029467366897019727,
        1609587929392839161,
        9650029242287828579,
        2870177450012600261,
    )
)
_START = (11400714785074694791 + 14029467366897019727) % (1 << 64)


def hash_rows(rows: npt.NDArray[np.uint8]) -> UInt64Array:
    """xxh64 of each row of a [count, length] array of bytes."""
    count, length = rows.shape
    with np.errstate(over="ignore"):
        if length >= 32:
            state, position = _long(rows)
        else:
            state, position = np.full(count, _P5, np.uint64), 0
        state = state + np.uint64(length)
        while position + 8 <= length:
            state = _rotate(state ^ _round(np.zeros(count, np.uint64), _words(rows, position, 8)), 27) * _P1 + _P4
            position += 8
        if position + 4 <= length:
            state = _rotate(state ^ (_words(rows, position, 4) * _P1), 23) * _P2 + _P3
            position += 4
        while position < length:
            state = _rotate(state ^ (rows[:, position].astype(np.uint64) * _P5), 11) * _P1
            position += 1
        return _avalanche(state)


def _long(rows: npt.NDArray[np.uint8]) -> tuple[UInt64Array, int]:
    count, length = rows.shape
    starts = (_START, int(_P2), 0, (1 << 64) - int(_P1))
    lanes = [np.full(count, start, np.uint64) for start in starts]
    position = 0
    while position + 32 <= length:
        lanes = [_round(lane, _words(rows, position + 8 * number, 8)) for number, lane in enumerate(lanes)]
        position += 32
    state = _rotate(lanes[0], 1) + _rotate(lanes[1], 7) + _rotate(lanes[2], 12) + _rotate(lanes[3], 18)
    for lane in lanes:
        state = (state ^ _round(np.zeros(count, np.uint64), lane)) * _P1 + _P4
    return state, position


def _round(lane: UInt64Array, words: UInt64Array) -> UInt64Array:
    result: UInt64Array = _rotate(lane + words * _P2, 31) * _P1
    return result


def _rotate(values: UInt64Array, bits: int) -> UInt64Array:
    result: UInt64Array = (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))
    return result


def _words(rows: npt.NDArray[np.uint8], position: int, width: int) -> UInt64Array:
    part = np.ascontiguousarray(rows[:, position : position + width])
    words: UInt64Array = part.view(f"<u{width}").reshape(-1).astype(np.uint64)
    return words


def _avalanche(state: UInt64Array) -> UInt64Array:
    state = (state ^ (state >> np.uint64(33))) * _P2
    state = (state ^ (state >> np.uint64(29))) * _P3
    result: UInt64Array = state ^ (state >> np.uint64(32))
    return result
