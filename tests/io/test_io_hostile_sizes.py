"""What claims to be an exabyte long: a data file in a manifest, a footer, an object in a listing. Refused, not allocated."""

from __future__ import annotations

import resource
import struct
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import lance_core
from lance_core.commit.manifests import load_manifest, open_newest
from lance_core.errors import CorruptFileError, FormatError, LanceError, StoreError
from lance_core.fetch import ByteRange
from lance_core.io.local.store import LocalStore
from lance_core.io.memory import MemoryStore
from lance_core.io.store import Store
from lance_core.wire.manifest_file import encode_manifest_file

EXABYTE = 1 << 60


@pytest.fixture(autouse=True)
def no_giant_allocation() -> object:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 512 << 10, "half a GiB more than before"


@pytest.mark.parametrize("place", ["local", "memory"])
def test_ranges_beyond_the_end(place: str, tmp_path: Path) -> None:
    store: Store = LocalStore(tmp_path) if place == "local" else MemoryStore("exabytes")
    store.put("a", b"rows")
    for asked in (ByteRange(0, EXABYTE), ByteRange(EXABYTE - 8, EXABYTE), ByteRange(2, 2 + EXABYTE)):
        with pytest.raises(CorruptFileError):
            store.get_ranges("a", [asked])


def test_a_manifest_that_claims_exabytes(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance_core.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    store = LocalStore(uri)
    opened = open_newest(store)
    assert opened is not None
    manifest = load_manifest(store)
    (fragment,) = manifest.fragments
    file = replace(fragment.files[0], file_size_bytes=EXABYTE)
    lying = replace(manifest, fragments=(replace(fragment, files=(file,)),))
    store.put(opened.path, encode_manifest_file(lying, transaction=None))
    with pytest.raises((CorruptFileError, FormatError, StoreError)):
        lance_core.dataset(uri).to_table()
    store.put(
        opened.path,
        encode_manifest_file(replace(manifest, fragments=(replace(fragment, physical_rows=EXABYTE),)), transaction=None),
    )
    with pytest.raises(LanceError):
        lance_core.dataset(uri).to_table()


@pytest.mark.parametrize("start", [0, EXABYTE, (1 << 64) - 1])
def test_a_manifest_whose_footer_points_anywhere(start: int, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance_core.write_dataset(pa.table({"id": [1]}), uri)
    store = LocalStore(uri)
    opened = open_newest(store)
    assert opened is not None
    data = bytearray(bytes(store.get(opened.path)))
    data[-16:-8] = struct.pack("<Q", start)
    store.put(opened.path, bytes(data))
    with pytest.raises((CorruptFileError, FormatError)):
        lance_core.dataset(uri)
    data[-16:-8] = struct.pack("<Q", 0)
    data[:4] = b"\xff\xff\xff\xff"
    store.put(opened.path, bytes(data))
    with pytest.raises((CorruptFileError, FormatError)):
        lance_core.dataset(uri)
