"""Row identity against the official library: deletion files, ids, addresses, versions."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_core.rowids.bitmap import encode_treemap
from lance_core.rowids.deletion import DeletionVector, decode_deletions, encode_deletions
from lance_core.rowids.index import FragmentIds, build_row_id_index
from lance_core.rowids.selection import decode_address_treemap, encode_address_treemap
from lance_core.wire.manifest_file import decode_manifest_file
from lance_core.wire.pb import table_pb2
from tests.rowids.row_id_support import row_ids_of, versions_of


def newest(uri: Path):  # type: ignore[no-untyped-def]
    path = min((uri / "_versions").glob("*.manifest"))
    return decode_manifest_file(path.read_bytes()).manifest


def deletion_path(uri: Path, fragment) -> Path:  # type: ignore[no-untyped-def]
    file = fragment.deletion_file
    ending = "arrow" if file.file_type == "array" else "bin"
    return uri / "_deletions" / f"{fragment.id}-{file.read_version}-{file.id}.{ending}"


@pytest.mark.parametrize(("modulus", "kind"), [(500, "array"), (3, "bitmap")])
def test_deletion_files_both_ways(tmp_path: Path, modulus: int, kind: str) -> None:
    uri = tmp_path / "t"
    lance.write_dataset(pa.table({"a": range(40_000)}), str(uri), max_rows_per_file=20_000)
    lance.dataset(str(uri)).delete(f"a % {modulus} = 1")
    for fragment in newest(uri).fragments:
        path = deletion_path(uri, fragment)
        assert fragment.deletion_file.file_type == kind
        vector = decode_deletions(kind, path.read_bytes())
        vector.check(num_rows=fragment.physical_rows, num_deleted=fragment.deletion_file.num_deleted_rows, what="file")
        start = fragment.id * 20_000
        assert vector.offsets().tolist() == [i for i in range(20_000) if (i + start) % modulus == 1]
        chosen, ours = encode_deletions(vector)
        assert chosen == kind
        if kind == "bitmap":
            assert ours == path.read_bytes()
        path.write_bytes(ours)
    assert lance.dataset(str(uri)).to_table()["a"].to_pylist() == [i for i in range(40_000) if i % modulus != 1]


def change(uri: Path) -> None:
    def table():  # type: ignore[no-untyped-def]
        return lance.dataset(str(uri))

    rows = pa.table({"a": range(300), "b": range(300)})
    lance.write_dataset(rows, str(uri), max_rows_per_file=50, enable_stable_row_ids=True)
    table().delete("a % 11 = 0")
    table().update({"b": "0"}, where="a % 7 = 3")
    table().merge_insert("a").when_matched_update_all().when_not_matched_insert_all().execute(
        pa.table({"a": [5, 1000], "b": [1, 2]})
    )
    table().optimize.compact_files(target_rows_per_fragment=120)
    table().update({"b": "1"}, where="a = 9")


def vector_of(uri: Path, fragment) -> DeletionVector | None:  # type: ignore[no-untyped-def]
    if fragment.deletion_file is None:
        return None
    return decode_deletions(fragment.deletion_file.file_type, deletion_path(uri, fragment).read_bytes())


def test_ids_addresses_and_versions(tmp_path: Path) -> None:
    change(tmp_path / "t")
    uri = tmp_path / "t"
    columns = ["_rowid", "_rowaddr", "_row_created_at_version", "_row_last_updated_at_version"]
    official = lance.dataset(str(uri)).to_table(columns=["a", *columns])
    addresses = official["_rowaddr"].to_numpy()
    parts, created, updated = [], {}, {}
    for fragment in newest(uri).fragments:
        sequence, vector = row_ids_of(fragment.row_ids), vector_of(uri, fragment)
        assert sequence is not None
        assert len(sequence) == fragment.physical_rows
        parts.append(FragmentIds(fragment.id, sequence, vector))
        created[fragment.id] = versions_of(fragment.created_at_versions)
        updated[fragment.id] = versions_of(fragment.last_updated_at_versions)
    index = build_row_id_index(parts)
    assert np.array_equal(index.addresses_of(official["_rowid"].to_numpy()), addresses)
    assert len(index) == official.num_rows
    for column, sequences in ((columns[2], created), (columns[3], updated)):
        arrays = {key: sequence.to_array() for key, sequence in sequences.items() if sequence is not None}
        ours = [int(arrays[int(item) >> 32][int(item) & 0xFFFFFFFF]) for item in addresses]
        assert ours == official[column].to_pylist()


def test_treemap_of_a_reuse_index(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    lance.write_dataset(pa.table({"a": range(300)}), str(uri), max_rows_per_file=50)
    lance.dataset(str(uri)).create_scalar_index("a", "BTREE")
    lance.dataset(str(uri)).delete("a % 10 = 3")
    lance.dataset(str(uri)).optimize.compact_files(defer_index_remap=True)
    reuse = next(item for item in newest(uri).indices if item.name == "__lance_frag_reuse")
    assert reuse.details is not None
    content = table_pb2.FragmentReuseIndexDetails.FromString(reuse.details.value).inline
    group = content.legacy_versions[0].groups[0]
    moved = decode_address_treemap(group.changed_row_addrs)
    assert set(moved.fragments) == {item.id for item in group.old_fragments}
    assert len(moved.to_array()) == 270
    assert decode_address_treemap(encode_address_treemap(moved)) == moved
    assert encode_treemap(moved.fragments, runs=True) == group.changed_row_addrs  # type: ignore[arg-type]
