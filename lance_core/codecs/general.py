"""General: lz4 or zstd around another encoding.

::

    zstd    u64 size before compression, then a frame (a bare frame, known by its magic, is accepted)
    lz4     u32 size before compression, then a raw block

Chunk form: only the first value buffer of each chunk is compressed, each alone. Block form: the whole buffer. In
full-zip pages each value alone; a value without payload stays empty. (Spec: compressive encodings, "general".)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import lz4.block
import numpy as np
import zstandard

from lance_core.arrays import Bytes, Ints
from lance_core.codecs.blocks import Block, Pieces, VariableBlock
from lance_core.codecs.dispatch import Codecs, Values
from lance_core.codecs.encoded import EncodedChunks
from lance_core.errors import CorruptFileError, UnsupportedEncodingError
from lance_core.format.encoding import BufferCompression, CompressionScheme, CompressiveEncoding, General

MIN_COMPRESSED_BYTES = 1024
"""Smaller buffers are left as they are: a frame per chunk would cost more than it saves."""
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
# No zstd block of 4 bytes holds more than 128 KiB; no lz4 byte stands for more than 255.
_MAX_RATIO = {CompressionScheme.ZSTD: 1 << 15, CompressionScheme.LZ4: 256}
_LOCAL = threading.local()


def num_buffers(encoding: General, codecs: Codecs) -> int:
    """As many as the encoding inside."""
    return codecs.num_buffers(encoding.values)


def decode(encoding: General, buffers: tuple[Pieces, ...], counts: Ints, codecs: Codecs) -> Block:
    """Block of the encoding inside; CorruptFileError for frames that do not decompress to the size they claim."""
    first = decompress(buffers[0], encoding.compression.scheme)
    return codecs.decode(encoding.values, (first, *buffers[1:]), counts)


def decode_block(encoding: General, piece: Pieces, counts: Ints, codecs: Codecs) -> Block:
    """Each piece is one compressed buffer."""
    return codecs.decode_block(encoding.values, decompress(piece, encoding.compression.scheme), counts)


def unwrap(encoding: General, pieces: Pieces) -> tuple[CompressiveEncoding, Pieces]:
    """What is inside, unpacked."""
    return encoding.values, decompress(pieces, encoding.compression.scheme)


def decode_values(encoding: General, payload: Values, codecs: Codecs) -> Block:
    """Each payload is one compressed value."""
    if not isinstance(payload, VariableBlock):
        raise CorruptFileError("a page of General values has payloads of fixed width, expected variable")
    starts = payload.offsets[:-1].astype(np.int64)
    raw = decompress(Pieces(payload.data, starts, np.diff(payload.offsets)), encoding.compression.scheme, keep_empty=True)
    offsets = np.append(raw.starts, np.int64(len(raw.data)))
    return codecs.decode_values(encoding.values, VariableBlock(_narrow(offsets, payload), raw.data))


def decompress(pieces: Pieces, scheme: CompressionScheme, *, keep_empty: bool = False) -> Pieces:
    """Every piece decompressed, joined back to back."""
    one = _DECOMPRESS.get(scheme)
    if one is None:
        raise UnsupportedEncodingError(f"compression scheme {scheme} is not supported")
    view = np.ascontiguousarray(pieces.data).data
    parts: list[bytes] = []
    for start, end in zip(pieces.starts.tolist(), (pieces.starts + pieces.sizes).tolist(), strict=True):
        parts.append(b"" if keep_empty and start == end else one(view[start:end]))
    return _join(parts)


def compress(pieces: Pieces, compression: BufferCompression) -> Pieces:
    """Every piece compressed alone, with its size in front, joined back to back."""
    one = _compressor(compression)
    view = np.ascontiguousarray(pieces.data).data
    ends = (pieces.starts + pieces.sizes).tolist()
    return _join([one(view[start:end]) for start, end in zip(pieces.starts.tolist(), ends, strict=True)])


def encode_chunks(encoded: EncodedChunks, compression: BufferCompression) -> EncodedChunks:
    """Compress the first value buffer of each chunk, if it is large enough and shrinks; else as it was."""
    first = encoded.buffers[0]
    if not len(first) or int(first.sizes.max()) < MIN_COMPRESSED_BYTES:
        return encoded
    packed = compress(first, compression)
    if int(packed.sizes.sum()) >= int(first.sizes.sum()) or (packed.sizes > first.sizes + 64).any():
        return encoded
    return EncodedChunks(General(compression, encoded.encoding), encoded.counts, (packed, *encoded.buffers[1:]))


def encode_block(encoding: CompressiveEncoding, data: bytes, compression: BufferCompression) -> tuple[General, bytes]:
    """Compress a whole buffer."""
    return General(compression, encoding), _compressor(compression)(memoryview(data))


def encode_values(
    encoding: CompressiveEncoding, payload: VariableBlock, compression: BufferCompression
) -> tuple[General, VariableBlock]:
    """Compress each payload alone; empty ones stay empty (a reader cannot tell them from no payload, nor need it)."""
    sizes = np.diff(payload.offsets).astype(np.int64)
    one = _compressor(compression)
    view = np.ascontiguousarray(payload.data).data
    starts = payload.offsets[:-1].tolist()
    packed = _join([one(view[start : start + size]) for start, size in zip(starts, sizes.tolist(), strict=True)])
    offsets = np.append(packed.starts, np.int64(len(packed.data)))
    return General(compression, encoding), VariableBlock(_narrow(offsets, payload), packed.data)


def _join(parts: Sequence[bytes]) -> Pieces:
    sizes = np.fromiter(map(len, parts), np.int64, len(parts))
    data: Bytes = np.frombuffer(parts[0] if len(parts) == 1 else b"".join(parts), np.uint8)
    return Pieces(data, np.cumsum(sizes) - sizes, sizes)


def _narrow(offsets: Ints, like: VariableBlock) -> Any:
    if like.offsets.dtype.itemsize == 4 and int(offsets[-1]) < 1 << 31:
        return offsets.astype(np.int32)
    return offsets


def _unzstd(frame: memoryview) -> bytes:
    if bytes(frame[:4]) == _ZSTD_MAGIC:
        size, body = _content_size(frame), frame
    else:
        size, body = int.from_bytes(frame[:8], "little"), frame[8:]
    _check_size(size, len(body), CompressionScheme.ZSTD)
    if size == 0:
        return b""
    decompressor = getattr(_LOCAL, "unzstd", None)
    if decompressor is None:
        decompressor = _LOCAL.unzstd = zstandard.ZstdDecompressor()
    if _content_size(body) not in (size, -1):
        raise CorruptFileError(f"zstd frame: the prefix declares {size} bytes, the frame another size")
    try:
        data: bytes = decompressor.decompress(body, max_output_size=size)
    except zstandard.ZstdError as error:
        raise CorruptFileError(f"zstd frame of {len(body)} bytes: {error}") from error
    return _exactly(data, size)


def _content_size(frame: memoryview) -> int:
    try:
        return int(zstandard.frame_content_size(frame))
    except zstandard.ZstdError as error:
        raise CorruptFileError(f"zstd frame of {len(frame)} bytes: {error}") from error


def _unlz4(frame: memoryview) -> bytes:
    size = int.from_bytes(frame[:4], "little")
    _check_size(size, len(frame) - 4, CompressionScheme.LZ4)
    if size == 0:
        return b""
    try:
        data: bytes = lz4.block.decompress(frame[4:], uncompressed_size=size)
    except (lz4.block.LZ4BlockError, ValueError) as error:
        raise CorruptFileError(f"lz4 block of {len(frame) - 4} bytes: {error}") from error
    return _exactly(data, size)


def _check_size(size: int, packed: int, scheme: CompressionScheme) -> None:
    if packed < 0 or not 0 <= size <= packed * _MAX_RATIO[scheme] + 64:
        raise CorruptFileError(f"{scheme.name.lower()}: {packed} bytes cannot hold the declared {size} bytes")


def _exactly(data: bytes, size: int) -> bytes:
    if len(data) != size:
        raise CorruptFileError(f"a compressed buffer was decompressed to {len(data)} bytes, expected {size}")
    return data


def _compressor(compression: BufferCompression) -> Callable[[memoryview], bytes]:
    if compression.scheme is CompressionScheme.ZSTD:
        zstd = zstandard.ZstdCompressor(level=3 if compression.level is None else compression.level)
        return lambda raw: len(raw).to_bytes(8, "little") + zstd.compress(raw)
    if compression.scheme is CompressionScheme.LZ4:
        return lambda raw: len(raw).to_bytes(4, "little") + lz4.block.compress(raw, store_size=False)
    raise UnsupportedEncodingError(f"compression scheme {compression.scheme} is not supported")


_DECOMPRESS: Mapping[CompressionScheme, Callable[[memoryview], bytes]] = {
    CompressionScheme.ZSTD: _unzstd,
    CompressionScheme.LZ4: _unlz4,
}
