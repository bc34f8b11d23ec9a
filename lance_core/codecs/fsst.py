"""FSST: strings as codes of a symbol table that is in the description (2,312 bytes).

::

    u64   0x46535354 << 32 | on << 24 | suffix limit << 16 | terminator << 8 | number of symbols
    n x 8 bytes   the symbols, zero padded
    n bytes       their lengths, directly behind; zeros up to 2,312

Code 255 escapes one literal byte. With `on` = 0 the bytes are stored as they are. In chunk form the strings of the
encoding inside are codes; in full-zip pages each payload is. (Spec: compressive encodings, "FSST".)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lance_core.arrays import Ints
from lance_core.codecs.blocks import Block, Picks, Pieces, VariableBlock, block_of, list_of
from lance_core.codecs.dispatch import Buffers, Codecs, Values, total
from lance_core.codecs.gather import require_sizes, words
from lance_core.errors import CorruptFileError, UnsupportedEncodingError
from lance_core.format.encoding import Flat, Fsst, Variable
from lance_core.kernels import fsst as kernels
from lance_core.kernels import plain_fsst

if TYPE_CHECKING:
    import pyarrow as pa

MAGIC = 0x46535354
TABLE_BYTES = 2312
SAMPLE_BYTES = 32_768
_SAMPLE_RUN = 512
_SHORT = 256
"""Bytes of codes up to which plain Python is faster than a call of anything else."""
_FEW = 1024
"""Bytes of codes up to which Arrow is faster than a call of a kernel."""
_MANY = 64 << 10
"""Bytes of codes up to which few strings are joined for Arrow."""
_MOST = 16 << 20
"""Bytes of codes that Arrow spells at once."""
_PLAIN_WORK = 1
"""What a byte of codes costs without a kernel, counted in numbers unpacked."""
_MOST_TABLES = 255
"""Symbols of so many pages have numbers of 16 bits."""
_INT32 = np.dtype(np.int32)
_INT32_MAX = 2**31 - 1


def num_buffers(encoding: Fsst, codecs: Codecs) -> int:
    """As many as the encoding inside."""
    return codecs.num_buffers(encoding.values)


def decode(encoding: Fsst, buffers: tuple[Pieces, ...], counts: Ints, codecs: Codecs) -> Block:
    """VariableBlock of the strings; CorruptFileError for a damaged table or codes that are not in it."""
    at_once = _spell_chunks(encoding, buffers, counts)
    return at_once or _spell(encoding, codecs.decode(encoding.values, buffers, counts))


def decode_block(encoding: Fsst, piece: Pieces, counts: Ints, codecs: Codecs) -> Block:
    """The same around a block form."""
    return _spell(encoding, codecs.decode_block(encoding.values, piece, counts))


def decode_at(encoding: Fsst, buffers: Buffers, count: int, position: int, codecs: Codecs) -> bytes:
    """One value of one chunk; short ones without compiled kernels."""
    return _spell_all([encoding], [1], [codecs.decode_at(encoding.values, buffers, count, position)])[0]


def decode_payloads(
    encodings: Sequence[Fsst], counts: Sequence[int], payloads: Sequence[bytes], codecs: Codecs
) -> list[bytes]:
    """Each payload holds the codes of one string; short ones without compiled kernels."""
    inner = [encoding.values for encoding in encodings]
    return _spell_all(encodings, counts, codecs.decode_payloads(inner, counts, payloads))


def shape(encoding: Fsst) -> Fsst:
    """The encoding without its symbols."""
    return replace(encoding, symbol_table=b"")


def decode_group(encodings: Sequence[Fsst], counts: Sequence[int], payload: Values, codecs: Codecs) -> Block:
    """Strings of several pages, each of which has symbols of its own."""
    return _spell_group(encodings, counts, codecs.decode_values(encodings[0].values, payload))


def decode_picks(encoding: Fsst, buffers: tuple[Pieces, ...], counts: Ints, picks: Picks, codecs: Codecs) -> Block | None:
    """Some values of many chunks."""
    codes = codecs.decode_picks(encoding.values, buffers, counts, picks)
    return None if codes is None else _spell(encoding, codes)


def _spell_all(encodings: Sequence[Fsst], counts: Sequence[int], codes: Sequence[bytes]) -> list[bytes]:
    """Few strings from their codes."""
    size = sum(map(len, codes))
    if size <= _SHORT:
        spelled: list[bytes] = []
        ends = [*accumulate(counts)]
        for encoding, start, end in zip(encodings, [0, *ends], ends, strict=False):
            symbols, own = _symbols(encoding.symbol_table), codes[start:end]
            spelled += own if symbols is None else [_spell_short(symbols, item) for item in own]
        return spelled
    symbols = _symbols(encodings[0].symbol_table) if len(encodings) == 1 else None
    joined = b"" if symbols is None or size > _MANY else b"".join(codes)
    by_kernel = size > _FEW and kernels.decode.is_worth_loading(size, _INT32)
    if symbols is None or not joined or kernels.ESCAPE in joined or by_kernel:
        return list_of(_spell_group(encodings, counts, block_of(codes)))
    ends, text = _taken(symbols.array, _bytes_of(joined))
    bounds, whole = memoryview(ends).cast("i"), text.to_pybytes()
    stops = [bounds[at] for at in accumulate(map(len, codes), initial=0)]
    return [whole[start:end] for start, end in pairwise(stops)]


def _taken(symbols: pa.Array[Any], numbers: pa.Array[Any]) -> tuple[Any, Any]:
    """Where the symbol of each number ends, and the text. What Arrow takes by numbers needs no step for each code."""
    found = symbols.take(numbers)
    if found.null_count:
        raise CorruptFileError("FSST: a string has a code that is not in the symbol table")
    _, ends, text = found.buffers()
    return ends, text


def _bytes_of(codes: bytes) -> pa.Array[Any]:
    import pyarrow as pa  # loaded by whoever reads into Arrow; a codec alone does without

    return pa.Array.from_buffers(pa.uint8(), len(codes), [None, pa.py_buffer(codes)])


def _spell_short(symbols: _Symbols, codes: bytes) -> bytes:
    by_code = symbols.by_code
    try:
        escape = codes.find(kernels.ESCAPE)
        if escape < 0:
            return b"".join([by_code[code] for code in codes])
        parts, at = [], 0
        while escape >= 0:
            if escape + 1 == len(codes):
                raise CorruptFileError("FSST: a string ends within an escaped byte")
            parts += [by_code[code] for code in codes[at:escape]]
            at = escape + 2
            parts.append(codes[escape + 1 : at])
            escape = codes.find(kernels.ESCAPE, at)
        parts += [by_code[code] for code in codes[at:]]
        return b"".join(parts)
    except KeyError as error:
        raise CorruptFileError(f"FSST: code {error.args[0]} is not in the table of {len(by_code)} symbols") from None


_Table = tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint8]]
"""256 symbols and their lengths."""


class _Symbols(NamedTuple):
    """The symbols by their codes, and as an array of 256 with nulls where there is no code."""

    by_code: dict[int, bytes]
    array: pa.Array[Any]


@lru_cache(maxsize=32)
def _symbols(table: bytes) -> _Symbols | None:
    """None when the bytes are stored as they are."""
    import pyarrow as pa

    found = read_table(table)
    if found is None:
        return None
    symbols, lengths = found
    stored = symbols.astype("<u8").tobytes()
    by_code = {code: stored[8 * code : 8 * code + size] for code, size in enumerate(lengths.tolist()) if size}
    ends: Any = np.append(0, np.cumsum(lengths, dtype=np.int32)).astype(np.int32)
    valid: Any = np.packbits(lengths > 0, bitorder="little")
    # Not by `pa.array`: of objects it imports pandas, if there is one.
    buffers: Any = [pa.py_buffer(valid), pa.py_buffer(ends), pa.py_buffer(b"".join(by_code.values()))]
    return _Symbols(by_code, pa.Array.from_buffers(pa.binary(), 256, buffers))


@lru_cache(maxsize=32)
def _joint_symbols(tables: tuple[bytes, ...]) -> pa.Array[Any] | None:
    """The symbols of all tables, 256 of each, and behind them every byte as it is; None where a table has no symbols."""
    import pyarrow as pa

    found = [_symbols(table) for table in tables]
    arrays = [symbols.array for symbols in found if symbols is not None]
    ends: Any = np.arange(257, dtype=np.int32)
    literals: Any = pa.Array.from_buffers(pa.binary(), 256, [None, pa.py_buffer(ends), pa.py_buffer(bytes(range(256)))])
    return pa.concat_arrays([*arrays, literals]) if len(arrays) == len(tables) <= _MOST_TABLES else None


def decode_values(encoding: Fsst, payload: Values, codecs: Codecs) -> Block:
    """Each payload holds the codes of one string."""
    return _spell(encoding, codecs.decode_values(encoding.values, payload))


def encode(block: VariableBlock) -> tuple[bytes, VariableBlock] | None:
    """(symbol table, codes) of a block, or None when a sample shows that it would not shrink by a twentieth."""
    data, offsets = _sample(block)
    if not len(data):
        return None
    padded = np.append(data, np.zeros(8, np.uint8))
    symbols, lengths, tables = kernels.train(padded, offsets)
    if int(_run(padded, offsets, tables).offsets[-1]) > len(data) * 0.95:
        return None
    first, last = int(block.offsets[0]), int(block.offsets[-1])
    whole = np.empty(last - first + 8, np.uint8)
    whole[: last - first] = block.data[first:last]
    whole[last - first :] = 0
    return write_table(symbols, lengths), _run(whole, block.offsets - block.offsets[0], tables)


def write_table(symbols: npt.NDArray[np.uint64], lengths: npt.NDArray[np.int64]) -> bytes:
    """The description's symbol table."""
    count = len(symbols)
    head = MAGIC << 32 | 1 << 24 | count << 16 | count
    body = head.to_bytes(8, "little") + symbols.astype("<u8").tobytes() + lengths.astype(np.uint8).tobytes()
    return body.ljust(TABLE_BYTES, b"\0")


