"""`Codecs`: the object that is passed down so that nested encodings find each other without importing each other.

::

    General(zstd, ByteStreamSplit(Flat(64)))
    general.decode  -> codecs.decode(inner, ...)  -> byte_stream_split.decode -> codecs.decode(inner, ...) -> flat.decode

A codec is a module with the functions of `Codec`; the literal table of all of them is `registry.CODECS`. Three forms of
the same encoding exist in files, and a codec implements those its encoding is written in:

* *chunk* form (`decode`): the value buffers of mini-block chunks, many chunks in one call;
* *block* form (`decode_block`): one self-contained buffer (repetition and definition levels, dictionary items);
* *value* form (`decode_values`): each value encoded alone (full-zip pages).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from lance_core.arrays import Ints
from lance_core.codecs.blocks import Block, FixedBlock, Picks, Pieces, VariableBlock, block_of, list_of
from lance_core.codecs.gather import check_pieces
from lance_core.errors import CorruptFileError, UnsupportedEncodingError
from lance_core.format.encoding import CompressiveEncoding, Flat, Fsst, InlineBitpacking, OutOfLineBitpacking

Buffers = tuple[memoryview, ...]
"""The value buffers of one chunk."""

Values = FixedBlock | VariableBlock
"""Payloads of a full-zip page: one for each value that has one."""


class Codec(Protocol):
    """What a codec module offers. `encoding` is the description the module is listed under in the registry."""

    def decode(self, encoding: Any, buffers: tuple[Pieces, ...], counts: Ints, codecs: Codecs) -> Block:
        """Chunk form."""
        ...

    def decode_block(self, encoding: Any, piece: Pieces, counts: Ints, codecs: Codecs) -> Block:
        """Block form."""
        ...

    def decode_values(self, encoding: Any, payload: Values, codecs: Codecs) -> Block:
        """Value form."""
        ...

    def num_buffers(self, encoding: Any, codecs: Codecs) -> int:
        """Value buffers of the chunk form."""
        ...


@runtime_checkable
class DecodesOne(Protocol):
    """A codec that decodes a single value of a mini-block chunk without the others."""

    def decode_at(self, encoding: Any, buffers: Buffers, count: int, position: int, codecs: Codecs) -> bytes:
        """See `Codecs.decode_at`."""
        ...


@runtime_checkable
class DecodesPicks(Protocol):
    """A codec that decodes few values of many chunks without the others."""

    def decode_picks(
        self, encoding: Any, buffers: tuple[Pieces, ...], counts: Ints, picks: Picks, codecs: Codecs
    ) -> Block | None:
        """See `Codecs.decode_picks`."""
        ...


@runtime_checkable
class DecodesPayloads(Protocol):
    """A codec that decodes few payloads of a full-zip page without arrays."""

    def decode_payloads(
        self, encodings: Sequence[Any], counts: Sequence[int], payloads: Sequence[bytes], codecs: Codecs
    ) -> list[bytes]:
        """See `Codecs.decode_payloads`."""
        ...


@runtime_checkable
class DecodesGroups(Protocol):
    """A codec whose encodings may differ from page to page, and which decodes values of several pages at once."""

    def shape(self, encoding: Any) -> CompressiveEncoding:
        """See `Codecs.shape`."""
        ...

    def decode_group(self, encodings: Sequence[Any], counts: Sequence[int], payload: Values, codecs: Codecs) -> Block:
        """See `Codecs.decode_group`."""
        ...


@runtime_checkable
class Unwraps(Protocol):
    """A codec of compressed buffers, inside which there is another encoding."""

    def unwrap(self, encoding: Any, pieces: Pieces) -> tuple[CompressiveEncoding, Pieces]:
        """See `Codecs.unwrap`."""
        ...


@dataclass(frozen=True, slots=True)
class Codecs:
    """The table of codecs, keyed by the type of the description.

    Every `decode` takes any number of chunks and returns their values joined in one block. Bytes that break the rules
    give CorruptFileError; an encoding (or a form of it) that is not implemented gives UnsupportedEncodingError. Blocks
    may be views of the buffers passed in: do not write into them.
    """

    table: Mapping[type, Codec]
    _one: Mapping[type, DecodesOne] = field(init=False, repr=False, compare=False)
    _picks: Mapping[type, DecodesPicks] = field(init=False, repr=False, compare=False)
    _payloads: Mapping[type, DecodesPayloads] = field(init=False, repr=False, compare=False)
    _groups: Mapping[type, DecodesGroups] = field(init=False, repr=False, compare=False)
    _unwraps: Mapping[type, Unwraps] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        codecs = self.table.items()
        object.__setattr__(self, "_one", {kind: codec for kind, codec in codecs if isinstance(codec, DecodesOne)})
        object.__setattr__(self, "_picks", {kind: codec for kind, codec in codecs if isinstance(codec, DecodesPicks)})
        payloads = {kind: codec for kind, codec in codecs if isinstance(codec, DecodesPayloads)}
        object.__setattr__(self, "_payloads", payloads)
        object.__setattr__(self, "_groups", {kind: codec for kind, codec in codecs if isinstance(codec, DecodesGroups)})
        object.__setattr__(self, "_unwraps", {kind: codec for kind, codec in codecs if isinstance(codec, Unwraps)})

    def decode(self, encoding: CompressiveEncoding, buffers: tuple[Pieces, ...], counts: Ints) -> Block:
        """Values of many mini-block chunks.

        `buffers` has `num_buffers(encoding)` entries, one per value buffer of a chunk, each naming one piece per chunk;
        `counts` (int64, one per chunk) says how many values each chunk holds.
        """
        codec = self._find(encoding)
        expected = codec.num_buffers(encoding, self)
        if len(buffers) != expected:
            raise CorruptFileError(
                f"a chunk of {type(encoding).__name__} has {len(buffers)} value buffers, expected {expected}"
            )
        for pieces in buffers:
            check_pieces(pieces, counts)
        return codec.decode(encoding, buffers, counts, self)

    def can_decode_at(self, encoding: CompressiveEncoding) -> bool:
        """Whether the codec, and the one inside it if it has one, decodes single values (has a function `decode_at`)."""
        if type(encoding) not in self._one:
            self._find(encoding)
            return False
        return not isinstance(encoding, (Fsst, OutOfLineBitpacking)) or self.can_decode_at(encoding.values)

    def decode_at(self, encoding: CompressiveEncoding, buffers: Buffers, count: int, position: int) -> bytes:
        """The bytes of one value of one mini-block chunk of `count` values; a single bit is a byte. See `can_decode_at`.

        `buffers` are the value buffers of the chunk (uint8), `position` counts from 0 and is below `count`.
        """
        return self._one[type(encoding)].decode_at(encoding, buffers, count, position, self)

    def bits_at(self, encoding: CompressiveEncoding) -> int:
        """How many bits a value of `decode_at` has, 0 where values differ in their sizes."""
        if isinstance(encoding, (InlineBitpacking, OutOfLineBitpacking)):
            return encoding.uncompressed_bits
        return encoding.bits_per_value if isinstance(encoding, Flat) else 0

    def decode_picks(
        self, encoding: CompressiveEncoding, buffers: tuple[Pieces, ...], counts: Ints, picks: Picks
    ) -> Block | None:
        """Few values of many chunks, as `decode` then a pick would give them, without decoding the others.

        None where the codec (or the one inside it) has no `decode_picks`, or knows no way for these chunks.
        """
        whole, codec = self._find(encoding), self._picks.get(type(encoding))
        if codec is None:
            return None
        if len(buffers) != whole.num_buffers(encoding, self):
            raise CorruptFileError(f"a chunk of {type(encoding).__name__} has {len(buffers)} value buffers")
        for pieces in buffers:
            check_pieces(pieces, counts)
        return codec.decode_picks(encoding, buffers, counts, picks, self)

    def decode_block(self, encoding: CompressiveEncoding, piece: Pieces, counts: Ints) -> Block:
        """Values of one or more buffers in block form (levels of many chunks, a dictionary); joined.

        `counts` (int64) says how many values each piece holds.
        """
        check_pieces(piece, counts)
        return self._find(encoding).decode_block(encoding, piece, counts, self)

    def decode_values(self, encoding: CompressiveEncoding, payload: Values) -> Block:
        """Values of a full-zip page from their payloads.

        Fixed width pages (`bits_per_value`): `payload` is FixedBlock(bits_per_value, ...) of the visible values.
        Variable width pages (`bits_per_offset`): `payload` is a VariableBlock with the bytes behind each length word;
        a value without payload (null) has zero length and decodes to an empty value (zeros in fixed-width children).
        """
        return self._find(encoding).decode_values(encoding, payload, self)

    def shape(self, encoding: CompressiveEncoding) -> CompressiveEncoding:
        """What encodings share whose values `decode_group` decodes."""
        codec = self._groups.get(type(encoding))
        return encoding if codec is None else codec.shape(encoding)

    def decode_group(self, encodings: Sequence[CompressiveEncoding], counts: Sequence[int], payload: Values) -> Block:
        """`decode_values` of several pages, of which each has so many values; their encodings have one `shape`."""
        first = encodings[0]
        if all(item is first or item == first for item in encodings):
            return self.decode_values(first, payload)
        return self._groups[type(first)].decode_group(encodings, counts, payload, self)

    def decode_payloads(
        self, encodings: Sequence[CompressiveEncoding], counts: Sequence[int], payloads: Sequence[bytes]
    ) -> list[bytes]:
        """The values of few payloads of variable width, as `decode_group` gives them, each by itself."""
        codec = self._payloads.get(type(encodings[0]))
        if codec is not None:
            return codec.decode_payloads(encodings, counts, payloads, self)
        block = self.decode_group(encodings, counts, block_of(payloads))
        if not isinstance(block, VariableBlock) or block.count != len(payloads):
            raise CorruptFileError(f"payloads of {type(encodings[0]).__name__} are not values of variable width")
        return list_of(block)

    def unwrap(self, encoding: CompressiveEncoding, pieces: Pieces) -> tuple[CompressiveEncoding, Pieces]:
        """The encoding inside a general compressor and its bytes, or both as they are (`unwrap` of the codec)."""
        codec = self._unwraps.get(type(encoding))
        if codec is None:
            self._find(encoding)
            return encoding, pieces
        return codec.unwrap(encoding, pieces)

    def num_buffers(self, encoding: CompressiveEncoding) -> int:
        """How many value buffers each mini-block chunk of this encoding has."""
        return self._find(encoding).num_buffers(encoding, self)

    def _find(self, encoding: CompressiveEncoding) -> Codec:
        codec = self.table.get(type(encoding))
        if codec is None:
            raise UnsupportedEncodingError(
                f"the compressive encoding {type(encoding).__name__} is not supported",
                cure="Rewrite the data with storage version 2.2, or read it with a newer release of this library.",
            )
        return codec


MAX_VALUES = 1 << 40
"""Values of one call. Codecs compare counts with the bytes they have; this only keeps sums from overflowing."""


def total(counts: Ints) -> int:
    """Sum of the counts as an int; CorruptFileError when one is negative or the sum is absurd."""
    if len(counts) == 1 and 0 <= int(counts[0]) <= MAX_VALUES:
        count = int(counts[0])
    else:
        if len(counts) and (int(counts.min()) < 0 or int(counts.max()) > MAX_VALUES):
            raise CorruptFileError(f"a chunk claims {int(counts.min())} to {int(counts.max())} values")
        count = int(counts.sum(dtype=np.int64))
    if not 0 <= count <= MAX_VALUES:
        raise CorruptFileError(f"the chunks of one read claim {count} values, the limit is {MAX_VALUES}")
    return count
