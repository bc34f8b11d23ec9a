"""Damaged files end in a FormatError that says where, whatever the damage: never a crash, a hang, or another error."""

from __future__ import annotations

import os
import random
import struct
import uuid

import pyarrow as pa
import pytest

from lance_core.arrow import schema_from_arrow, schema_to_arrow
from lance_core.errors import CorruptFileError, FormatError, UnsupportedVersionError
from lance_core.file.metadata import parse_footer
from lance_core.file.open import ContainerFile, open_file
from lance_core.file.writer import FileWriter
from lance_core.format.schema import Schema
from lance_core.format.version import parse_storage_version
from lance_core.io.memory import MemoryStore
from tests.file import file_columns as columns

VERSIONS = ["0.1", "2.0", "2.1", "2.2"]


def written(name: str, version: str, nulls: str = "some", num_rows: int = 300) -> tuple[bytes, Schema]:
    parsed = parse_storage_version(version)
    table = columns.table(name, num_rows, nulls)
    schema = schema_from_arrow(table.schema, version=parsed)
    store = MemoryStore(f"damage-source-{uuid.uuid4()}")
    writer = FileWriter(store, "x", schema, version=parsed)
    for batch in table.to_batches():
        writer.write(batch)
    writer.finish()
    data = bytes(store.get("x"))
    return data, schema


def read(data: bytes, schema: Schema) -> pa.Table:
    store = MemoryStore(f"damage-{uuid.uuid4()}")
    store.put("data/x.lance", data)
    opened = open_file(store, "data/x.lance")
    table = pa.Table.from_batches(list(opened.read(schema, batch_size=100)), schema_to_arrow(schema))
    if table.num_rows > 1:
        opened.take(schema, [1, 0])
    return table


def boundaries(data: bytes, schema: Schema) -> list[int]:
    """Every position where a part of the file begins or ends."""
    store = MemoryStore(f"damage-{uuid.uuid4()}")
    store.put("data/x.lance", data)
    opened = open_file(store, "data/x.lance")
    found = {0, 1, 8, 15, 16, 39, 40, len(data) - 1, len(data) - 8, len(data) - 16, len(data) - 40}
    if isinstance(opened, ContainerFile):
        footer = parse_footer(data[-40:], file_size=len(data))
        found |= {footer.column_metadata_start, footer.column_table_start, footer.buffer_table_start}
        for column in opened.columns(range(footer.num_columns)):
            found |= {edge for page in column.pages for item in page.buffers for edge in item}
    return sorted(edge for edge in found if 0 <= edge < len(data))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["int64", "string", "list", "fsl"])
def test_truncated_files(name: str, version: str) -> None:
    data, schema = written(name, version)
    for edge in boundaries(data, schema):
        with pytest.raises(FormatError, match=r"data/x\.lance"):
            read(data[:edge], schema)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_pages_that_lie_are_named(version: str) -> None:
    data, schema = written("string", version, num_rows=2000)
    store = MemoryStore(f"damage-{uuid.uuid4()}")
    store.put("data/x.lance", data)
    opened = open_file(store, "data/x.lance")
    assert isinstance(opened, ContainerFile)
    (column,) = opened.columns([0])
    # Offsets, chunk words and chunk headers all live at the start of a buffer.
    for item in column.pages[0].buffers:
        damaged = bytearray(data)
        damaged[item.start : item.start + 8] = b"\xff" * 8
        try:
            read(bytes(damaged), schema)
        except FormatError as error:
            assert "data/x.lance: column 'c', page 0" in str(error)


# Where column metadata begins (bytes 0 to 8) is said a second time in the column table, so nothing reads it.
@pytest.mark.parametrize("position", range(8, 36, 4))
def test_footer_that_lies(position: int) -> None:
    data, schema = written("int64", "2.2")
    for word in (b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x00\x00\x00\x00"):
        damaged = bytearray(data)
        start = len(data) - 40 + position
        if bytes(damaged[start : start + 4]) == word:
            continue
        damaged[start : start + 4] = word
        with pytest.raises(FormatError):
            read(bytes(damaged), schema)


def test_other_files_and_versions() -> None:
    with pytest.raises(CorruptFileError, match="not a Lance file"):
        read(b"PAR1" * 100, Schema(()))
    with pytest.raises(CorruptFileError, match="empty"):
        read(b"", Schema(()))
    data, schema = written("int64", "2.2")
    with pytest.raises(UnsupportedVersionError, match=r"9\.7"):
        read(data[:-8] + struct.pack("<HH", 9, 7) + b"LANC", schema)


def mutate(data: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(data)
    kind = rng.randrange(4)
    if kind == 0:
        return bytes(damaged[: rng.randrange(len(damaged))])
    if kind == 1:
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    elif kind == 2:
        damaged[rng.randrange(max(0, len(damaged) - 400), len(damaged))] = rng.choice([0, 127, 128, 255])
    else:
        start, size = rng.randrange(len(damaged)), rng.choice([1, 2, 4, 8])
        size = min(size, len(damaged) - start)
        damaged[start : start + size] = rng.choice([b"\xff", b"\0", b"\x7f"]) * size
    return bytes(damaged)


def fuzz(version: str, rounds: int, seed: int) -> None:
    rng = random.Random(seed)
    files = []
    for name in columns.VALUES:
        for nulls in ("none", "some"):
            if version == "0.1" and name in ("map", "fsl_struct"):
                continue
            if version != "0.1" and not columns.is_known(name, nulls, version):
                continue
            files.append(written(name, version, nulls))
    for _ in range(rounds):
        data, schema = rng.choice(files)
        damaged = mutate(data, rng)
        try:
            table = read(damaged, schema)
        except FormatError as error:
            assert str(error).startswith("data/x.lance")
        else:
            table.validate()  # flipped values go unseen, but arrays hold together


@pytest.mark.parametrize("version", VERSIONS)
def test_mutated_files(version: str) -> None:
    fuzz(version, 1500, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_mutated_files_longer(version: str) -> None:
    """`LANCE_FUZZ_ROUNDS=1000000 pytest -m slow -k longer` for as long as one likes."""
    fuzz(version, int(os.environ.get("LANCE_FUZZ_ROUNDS", "5000")), seed=int(os.environ.get("LANCE_FUZZ_SEED", "2")))
