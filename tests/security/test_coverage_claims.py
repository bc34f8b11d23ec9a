"""What few bytes of a manifest claim of fragments is counted before sets and arrays are made of it."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import CorruptFileError
from lance_core.format.fragment import Fragment
from lance_core.format.index_details import FragmentDigest, ReuseDetails, ReuseGroup, ReuseVersion
from lance_core.rowids.bitmap import decode_bitmap, encode_bitmap
from lance_core.table.operations.update import Update
from lance_core.wire.indices import MAX_COVERED, Coverages, decode_index_section
from lance_core.wire.manifest_file import decode_manifest_file, encode_manifest_file
from lance_core.wire.pb import table_pb2, transaction_pb2
from lance_core.wire.reuse import decode_reuse, encode_reuse
from lance_core.wire.transaction import decode_transaction


def runs(containers: int) -> bytes:
    """A roaring bitmap in which each container is one run of all its 65,536 numbers: 16 bytes each."""
    head = struct.pack("<I", 12347 | (containers - 1) << 16) + b"\xff" * ((containers + 7) // 8)
    keys = b"".join(struct.pack("<HH", key, 0xFFFF) for key in range(containers))
    first = len(head) + len(keys) + (4 * containers if containers >= 4 else 0)
    offsets = b"".join(struct.pack("<I", first + 6 * key) for key in range(containers)) if containers >= 4 else b""
    return head + keys + offsets + struct.pack("<HHH", 1, 0, 0xFFFF) * containers


def _section(*bitmaps: bytes) -> table_pb2.IndexSection:
    section = table_pb2.IndexSection()
    for bitmap in bitmaps:
        section.indices.add(name="i", fragment_bitmap=bitmap).uuid.uuid = bytes(16)
    return section


def test_a_bitmap_of_a_few_bytes_is_what_it_claims() -> None:
    data = runs(64)
    assert (len(data), len(decode_bitmap(data))) == (4 + 8 + 64 * 14, MAX_COVERED)


@pytest.mark.parametrize("bitmaps", [(runs(1 << 16),), (runs(40), runs(41)), tuple(runs(n) for n in range(4, 14))])
def test_a_section_that_covers_too_much_is_refused(bitmaps: tuple[bytes, ...]) -> None:
    section = _section(*bitmaps)
    with pytest.raises(CorruptFileError, match="claims to cover"):
        decode_index_section(section.SerializeToString())
    message = transaction_pb2.Transaction(uuid="u")
    message.create_index.new_indices.extend(section.indices)
    with pytest.raises(CorruptFileError, match="claims to cover"):
        decode_transaction(message.SerializeToString())


def test_indices_that_cover_the_same_share_one_set() -> None:
    found = decode_index_section(_section(*[runs(8)] * 100).SerializeToString())
    assert len(found) == 100
    assert all(index.fragment_bitmap is found[0].fragment_bitmap for index in found)


def test_a_table_of_many_fragments_may_have_indices_that_cover_them() -> None:
    coverages = Coverages(num_fragments=1_000_000)
    for number in range(15):
        data = encode_bitmap(range(number, 1_000_000 + number), runs=True)
        coverages._known.clear()
        assert len(coverages.of(data, what="the bitmap")) == 1_000_000
    with pytest.raises(CorruptFileError, match="claims to cover"):
        coverages.of(encode_bitmap(range(1_000_001), runs=True), what="the bitmap")


def test_a_table_with_such_an_index_is_not_opened(tmp_path: Path) -> None:
    ds = lance_core.write_dataset(pa.table({"id": range(10)}), str(tmp_path / "t"))
    ds.create_scalar_index("id", "BTREE")
    path = max((tmp_path / "t" / "_versions").glob("*.manifest"), key=lambda item: item.stat().st_mtime_ns)
    data = encode_manifest_file(decode_manifest_file(path.read_bytes()).manifest)
    section = table_pb2.IndexSection.FromString(data[4 : 4 + struct.unpack_from("<I", data)[0]])
    section.indices[0].fragment_bitmap = runs(200)
    body = section.SerializeToString()
    (position,) = struct.unpack_from("<Q", data[-16:])
    moved = struct.pack("<I", len(body)) + body + data[position:-16]
    path.write_bytes(moved + struct.pack("<QHH4s", 4 + len(body), 0, 2, b"LANC"))
    with pytest.raises(CorruptFileError, match="claims to cover"):
        lance_core.dataset(str(tmp_path / "t"))


@pytest.mark.parametrize("digest", [FragmentDigest(1 << 32, 1, 0), FragmentDigest(1, (1 << 32) + 1, 0)])
def test_fragments_of_a_reuse_index_fit_in_addresses(digest: FragmentDigest) -> None:
    group = ReuseGroup(b"", (), (digest,))
    data = encode_reuse(ReuseDetails((ReuseVersion(1, (group,)),)))
    with pytest.raises(CorruptFileError, match="32 bits in an address"):
        decode_reuse(data)


def test_a_reuse_index_that_moves_other_numbers_of_rows_takes_no_memory() -> None:
    from lance_core.dataset.indexing import fragment_reuse

    treemap = struct.pack("<QI", 1, 0) + runs(1 << 16)  # 2**32 rows: 32 GiB of addresses
    group: Any = ReuseGroup(treemap, (FragmentDigest(0, 10, 0),), (FragmentDigest(1, 10, 0),))
    with pytest.raises(CorruptFileError, match="moves 4294967296 rows into fragments of 10 rows"):
        fragment_reuse._move(group, 1)


def test_updated_offsets_are_no_more_than_the_rows_of_their_fragment() -> None:
    fragment = Fragment(id=3, files=(), physical_rows=10)
    operation = Update(
        removed_fragment_ids=(), updated_fragments=(fragment,), new_fragments=(), fields_modified=(1,),
        updated_fragment_offset_bitmaps={3: runs(1 << 16)},
    )  # fmt: skip
    with pytest.raises(CorruptFileError, match="4294967296 updated offsets are claimed for fragment 3 of 10 rows"):
        operation._offsets()


def test_a_fragment_without_ids_is_damage_for_a_compaction(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance_core.write_dataset(pa.table({"id": range(10)}), uri, enable_stable_row_ids=True, max_rows_per_file=5)
    (path,) = (tmp_path / "t" / "_versions").glob("*.manifest")
    data = encode_manifest_file(decode_manifest_file(path.read_bytes()).manifest)
    message = table_pb2.Manifest.FromString(data[4:-16])
    message.fragments[1].ClearField("inline_row_ids")
    body = message.SerializeToString()
    path.write_bytes(struct.pack("<I", len(body)) + body + struct.pack("<QHH4s", 0, 0, 2, b"LANC"))
    with pytest.raises(CorruptFileError, match="row id"):
        lance_core.dataset(uri).optimize.compact_files()
