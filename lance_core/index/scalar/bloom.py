"""Bloom filter: for each stretch of rows 32 KiB of bits that say which values are certainly not in it.

::

    bloomfilter.lance     fragment_id, zone_start, zone_length, has_null, bloom_filter_data (1,024 blocks of 8 u32)
    value -> h = xxh64(its little-endian bytes) -> block (h >> 32) * 1024 >> 32 -> one bit in each of the block's words

Answers `=`, `IN` and `IS NULL`; what it picks is tested again. (Spec: FORMAT E.3; the split-block filter of Parquet.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_core.errors import CorruptFileError
from lance_core.expr import ast
from lance_core.expr.ast import Expr
from lance_core.expr.split import bound_of
from lance_core.format.index import IndexFile
from lance_core.format.index_details import PlainDetails
from lance_core.index.base import Answer, IndexFolder, IndexKind, gather, read_all
from lance_core.index.scalar.agreement import in_order, require, require_same_rows, runs_of, zone_numbers
from lance_core.index.scalar.shapes import made_of
from lance_core.index.scalar.xxh64 import hash_rows
from lance_core.index.scalar.zones import PLACE, ROWS_PER_ZONE, Zone, null_rows, zone_rows, zones_of
from lance_core.kernels.bloom import set_block_bits
from lance_core.rowids.selection import AddressSet, address_set, decode_address_set, encode_address_set

FILE = "bloomfilter.lance"
NUM_BYTES = 32768
_BLOCK_BYTES = 32
_SALTS = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31], np.uint32
)
_SCHEMA = pa.schema(
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
    metadata = {"bloomfilter_item": b"8192", "bloomfilter_probability": b"0.00057", "null_bitmap": b"1"}
    buffer = encode_address_set(address_set(null_rows(nulls)))
    return (folder.write(FILE, rows, _SCHEMA, metadata=metadata, buffers=[buffer]),)


def _row(zone: Zone, nulls: list[Any]) -> pa.RecordBatch:
    values = zone.values
    if values.null_count:
        nulls.append(zone.addresses[values.is_null().to_numpy(zero_copy_only=False)])
    columns = [[zone.fragment_id], [zone.start], [zone.length], [values.null_count > 0], [_filter(hashes_of(values))]]
    arrays = [pa.array(column, item.type) for column, item in zip(columns, _SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def _filter(hashes: Hashes) -> bytes:
    words = np.zeros(NUM_BYTES // _BLOCK_BYTES * 8, np.uint32)
    set_block_bits(hashes, _SALTS, words)
    return words.astype("<u4").tobytes()


def blocks_of(hashes: Hashes, num_blocks: int) -> npt.NDArray[np.int64]:
    """The block each hash falls into."""
    found: npt.NDArray[np.int64] = (((hashes >> np.uint64(32)) * np.uint64(num_blocks)) >> np.uint64(32)).astype(np.int64)
    return found


def masks_of(hashes: Hashes) -> npt.NDArray[np.uint32]:
    """[count, 8]: the bit each hash sets in each word of its block."""
    with np.errstate(over="ignore"):
        keys = (hashes & np.uint64(0xFFFFFFFF)).astype(np.uint32)[:, None] * _SALTS
    bits: npt.NDArray[np.uint32] = np.uint32(1) << (keys >> np.uint32(27))
    return bits


def hashes_of(values: Any) -> Hashes:
    """The hash of every value that is not null (in no particular order)."""
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
    lengths = np.diff(offsets)
    found = []
    for length in np.unique(lengths).tolist():
        starts = offsets[:-1][lengths == length]
        found.append(hash_rows(data[starts[:, None] + np.arange(length)]))
    return np.concatenate(found)


class BloomFilter:
    """An open bloom filter index."""

    def __init__(self, folder: IndexFolder, value_type: pa.DataType, path: tuple[str, ...]) -> None:
        opened = folder.open(FILE)
        rows = read_all(opened, [item.name for item in _SCHEMA])
        self._places = rows
        self._type = value_type
        self._filters = [_words(data.as_buffer() or b"", opened.path) for data in rows.column("bloom_filter_data")]
        self._has_null = rows.column("has_null").to_numpy(zero_copy_only=False)
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
        return np.array([_holds(words, hashes, masks) for words in self._filters], np.bool_)

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
            return pa.array([value for value in values if value is not None], self._type)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            return None

    def agree_with(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Each row lies in a zone whose filter has its value; the rows told to be null are."""
        values, ids = in_order(*gather(batches, self._type))
        for zone, first, end in runs_of(zone_numbers(self._places, ids)):
            part = values.slice(first, end - first)
            require(part.null_count == 0 or self._has_null[zone], "a zone has nulls and does not tell")
            hashes, words = hashes_of(part), self._filters[zone]
            masks = masks_of(hashes)
            require(((words[blocks_of(hashes, len(words))] & masks) == masks).all(), "a filter lacks a value")
        if self._nulls is not None:
            require_same_rows(self._nulls, ids[values.is_null().to_numpy(zero_copy_only=False)], ids)

    def statistics(self) -> dict[str, Any]:
        """The number of zones."""
        return {"num_blocks": len(self._filters)}


def _words(data: Any, path: str) -> npt.NDArray[np.uint32]:
    words = np.frombuffer(data, "<u4")
    if len(words) == 0 or len(words) % 8:
        raise CorruptFileError(f"{path}: a filter has {len(words) * 4} bytes, expected blocks of {_BLOCK_BYTES}")
    return words.reshape(-1, 8)


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
