"""Every claim of size in an index of every kind, each with each word, one at a time: what `hostile_indices` does by chance.

::

    python tests/security/index_bombs.py                exit status 1 when something escaped

    the JSON of a file's metadata     each number, text and list      0, -1, 2^31 - 1, 2^64, 1e308, null, a list of 100,000
    its messages (IVF, tensors)       each field                      the words of its type, a million partitions
    its columns                       all values, or the first one    extremes, a list of a million, a bitmap of 2^32 rows,
                                                                      a token map of 2^60 ways, as another type
    its rows                                                          none, one, thrice, a million

Each is searched in several ways, described, checked, extended with rows and compacted: an answer or a LanceError, within
5 s of processor time and 512 MB; in child processes, so that an abort is a finding.
"""

from __future__ import annotations

import json
import shutil
import struct
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError

import lance_core
from lance_core.arrow import schema_from_arrow, schema_to_arrow
from lance_core.commit.naming import INDEX_CHECKSUMS
from lance_core.errors import LanceError
from lance_core.file.open import open_file
from lance_core.file.writer import FileWriter
from lance_core.format.version import FileVersion
from lance_core.index.text.fst import masked_crc32c
from lance_core.index.text.query import MatchQuery, PhraseQuery
from lance_core.io.cache import shared_cache
from lance_core.io.resolve import resolve_store
from lance_core.wire.pb import index_pb2

sys.path.insert(0, str(Path(__file__).parent))

import hostile_indices
from budget import Budget
from children import sweep
from hostile_tables import prepare, seal
from reflection import edited, places

MANY = 1_000_000
NUMBERS = (0, 1, -1, 7, 65, 65_536, 2**20, 2**24, 2**31 - 1, 2**32, 2**40, 2**63 - 1, 2**64, 1e308, -0.5)
OTHERS = (None, "", "x" * 70_000, "9" * 5_000, [], {}, True, [0] * 100_000, [[0]])
COUNT = 11_000
"""At least as many as there are; `test_index_bombs.py` says so."""


@dataclass(frozen=True)
class Content:
    """What is in a file of an index."""

    table: Any
    metadata: dict[str, bytes]
    buffers: list[bytes]


Change = Callable[[Content], Content]


@dataclass(frozen=True)
class Bomb:
    """One change of one file of an index."""

    kind: str
    file: str
    note: str
    change: Change

    def __str__(self) -> str:
        return f"{self.kind}/{self.file}: {self.note}"


def doubling(levels: int, *, keys: int) -> bytes:
    """A token map of a few nodes in a row, each of which leads twice to the next, the last one to no key."""
    data = bytearray((3).to_bytes(8, "little") + bytes(11))
    target = len(data) - 1
    for _ in range(levels):
        distance = len(data) - target
        data += distance.to_bytes(2, "little") * 2 + b"ba" + bytes((2 << 4, 2))
        target = len(data) - 1
    data += keys.to_bytes(8, "little") + target.to_bytes(8, "little")
    return bytes(data + masked_crc32c(bytes(data)).to_bytes(4, "little"))


def read(path: Path) -> Content:
    """The content of a file."""
    opened = open_file(resolve_store(str(path.parent)), path.name)
    buffers = [bytes(opened.global_buffer(number)) for number in range(1, opened.num_global_buffers)]
    metadata = {key: bytes(value) for key, value in opened.schema.metadata.items()}
    return Content(pa.Table.from_batches(list(opened.read()), schema_to_arrow(opened.schema)), metadata, buffers)


def write(path: Path, content: Content) -> None:
    """Put another content in its place."""
    path.unlink()
    schema = schema_from_arrow(content.table.schema, version=FileVersion.V2_2)
    with FileWriter(resolve_store(str(path.parent)), path.name, schema, version=FileVersion.V2_2) as writer:
        for data in content.buffers:
            writer.add_global_buffer(data)
        for key, value in content.metadata.items():
            writer.add_metadata(key, value)
        for batch in content.table.combine_chunks().to_batches():
            writer.write(batch)
        writer.finish()


def bombs(good: Path) -> list[Bomb]:
    """All of them, in an order in which neighbours have little in common; the same for every process."""
    found = [
        Bomb(kind, path.name, note, change)
        for kind in hostile_indices.KINDS
        for path in sorted((good / kind / "_indices").rglob("*"))
        if path.is_file() and path.name != INDEX_CHECKSUMS
        for note, change in _changes(read(path))
    ]
    # A message may have two places with one name: each is a claim of its own.
    met: Counter[str] = Counter()
    for number, bomb in enumerate(found):
        met[str(bomb)] += 1
        if met[str(bomb)] > 1:
            found[number] = replace(bomb, note=f"{bomb.note}, place {met[str(bomb)]}")
    return sorted(found, key=lambda bomb: zlib.crc32(str(bomb).encode()))


