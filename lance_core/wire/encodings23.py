"""encodings_v2_3.proto <-> page layouts (2.3 is unstable).

structure { dense { layers: [1] } } values { chunked { compression { flat { bits_per_value: 64 } } num_items: 3 } }
MiniBlockLayout(value_compression=Flat(64), layers=(ALL_VALID_ITEM,), num_items=3, has_large_chunk=True)

A dense structure is a 2.2 layout in other words; a sparse one keeps its own.
"""

from __future__ import annotations

from collections.abc import Callable

from google.protobuf.message import Message

from lance_core.errors import CorruptFileError, UnsupportedEncodingError
from lance_core.format import encoding as enc
from lance_core.format.layout import (
    ConstantLayout,
    FullZipLayout,
    IndexedLayout,
    MiniBlockLayout,
    RepDefLayer,
    SparseFixedSizeList,
    SparseLayer,
    SparseLayout,
    SparseList,
    SparseValidity,
)
from lance_core.wire.encodings21 import decode_compressive, encode_compressive
from lance_core.wire.pb import encodings_v2_3_pb2 as pb
from lance_core.wire.schema import parse_message

Values = MiniBlockLayout | FullZipLayout | ConstantLayout
SparseValues = Values | IndexedLayout
_LAYERS = {int(layer): layer for layer in RepDefLayer}
_PLAIN = (RepDefLayer.ALL_VALID_ITEM,)


def decode_planar_layout(data: bytes) -> Values | SparseLayout:
    """The layout in a serialized PlanarLayout. Raises CorruptFileError or UnsupportedEncodingError."""
    message = parse_message(pb.PlanarLayout, data, what="planar layout")
    kind = message.structure.WhichOneof("codec")
    if kind == "dense":
        return _values(message.values, _dense(message.structure.dense))
    if kind == "sparse":
        layers = tuple(_sparse_layer(layer) for layer in message.structure.sparse.layers)
        if message.values.WhichOneof("codec") == "indexed":
            return SparseLayout(layers, _indexed(message.values.indexed))
        return SparseLayout(layers, _values(message.values, _PLAIN))
    raise UnsupportedEncodingError(f"structural plane {kind or 'of an unknown kind'} is not supported by this library")


def _dense(message: pb.DenseStructure) -> tuple[RepDefLayer, ...]:
    try:
        return tuple(_LAYERS[int(number)] for number in message.layers)
    except KeyError as error:
        raise CorruptFileError(f"unknown repetition/definition layer {error.args[0]}") from None


def _values(message: pb.ValuePlane, layers: tuple[RepDefLayer, ...]) -> Values:
    kind = message.WhichOneof("codec")
    decode = _VALUES.get(kind or "")
    if decode is None:
        raise UnsupportedEncodingError(f"value plane {kind or 'of an unknown kind'} is not supported by this library")
    return decode(getattr(message, kind or ""), layers)


def _chunked(message: pb.ChunkedValues, layers: tuple[RepDefLayer, ...]) -> MiniBlockLayout:
    return MiniBlockLayout(
        value_compression=_required(message, "compression"),
        layers=layers,
        num_items=message.num_items,
        num_buffers=message.num_buffers,
        rep_compression=_optional(message.levels, "repetition"),
        def_compression=_optional(message.levels, "definition"),
        dictionary=_optional(message, "dictionary"),
        num_dictionary_items=message.num_dictionary_items,
        repetition_index_depth=message.levels.repetition_index_depth,
        has_large_chunk=True,
    )


def _zipped(message: pb.ZippedValues, layers: tuple[RepDefLayer, ...]) -> FullZipLayout:
    width = message.WhichOneof("details")
    return FullZipLayout(
        value_compression=_required(message, "compression"),
        layers=layers,
        num_items=message.num_items,
        num_visible_items=message.num_visible_items,
        bits_rep=message.levels.bits_repetition,
        bits_def=message.levels.bits_definition,
        bits_per_value=message.bits_per_value if width == "bits_per_value" else None,
        bits_per_offset=message.bits_per_offset if width == "bits_per_offset" else None,
    )


def _indexed(message: pb.IndexedValues) -> IndexedLayout:
    return IndexedLayout(_required(message, "indices"), _zipped(message.items, _PLAIN))


_VALUES: dict[str, Callable[..., Values]] = {
    "chunked": _chunked,
    "zipped": _zipped,
    "constant": lambda message, layers: ConstantLayout(layers, inline_value=message.scalar),
    "none": lambda message, layers: ConstantLayout(layers),
}


def _sparse_layer(message: pb.SparseStructuralLayer) -> SparseLayer:
    kind = message.WhichOneof("layer")
    decode = _SPARSE_LAYERS.get(kind or "")
    if decode is None:
        raise UnsupportedEncodingError(f"sparse layer {kind or 'of an unknown kind'} is not supported by this library")
    return decode(getattr(message, kind or ""))


def _validity(message: pb.SparseValiditySet) -> SparseValidity:
    if message.meaning not in (1, 2):
        raise UnsupportedEncodingError(f"sparse validity with meaning {message.meaning} is not supported by this library")
    return SparseValidity(message.meaning == 2, _required(message, "positions"), message.num_positions)


