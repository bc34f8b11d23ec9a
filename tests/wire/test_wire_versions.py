"""Many versions read one after the other: the same counts as each manifest read whole."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_core
from lance_core.dataset.versions.history import list_history, version_entry
from lance_core.errors import CorruptFileError
from lance_core.format.fragment import DataFile, DeletionFile, Fragment
from lance_core.format.manifest import Manifest
from lance_core.format.schema import Schema
from lance_core.io.resolve import resolve_store
from lance_core.rowids.walk import FIXED32, encode_field, encode_varint
from lance_core.wire.fragments import all_messages, last_varints
from lance_core.wire.manifest_file import decode_manifest_file, encode_manifest_file
from lance_core.wire.versions import VersionReader


def _fragment(number: int, rng: random.Random) -> Fragment:
    file = DataFile("x" * rng.choice([3, 30, 200]), (0,), (0,), 2, 2, rng.randrange(1, 1 << 40))
    gone = DeletionFile("array", 1, 7, rng.randrange(1, 9)) if rng.random() < 0.3 else None
    return Fragment(number, (file,) * rng.choice([1, 2]), rng.randrange(10, 1000), gone)


def _count(fragment: Fragment) -> tuple[int, ...]:
    return fragment.physical_rows, len(fragment.files), fragment.num_deleted_rows


@pytest.mark.parametrize("seed", range(30))
def test_counts_of_random_histories(seed: int) -> None:
    rng = random.Random(seed)
    fragments: list[Fragment] = []
    reader = VersionReader(_count, width=3)
    for version in range(1, 60):
        for _ in range(rng.choice([0, 1, 1, 1, 2, 5])):
            place = rng.randrange(len(fragments)) if fragments else 0
            match rng.choice(["add", "add", "add", "change", "drop", "swap", "clear" if version % 20 == 0 else "add"]):
                case "add":
                    fragments.append(_fragment(version, rng))
                case "change" if fragments:
                    fragments[place] = replace(_fragment(1, rng), id=fragments[place].id)
                case "drop" if fragments:
                    del fragments[place]
                case "swap" if fragments:
                    fragments.insert(0, fragments.pop(place))
                case "clear":
                    fragments.clear()
        schema = Schema((), {f"k{version % 3}": b"v"}) if version % 7 == 0 else Schema(())
        manifest = Manifest(schema=schema, fragments=tuple(fragments), version=version, timestamp_ns=version * 10**9)
        found, number, counts = reader.read(encode_manifest_file(manifest, transaction=b"abc"))
        assert (found.version, found.timestamp_ns, number) == (version, manifest.timestamp_ns, len(fragments))
        assert counts == tuple(sum(_count(item)[column] for item in fragments) for column in range(3))


def test_versions_of_a_table_written_by_both(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    rows = pa.table({"id": range(40), "text": ["x"] * 40})
    lance.write_dataset(rows, uri, max_rows_per_file=4)
    for step in range(24):
        library = (lance, lance_core)[step % 2]
        match step % 6:
            case 0 | 1:
                library.write_dataset(rows.slice(step, 3), uri, mode="append")
            case 2:
                library.dataset(uri).delete(f"id = {step}")
            case 3:
                library.dataset(uri).update({"text": "'y'"}, where=f"id % 7 = {step % 7}")
            case 4:
                library.dataset(uri).optimize.compact_files()
            case 5:
                library.dataset(uri).add_columns({f"c{step}": "id + 1"})
    lance.dataset(uri, version=4).restore()
    store = resolve_store(uri)
    ours, theirs = list_history(store), lance.dataset(uri).versions()
    whole = [version_entry(lance_core.dataset(uri, version=item["version"]).snapshot.manifest) for item in ours]
    assert ours == whole
    assert [item["version"] for item in ours] == [item["version"] for item in theirs]
    assert [{k: str(v) for k, v in item["metadata"].items()} for item in theirs] == [item["metadata"] for item in ours]


def test_damage_is_told() -> None:
    fragments = tuple(_fragment(number, random.Random(number)) for number in range(20))
    data = encode_manifest_file(Manifest(schema=Schema(()), fragments=fragments, version=3))
    rng = random.Random(1)
    for _ in range(400):
        broken = bytearray(data)
        broken[rng.randrange(len(data))] = rng.randrange(256)
        reader = VersionReader(_count, width=3)
        for part in (bytes(broken), data, bytes(broken[: rng.randrange(len(broken))]), data):
            try:
                reader.read(part)
            except lance_core.errors.FormatError:
                continue
    with pytest.raises(CorruptFileError):
        VersionReader(_count, width=3).read(data[:-1])
    assert decode_manifest_file(data).manifest.version == 3


@pytest.mark.parametrize("seed", range(20))
def test_fields_that_are_read_in_one_loop_are_all_that_were_written(seed: int) -> None:
    rng = random.Random(seed)
    data, varints, messages = b"", dict[int, int](), defaultdict[int, list[bytes]](list)
    for _ in range(rng.randrange(30)):
        number, kind = rng.choice([*range(1, 16), 300]), rng.choice(["varint", "message", "fixed"])
        if kind == "varint":
            varints[number] = rng.choice([0, 1, 200, 1 << 40])
            data += encode_field(number, varints[number])
        elif kind == "message":
            messages[number].append(rng.randbytes(rng.choice([0, 3, 300])))
            data += encode_field(number, messages[number][-1])
        else:
            data += encode_varint(number << 3 | FIXED32) + b"1234"
    for number in range(1, 16):
        other = number % 15 + 1
        assert all_messages(data, number) == messages[number]
        assert last_varints(data, number, other) == (varints.get(number, 0), varints.get(other, 0))


@pytest.mark.parametrize("data", [b"\x12\x05abc", b"\x12", b"\x18\xff", b"\x02\x01a", b"\x1b"])
def test_fields_that_run_past_the_end_are_refused(data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        all_messages(data, 2)
    with pytest.raises(CorruptFileError):
        last_varints(data, 3, 4)