@lru_cache(maxsize=64)
def read_table(table: bytes) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint8]] | None:
    """(256 symbols, 256 lengths; 0 = no such code), or None when the bytes are stored as they are."""
    head = int.from_bytes(table[:8], "little")
    if len(table) < 8 or head >> 32 != MAGIC:
        raise CorruptFileError(f"FSST: {len(table)} bytes do not begin with the header of a symbol table")
    if not head >> 24 & 1:
        return None
    count = head & 255
    if len(table) < 8 + count * 9:
        raise CorruptFileError(f"FSST: a symbol table of {len(table)} bytes cannot hold {count} symbols")
    symbols, lengths = np.zeros(256, np.uint64), np.zeros(256, np.uint8)
    symbols[:count] = np.frombuffer(table, "<u8", count, 8)
    lengths[:count] = np.frombuffer(table, np.uint8, count, 8 + count * 8)
    if (lengths[:count] > 8).any() or (lengths[:count] == 0).any():
        raise CorruptFileError("FSST: a symbol has no bytes or more than 8")
    return symbols, lengths


def _spell_chunks(encoding: Fsst, buffers: tuple[Pieces, ...], counts: Ints) -> VariableBlock | None:
    """Chunks of plain Variable codes in one pass, without joining the codes first; None where that does not apply."""
    inner, table = encoding.values, read_table(encoding.symbol_table)
    if not isinstance(inner, Variable) or not isinstance(inner.offsets, Flat) or table is None or len(buffers) != 1:
        return None
    width = inner.offsets.bits_per_value // 8
    data = np.ascontiguousarray(buffers[0].data)
    address = data.__array_interface__["data"][0]
    if width not in (4, 8) or inner.compression or address % width or (buffers[0].starts % width).any():
        return None
    if not kernels.decode_chunks.is_worth_loading(_PLAIN_WORK * int(buffers[0].sizes.sum()), np.dtype(f"u{width}")):
        return None
    require_sizes(buffers[0], (counts + 1) * width, "Variable offsets")
    capacity = kernels.MAX_EXPANSION * int((buffers[0].sizes - (counts + 1) * width).sum()) + 8
    if width == 4 and capacity > _INT32_MAX:
        return None
    out, targets = np.empty(capacity, np.uint8), np.empty(total(counts) + 1, f"u{width}")
    pieces = buffers[0]
    stored = words(data, f"u{width}")
    size = kernels.decode_chunks(data, stored, pieces.starts, pieces.sizes, counts, *table, out, targets)
    if size < 0:
        raise CorruptFileError(f"FSST: chunk {-1 - size} has invalid offsets or codes")
    return VariableBlock(targets.view(f"i{width}"), out[:size])


