"""encodings_v2_1.proto <-> page layouts and compressive encodings.

PageLayout { mini_block_layout { value_compression { flat { bits_per_value: 64 } } layers: [1] num_items: 3 ... } }
MiniBlockLayout(value_compression=Flat(64), layers=(ALL_VALID_ITEM,), num_items=3, ...)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lance_core.errors import CorruptFileError, FormatError, UnsupportedEncodingError
from lance_core.format import encoding as enc
from lance_core.format.layout import (
    BlobLayout,
    ConstantLayout,
    FullZipLayout,
    MiniBlockLayout,
    PageLayout,
    RepDefLayer,
)
from lance_core.wire.pb import encodings_v2_1_pb2 as pb
from lance_core.wire.schema import parse_message

_LAYERS = {int(layer): layer for layer in RepDefLayer}


def decode_page_layout(data: bytes) -> PageLayout:
    """The layout in a serialized PageLayout. Raises FormatError for missing or unknown arms."""
    return _decode_layout(parse_message(pb.PageLayout, data, what="page layout"))


def encode_page_layout(layout: PageLayout) -> bytes:
    """The serialized PageLayout of a layout."""
    return bytes(_encode_layout(layout).SerializeToString())


def _decode_layout(message: pb.PageLayout) -> PageLayout:
    kind = message.WhichOneof("layout")
    decode = _LAYOUTS.get(kind or "")
    if decode is None:
        raise UnsupportedEncodingError(f"page layout {kind or 'of an unknown kind'} is not supported by this library")
    return decode(getattr(message, kind or ""))


def _decode_mini_block(message: pb.MiniBlockLayout) -> MiniBlockLayout:
    return MiniBlockLayout(
        value_compression=_required(message, "value_compression"),
        layers=_layers(message.layers),
        num_items=message.num_items,
        num_buffers=message.num_buffers,
        rep_compression=_optional(message, "rep_compression"),
        def_compression=_optional(message, "def_compression"),
        dictionary=_optional(message, "dictionary"),
        num_dictionary_items=message.num_dictionary_items,
        repetition_index_depth=message.repetition_index_depth,
        has_large_chunk=message.has_large_chunk,
    )


def _decode_full_zip(message: pb.FullZipLayout) -> FullZipLayout:
    width = message.WhichOneof("details")
    return FullZipLayout(
        value_compression=_required(message, "value_compression"),
        layers=_layers(message.layers),
        num_items=message.num_items,
        num_visible_items=message.num_visible_items,
        bits_rep=message.bits_rep,
        bits_def=message.bits_def,
        bits_per_value=message.bits_per_value if width == "bits_per_value" else None,
        bits_per_offset=message.bits_per_offset if width == "bits_per_offset" else None,
    )


def _decode_constant(message: pb.ConstantLayout) -> ConstantLayout:
    return ConstantLayout(
        layers=_layers(message.layers),
        inline_value=message.inline_value if message.HasField("inline_value") else None,
        rep_compression=_optional(message, "rep_compression"),
        def_compression=_optional(message, "def_compression"),
        num_rep_values=message.num_rep_values,
        num_def_values=message.num_def_values,
    )


def _decode_blob(message: pb.BlobLayout) -> BlobLayout:
    return BlobLayout(_decode_layout(message.inner_layout), _layers(message.layers))


_LAYOUTS: dict[str, Callable[..., PageLayout]] = {
    "mini_block_layout": _decode_mini_block,
    "full_zip_layout": _decode_full_zip,
    "constant_layout": _decode_constant,
    "blob_layout": _decode_blob,
}


def _layers(numbers: Iterable[int]) -> tuple[RepDefLayer, ...]:
    try:
        return tuple(_LAYERS[int(number)] for number in numbers)
    except KeyError as error:
        raise FormatError(f"unknown repetition/definition layer {error.args[0]}") from None


def _optional(message: object, name: str) -> enc.CompressiveEncoding | None:
    return decode_compressive(getattr(message, name)) if message.HasField(name) else None  # type: ignore[attr-defined]


def _required(message: object, name: str) -> enc.CompressiveEncoding:
    found = _optional(message, name)
    if found is None:
        raise CorruptFileError(f"{type(message).__name__} has no {name}")
    return found


def _compression(message: pb.BufferCompression) -> enc.BufferCompression:
    try:
        scheme = enc.CompressionScheme(message.scheme)
    except ValueError:
        raise UnsupportedEncodingError(f"compression scheme {message.scheme} is unknown") from None
    return enc.BufferCompression(scheme, message.level if message.HasField("level") else None)


def _optional_compression(message: object, name: str) -> enc.BufferCompression | None:
    return _compression(getattr(message, name)) if message.HasField(name) else None  # type: ignore[attr-defined]


def decode_compressive(message: pb.CompressiveEncoding) -> enc.CompressiveEncoding:
    """The encoding in a message. Raises UnsupportedEncodingError for arms this library does not know."""
    kind = message.WhichOneof("compression")
    decode = _DECODERS.get(kind or "")
    if decode is None:
        raise UnsupportedEncodingError(
            f"compressive encoding {kind or 'of an unknown kind'} is not supported by this library"
        )
    return decode(getattr(message, kind or ""))


def _decode_field(message: pb.VariablePackedStruct.FieldEncoding) -> enc.PackedField:
    width = message.WhichOneof("layout")
    return enc.PackedField(
        _required(message, "value"),
        message.bits_per_value if width == "bits_per_value" else None,
        message.bits_per_length if width == "bits_per_length" else None,
    )


# One row for each arm, in the order of the .proto file; a test holds the two tables total.
_DECODERS: dict[str, Callable[..., enc.CompressiveEncoding]] = {
    "flat": lambda m: enc.Flat(m.bits_per_value, _optional_compression(m, "data")),
    "variable": lambda m: enc.Variable(_required(m, "offsets"), _optional_compression(m, "values")),
    "constant": lambda m: enc.Constant(m.value if m.HasField("value") else None),
    "out_of_line_bitpacking": lambda m: enc.OutOfLineBitpacking(m.uncompressed_bits_per_value, _required(m, "values")),
    "inline_bitpacking": lambda m: enc.InlineBitpacking(m.uncompressed_bits_per_value, _optional_compression(m, "values")),
    "fsst": lambda m: enc.Fsst(m.symbol_table, _required(m, "values")),
    "dictionary": lambda m: enc.Dictionary(_required(m, "indices"), _required(m, "items"), m.num_dictionary_items),
    "rle": lambda m: enc.Rle(_required(m, "values"), _required(m, "run_lengths")),
    "byte_stream_split": lambda m: enc.ByteStreamSplit(_required(m, "values")),
    "general": lambda m: enc.General(_compression(m.compression), _required(m, "values")),
    "fixed_size_list": lambda m: enc.FixedSizeList(m.items_per_value, m.has_validity, _required(m, "values")),
    "packed_struct": lambda m: enc.PackedStruct(tuple(m.bits_per_value), _required(m, "values")),
    "variable_packed_struct": lambda m: enc.VariablePackedStruct(tuple(_decode_field(item) for item in m.fields)),
    "range": lambda m: enc.Range(m.uncompressed_bits_per_value, m.start, m.step),
    "delta": lambda m: enc.Delta(m.uncompressed_bits_per_value, m.base, _required(m, "deltas")),
}


def _encode_layout(layout: PageLayout) -> pb.PageLayout:
    message = pb.PageLayout()
    if isinstance(layout, MiniBlockLayout):
        _encode_mini_block(message.mini_block_layout, layout)
    elif isinstance(layout, FullZipLayout):
        _encode_full_zip(message.full_zip_layout, layout)
    elif isinstance(layout, ConstantLayout):
        _encode_constant(message.constant_layout, layout)
    else:
        message.blob_layout.inner_layout.CopyFrom(_encode_layout(layout.inner_layout))
        message.blob_layout.layers.extend(int(layer) for layer in layout.layers)  # type: ignore[misc]
    return message


def _encode_mini_block(target: pb.MiniBlockLayout, layout: MiniBlockLayout) -> None:
    target.value_compression.CopyFrom(encode_compressive(layout.value_compression))
    target.layers.extend(int(layer) for layer in layout.layers)  # type: ignore[misc]
    target.num_items = layout.num_items
    target.num_buffers = layout.num_buffers
    target.repetition_index_depth = layout.repetition_index_depth
    target.has_large_chunk = layout.has_large_chunk
    if layout.rep_compression is not None:
        target.rep_compression.CopyFrom(encode_compressive(layout.rep_compression))
    if layout.def_compression is not None:
        target.def_compression.CopyFrom(encode_compressive(layout.def_compression))
    if layout.dictionary is not None:
        target.dictionary.CopyFrom(encode_compressive(layout.dictionary))
        target.num_dictionary_items = layout.num_dictionary_items


def _encode_full_zip(target: pb.FullZipLayout, layout: FullZipLayout) -> None:
    target.value_compression.CopyFrom(encode_compressive(layout.value_compression))
    target.layers.extend(int(layer) for layer in layout.layers)  # type: ignore[misc]
    target.num_items = layout.num_items
    target.num_visible_items = layout.num_visible_items
    target.bits_rep = layout.bits_rep
    target.bits_def = layout.bits_def
    if layout.bits_per_value is not None:
        target.bits_per_value = layout.bits_per_value
    if layout.bits_per_offset is not None:
        target.bits_per_offset = layout.bits_per_offset


def _encode_constant(target: pb.ConstantLayout, layout: ConstantLayout) -> None:
    target.layers.extend(int(layer) for layer in layout.layers)  # type: ignore[misc]
    if layout.inline_value is not None:
        target.inline_value = layout.inline_value
    if layout.rep_compression is not None:
        target.rep_compression.CopyFrom(encode_compressive(layout.rep_compression))
    if layout.def_compression is not None:
        target.def_compression.CopyFrom(encode_compressive(layout.def_compression))
    target.num_rep_values = layout.num_rep_values
    target.num_def_values = layout.num_def_values
    target.SetInParent()


def encode_compressive(encoding: enc.CompressiveEncoding) -> pb.CompressiveEncoding:
    """The message for an encoding."""
    message = pb.CompressiveEncoding()
    name, encode = _ENCODERS[type(encoding)]
    arm = getattr(message, name)
    arm.SetInParent()
    encode(arm, encoding)
    return message


def _set_compression(target: pb.BufferCompression, compression: enc.BufferCompression | None) -> None:
    if compression is None:
        return
    target.scheme = int(compression.scheme)  # type: ignore[assignment]
    if compression.level is not None:
        target.level = compression.level


def _encode_flat(target: pb.Flat, item: enc.Flat) -> None:
    target.bits_per_value = item.bits_per_value
    if item.compression is not None:
        _set_compression(target.data, item.compression)


def _encode_variable(target: pb.Variable, item: enc.Variable) -> None:
    target.offsets.CopyFrom(encode_compressive(item.offsets))
    if item.compression is not None:
        _set_compression(target.values, item.compression)


def _encode_const(target: pb.Constant, item: enc.Constant) -> None:
    if item.value is not None:
        target.value = item.value


def _encode_out_of_line(target: pb.OutOfLineBitpacking, item: enc.OutOfLineBitpacking) -> None:
    target.uncompressed_bits_per_value = item.uncompressed_bits
    target.values.CopyFrom(encode_compressive(item.values))


def _encode_inline(target: pb.InlineBitpacking, item: enc.InlineBitpacking) -> None:
    target.uncompressed_bits_per_value = item.uncompressed_bits
    if item.compression is not None:
        _set_compression(target.values, item.compression)


def _encode_fsst(target: pb.Fsst, item: enc.Fsst) -> None:
    target.symbol_table = item.symbol_table
    target.values.CopyFrom(encode_compressive(item.values))


def _encode_dictionary(target: pb.Dictionary, item: enc.Dictionary) -> None:
    target.indices.CopyFrom(encode_compressive(item.indices))
    target.items.CopyFrom(encode_compressive(item.items))
    target.num_dictionary_items = item.num_items


def _encode_rle(target: pb.Rle, item: enc.Rle) -> None:
    target.values.CopyFrom(encode_compressive(item.values))
    target.run_lengths.CopyFrom(encode_compressive(item.run_lengths))


def _encode_bss(target: pb.ByteStreamSplit, item: enc.ByteStreamSplit) -> None:
    target.values.CopyFrom(encode_compressive(item.values))


def _encode_general(target: pb.General, item: enc.General) -> None:
    _set_compression(target.compression, item.compression)
    target.values.CopyFrom(encode_compressive(item.values))


def _encode_fsl(target: pb.FixedSizeList, item: enc.FixedSizeList) -> None:
    target.items_per_value = item.items_per_value
    target.has_validity = item.has_validity
    target.values.CopyFrom(encode_compressive(item.values))


def _encode_packed(target: pb.PackedStruct, item: enc.PackedStruct) -> None:
    target.bits_per_value.extend(item.bits_per_value)
    target.values.CopyFrom(encode_compressive(item.values))


def _encode_variable_packed(target: pb.VariablePackedStruct, item: enc.VariablePackedStruct) -> None:
    for field in item.fields:
        added = target.fields.add()
        added.value.CopyFrom(encode_compressive(field.value))
        if field.bits_per_value is not None:
            added.bits_per_value = field.bits_per_value
        if field.bits_per_length is not None:
            added.bits_per_length = field.bits_per_length


def _encode_range(target: pb.Range, item: enc.Range) -> None:
    target.uncompressed_bits_per_value, target.start, target.step = item.uncompressed_bits, item.start, item.step


def _encode_delta(target: pb.Delta, item: enc.Delta) -> None:
    target.uncompressed_bits_per_value, target.base = item.uncompressed_bits, item.base
    target.deltas.CopyFrom(encode_compressive(item.deltas))


_ENCODERS: dict[type, tuple[str, Callable[..., None]]] = {
    enc.Flat: ("flat", _encode_flat),
    enc.Variable: ("variable", _encode_variable),
    enc.Constant: ("constant", _encode_const),
    enc.OutOfLineBitpacking: ("out_of_line_bitpacking", _encode_out_of_line),
    enc.InlineBitpacking: ("inline_bitpacking", _encode_inline),
    enc.Fsst: ("fsst", _encode_fsst),
    enc.Dictionary: ("dictionary", _encode_dictionary),
    enc.Rle: ("rle", _encode_rle),
    enc.ByteStreamSplit: ("byte_stream_split", _encode_bss),
    enc.General: ("general", _encode_general),
    enc.FixedSizeList: ("fixed_size_list", _encode_fsl),
    enc.PackedStruct: ("packed_struct", _encode_packed),
    enc.VariablePackedStruct: ("variable_packed_struct", _encode_variable_packed),
    enc.Range: ("range", _encode_range),
    enc.Delta: ("delta", _encode_delta),
}
