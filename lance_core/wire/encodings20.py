"""encodings_v2_0.proto <-> the array encodings of 2.0 files.

nullable { no_nulls { values { flat { bits_per_value: 64 buffer { buffer_index: 0 } } } } }
NoNulls(Flat(64, BufferRef(0)))
"""

from __future__ import annotations

from collections.abc import Callable

from lance_core.errors import CorruptFileError, UnsupportedEncodingError
from lance_core.format import encoding20 as enc
from lance_core.wire.pb import encodings_v2_0_pb2 as pb
from lance_core.wire.schema import parse_message


def decode_array_encoding(data: bytes) -> enc.ArrayEncoding:
    """The tree in a serialized ArrayEncoding. Raises FormatError for missing or unknown arms."""
    return _decode(parse_message(pb.ArrayEncoding, data, what="array encoding"))


def _decode(message: pb.ArrayEncoding) -> enc.ArrayEncoding:
    kind = message.WhichOneof("array_encoding")
    decode = _DECODERS.get(kind or "")
    if decode is None:
        raise UnsupportedEncodingError(f"array encoding {kind or 'of an unknown kind'} is not supported by this library")
    return decode(getattr(message, kind or ""))


def _child(message: object, name: str) -> enc.ArrayEncoding:
    if not message.HasField(name):  # type: ignore[attr-defined]
        raise CorruptFileError(f"array encoding {type(message).__name__} has no {name}")
    return _decode(getattr(message, name))


def _buffer(message: pb.Buffer) -> enc.BufferRef:
    try:
        return enc.BufferRef(message.buffer_index, enc.BufferKind(message.buffer_type))
    except ValueError:
        raise CorruptFileError(f"unknown buffer type {message.buffer_type}") from None


def _decode_flat(message: pb.Flat) -> enc.Flat:
    level = message.compression.level if message.compression.HasField("level") else None
    return enc.Flat(message.bits_per_value, _buffer(message.buffer), message.compression.scheme, level)


def _decode_nullable(message: pb.Nullable) -> enc.ArrayEncoding:
    kind = message.WhichOneof("nullability")
    if kind == "no_nulls":
        return enc.NoNulls(_child(message.no_nulls, "values"))
    if kind == "some_nulls":
        return enc.SomeNulls(_child(message.some_nulls, "validity"), _child(message.some_nulls, "values"))
    if kind == "all_nulls":
        return enc.AllNulls()
    raise UnsupportedEncodingError("the nullable encoding has an unknown kind")


_DECODERS: dict[str, Callable[..., enc.ArrayEncoding]] = {
    "flat": _decode_flat,
    "nullable": _decode_nullable,
    "fixed_size_list": lambda m: enc.FixedSizeList(m.dimension, _child(m, "items"), m.has_validity),
    "list": lambda m: enc.List(_child(m, "offsets"), m.null_offset_adjustment, m.num_items),
    "struct": lambda m: enc.SimpleStruct(),
    "binary": lambda m: enc.Binary(_child(m, "indices"), _child(m, "bytes"), m.null_adjustment),
    "dictionary": lambda m: enc.Dictionary(_child(m, "indices"), _child(m, "items"), m.num_dictionary_items),
    "fsst": lambda m: enc.Fsst(_child(m, "binary"), m.symbol_table),
    "packed_struct": lambda m: enc.PackedStruct(tuple(_decode(item) for item in m.inner), _buffer(m.buffer)),
    "bitpacked": lambda m: enc.Bitpacked(
        m.compressed_bits_per_value, m.uncompressed_bits_per_value, _buffer(m.buffer), m.signed
    ),
    "fixed_size_binary": lambda m: enc.FixedSizeBinary(_child(m, "bytes"), m.byte_width),
    "bitpacked_for_non_neg": lambda m: enc.BitpackedForNonNeg(
        m.compressed_bits_per_value, m.uncompressed_bits_per_value, _buffer(m.buffer)
    ),
    "constant": lambda m: enc.Constant(m.value),
}


def encode_array_encoding(encoding: object) -> bytes:
    """The serialized ArrayEncoding of a tree."""
    return bytes(_encode(encoding).SerializeToString())


def _encode(encoding: object) -> pb.ArrayEncoding:
    message = pb.ArrayEncoding()
    encode = _ENCODERS.get(type(encoding))
    if encode is None:
        raise UnsupportedEncodingError(f"{type(encoding).__name__} cannot be written as a 2.0 array encoding")
    encode(message, encoding)
    return message