def _spell(encoding: Fsst, codes: Block) -> VariableBlock:
    return _spell_group([encoding], [codes.count], codes)


def _spell_group(encodings: Sequence[Fsst], counts: Sequence[int], codes: Block) -> VariableBlock:
    """Strings from their codes, so many by the symbols of each encoding."""
    if not isinstance(codes, VariableBlock):
        raise UnsupportedEncodingError(f"Fsst of {type(encodings[0].values).__name__} is not supported")
    capacity = kernels.MAX_EXPANSION * len(codes.data) + 8
    wide = codes.offsets.dtype.itemsize == 8 or capacity > _INT32_MAX
    offsets = np.ascontiguousarray(codes.offsets, np.int64 if wide else np.int32)
    tables = [read_table(encoding.symbol_table) for encoding in encodings]
    if len(tables) == 1 and tables[0] is None:
        return codes
    if all(table is not None for table in tables):
        if kernels.decode.is_worth_loading(_PLAIN_WORK * len(codes.data), offsets.dtype):
            return _spell_by_kernel([table for table in tables if table is not None], counts, codes, offsets, capacity)
        found = _spell_by_arrow(tuple(encoding.symbol_table for encoding in encodings), counts, codes, offsets)
        if found is not None:
            return found
    return _spell_plainly(codes, offsets, tables, counts)