def _list(message: pb.SparseListLayer) -> SparseList:
    return SparseList(
        num_child_slots=message.num_child_slots,
        non_empty_positions=_required(message, "non_empty_positions"),
        num_non_empty_positions=message.num_non_empty_positions,
        counts=_required(message, "counts"),
        validity=_validity(message.validity),
    )


_SPARSE_LAYERS: dict[str, Callable[..., SparseLayer]] = {
    "validity": _validity,
    "list": _list,
    "fixed_size_list": lambda message: SparseFixedSizeList(message.dimension, _validity(message.validity)),
}


def encode_planar_layout(layout: Values | SparseLayout) -> bytes:
    """The serialized PlanarLayout of a page; UnsupportedEncodingError for a layout that 2.3 has no words for."""
    message = pb.PlanarLayout()
    if isinstance(layout, SparseLayout):
        message.structure.sparse.SetInParent()
        for layer in layout.layers:
            _encode_sparse_layer(message.structure.sparse.layers.add(), layer)
        _encode_values(message.values, layout.values)
        # Counts and levels of values are the structure's here.
        kind = message.values.WhichOneof("codec")
        if kind == "chunked":
            message.values.chunked.ClearField("levels")
            message.values.chunked.num_items = 0
        elif kind == "zipped":
            message.values.zipped.ClearField("levels")
    else:
        message.structure.dense.layers.extend(int(layer) for layer in layout.layers)  # type: ignore[misc]
        _encode_values(message.values, layout)
    return bytes(message.SerializeToString())


def _encode_values(target: pb.ValuePlane, layout: SparseValues) -> None:
    if isinstance(layout, IndexedLayout):
        _put(target.indexed.indices, layout.indices)
        _encode_zipped(target.indexed.items, layout.items)
        return
    if isinstance(layout, ConstantLayout):
        if layout.inline_value is None:
            target.none.SetInParent()
        else:
            target.constant.scalar = layout.inline_value
        return
    if isinstance(layout, MiniBlockLayout):
        _encode_chunked(target.chunked, layout)
    else:
        _encode_zipped(target.zipped, layout)


def _encode_chunked(target: pb.ChunkedValues, layout: MiniBlockLayout) -> None:
    _put(target.compression, layout.value_compression)
    target.levels.SetInParent()
    if layout.rep_compression is not None:
        _put(target.levels.repetition, layout.rep_compression)
    if layout.def_compression is not None:
        _put(target.levels.definition, layout.def_compression)
    target.levels.repetition_index_depth = layout.repetition_index_depth
    if layout.dictionary is not None:
        _put(target.dictionary, layout.dictionary)
    target.num_dictionary_items = layout.num_dictionary_items
    target.num_buffers, target.num_items = layout.num_buffers, layout.num_items


def _encode_zipped(target: pb.ZippedValues, layout: FullZipLayout) -> None:
    _put(target.compression, layout.value_compression)
    target.levels.SetInParent()
    target.levels.bits_repetition, target.levels.bits_definition = layout.bits_rep, layout.bits_def
    if layout.bits_per_value is not None:
        target.bits_per_value = layout.bits_per_value
    if layout.bits_per_offset is not None:
        target.bits_per_offset = layout.bits_per_offset
    target.num_items, target.num_visible_items = layout.num_items, layout.num_visible_items


def _encode_sparse_layer(target: pb.SparseStructuralLayer, layer: SparseLayer) -> None:
    if isinstance(layer, SparseList):
        target.list.num_child_slots = layer.num_child_slots
        _put(target.list.non_empty_positions, layer.non_empty_positions)
        target.list.num_non_empty_positions = layer.num_non_empty_positions
        _put(target.list.counts, layer.counts)
        _encode_validity(target.list.validity, layer.validity)
    elif isinstance(layer, SparseFixedSizeList):
        target.fixed_size_list.dimension = layer.dimension
        _encode_validity(target.fixed_size_list.validity, layer.validity)
    else:
        _encode_validity(target.validity, layer)


def _encode_validity(target: pb.SparseValiditySet, layer: SparseValidity) -> None:
    target.meaning = 2 if layer.are_valid else 1  # type: ignore[assignment]
    _put(target.positions, layer.positions)
    target.num_positions = layer.num_positions


def _put(target: Message, encoding: enc.CompressiveEncoding) -> None:
    # The messages of 2.1 have the same numbers.
    target.ParseFromString(encode_compressive(encoding).SerializeToString())


def _optional(message: object, name: str) -> enc.CompressiveEncoding | None:
    # The messages of 2.3 have the arms of 2.1's under the same names, and two more.
    return decode_compressive(getattr(message, name)) if message.HasField(name) else None  # type: ignore[attr-defined]


def _required(message: object, name: str) -> enc.CompressiveEncoding:
    found = _optional(message, name)
    if found is None:
        raise CorruptFileError(f"{type(message).__name__} has no {name}")
    return found
