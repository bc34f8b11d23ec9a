"""Schemas as we write them must be the schemas the official library writes."""

from __future__ import annotations

import struct
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lance_core.arrow import check_compatible, field_to_arrow, schema_from_arrow, schema_to_arrow
from lance_core.errors import FormatError, InputError, SchemaMismatchError
from lance_core.format.schema import Field, Schema
from lance_core.format.version import FileVersion
from lance_core.wire.pb import table_pb2


def written_manifest(uri: Path) -> table_pb2.Manifest:
    data = next(iter((uri / "_versions").glob("*.manifest"))).read_bytes()
    (position,) = struct.unpack("<Q", data[-16:-8])
    (size,) = struct.unpack("<I", data[position : position + 4])
    manifest = table_pb2.Manifest()
    manifest.ParseFromString(data[position + 4 : position + 4 + size])
    return manifest


A = pa.struct([("a", pa.int8())])
TYPES = {
    "null": pa.null(),
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "uint64": pa.uint64(),
    "float16": pa.float16(),
    "double": pa.float64(),
    "date32": pa.date32(),
    "date64": pa.date64(),
    "time32": pa.time32("ms"),
    "time64": pa.time64("ns"),
    "timestamp": pa.timestamp("us"),
    "timestamp_utc": pa.timestamp("ns", "UTC"),
    "timestamp_offset": pa.timestamp("ms", "+05:30"),
    "duration": pa.duration("us"),
    "decimal128": pa.decimal128(20, -2),
    "decimal256": pa.decimal256(40, 3),
    "fixed_size_binary": pa.binary(7),
    "string": pa.string(),
    "large_string": pa.large_string(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "string_view": pa.string_view(),
    "binary_view": pa.binary_view(),
    "list": pa.list_(pa.int32()),
    "large_list": pa.large_list(pa.field("x", pa.string(), nullable=False)),
    "list_struct": pa.list_(pa.struct([("a", pa.int8()), pa.field("b", pa.list_(pa.int8()), nullable=False)])),
    "large_list_struct": pa.large_list(A),
    "list_list_struct": pa.list_(pa.list_(A)),
    "struct": pa.struct([("a", pa.int8()), ("b", A)]),
    "empty_struct": pa.struct([]),
    "map": pa.map_(pa.string(), pa.list_(pa.int8())),
    "list_map": pa.list_(pa.map_(pa.int8(), pa.int8())),
    "fsl": pa.list_(pa.float32(), 3),
    "fsl_named": pa.list_(pa.field("q", pa.float32(), nullable=False), 3),
    "fsl_fsl": pa.list_(pa.list_(pa.float32(), 2), 3),
    "fsl_struct": pa.list_(A, 2),
    "fsl_decimal": pa.list_(pa.decimal128(10, 2), 2),
    "fsl_timestamp": pa.list_(pa.timestamp("us", "UTC"), 2),
    "dictionary": pa.dictionary(pa.int8(), pa.string()),
    "dictionary_ordered": pa.dictionary(pa.uint16(), pa.int64(), ordered=True),
    "dictionary_view": pa.dictionary(pa.int8(), pa.string_view()),
    "json": pa.json_(pa.string()),
    "large_json": pa.json_(pa.large_string()),
    "uuid": pa.uuid(),
    "bool8": pa.bool8(),
    "tensor": pa.fixed_shape_tensor(pa.float32(), [2, 2]),
}


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("version", ["2.2", "2.1"])
def test_fields_equal_the_official_manifest(tmp_path: Path, name: str, version: str) -> None:
    arrow = pa.schema([pa.field("c", TYPES[name], metadata={"k": "v"})], metadata={"s": "m"})
    if version == "2.1" and name in ("map", "list_map", "fsl_struct"):
        pytest.skip("the official library has no such type in 2.1")
    official = lance.write_dataset(arrow.empty_table(), tmp_path / "t", data_storage_version=version)
    expected = written_manifest(tmp_path / "t")
    ours = schema_from_arrow(arrow, version=FileVersion.V2_2 if version == "2.2" else FileVersion.V2_1)
    assert len(ours.fields) == len(expected.fields)
    for field, message in zip(ours.fields, expected.fields):
        assert (field.id, field.parent_id, field.name) == (message.id, message.parent_id, message.name)
        assert field.logical_type == message.logical_type
        assert (field.nullable, int(field.encoding)) == (message.nullable, message.encoding)
        assert dict(field.metadata) == dict(message.metadata)
        assert field.extension_name == message.extension_name
    back = schema_to_arrow(ours)
    assert back.types == official.schema.types
    assert back.metadata == official.schema.metadata
    assert back.field(0).metadata[b"k"] == b"v"
    assert field_to_arrow(ours, ours.top_level[0]).type == back.field(0).type


@pytest.mark.parametrize(
    "metadata",
    [
        {"lance-schema:unenforced-primary-key": "true"},
        {"lance-schema:unenforced-primary-key": "true", "lance-schema:unenforced-primary-key:position": "3"},
    ],
)
def test_primary_keys(tmp_path: Path, metadata: dict[str, str]) -> None:
    arrow = pa.schema([pa.field("c", pa.int64(), nullable=False, metadata=metadata)])
    lance.write_dataset(arrow.empty_table(), tmp_path / "t")
    message = written_manifest(tmp_path / "t").fields[0]
    ours = schema_from_arrow(arrow).fields[0]
    assert ours.unenforced_primary_key == message.unenforced_primary_key
    assert ours.unenforced_primary_key_position == message.unenforced_primary_key_position


def test_blob_metadata_becomes_blob_v2(tmp_path: Path) -> None:
    arrow = pa.schema([pa.field("c", pa.large_binary(), metadata={"lance-encoding:blob": "true"})])
    lance.write_dataset(arrow.empty_table(), tmp_path / "t")
    expected = written_manifest(tmp_path / "t").fields
    ours = schema_from_arrow(arrow)
    got = [(f.id, f.parent_id, f.name, f.logical_type, dict(f.metadata)) for f in ours.fields]
    assert got == [(f.id, f.parent_id, f.name, f.logical_type, dict(f.metadata)) for f in expected]
    old = schema_from_arrow(arrow, version=FileVersion.V2_1)
    assert [f.logical_type for f in old.fields] == ["large_binary"]


@pytest.mark.parametrize(
    "arrow_type",
    [
        pa.month_day_nano_interval(),
        pa.list_view(pa.int32()),
        pa.run_end_encoded(pa.int32(), pa.int32()),
        pa.map_(pa.string(), pa.int32(), keys_sorted=True),
        pa.sparse_union([pa.field("a", pa.int8())]),
        pa.dictionary(pa.int8(), pa.timestamp("us", "UTC")),
        pa.dictionary(pa.int8(), pa.list_(pa.int8())),
        pa.list_(pa.list_(pa.int8()), 2),
    ],
    ids=str,
)
def test_refused_types_are_named(arrow_type: pa.DataType) -> None:
    with pytest.raises(InputError, match=r"'deep\.c'"):
        schema_from_arrow(pa.schema([("deep", pa.struct([("c", arrow_type)]))]))


@pytest.mark.parametrize("names", [["a.b"], ["a", "a"]])
def test_refused_names(names: list[str]) -> None:
    with pytest.raises(InputError, match=names[0]):
        schema_from_arrow(pa.schema([pa.field(name, pa.int8()) for name in names]))


@pytest.mark.parametrize(
    "logical",
    ["", "nope", "int128", "timestamp:xs:-", "decimal:64:1:1", "decimal:128:400:1", "fixed_size_list:float:x",
     "fixed_size_list:float:0", "dict:string", "dict:string:double:false", "fixed_size_binary:-1", "map", "list",
     "fixed_size_list:struct:1"],
)  # fmt: skip
def test_malformed_logical_types(logical: str) -> None:
    with pytest.raises(FormatError):
        schema_to_arrow(Schema((Field(0, "c", -1, logical),)))


def table(**fields: pa.DataType | pa.Field) -> Schema:
    items = [f if isinstance(f, pa.Field) else pa.field(name, f) for name, f in fields.items()]
    return schema_from_arrow(pa.schema(items))


def test_compatible_keeps_table_ids_in_data_order() -> None:
    target = table(a=pa.int64(), s=pa.struct([("x", pa.int8()), ("y", pa.string())]), b=pa.string())
    data = table(b=pa.string_view(), s=pa.struct([("y", pa.string())]))
    assert [(f.id, f.name) for f in check_compatible(target, data).fields] == [(4, "b"), (1, "s"), (3, "y")]


@pytest.mark.parametrize(
    ("target", "data", "words"),
    [
        (table(a=pa.int64()), table(a=pa.int32()), ["'a'", "int64", "int32"]),
        (table(a=pa.int64()), table(a=pa.int64(), c=pa.int8()), ["'c'", "not in the table"]),
        (table(a=pa.field("a", pa.int64(), nullable=False), b=pa.int8()), table(b=pa.int8()), ["'a'", "missing"]),
        (table(a=A), table(a=pa.struct([("a", pa.int16())])), ["'a.a'", "int8", "int16"]),
        (table(a=pa.list_(pa.int8())), table(a=pa.large_list(pa.int8())), ["'a'", "list", "large_list"]),
        (table(a=pa.string()), table(a=pa.dictionary(pa.int32(), pa.string())), ["'a'", "string", "dict:"]),
        (table(a=pa.timestamp("us")), table(a=pa.timestamp("us", "UTC")), ["timestamp:us:-", "timestamp:us:UTC"]),
    ],
)
def test_incompatible_names_the_column(target: Schema, data: Schema, words: list[str]) -> None:
    with pytest.raises(SchemaMismatchError) as caught:
        check_compatible(target, data)
    assert all(word in str(caught.value) for word in words)
