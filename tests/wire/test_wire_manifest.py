"""Manifests on the wire: nothing is lost, nothing is decoded that nobody asks for, and damage has a name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lance_core.errors import CorruptFileError, FormatError, UnsupportedFeatureError, UnsupportedVersionError
from lance_core.format.fragment import DataFile, DataOverlayFile, DeletionFile, Fragment
from lance_core.format.fragments import FragmentList
from lance_core.format.manifest import Manifest
from lance_core.format.schema import Field, Schema
from lance_core.wire.fragments import decode_fragment, encode_fragment
from lance_core.wire.indices import decode_index_section, encode_index_section
from lance_core.wire.manifest_file import decode_manifest_file, encode_manifest_file, manifest_start, section_bytes
from lance_core.wire.new_fragments import join_fragments, split_manifest
from lance_core.wire.pb import file_pb2, table_pb2
from lance_core.wire.schema import decode_field, decode_fields, encode_field, parse_message
from lance_core.wire.table import decode_manifest, encode_manifest
from tests.wire.wire_strategies import FRAGMENTS, INDICES, MANIFESTS

SLOW_TO_DRAW = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=60
)


@given(MANIFESTS, st.none() | st.binary(max_size=30))
@SLOW_TO_DRAW
def test_manifest_round_trip(manifest: Manifest, transaction: bytes | None) -> None:
    data = encode_manifest_file(manifest, transaction=transaction)
    found = decode_manifest_file(data)
    # A dictionary whose values nobody knows points into another file: it is left out.
    fields = tuple(replace(field, dictionary=None) for field in manifest.schema.fields)
    assert found.manifest == replace(manifest, schema=Schema(fields, manifest.schema.metadata))
    assert found.transaction == transaction
    assert encode_manifest_file(found.manifest, transaction=transaction) == data


@given(FRAGMENTS)
@SLOW_TO_DRAW
def test_fragment_round_trip(fragment: Fragment) -> None:
    assert decode_fragment(encode_fragment(fragment)) == fragment


@given(st.lists(INDICES, max_size=4))
@SLOW_TO_DRAW
def test_index_section_round_trip(indices: list) -> None:  # type: ignore[type-arg]
    assert decode_index_section(encode_index_section(indices)) == tuple(indices)


@given(FRAGMENTS)
@SLOW_TO_DRAW
def test_peeking_sees_what_decoding_sees(fragment: Fragment) -> None:
    peeked = decode_manifest(encode_manifest(manifest_of([fragment]))).fragments
    assert isinstance(peeked, FragmentList)
    assert list(peeked.ids) == [fragment.id]
    assert peeked.num_rows == fragment.num_rows
    assert peeked.any_with("deletion_file") is (fragment.deletion_file is not None)
    assert not peeked.any_with("overlays")


@pytest.mark.parametrize("where", [None, 0, 137, 299])
def test_peeking_into_many_finds_the_one(where: int | None) -> None:
    fragments = [plain(number) for number in range(300)]
    if where is not None:
        fragments[where] = replace(fragments[where], deletion_file=DeletionFile("array", 1, 2, 3))
    peeked = decode_manifest(encode_manifest(manifest_of(fragments))).fragments
    assert isinstance(peeked, FragmentList)
    assert peeked.any_with("deletion_file") is (where is not None)
    assert not peeked.any_with("overlays")


def test_overlays_stay_bytes() -> None:
    raw = table_pb2.DataOverlayFile(shared_offset_bitmap=b"abc", committed_version=3).SerializeToString()
    fragment = Fragment(1, (), 10, overlays=(DataOverlayFile(raw),))
    assert decode_fragment(encode_fragment(fragment)) == fragment


def test_position_of_old_inline_transactions_is_read() -> None:
    file = bytearray(encode_manifest_file(manifest_of([]), transaction=b"abc"))
    position = manifest_start(bytes(file), len(file))
    body = section_bytes(bytes(file), position, what="manifest")
    message = table_pb2.Manifest.FromString(body)
    message.transaction_section_deprecated = message.transaction_section
    message.ClearField("transaction_section")
    changed = message.SerializeToString()
    data = bytes(file[:position]) + len(changed).to_bytes(4, "little") + changed + bytes(file[-16:])
    assert decode_manifest_file(data).transaction == b"abc"


def manifest_of(fragments: list[Fragment]) -> Manifest:
    return Manifest(schema=Schema((Field(0, "a", -1, "int64"),)), fragments=fragments, version=1)


def plain(fragment_id: int) -> Fragment:
    return Fragment(fragment_id, (DataFile("f", (0,), (0,), 2, 2),), 10)


# -- what the official library writes


@pytest.fixture(params=[("2.2", False), ("2.1", True), ("2.0", False), ("legacy", False)], ids=str)
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    version, stable = request.param
    struct = pa.array([{"x": i, "y": [str(i)]} for i in range(40)])
    table = pa.table({"a": range(40), "s": struct}, metadata={"k": "v"})
    uri = tmp_path / "t"
    lance.write_dataset(table, str(uri), max_rows_per_file=10, data_storage_version=version, enable_stable_row_ids=stable)
    lance.dataset(str(uri)).delete("a in (3, 17)")
    lance.dataset(str(uri)).update_config({"some": "thing"})
    lance.dataset(str(uri)).create_scalar_index("a", "BTREE")
    return uri


def manifests(uri: Path) -> list[Path]:
    return sorted((uri / "_versions").glob("*.manifest"))


def test_real_manifests_lose_no_byte_of_meaning(written: Path) -> None:
    for path in manifests(written):
        data = path.read_bytes()
        file = decode_manifest_file(data)
        # Decoding all fragments and encoding them again must not lose anything either.
        thorough = replace(file.manifest, fragments=list(file.manifest.fragments))
        for manifest in (file.manifest, thorough):
            again = encode_manifest_file(manifest, transaction=file.transaction)
            assert message_of(again) == message_of(data)
            assert decode_manifest_file(again) == file


def message_of(data: bytes) -> table_pb2.Manifest:
    return table_pb2.Manifest.FromString(section_bytes(data, manifest_start(data, len(data)), what="manifest"))


def test_official_library_opens_manifests_we_wrote(written: Path) -> None:
    before = lance.dataset(str(written))
    expected, schema, indices = before.to_table(), before.schema, before.describe_indices()
    for path in manifests(written):
        file = decode_manifest_file(path.read_bytes())
        fragments = list(file.manifest.fragments)
        path.write_bytes(encode_manifest_file(replace(file.manifest, fragments=fragments), transaction=file.transaction))
    after = lance.dataset(str(written))
    after.validate()
    assert after.to_table() == expected
    assert after.schema == schema
    assert after.config() == {"some": "thing"}
    assert [item.name for item in after.describe_indices()] == [item.name for item in indices]


# -- the lazy list


@pytest.mark.parametrize(
    ("numbers", "flags", "expected"),
    [((0, 2), 0, "0.1"), ((0, 3), 0, "2.0"), ((2, 1), 0, "2.1"), (None, 0, "0.1"), (None, 4, "2.2")],
)
def test_storage_version_of_old_manifests(numbers: tuple[int, int] | None, flags: int, expected: str) -> None:
    files = [] if numbers is None else [Fragment(0, (DataFile("f", (0,), (), *numbers),), 1)]
    old = replace(manifest_of(files), data_storage_version="", file_format="", writer_feature_flags=flags)
    assert decode_manifest(encode_manifest(old)).data_storage_version == expected


def test_untouched_fragments_are_not_decoded() -> None:
    raw = [encode_fragment(plain(i)) for i in range(1000)]
    fragments = FragmentList.of_bytes(raw, Counting())
    edited = fragments.edited(replaced={5: replace(plain(5), physical_rows=7)}, removed={3}, appended=[plain(2000)])
    manifest = replace(manifest_of([]), fragments=edited)
    assert len(decode_manifest(encode_manifest(manifest)).fragments) == 1000
    assert Counting.decoded == 0
    assert edited[4].physical_rows == 7
    assert [item.id for item in edited][:4] == [0, 1, 2, 4]
    assert Counting.decoded == 998


class Counting:
    decoded = 0

    def decode(self, raw: bytes) -> Fragment:
        Counting.decoded += 1
        return decode_fragment(raw)

    def peek_ids(self, raws: Sequence[bytes]) -> Sequence[int]:
        return [table_pb2.DataFragment.FromString(raw).id for raw in raws]

    def peek_num_rows(self, raws: Sequence[bytes]) -> Sequence[int]:
        return [table_pb2.DataFragment.FromString(raw).physical_rows for raw in raws]

    def peek_any(self, raws: Sequence[bytes], name: str) -> bool:
        return any(table_pb2.DataFragment.FromString(raw).HasField(name) for raw in raws)  # type: ignore[arg-type]


def test_fragment_list_is_a_sequence() -> None:
    fragments = FragmentList.of([plain(4), plain(1)])
    assert fragments == [plain(4), plain(1)] == list(fragments)
    assert fragments != [plain(4)]
    assert fragments[-1] == plain(1)
    assert fragments[:1] == [plain(4)]
    assert FragmentList.of(fragments) is fragments
    assert fragments.get(1) == plain(1)
    assert fragments.get(9) is None
    assert fragments.pick({4, 9}) == {4: plain(4)}
    assert fragments.pick({4, 9, 10, 11, 12}) == {4: plain(4)}
    assert list(fragments.edited(appended=[plain(2)]).ids) == [1, 2, 4]
    assert fragments.num_rows == 20
    with pytest.raises(IndexError):
        fragments[2]


@pytest.mark.slow
def test_hundred_thousand_fragments() -> None:
    deletion = DeletionFile("array", 1, 2, 3)
    fragments = [replace(plain(i), deletion_file=deletion if i % 7 == 0 else None) for i in range(100_000)]
    found = decode_manifest(encode_manifest(replace(manifest_of([]), fragments=fragments)))
    assert len(found.fragments) == 100_000
    assert found.num_rows == sum(item.num_rows for item in fragments)
    assert found.fragments[77_777] == fragments[77_777]


# -- damage


def sample() -> bytes:
    deleted = replace(plain(3), deletion_file=DeletionFile("bitmap", 1, 2, 3))
    return encode_manifest_file(manifest_of([plain(0), plain(300), deleted]), transaction=b"some transaction")


def read_all(data: bytes) -> None:
    manifest = decode_manifest_file(data).manifest
    list(manifest.fragments)
    _ = manifest.num_rows


def test_every_truncation_is_damage() -> None:
    data = sample()
    for size in range(len(data)):
        with pytest.raises(FormatError):
            read_all(data[:size])


@given(st.data())
@settings(max_examples=500)
def test_flipped_bytes_end_in_a_format_error_or_a_manifest(data: st.DataObject) -> None:
    damaged = bytearray(sample())
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        read_all(bytes(damaged))
    except FormatError:
        return


@given(st.binary(max_size=60))
def test_noise_is_damage_or_a_manifest(noise: bytes) -> None:
    for decode in (decode_manifest, decode_fragment, decode_index_section):
        try:
            decode(noise)  # type: ignore[operator]
        except FormatError:
            continue


def test_unknown_framing() -> None:
    data = sample()
    with pytest.raises(UnsupportedVersionError):
        decode_manifest_file(data[:-6] + b"\x09\x00" + data[-4:])
    with pytest.raises(CorruptFileError, match="LANC"):
        decode_manifest_file(data[:-4] + b"PAR1")
    with pytest.raises(CorruptFileError):
        decode_manifest_file(b"")


@pytest.mark.parametrize(
    "fields",
    [
        (Field(0, "a", -1, "int64"), Field(0, "b", -1, "int64")),
        (Field(1, "a", 7, "int64"),),
        (Field(1, "a", -7, "int64"),),
        (Field(0, "a", -1, "int64"), Field(1, "a", -1, "string")),
        (Field(0, "a", -1, "int64"), Field(1, "b", 0, "string")),
        (Field(-3, "a", -1, "int64"),),
    ],
    ids=["id twice", "no parent", "negative parent", "name twice", "below a number", "negative id"],
)
def test_contradictory_schemas(fields: tuple[Field, ...]) -> None:
    data = encode_manifest(replace(manifest_of([]), schema=Schema(fields)))
    with pytest.raises(CorruptFileError):
        decode_manifest(data)


def test_unknown_deletion_file_type() -> None:
    message = table_pb2.DataFragment(id=1)
    message.deletion_file.file_type = 7  # type: ignore[assignment]
    with pytest.raises(CorruptFileError, match="type 7"):
        decode_fragment(message.SerializeToString())


def test_splitting_leaves_the_rest_as_it_was() -> None:
    data = bytes.fromhex("18 07 1202 0801 2a01 61 1202 0802 3101020304 05060708 3501020304")
    fields, chunks, rest = split_manifest(data)
    assert (fields, chunks) == ([], [b"\x08\x01", b"\x08\x02"])
    assert join_fragments(chunks) == bytes.fromhex("1202 0801 1202 0802")
    assert rest == bytes.fromhex("18 07 2a01 61 3101020304 05060708 3501020304")


@pytest.mark.parametrize(
    "fields",
    [
        [Field(number, f"c{number}", -1, "float") for number in range(300)],
        [Field(2**13 + number, "x" * number, -1, "int32", nullable=False, metadata={"a": b"b"}) for number in range(130)],
        [Field(2**14 - 1, "é", -1, "string"), Field(2**14, "b", 3, "string"), Field(2**31 - 1, "c", 3, "struct")],
        [Field(-1, "", -1, "null"), Field(0, "n" * 200, -1, "null", unknown=b"\xc8\x3e\x07")],
    ],
)
def test_fields_decoded_by_pattern_are_those_of_the_messages(fields: list[Field]) -> None:
    messages = [encode_field(item) for item in fields]
    found = decode_fields([message.SerializeToString() for message in messages])
    assert list(found) == [decode_field(message) for message in messages] == fields


def test_fields_in_any_order_of_bytes_are_decoded() -> None:
    plain = encode_field(Field(5, "name", -1, "int64")).SerializeToString()
    again = plain + b"\x12\x05later\x18\x07"
    for data in (
        again,
        plain[6:] + plain[:6],
        plain[:-1],
        b"\x12\x04name",
        b"\x12\xff",
        b"",
        b"\x12\x02\xff\xfe\x18\x01\x2a\x01x",
    ):
        try:
            expected = decode_field(parse_message(file_pb2.Field, data, what="field"))
        except CorruptFileError:
            with pytest.raises(CorruptFileError):
                decode_fields([plain, data])
        else:
            assert decode_fields([plain, data])[1] == expected


def test_tables_with_a_table_of_blobs_are_refused() -> None:
    """Field 17, which only drafts of old releases wrote: the version of the table beside it, 0 for none."""
    message = table_pb2.Manifest(version=3).SerializeToString()
    assert decode_manifest(message + b"\x88\x01\x00").version == 3
    with pytest.raises(UnsupportedFeatureError, match="_blobs"):
        decode_manifest(message + b"\x88\x01\x05")