def _changes(content: Content) -> Iterator[tuple[str, Change]]:
    for key, value in content.metadata.items():
        for note, data in _texts(value):
            yield f"metadata {key}{note}", lambda old, key=key, data=data: _with_metadata(old, key, data)
    for number, data in enumerate(content.buffers):
        for note, other in _messages(data):
            yield f"buffer {number}{note}", lambda old, number=number, other=other: _with_buffer(old, number, other)
    for field in content.table.schema if content.table.num_rows else ():
        for note, values in _columns(field.type):
            yield f"{field.name} {note}", lambda old, name=field.name, values=values: _with_column(old, name, values)
    for note, count in (("no rows", 0), ("one row", 1), ("a million rows", MANY)) if content.table.num_rows else ():
        yield note, lambda old, count=count: replace(old, table=old.table.take(np.zeros(count, np.int64)))
    yield "rows thrice", lambda old: replace(old, table=pa.concat_tables([old.table] * 3))


def _with_metadata(old: Content, key: str, data: bytes) -> Content:
    return replace(old, metadata={**old.metadata, key: data})


def _with_buffer(old: Content, number: int, data: bytes) -> Content:
    return replace(old, buffers=[data if place == number else one for place, one in enumerate(old.buffers)])


def _with_column(old: Content, name: str, values: Callable[[Any], Any]) -> Content:
    place = old.table.schema.get_field_index(name)
    column = values(old.table.column(place).combine_chunks())
    field = old.table.schema.field(place).with_type(column.type)
    return replace(old, table=old.table.set_column(place, field, column))


def _texts(value: bytes) -> Iterator[tuple[str, bytes]]:
    """JSON in which one value is another, of texts inside of it too, and words in place of what is no JSON."""
    try:
        plain = json.loads(value)
    except ValueError:
        plain = value.decode(errors="replace")
    for where, make in _spots(plain):
        for word in (*NUMBERS, *OTHERS):
            made = make(word)
            text = made if isinstance(made, str) else json.dumps(made)
            yield f"{where} = {word!r:.30}", text.encode()


def _spots(plain: Any) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    yield "", lambda word: word
    if isinstance(plain, dict):
        for key, item in plain.items():
            for where, make in _spots(item):
                yield f".{key}{where}", lambda word, key=key, make=make: {**plain, key: make(word)}
    elif isinstance(plain, list):
        for number, item in enumerate(plain[:2]):
            for where, make in _spots(item):
                yield f"[{number}]{where}", lambda word, n=number, make=make: [*plain[:n], make(word), *plain[n + 1 :]]
    elif isinstance(plain, str) and plain.startswith("{"):
        for where, make in _spots(json.loads(plain)):
            yield f"|{where}", lambda word, make=make: json.dumps(make(word))


def _messages(data: bytes) -> Iterator[tuple[str, bytes]]:
    for kind in (index_pb2.IVF, index_pb2.Tensor):
        try:
            message: Any = kind.FromString(data)
        except DecodeError:
            continue
        if message.SerializeToString() != data:
            continue
        for place in places(message):
            for word in place.words:
                try:
                    yield f" {place} = {word!r:.30}", edited(kind.FromString(data), place, word)
                except (ValueError, TypeError):
                    continue
        if kind is index_pb2.IVF:
            for lengths in ([0] * MANY, [1] * MANY, [2**32 - 1] * 1000, [2**31] * 2):
                message.ClearField("lengths")
                message.lengths.extend(lengths)
                yield f" {len(lengths)} lengths of {lengths[0]}", message.SerializeToString()
    for name, other in (
        ("empty", b""),
        ("ones", b"\xff" * 64),
        ("a megabyte", bytes(1 << 20)),
        ("rows", _treemap(1 << 16, 1)),
    ):
        yield f" {name}", other


def _treemap(containers: int, fragments: int) -> bytes:
    bitmap = hostile_indices.runs(containers)
    return struct.pack("<Q", fragments) + b"".join(struct.pack("<I", number) + bitmap for number in range(fragments))


