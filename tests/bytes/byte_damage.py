"""Damage files in every way that matters, in a process of its own with little memory and a watchdog.

    python byte_damage.py --version 2.2 --cases 5000 --seed 1 --progress FILE     prints one JSON object

A case is a small file, a place in it (footer, tables, column metadata, the beginning of a page buffer, anywhere) and what
happens there (cut off, a flipped bit, an absurd number). Each damaged file is opened and all of it is read and taken from.
Allowed are a FormatError that names the file (and the column and page when the damage is inside a page), or other values in
sound arrays. The address space is limited, so an allocation beyond the file's checked claims shows as a MemoryError, and a
case that hangs or crashes the interpreter is named by the progress file.
"""

from __future__ import annotations

import argparse
import faulthandler
import itertools
import json
import os
import random
import resource
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from lance_core.arrow import schema_from_arrow, schema_to_arrow
from lance_core.errors import FormatError, InputError, UnsupportedEncodingError
from lance_core.file.metadata import parse_footer
from lance_core.file.open import ContainerFile, open_file
from lance_core.file.writer import FileWriter
from lance_core.format.schema import Schema
from lance_core.format.version import parse_storage_version
from lance_core.io.cache import LruCache
from lance_core.io.memory import MemoryStore
from tests.bytes import byte_cases as cases
from tests.bytes import byte_files as files
from tests.bytes import byte_pools as pools

PATH = "data/x.lance"
NUM_ROWS = 30
SPARE_MEMORY = 768 << 20
SECONDS_PER_CASE = 20
OLD = Path(__file__).parent / "fixtures" / "old"
STORE = MemoryStore("byte-damage")


@dataclass(frozen=True)
class Sample:
    """A sound file; `regions` says what is where: (kind, start, end)."""

    name: str
    data: bytes
    schema: Schema
    regions: tuple[tuple[str, int, int], ...] = field(default=())


def samples(version: str) -> list[Sample]:
    """Small files of one version, of every type and every layout."""
    if version == "2.3":
        return [*unstable_samples()]
    # A struct without fields loses its nulls in 2.1 and 2.2, so the writer refuses them.
    nulls = {"struct_empty": "none"} if version in ("2.1", "2.2") else {}
    found = [_sample(name, pools.column(name, NUM_ROWS, nulls.get(name, "some")), {}, version) for name in pools.POOLS]
    if version == "0.1":
        found += [_old(path) for path in sorted(OLD.glob("*/*/data/*.lance")) if path.stat().st_size < 9000]
    else:
        settings = cases.settings(version, 300)
        found += [_sample(name, column, metadata, version) for name, column, metadata in settings]
        for distribution in ("constant", "runs", "low cardinality"):
            for name in ("int64", "string", "double", "binary", "list_int", "bool", "decimal128", "string_long"):
                found.append(_sample(f"{distribution} {name}", pools.column(name, 400, "some", distribution), {}, version))
    return [item for item in found if item is not None]


def unstable_samples() -> Iterator[Sample]:
    """2.3, which only the official library writes."""
    for distribution, name in itertools.product(pools.DISTRIBUTIONS, pools.POOLS):
        table = pa.table({"c": pools.column(name, 300, "some", distribution)})
        try:
            with tempfile.TemporaryDirectory() as folder:
                files.write_official(Path(folder), table, "2.3")
                data = (Path(folder) / files.PATH).read_bytes()
        except (ValueError, RuntimeError, OSError):
            continue
        STORE.put(PATH, data)
        yield _with_regions(f"{distribution} {name}", data, open_file(STORE, PATH).schema)


def _sample(name: str, column: pa.Array, metadata: dict[str, str], version: str) -> Sample | None:
    parsed = parse_storage_version(version)
    try:
        schema = schema_from_arrow(pa.schema([pa.field("c", column.type, metadata=metadata)]), version=parsed)
        writer = FileWriter(STORE, PATH, schema, version=parsed)
        writer.write(pa.record_batch([column], names=["c"]))
    except (InputError, UnsupportedEncodingError):
        return None  # a type that this version does not have
    writer.finish()
    return _with_regions(name, bytes(STORE.get(PATH)), schema)


def _old(path: Path) -> Sample:
    STORE.put(PATH, path.read_bytes())
    return _with_regions(str(path.relative_to(OLD)), path.read_bytes(), open_file(STORE, PATH).schema)