def _set_buffer(target: pb.Buffer, reference: enc.BufferRef) -> None:
    target.SetInParent()
    target.buffer_index = reference.index
    target.buffer_type = int(reference.kind)  # type: ignore[assignment]


def _encode_flat(message: pb.ArrayEncoding, item: enc.Flat) -> None:
    message.flat.bits_per_value = item.bits_per_value
    _set_buffer(message.flat.buffer, item.buffer)
    if item.scheme:
        message.flat.compression.scheme = item.scheme
        if item.level is not None:
            message.flat.compression.level = item.level


def _encode_some_nulls(message: pb.ArrayEncoding, item: enc.SomeNulls) -> None:
    message.nullable.some_nulls.validity.CopyFrom(_encode(item.validity))
    message.nullable.some_nulls.values.CopyFrom(_encode(item.values))


def _encode_fixed_size_list(message: pb.ArrayEncoding, item: enc.FixedSizeList) -> None:
    message.fixed_size_list.dimension = item.dimension
    message.fixed_size_list.has_validity = item.has_validity
    message.fixed_size_list.items.CopyFrom(_encode(item.items))


def _encode_list(message: pb.ArrayEncoding, item: enc.List) -> None:
    message.list.offsets.CopyFrom(_encode(item.offsets))
    message.list.null_offset_adjustment = item.null_offset_adjustment
    message.list.num_items = item.num_items


def _encode_binary(message: pb.ArrayEncoding, item: enc.Binary) -> None:
    message.binary.indices.CopyFrom(_encode(item.indices))
    message.binary.bytes.CopyFrom(_encode(item.bytes))
    message.binary.null_adjustment = item.null_adjustment


def _encode_fsst(message: pb.ArrayEncoding, item: enc.Fsst) -> None:
    message.fsst.binary.CopyFrom(_encode(item.binary))
    message.fsst.symbol_table = item.symbol_table


def _encode_dictionary(message: pb.ArrayEncoding, item: enc.Dictionary) -> None:
    message.dictionary.indices.CopyFrom(_encode(item.indices))
    message.dictionary.items.CopyFrom(_encode(item.items))
    message.dictionary.num_dictionary_items = item.num_items


def _encode_packed_struct(message: pb.ArrayEncoding, item: enc.PackedStruct) -> None:
    message.packed_struct.inner.extend(_encode(inner) for inner in item.inner)
    _set_buffer(message.packed_struct.buffer, item.buffer)


def _encode_bitpacked(message: pb.ArrayEncoding, item: enc.Bitpacked) -> None:
    message.bitpacked.compressed_bits_per_value = item.compressed_bits
    message.bitpacked.uncompressed_bits_per_value = item.uncompressed_bits
    message.bitpacked.signed = item.signed
    _set_buffer(message.bitpacked.buffer, item.buffer)


def _encode_bitpacked_for_non_neg(message: pb.ArrayEncoding, item: enc.BitpackedForNonNeg) -> None:
    message.bitpacked_for_non_neg.compressed_bits_per_value = item.compressed_bits
    message.bitpacked_for_non_neg.uncompressed_bits_per_value = item.uncompressed_bits
    _set_buffer(message.bitpacked_for_non_neg.buffer, item.buffer)


def _encode_fixed_size_binary(message: pb.ArrayEncoding, item: enc.FixedSizeBinary) -> None:
    message.fixed_size_binary.bytes.CopyFrom(_encode(item.bytes))
    message.fixed_size_binary.byte_width = item.byte_width


def _encode_constant(message: pb.ArrayEncoding, item: enc.Constant) -> None:
    message.constant.value = item.value


_ENCODERS: dict[type, Callable[..., None]] = {
    enc.Flat: _encode_flat,
    enc.NoNulls: lambda message, item: message.nullable.no_nulls.values.CopyFrom(_encode(item.values)),
    enc.SomeNulls: _encode_some_nulls,
    enc.AllNulls: lambda message, item: message.nullable.all_nulls.SetInParent(),
    enc.FixedSizeList: _encode_fixed_size_list,
    enc.List: _encode_list,
    enc.SimpleStruct: lambda message, item: message.struct.SetInParent(),
    enc.Binary: _encode_binary,
    enc.Fsst: _encode_fsst,
    enc.Dictionary: _encode_dictionary,
    enc.PackedStruct: _encode_packed_struct,
    enc.Bitpacked: _encode_bitpacked,
    enc.BitpackedForNonNeg: _encode_bitpacked_for_non_neg,
    enc.FixedSizeBinary: _encode_fixed_size_binary,
    enc.Constant: _encode_constant,
}