def _columns(kind: pa.DataType) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """What a column may hold instead, made of what it holds."""
    for note, value in _values(kind):
        yield f"all {note}", lambda old, value=value: pa.array([value] * len(old), old.type)
        yield f"first {note}", lambda old, value=value: pa.array([value, *old[1:].to_pylist()], old.type)
    yield "null", lambda old: pa.nulls(len(old), old.type)
    yield "reversed", lambda old: old.take(np.arange(len(old))[::-1])
    for other in (pa.string(), pa.int8(), pa.list_(pa.int64()), pa.bool_()):
        if other != kind:
            yield f"as {other}", lambda old, other=other: pa.nulls(len(old), other)


def _values(kind: pa.DataType) -> Iterator[tuple[str, Any]]:
    if pa.types.is_integer(kind):
        bits = kind.bit_width - pa.types.is_signed_integer(kind)
        yield from (("zeros", 0), ("ones", 1), ("largest", 2**bits - 1), ("half", 2 ** (bits - 1)))
    elif pa.types.is_floating(kind):
        yield from (("nan", float("nan")), ("inf", float("inf")), ("-inf", float("-inf")))
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        bitmap = hostile_indices.runs(1 << 16)
        yield from (("empty", b""), ("0xff", b"\xff" * 40), ("zeros", bytes(4096)), ("a bitmap", bitmap[:8] + bitmap[8:]))
        yield from (("a treemap", _treemap(1 << 16, 1)), ("fragments", _treemap(1, 3000)))
        yield from ((f"ways to {keys} keys", doubling(60, keys=keys)) for keys in (0, 3, 20_000))
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield "empty", []
        for note, value in _values(kind.value_type):
            count = 3 if isinstance(value, bytes) and len(value) > 100 else MANY // 50
            yield f"lists of {count} {note}", [value] * count
    elif pa.types.is_fixed_size_list(kind):
        yield from ((f"lists of {note}", [value] * kind.list_size) for note, value in _values(kind.value_type))


def verbs(uri: str, kind: str) -> dict[str, Callable[[], object]]:
    """What asks an index, and what goes on from it; those that change the table come last."""

    def table() -> Any:
        return lance_core.dataset(uri)

    found = dict(hostile_indices.verbs(uri, kind))
    if kind == "INVERTED":
        for name, query in (
            ("fuzzy", MatchQuery("row mani", "s", fuzziness=2)),
            ("phrase", PhraseQuery("row 7", "s")),
            ("all", MatchQuery("row", "s")),
        ):
            found[name] = lambda query=query: table().to_table(full_text_query=query, limit=None if name == "all" else 5)
    elif kind not in hostile_indices.SCALAR:
        near = {"column": "v", "q": np.ones(hostile_indices.DIMENSION, np.float32), "k": 300, "nprobes": 2}
        found["refined"] = lambda: table().to_table(nearest={**near, "refine_factor": 3})
        found["filtered"] = lambda: table().to_table(nearest=near, filter="id < 9", prefilter=True)
    rows = hostile_indices.rows(7)
    found["deep check"] = lambda: table().validate(deep=True)
    found["append"] = lambda: lance_core.write_dataset(rows, uri, mode="append")
    found["optimize"] = lambda: table().optimize.optimize_indices()
    found["compact"] = lambda: table().optimize.compact_files()
    return found


def try_bomb(bomb: Bomb, good: Path, work: Path, watch: Any, budget: Budget) -> list[str]:
    """What escaped of one of them."""
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(good / bomb.kind, work)
    (path,) = (work / "_indices").rglob(bomb.file)
    try:
        write(path, bomb.change(read(path)))
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return []  # no file can hold that
    seal(path.parent)
    found = []
    for verb, action in verbs(str(work), bomb.kind).items():
        shared_cache().clear()
        what = budget.guarded(action, watch, work)
        if what:
            found.append(f"{bomb}: {verb}: {what}".replace("\n", " "))
    return found


def child(cases: range) -> int:
    """The cases of one process."""
    place, watch = prepare("bombs-")
    try:
        hostile_indices.build(place / "good")
        for kind in hostile_indices.KINDS:  # compile and import everything first
            shutil.copytree(place / "good" / kind, place / "work")
            for action in verbs(str(place / "work"), kind).values():
                with suppress(LanceError):  # of phrases without positions
                    action()
            shutil.rmtree(place / "work")
        budget, known = Budget(), bombs(place / "good")
        for case in cases:
            print(f"start {case}", flush=True)
            for what in try_bomb(known[case], place / "good", place / "work", watch, budget) if case < len(known) else ():
                print(f"escape {case} {what}", flush=True)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(sweep(__file__, child, what="claims of indices", count=COUNT, doc=__doc__))