def _with_regions(name: str, data: bytes, schema: Schema) -> Sample:
    size = len(data)
    regions = [("footer", max(0, size - 40), size), ("anywhere", 0, size), ("end", max(0, size - 500), size)]
    STORE.put(PATH, data)
    opened = open_file(STORE, PATH)
    if isinstance(opened, ContainerFile):
        footer = parse_footer(data[-40:], file_size=size)
        regions.append(("metadata", footer.column_metadata_start, footer.column_table_start))
        regions.append(("tables", footer.column_table_start, size - 40))
        for column in opened.columns(range(footer.num_columns)):
            for buffer in (buffer for page in column.pages for buffer in page.buffers if buffer.size):
                regions.append(("page", buffer.start, buffer.end))
                regions.append(("page", buffer.start, min(buffer.end, buffer.start + 16)))
    return Sample(name, data, schema, tuple(part for part in regions if part[1] < part[2]))


def read(sample: Sample, data: bytes) -> None:
    """Open, read everything in two batches, take two rows; arrays must hold together."""
    STORE.put(PATH, data)
    opened = open_file(STORE, PATH, cache=LruCache(max_bytes=1 << 20))
    table = pa.Table.from_batches(list(opened.read(sample.schema, batch_size=200)), schema_to_arrow(sample.schema))
    table.validate()
    if table.num_rows > 1:
        opened.take(sample.schema, [table.num_rows - 1, 0]).validate()


def damage(sample: Sample, rng: random.Random) -> tuple[bytes, str, str]:
    """Damaged bytes, the kind of place, and what was done."""
    kind, start, end = rng.choice(sample.regions)
    place = rng.randrange(start, end)
    data = bytearray(sample.data)
    action = rng.randrange(5)
    if action == 0:
        place = rng.choice((start, end - 1, place))
        return bytes(data[:place]), "cut", f"cut at {place}"
    if action in (1, 2):
        bits = [(rng.randrange(start, end), rng.randrange(8)) for _ in range(rng.choice((1, 1, 2, 4)))]
        for at, bit in bits:
            data[at] ^= 1 << bit
        return bytes(data), kind, f"bits {bits}"
    width = min(rng.choice((1, 2, 4, 8)), end - place)
    place -= (place - start) % width if rng.random() < 0.7 else 0
    word = rng.choice((b"\xff", b"\x00", b"\x7f", b"\x80")) * width
    if action == 4:  # little-endian: large, but not as large as can be
        word = rng.choice((1 << 7, 1 << 15, 1 << 20, 1 << 31, 1 << 40, 1 << 62, len(data))) % (1 << 8 * width)
        word = word.to_bytes(width, "little")
    data[place : place + width] = word
    return bytes(data), kind, f"{word.hex()} at {place}"


REFUSED = "refused"


def verdict(sample: Sample, data: bytes, kind: str) -> str | None:
    """What is wrong with how the damage was taken; REFUSED, or None when other values (or the same) were read."""
    try:
        read(sample, data)
    except FormatError as error:
        text = str(error)
        if "MemoryError" in text or "malloc" in text:
            return f"allocated too much: {text}"
        if not text.startswith(PATH):
            return f"does not name the file: {text}"
        if kind == "page" and not (", page " in text and "column '" in text):
            return f"does not name column and page: {text}"
        return REFUSED
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return "was read although it is cut off" if kind == "cut" and len(data) < len(sample.data) else None


def limit_memory() -> None:
    """Nothing may grow much beyond what all sound files needed."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + SPARE_MEMORY, used + SPARE_MEMORY))


def run(version: str, *, num_cases: int, seed: int, progress: Path) -> dict[str, object]:
    """Every boundary of every file once, then random damage until `num_cases` are done."""
    found = samples(version)
    for sample in found:
        read(sample, sample.data)
    limit_memory()
    failures: list[str] = []
    refused = 0
    edges = [(sample, edge) for sample in found for edge in sorted({edge for part in sample.regions for edge in part[1:]})]
    rng = random.Random(seed)
    rng.shuffle(edges)
    cuts = edges[: num_cases // 4]
    with progress.open("wb", buffering=0) as file:
        for number in range(num_cases):
            if number < len(cuts):
                sample, edge = cuts[number]
                data, kind, what = sample.data[:edge], "cut", f"cut at {edge}"
            else:
                sample = rng.choice(found)
                data, kind, what = damage(sample, rng)
            os.pwrite(file.fileno(), f"{number} {sample.name}: {what}".ljust(200).encode(), 0)
            faulthandler.dump_traceback_later(SECONDS_PER_CASE, exit=True)
            problem = verdict(sample, data, kind)
            refused += problem == REFUSED
            if problem not in (None, REFUSED):
                failures.append(f"{sample.name}, {kind}, {what}: {problem}"[:400])
    faulthandler.cancel_dump_traceback_later()
    return {"cases": num_cases, "files": len(found), "refused": refused, "failures": failures}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", required=True)
    parser.add_argument("--cases", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--progress", type=Path, required=True)
    options = parser.parse_args()
    print(json.dumps(run(options.version, num_cases=options.cases, seed=options.seed, progress=options.progress)))
