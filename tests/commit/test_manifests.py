"""Names, versions, feature flags, and manifests that are none."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_core.commit import naming
from lance_core.commit.manifests import latest_version, list_versions, load_manifest, open_version
from lance_core.commit.naming import NamingScheme
from lance_core.commit.transactions import load_transaction
from lance_core.errors import CorruptFileError, FormatError, NotFoundError, UnsupportedFeatureError, UnsupportedVersionError
from lance_core.io.local.store import LocalStore
from lance_core.io.memory import MemoryStore
from lance_core.io.wrapped import CountingStore
from lance_core.wire.manifest_file import encode_manifest_file
from tests.commit.commit_support import append, create


@given(st.integers(0, (1 << 62)), st.sampled_from(NamingScheme))
def test_manifest_names_there_and_back(version: int, scheme: NamingScheme) -> None:
    assert naming.parse_manifest_name(naming.manifest_name(version, scheme)) == (version, scheme)


def test_names_as_the_official_library_writes_them() -> None:
    assert naming.manifest_path(2) == "_versions/18446744073709551613.manifest"
    assert naming.manifest_path(2, NamingScheme.V1) == "_versions/2.manifest"
    detached = (1 << 63) | 5
    assert naming.manifest_name(detached) == f"d{detached}.manifest"
    assert naming.parse_detached_name(f"d{detached}.manifest") == detached
    for name in ("x.manifest", "5.manifest#1", "5.manifest.tmp", ".5.manifest.abcd.unfinished", "-1.manifest", "٣.manifest"):
        assert naming.parse_manifest_name(name) is None
    assert naming.parse_manifest_name("9" * 30 + ".manifest") is None


@given(st.binary(min_size=8, max_size=8))
def test_names_carry_their_attempt(raw: bytes) -> None:
    attempt, other = raw.hex(), bytes(255 - byte for byte in raw).hex()
    name = naming.data_file_name(attempt)
    assert len(name) == 50 + len(".lance")
    assert set(name[:24]) <= {"0", "1"}
    deletion = naming.deletion_path(3, 7, naming.deletion_file_id(attempt), "array")
    index = f"_indices/{naming.index_uuid(attempt)}/page_data.lance"
    staged = f"_transactions/4-some-identity.{attempt}.txn"
    blob = f"data/{name.removesuffix('.lance')}/0001.blob"
    for path in (f"data/{name}", blob, deletion, index, staged):
        assert naming.is_of_attempt(path, attempt)
        assert not naming.is_of_attempt(path, other)
        folder, _, last = path.rpartition("/")
        assert naming.is_of_attempt(f"{folder}/.{last}.0badcafe.unfinished", attempt)
    assert not naming.is_of_attempt(f"_versions/{attempt}.manifest", attempt)
    assert uuid.UUID(naming.index_uuid(attempt)).version == 4


def test_versions_of_both_libraries(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(pa.table({"a": pa.array([1], pa.int64())}), uri)
    store = LocalStore(uri)
    append(store, (2,))
    assert [entry.version for entry in list_versions(store)] == [1, 2]
    assert latest_version(store) == 2
    assert load_manifest(store, 1).num_rows == 1
    assert load_manifest(store).num_rows == 2
    assert (store.get("_versions/latest_version_hint.json")) == b'{"version":2}'
    found = load_transaction(store, 1)
    assert found is not None
    assert found.uuid in load_manifest(store, 1).transaction_file
    with pytest.raises(NotFoundError, match="no version 9"):
        load_manifest(store, 9)


def test_v1_tables_stay_v1(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(pa.table({"a": pa.array([1], pa.int64())}), uri, enable_v2_manifest_paths=False)
    store = LocalStore(uri)
    append(store, (2,))
    assert sorted(store.list_names("_versions")) == ["1.manifest", "2.manifest", "latest_version_hint.json"]
    assert lance.dataset(uri).count_rows() == 2
    assert load_manifest(store, 2).version == 2


def test_inline_transaction_is_enough(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    create(store)
    append(store, (9,))
    for name in store.list_names("_transactions"):
        store.delete(f"_transactions/{name}")
    assert load_transaction(store, 2) is not None
    append(store, (10,), read_version=1)
    lance.write_dataset(pa.table({"a": [11]}), store.uri, mode="append")
    assert lance.dataset(store.uri).count_rows() == 6


def test_not_a_table(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.csv").write_text("1")
    with pytest.raises(NotFoundError, match="not a Lance table"):
        load_manifest(LocalStore(tmp_path))
    with pytest.raises(NotFoundError, match="not a Lance table"):
        latest_version(MemoryStore(uuid.uuid4().hex))
    assert list_versions(LocalStore(tmp_path / "nothing")) == []


@pytest.mark.parametrize(
    ("reader", "writer", "error"),
    [
        (1 << 16, 0, UnsupportedFeatureError),
        (64, 64, UnsupportedFeatureError),
        (512, 512, UnsupportedFeatureError),
        (256, 0, CorruptFileError),
        (0, 256, CorruptFileError),
    ],
)
def test_unknown_flags_are_refused_aloud(reader: int, writer: int, error: type[Exception]) -> None:
    store = MemoryStore(uuid.uuid4().hex)
    manifest = create(store)
    bad = replace(manifest, version=2, reader_feature_flags=reader, writer_feature_flags=writer)
    store.put(naming.manifest_path(2), encode_manifest_file(bad))
    with pytest.raises(error, match="2"):
        load_manifest(store)
    assert load_manifest(store, 1).num_rows == 3
    with pytest.raises(error):
        append(store, (7,), read_version=1)


def test_unknown_writer_flag_reads_but_does_not_commit() -> None:
    store = MemoryStore(uuid.uuid4().hex)
    manifest = create(store)
    transaction = open_version(store, 1).transaction
    bad = replace(manifest, version=2, writer_feature_flags=1 << 20)
    store.put(naming.manifest_path(2), encode_manifest_file(bad, transaction=transaction))
    assert load_manifest(store).num_rows == 3
    with pytest.raises(UnsupportedFeatureError, match="1048576"):
        append(store, (7,), read_version=2)
    assert latest_version(store) == 2


def test_damaged_manifests_are_format_errors() -> None:
    store = MemoryStore(uuid.uuid4().hex)
    create(store)
    data = bytes(store.get(naming.manifest_path(1)))
    for size in range(len(data)):
        store.put(naming.manifest_path(2), data[:size])
        with pytest.raises(FormatError):
            load_manifest(store)
    store.put(naming.manifest_path(2), data[:-8] + b"\x09\x00\x09\x00LANC")
    with pytest.raises(UnsupportedVersionError, match="_versions/"):
        load_manifest(store)


@given(st.integers(0, 1 << 20), st.integers(1, 255))
def test_flipped_bytes_never_escape_the_error_tree(position: int, flip: int) -> None:
    store = MemoryStore(uuid.uuid4().hex)
    create(store)
    raw = bytearray(store.get(naming.manifest_path(1)))
    raw[position % len(raw)] ^= flip
    store.put(naming.manifest_path(2), bytes(raw))
    try:
        manifest = load_manifest(store)
        list(manifest.fragments)
        load_transaction(store, 2)
    except (FormatError, UnsupportedFeatureError):
        pass


def test_opening_the_latest_reads_one_object() -> None:
    store = CountingStore(MemoryStore(uuid.uuid4().hex))
    create(store)
    for value in range(20):
        append(store, (value,))
    store.reset()
    load_manifest(store)
    assert (store.counts.by_name, store.counts.requests) == ({"list_names": 1, "get": 1}, 2)
