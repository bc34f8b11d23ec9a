"""Encodings and column metadata through protobuf and back; both tables know every arm of their message."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_core.errors import CorruptFileError, FormatError, UnsupportedEncodingError
from lance_core.fetch import ByteRange
from lance_core.format import encoding as enc
from lance_core.format import encoding20 as enc20
from lance_core.format.layout import (
    BlobLayout,
    ConstantLayout,
    FileColumn,
    FullZipLayout,
    MiniBlockLayout,
    Page,
    RepDefLayer,
)
from lance_core.format.schema import Field, Schema
from lance_core.wire import encodings20, encodings21
from lance_core.wire.columns import decode_column, encode_column
from lance_core.wire.file import (
    FileDescriptor,
    LegacyMetadata,
    PageStatistics,
    decode_file_descriptor,
    decode_legacy_metadata,
    decode_legacy_schema,
    encode_file_descriptor,
    encode_legacy_metadata,
    encode_legacy_schema,
)
from lance_core.wire.pb import encodings_v2_0_pb2, encodings_v2_1_pb2

FLAT = enc.Flat(64)
COMPRESSIVE = [
    FLAT,
    enc.Flat(1, enc.BufferCompression(enc.CompressionScheme.LZ4)),
    enc.Variable(enc.Flat(32), enc.BufferCompression(enc.CompressionScheme.ZSTD, 3)),
    enc.Constant(None),
    enc.Constant(b""),
    enc.OutOfLineBitpacking(16, enc.Flat(1)),
    enc.InlineBitpacking(32),
    enc.Fsst(b"table", enc.Variable(enc.Flat(32))),
    enc.Dictionary(enc.Flat(8), FLAT, 7),
    enc.Rle(FLAT, enc.Flat(8)),
    enc.General(enc.BufferCompression(enc.CompressionScheme.ZSTD), enc.ByteStreamSplit(FLAT)),
    enc.FixedSizeList(3, True, FLAT),
    enc.PackedStruct((32, 64), enc.Flat(96)),
    enc.VariablePackedStruct((enc.PackedField(FLAT, bits_per_value=64), enc.PackedField(FLAT, bits_per_length=32))),
    enc.Range(64, 5, 2),
    enc.Delta(64, 5, FLAT),
]
LAYERS = (RepDefLayer.NULLABLE_ITEM, RepDefLayer.NULL_AND_EMPTY_LIST)
LAYOUTS = [
    MiniBlockLayout(FLAT, LAYERS, 10, 2, FLAT, FLAT, FLAT, 4, 1, True),
    MiniBlockLayout(FLAT, (RepDefLayer.ALL_VALID_ITEM,), 0),
    FullZipLayout(FLAT, LAYERS, 10, 9, 1, 2, bits_per_value=64),
    FullZipLayout(FLAT, LAYERS, 10, 9, 1, 2, bits_per_offset=32),
    ConstantLayout(LAYERS),
    ConstantLayout(LAYERS, b"", FLAT, FLAT, 3, 4),
    BlobLayout(MiniBlockLayout(FLAT, (RepDefLayer.ALL_VALID_ITEM,), 3), (RepDefLayer.NULLABLE_ITEM,)),
]
FLAT20 = enc20.Flat(64, enc20.BufferRef(1))
ARRAYS = [
    FLAT20,
    enc20.Flat(8, enc20.BufferRef(0, enc20.BufferKind.COLUMN), "zstd", 9),
    enc20.NoNulls(FLAT20),
    enc20.SomeNulls(FLAT20, FLAT20),
    enc20.AllNulls(),
    enc20.FixedSizeList(4, FLAT20),
    enc20.List(FLAT20, 8, 7),
    enc20.SimpleStruct(),
    enc20.Binary(FLAT20, FLAT20, 9),
    enc20.Fsst(FLAT20, b"table"),
    enc20.Dictionary(FLAT20, FLAT20, 3),
    enc20.PackedStruct((FLAT20, enc20.NoNulls(FLAT20)), enc20.BufferRef(2)),
    enc20.Bitpacked(3, 8, enc20.BufferRef(0), True),
    enc20.BitpackedForNonNeg(3, 8, enc20.BufferRef(0)),
    enc20.FixedSizeBinary(FLAT20, 16),
    enc20.Constant(b"\x01"),
]


@pytest.mark.parametrize("encoding", COMPRESSIVE, ids=lambda item: type(item).__name__)
def test_compressive_encodings(encoding: enc.CompressiveEncoding) -> None:
    assert encodings21.decode_compressive(encodings21.encode_compressive(encoding)) == encoding


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda item: type(item).__name__)
def test_layouts(layout: object) -> None:
    assert encodings21.decode_page_layout(encodings21.encode_page_layout(layout)) == layout  # type: ignore[arg-type]


@pytest.mark.parametrize("encoding", ARRAYS, ids=lambda item: type(item).__name__)
def test_array_encodings(encoding: object) -> None:
    assert encodings20.decode_array_encoding(encodings20.encode_array_encoding(encoding)) == encoding


def test_every_compressive_arm_has_a_row() -> None:
    arms = set(encodings_v2_1_pb2.CompressiveEncoding.DESCRIPTOR.fields_by_name)
    assert set(encodings21._DECODERS) == arms
    assert {name for name, _ in encodings21._ENCODERS.values()} == arms
    assert {type(item) for item in COMPRESSIVE} | {enc.ByteStreamSplit} == set(encodings21._ENCODERS)


def test_array_arms_without_a_row_are_those_of_no_file() -> None:
    arms = set(encodings_v2_0_pb2.ArrayEncoding.DESCRIPTOR.fields_by_name)
    unknown = arms - set(encodings20._DECODERS)
    assert unknown == {
        "inline_bitpacking",
        "out_of_line_bitpacking",
        "variable",
        "packed_struct_fixed_width_mini_block",
        "block",
        "rle",
        "general_mini_block",
        "byte_stream_split",
    }
    assert {type(item) for item in ARRAYS} == set(encodings20._ENCODERS)


def test_columns() -> None:
    pages = tuple(Page(layout, (ByteRange(64, 72), ByteRange(128, 128)), 5, 10) for layout in LAYOUTS)
    column = FileColumn(pages, (ByteRange(0, 8),))
    assert decode_column(encode_column(column)) == column
    old = FileColumn(tuple(Page(item, (), 3) for item in ARRAYS), encoding=enc20.BlobColumnEncoding())
    assert decode_column(encode_column(old)) == old


def test_columns_that_are_none() -> None:
    with pytest.raises(CorruptFileError):
        decode_column(b"\xff\xff\xff")
    unknown = encode_column(FileColumn((Page(LAYOUTS[0], (), 3),))).replace(b"encodings21", b"encodings99")
    with pytest.raises(UnsupportedEncodingError, match="encodings99"):
        decode_column(unknown)


@given(st.binary(max_size=200))
def test_random_bytes_are_refused_or_read(data: bytes) -> None:
    for decode in (decode_column, encodings21.decode_page_layout, encodings20.decode_array_encoding, decode_file_descriptor):
        with contextlib.suppress(FormatError):
            decode(data)


def test_file_messages() -> None:
    schema = Schema((Field(0, "a", -1, "list"), Field(1, "item", 0, "int8", nullable=False)), {"k": b"v"})
    descriptor = FileDescriptor(schema, 2**40)
    assert decode_file_descriptor(encode_file_descriptor(descriptor)) == descriptor
    assert decode_legacy_schema(encode_legacy_schema(schema)) == schema
    for statistics in (None, PageStatistics(Schema(schema.fields), (0, 1), 77)):
        metadata = LegacyMetadata(5, (0, 3, 6), 99, statistics)
        assert decode_legacy_metadata(encode_legacy_metadata(metadata)) == metadata