def _spell_by_kernel(
    tables: Sequence[_Table], counts: Sequence[int], codes: VariableBlock, offsets: npt.NDArray[Any], capacity: int
) -> VariableBlock:
    out, targets = np.empty(capacity, np.uint8), np.empty(len(offsets), offsets.dtype)
    data, at, first = np.ascontiguousarray(codes.data), 0, 0
    for table, count in zip(tables, counts, strict=True):
        own = slice(first, first + count + 1)
        low, high = int(offsets[first]), int(offsets[first + count])
        room = out[at : at + kernels.MAX_EXPANSION * (high - low) + 8] if len(tables) > 1 else out
        own_codes = data[low:high] if len(tables) > 1 else data
        own_offsets = offsets[own] - offsets.dtype.type(low) if len(tables) > 1 else offsets
        size = kernels.decode(own_codes, own_offsets, *table, room, targets[own])
        if size < 0:
            raise CorruptFileError(
                f"FSST: string {first - 1 - size} has a code that is not in the symbol table or is cut short"
            )
        targets[own] += offsets.dtype.type(at)
        at, first = at + size, first + count
    return VariableBlock(targets, out[:at])


def _spell_by_arrow(
    tables: tuple[bytes, ...], counts: Sequence[int], codes: VariableBlock, offsets: npt.NDArray[Any]
) -> VariableBlock | None:
    """The strings without a kernel; None for so many codes that the text may not fit one array.

    ::

        codes      07 ff 41 | 03       of table 0 and of table 1, of 2        ff: the next byte is itself
        numbers    07 512+41 | 256+03
    """
    import pyarrow as pa  # loaded by whoever reads into Arrow; a codec alone does without

    symbols = _joint_symbols(tables)
    first, last = int(offsets[0]), int(offsets[-1])
    if symbols is None or not 0 <= first <= last <= len(codes.data) or (offsets[1:] < offsets[:-1]).any():
        return None
    data = np.ascontiguousarray(codes.data[first:last])
    if not 0 < len(data) <= _MOST:
        return None
    numbers = data.astype(np.uint16)
    if len(tables) > 1:
        bounds = offsets[np.cumsum([0, *counts])]
        numbers += np.repeat(np.arange(0, 256 * len(tables), 256, dtype=np.uint16), np.diff(bounds))
    places = offsets - first
    if (data == kernels.ESCAPE).any():
        escapes = _escapes(data)
        if np.isin(escapes + 1, places).any():
            raise CorruptFileError("FSST: a string ends within an escaped byte")
        numbers[escapes + 1] = 256 * len(tables) + data[escapes + 1].astype(np.uint16)
        is_kept = np.ones(len(data), np.bool_)
        is_kept[escapes] = False
        numbers, places = numbers[is_kept], np.append(0, np.cumsum(is_kept))[places]
    stored: Any = numbers
    ends, text = _taken(symbols, pa.Array.from_buffers(pa.uint16(), len(numbers), [None, pa.py_buffer(stored)]))
    bounds = np.frombuffer(ends, np.int32, len(numbers) + 1)[places]
    return VariableBlock(bounds.astype(offsets.dtype), np.frombuffer(text, np.uint8))


def _escapes(codes: npt.NDArray[np.uint8]) -> Ints:
    """Where a byte is escaped: of a run of escapes every other one, for what it escapes is not one."""
    found = np.flatnonzero(codes == kernels.ESCAPE)
    numbers = np.arange(len(found))
    begins = np.append(True, np.diff(found) != 1)
    places = numbers - np.maximum.accumulate(np.where(begins, numbers, 0))
    escapes: Ints = found[places % 2 == 0]
    return escapes


def _spell_plainly(
    codes: VariableBlock, offsets: npt.NDArray[Any], tables: Sequence[_Table | None], counts: Sequence[int]
) -> VariableBlock:
    """Table by table, where nothing else will do."""
    texts, sizes, first = [], [], 0
    for table, count in zip(tables, counts, strict=True):
        own = offsets[first : first + count + 1]
        found = (codes.data, own) if table is None else plain_fsst.decode(codes.data, own, *table)
        if found is None:
            raise CorruptFileError("FSST: a string has a code that is not in the symbol table or is cut short")
        text, bounds = found
        texts.append(text[int(bounds[0]) : int(bounds[-1])] if len(bounds) else text[:0])
        sizes.append(np.diff(bounds).astype(np.int64))
        first += count
    ends = np.append(0, np.cumsum(np.concatenate(sizes))).astype(offsets.dtype)
    return VariableBlock(ends, np.concatenate(texts))


def _run(padded: npt.NDArray[np.uint8], offsets: npt.NDArray[Any], tables: kernels.Tables) -> VariableBlock:
    """Codes of the strings of `padded` (8 bytes to spare), offsets from zero."""
    capacity = 2 * len(padded)
    wide = capacity > _INT32_MAX or offsets.dtype.itemsize == 8
    starts = np.ascontiguousarray(offsets, np.int64 if wide else np.int32)
    out, targets = np.empty(capacity, np.uint8), np.empty(len(starts), starts.dtype)
    size = kernels.encode(padded, starts, *tables, kernels.masks(), out, targets)
    return VariableBlock(targets.astype(offsets.dtype, copy=False), out[: max(size, 0)])


def _sample(block: VariableBlock) -> tuple[npt.NDArray[np.uint8], Ints]:
    """About 32 KiB of strings taken in runs spread evenly over the block."""
    first, last = int(block.offsets[0]), int(block.offsets[-1])
    num_bytes = last - first
    if num_bytes <= SAMPLE_BYTES:
        return block.data[first:last], (block.offsets - block.offsets[0]).astype(np.int64)
    num_runs = SAMPLE_BYTES // _SAMPLE_RUN
    ends = np.linspace(first, last - _SAMPLE_RUN, num_runs).astype(np.int64)
    # The needle in the offsets' own type: another would convert all of them for each search.
    kind = block.offsets.dtype.type
    begins = np.searchsorted(block.offsets, ends.astype(kind), side="left")
    parts, lengths = [], []
    for begin in begins.tolist():
        end = int(np.searchsorted(block.offsets, kind(int(block.offsets[begin]) + _SAMPLE_RUN), side="left"))
        bounds = np.minimum(block.offsets[begin : end + 1].astype(np.int64), int(block.offsets[begin]) + 2 * _SAMPLE_RUN)
        parts.append(block.data[int(bounds[0]) : int(bounds[-1])])
        lengths.append(np.diff(bounds))
    return np.concatenate(parts), np.append(0, np.cumsum(np.concatenate(lengths)))
