"""Tables that a stranger wrote: every kind of file that a table can have, with its fields at their extremes.

::

    python tests/security/hostile_tables.py --count 10000 --seed 1      exit status 1 when something escaped
    python tests/security/hostile_tables.py --files --count 100000      bytes of data, index and deletion files, and reading
    python tests/security/hostile_tables.py --processes 2               a process for each share of the seeds

A case takes a small, good table, changes one or two fields of one or two of its files (protobuf messages and JSON by their
structure, everything else by its bytes), and then does what readers, committers and maintenance do. Allowed are an answer
and a LanceError, within a time, within a memory, without a file outside of the table and without a connection.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

import lance_core
from lance_core.commit.naming import INDEX_CHECKSUMS
from lance_core.dataset.refs.clones import cloned_versions, note_clone
from lance_core.errors import LanceError
from lance_core.index.checksums import encode_sums, sums_of_file
from lance_core.io.cache import shared_cache
from lance_core.io.resolve import resolve_store
from lance_core.jobs.api import raise_failure
from lance_core.jobs.run import run_job
from lance_core.jobs.runtime.failure_record import failure_path
from lance_core.jobs.specs.edits import DeleteSpec, UpdateSpec
from lance_core.jobs.specs.spec import CommitSpec
from lance_core.publish.attempts import list_staged
from lance_core.publish.collect import collect_garbage
from lance_core.publish.records import FORMAT
from lance_core.publish.verify import damaged_records, list_ledger, void_records
from lance_core.wire.manifest_file import FOOTER, section_bytes
from lance_core.wire.pb import rowids_pb2, table_pb2, transaction_pb2

CASE_SECONDS = 20.0
"""Of the processor: how busy the machine is says nothing about a table."""
WAIT_SECONDS = 300.0
MEMORY_BYTES = 3 << 30
NUMBERS = (0, 1, 2, 7, 255, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**40, 2**63 - 1, 2**64 - 1, -1, -(2**31), -(2**63))
TEXTS = (
    "", ".", "..", "/", "../../../../etc/passwd", "/etc/passwd", "file:///etc/passwd", "http://127.0.0.1:9/x", "s3://evil/x",
    "az://c@evil/x", "abfss://c@evil.example.org/x", "\x00", "a\nb", "é" * 300, "x" * 70000, "main", "id", "struct", "list",
    "fixed_size_list:float:1000000000", "dict:string:int8:false", "decimal:128:99:99", "timestamp:us:Nowhere/At_All",
)  # fmt: skip


class TooLongError(BaseException):
    """A case used up its time."""


class EndedError(BaseException):
    """The process is to end."""


@dataclass(frozen=True)
class Escape:
    """What a case ended with that it must not."""

    seed: int
    change: str
    verb: str
    what: str

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.change}: {self.verb}: {self.what}"


def build(root: Path) -> None:
    """Two tables, with addresses and with stable row ids, that hold every kind of file."""
    for name, stable in (("addresses", False), ("stable", True)):
        uri = str(root / name)
        rows = pa.table({"id": pa.array(range(30), pa.int64()), "s": [f"row {n}" for n in range(30)]})
        vectors = pa.array([[1.0, float(n)] for n in range(30)], pa.list_(pa.float32(), 2))
        data = rows.append_column("v", vectors)
        ds = lance_core.write_dataset(data.slice(0, 20), uri, max_rows_per_file=10, enable_stable_row_ids=stable)
        lance_core.write_dataset(data.slice(20), uri, mode="append")
        ds = lance_core.dataset(uri)
        ds.delete("id in (3, 14)")
        ds.create_scalar_index("id", "BTREE")
        ds.create_scalar_index("s", "INVERTED")
        ds.tags.create("good", 2)
        ds.create_branch("side")
        ds.update({"s": "'new'"}, where="id = 5")
        store = resolve_store(uri)
        note_clone(store, uri=str(root / "clone"), version=2)
        run_job(DeleteSpec(uri=uri, predicate="id = 7", identity=str(uuid.UUID(int=7))))
        run_job(UpdateSpec(uri=uri, updates={"s": "'x'"}, where="id = 8", identity=str(uuid.UUID(int=8))))
        run_job(CommitSpec(uri=uri, identities=(str(uuid.UUID(int=8)),)))
        private = root / name / "_lance_core"
        (private / "intents").mkdir(exist_ok=True)
        for number, outcome in ((5, "commits"), (6, "aborts")):
            attempts = {str(uuid.UUID(int=number)): "00aa00aa00aa00aa"}
            intent = {"format": FORMAT, "commit": f"0{number}ff00ff00ff00ff", "outcome": outcome, "uuids": [],
                      "attempts": attempts, "base": 1, "since": 1.0}  # fmt: skip
            (private / "intents" / f"{intent['commit']}.json").write_text(json.dumps(intent))
        _plant_records(private)


def build_files(root: Path) -> None:
    """The tables whose files are damaged: besides those of `build`, one for each version of data files, of many types."""
    build(root)
    rng = random.Random(1)
    count = 400
    rows = pa.table({
        "id": pa.array(range(count), pa.int64()),
        "few": pa.array([rng.choice((None, 3, 4, 7)) for _ in range(count)], pa.int32()),
        "runs": pa.array([n // 50 for n in range(count)], pa.uint16()),
        "flag": pa.array([rng.choice((True, False, None)) for _ in range(count)]),
        "ratio": pa.array([rng.random() for _ in range(count)], pa.float64()),
        "text": pa.array([rng.choice((None, "", f"https://example.org/row/{n}")) for n in range(count)]),
        "bytes": pa.array([rng.randbytes(rng.randrange(90)) for _ in range(count)], pa.large_binary()),
        "kind": pa.array([rng.choice(("a", "bb", "ccc")) for _ in range(count)]).dictionary_encode(),
        "items": pa.array([rng.choice((None, [], [n], [n, None, 7])) for n in range(count)], pa.list_(pa.int64())),
        "point": pa.array([rng.choice((None, {"x": n, "y": "z" * (n % 5)})) for n in range(count)]),
        "deep": pa.array([[{"a": [n, 2], "b": None}] * (n % 3) for n in range(count)]),
        "vector": pa.array([[float(n)] * 4 for n in range(count)], pa.list_(pa.float32(), 4)),
        "day": pa.array(range(count), pa.date32()),
    })  # fmt: skip
    for version in ("2.0", "2.1", "2.2", "2.3"):
        fitting = rows if version != "2.0" else rows.drop_columns(["point", "deep"])
        lance_core.write_dataset(fitting, str(root / f"types-{version}"), data_storage_version=version)


def _plant_records(private: Path) -> None:
    """The records that only an accident leaves behind: of decisions, of a failure, of what is settled."""
    spec = {"spec": 1, "kind": "delete", "predicate": "id = 6"}
    attempt = {"identity": str(uuid.UUID(int=6)), "attempt": "00aa00aa00aa00aa", "read_version": 2, "spec": spec}
    stale = {"attempt": {**attempt, "started": 1.0, "lease_seconds": 1.0}, "renewed": 1.0}
    name = f"{uuid.UUID(int=6)}.00aa00aa00aa00aa"
    (private / "staged" / f"{name}.started.json").write_text(json.dumps(stale))
    number = "00aa00aa00aa00aa"
    aborted = {"format": FORMAT, "identity": str(uuid.UUID(int=6)), "number": 1, "outcome": "aborted",
               "attempt": number, "by": "gc", "decided_at": 1.0, "aborted": {number: "gc"}}  # fmt: skip
    (private / "decisions" / f"{uuid.UUID(int=6)}.000001.json").write_text(json.dumps(aborted))
    (private / "settled.json").write_text(json.dumps({"format": FORMAT, "version": 2}))
    failure = {"type": "SchemaMismatchError", "message": "no", "retryable": False, "at": 1.0}
    (private.parent / failure_path(str(uuid.UUID(int=9)))).write_text(json.dumps(failure))


def change_one(rng: random.Random, table: Path) -> str:
    """Change one file of a table; what was changed, for a person."""
    files = sorted(path for path in table.rglob("*") if path.is_file() and not path.name.startswith("."))
    kinds: dict[str, list[Path]] = {}
    for path in files:
        kinds.setdefault(path.relative_to(table).parts[0] + path.suffix, []).append(path)
    # The newest manifest is what everything reads first, so it gets every second turn.
    manifests = sorted(kinds.get("_versions.manifest", []))
    path = manifests[0] if manifests and rng.random() < 0.5 else rng.choice(kinds[rng.choice(sorted(kinds))])
    data = path.read_bytes()
    where = str(path.relative_to(table))
    path.unlink()  # never through a hard link
    try:
        found, note = _CHANGES.get(path.suffix, changed_bytes)(rng, data)
    except (LanceError, DecodeError, struct.error):
        found, note = changed_bytes(rng, data)  # what an earlier change damaged
    path.write_bytes(found)
    return f"{where}: {note}"


def _changed_manifest(rng: random.Random, data: bytes) -> tuple[bytes, str]:
    (position, _, _, _) = FOOTER.unpack(data[-FOOTER.size :])
    message = table_pb2.Manifest.FromString(section_bytes(data, position, what="manifest"))
    turn = rng.random()
    if turn < 0.1:
        return changed_bytes(rng, data)
    if turn < 0.2 and message.HasField("index_section"):
        section = table_pb2.IndexSection.FromString(section_bytes(data, message.index_section, what="indices"))
        note = mutate(rng, section)
        body = section.SerializeToString()
        message.index_section = 0
        return _framed(struct.pack("<I", len(body)) + body, message), f"index section {note}"
    if turn < 0.3:
        note = _nested(rng, message)
    elif turn < 0.4 and message.fragments:
        sequence = rowids_pb2.RowIdSequence()
        sequence.segments.add().range.end = rng.choice(NUMBERS[:13])
        note = mutate(rng, sequence)
        rng.choice(list(message.fragments)).inline_row_ids = sequence.SerializeToString()
        note = f"row ids {note}"
    else:
        note = mutate(rng, message)
    return _framed(data[:position], message), note


def _nested(rng: random.Random, message: Any) -> str:
    depth = rng.choice((10, 100, 500, 3000))
    first = max((field.id for field in message.fields), default=0) + 1
    for number in range(depth):
        parent = -1 if number == 0 else first + number - 1
        message.fields.add(
            id=first + number, parent_id=parent, name="n", logical_type=rng.choice(("struct", "list")), nullable=True
        )
    return f"{depth} fields inside each other"


def _framed(before: bytes, message: Message) -> bytes:
    body = message.SerializeToString()
    return before + struct.pack("<I", len(body)) + body + FOOTER.pack(len(before), 0, 2, b"LANC")


def _changed_transaction(rng: random.Random, data: bytes) -> tuple[bytes, str]:
    message = transaction_pb2.Transaction()
    if rng.random() < 0.1:
        return changed_bytes(rng, data)
    message.ParseFromString(data)
    note = mutate(rng, message)
    return bytes(message.SerializeToString()), note


def mutate(rng: random.Random, message: Message, path: str = "") -> str:
    """Set one field somewhere in a message to an extreme; what was done."""
    present = [field for field, _ in message.ListFields() if field.type == FieldDescriptor.TYPE_MESSAGE]
    if present and rng.random() < 0.75:
        field = rng.choice(present)
        value = getattr(message, field.name)
        if _is_map(field):
            return _change_map(rng, value, f"{path}{field.name}")
        if _is_repeated(field):
            if not len(value):
                return f"{path}{field.name}: empty"
            if rng.random() < 0.15:
                return _change_list(rng, message, field, path)
            place = rng.randrange(len(value))
            return mutate(rng, value[place], f"{path}{field.name}[{place}].")
        return mutate(rng, value, f"{path}{field.name}.")
    if not message.DESCRIPTOR.fields:
        return f"{path}: nothing to change"
    field = rng.choice(list(message.DESCRIPTOR.fields))
    where = f"{path}{field.name}"
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        if _is_map(field):
            return _change_map(rng, getattr(message, field.name), where)
        if _is_repeated(field):
            return _change_list(rng, message, field, path)
        if message.HasField(field.name) and rng.random() < 0.5:
            message.ClearField(field.name)
            return f"{where}: removed"
        return mutate(rng, getattr(message, field.name), f"{where}.")
    value = _extreme(rng, field)
    if _is_repeated(field):
        items = getattr(message, field.name)
        items.extend([value] * rng.choice((1, 3, 1000)))
        return f"{where} += {value!r:.60}"
    with suppress(ValueError, TypeError):
        setattr(message, field.name, value)
    return f"{where} = {value!r:.60}"


def _is_repeated(field: Any) -> bool:
    # The name of this question changed with protobuf 6.
    found = getattr(field, "is_repeated", None)
    return bool(field.label == FieldDescriptor.LABEL_REPEATED) if found is None else bool(found)


def _is_map(field: Any) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _change_map(rng: random.Random, value: Any, where: str) -> str:
    key, text = rng.choice(TEXTS), rng.choice(TEXTS)
    with suppress(ValueError, TypeError):
        value[key] = text if isinstance(next(iter(value.values()), ""), str) else text.encode()
    return f"{where}[{key!r:.40}] = {text!r:.40}"


def _change_list(rng: random.Random, message: Message, field: Any, path: str) -> str:
    value = getattr(message, field.name)
    turn = rng.choice(("clear", "double", "many", "drop"))
    items = list(value)
    if turn == "clear" or not items:
        message.ClearField(field.name)
    elif turn == "drop":
        del value[rng.randrange(len(items))]
    else:
        value.extend([rng.choice(items)] * (1 if turn == "double" else 300))
    return f"{path}{field.name}: {turn}"


def _extreme(rng: random.Random, field: Any) -> Any:
    if field.type == FieldDescriptor.TYPE_STRING:
        return rng.choice(TEXTS)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return rng.choice((b"", b"\x00" * 8, b"\xff" * 64, rng.randbytes(40), b"\x0a\x0a" * 200))
    if field.type == FieldDescriptor.TYPE_BOOL:
        return rng.random() < 0.5
    if field.type in (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT):
        return rng.choice((float("nan"), float("inf"), -1.0, 1e308))
    bits = 64 if "64" in _TYPE_NAMES[field.type] else 32
    low, high = (0, 2**bits - 1) if "uint" in _TYPE_NAMES[field.type] else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return rng.choice([number for number in NUMBERS if low <= number <= high])


_TYPE_NAMES = {getattr(FieldDescriptor, name): name[5:].lower() for name in dir(FieldDescriptor) if name.startswith("TYPE_")}


def changed_json(rng: random.Random, data: bytes) -> tuple[bytes, str]:
    try:
        plain = json.loads(data)
    except (ValueError, RecursionError):
        return changed_bytes(rng, data)  # what an earlier change damaged
    turn = rng.random()
    if turn < 0.1:
        return changed_bytes(rng, data)
    if turn < 0.15:
        return b'{"a":' * 5000 + b"1" + b"}" * 5000, "5000 objects inside each other"
    if turn < 0.2:
        return data.replace(b"1", b"NaN").replace(b"2", b"1e999"), "numbers that are none"
    places = list(_places(plain))
    holder, key = rng.choice(places) if places else (None, None)
    value: Any = rng.choice((*NUMBERS, *TEXTS[:20], None, True, [], {}, [[]], {"env": "HOME"}, 1.5, "9" * 5000))
    if holder is None:
        plain = value
    elif rng.random() < 0.15:
        del holder[key]
        value = "removed"
    else:
        holder[key] = value
    return json.dumps(plain).encode(), f"{key} = {value!r:.60}"


def _places(plain: Any) -> Iterator[tuple[Any, Any]]:
    items = list(plain.items()) if isinstance(plain, dict) else list(enumerate(plain)) if isinstance(plain, list) else []
    for key, value in items:
        yield plain, key
        yield from _places(value)


def changed_bytes(rng: random.Random, data: bytes) -> tuple[bytes, str]:
    found = bytearray(data)
    turn = rng.choice(("flip", "flip", "cut", "long", "zero", "number"))
    at = rng.randrange(len(found)) if found else 0
    if turn == "cut":
        del found[at:]
    elif turn == "long":
        found += rng.randbytes(rng.choice((1, 100)))
    elif turn == "zero":
        found[at : at + 8] = bytes(len(found[at : at + 8]))
    elif turn == "number" and len(found) > 8:
        at = min(at, len(found) - 8)
        found[at : at + 8] = struct.pack("<Q", rng.choice([number for number in NUMBERS if number >= 0]))
    elif found:
        found[at] ^= 1 << rng.randrange(8)
    return bytes(found), f"{turn} at byte {at} of {len(data)}"


_CHANGES = {".manifest": _changed_manifest, ".txn": _changed_transaction, ".json": changed_json}


def verbs(uri: str) -> dict[str, Callable[[], object]]:
    """What is done with a hostile table: reading first, because the rest changes it."""

    def store() -> Any:
        return resolve_store(uri)

    def delete_of(number: int) -> DeleteSpec:
        return DeleteSpec(uri=uri, predicate=f"id = {number}", identity=str(uuid.UUID(int=number)))

    return {
        "open": lambda: lance_core.dataset(uri).schema,
        "count": lambda: lance_core.dataset(uri).count_rows(),
        "scan": lambda: lance_core.dataset(uri).to_table(with_row_id=True),
        "filter": lambda: lance_core.dataset(uri).to_table(filter="id = 5"),
        "search": lambda: lance_core.dataset(uri).to_table(full_text_query="row", limit=3),
        "nearest": lambda: lance_core.dataset(uri).to_table(nearest={"column": "v", "q": [1.0, 2.0], "k": 3}),
        "take": lambda: lance_core.dataset(uri).take([0, 9, 20]),
        "versions": lambda: lance_core.dataset(uri).versions(),
        "tag": lambda: (lance_core.dataset(uri).tags.list(), lance_core.dataset(uri, version="good").count_rows()),
        "branch": lambda: (
            lance_core.dataset(uri).branches.list(),
            lance_core.dataset(uri).checkout_version(("side", None)),
        ),
        "indices": lambda: lance_core.dataset(uri).describe_indices(),
        "validate": lambda: lance_core.dataset(uri).validate(),
        "stats": lambda: lance_core.dataset(uri).stats.dataset_stats(),
        "log": lambda: [found.get_transactions(3) for found in [lance_core.dataset(uri)]],
        "ledger": lambda: (list_staged(store()), list_ledger(store()), void_records(store()), damaged_records(store())),
        "failure": lambda: raise_failure(
            DeleteSpec(uri=uri, predicate="id = 9", identity=str(uuid.UUID(int=9))), options={}
        ),
        "stage": lambda: run_job(DeleteSpec(uri=uri, predicate="id = 7", identity=str(uuid.UUID(int=7)))),
        "clones": lambda: cloned_versions(resolve_store(uri)),
        "commit": lambda: run_job(CommitSpec(uri=uri)),
        "append": lambda: lance_core.write_dataset(lance_core.dataset(uri).to_table(limit=1), uri, mode="append"),
        "delete": lambda: lance_core.dataset(uri).delete("id = 21"),
        "compact": lambda: lance_core.dataset(uri).optimize.compact_files(),
        "optimize": lambda: lance_core.dataset(uri).optimize.optimize_indices(),
        "gc": lambda: collect_garbage(resolve_store(uri)),
        "cleanup": lambda: lance_core.dataset(uri).cleanup_old_versions(retain_versions=1),
    }


class Watch:
    """Files that are opened outside of a root, and connections: found through the interpreter's audit events."""

    def __init__(self) -> None:
        self.root: str | None = None
        self.found: list[str] = []
        self.refused = False
        self.opened: set[str] | None = None
        self.cases: set[int] = set()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.opened is not None and event == "open" and isinstance(arguments[0], str):
            self.opened.add(arguments[0])
        if self.root is None:
            return
        if event in ("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system"):
            self.found.append(f"{event}{arguments[-1:]!r:.80}")
        elif event in ("open", "os.remove", "os.rename", "os.link", "os.mkdir", "os.rmdir") and arguments:
            for path in [item for item in arguments[:2] if isinstance(item, (str, bytes))]:
                text = os.path.abspath(os.fsdecode(path))  # noqa: PTH100  (links are not followed here)
                if not text.startswith((self.root, *_HARMLESS)) and os.fsdecode(path) not in _MODES:
                    self.found.append(f"{event} {text}")


_HARMLESS = (
    sys.prefix, sys.base_prefix, "/usr", "/proc", "/sys", "/dev", "/etc/localtime", str(Path(__file__).resolve().parents[2]),
    str(Path.home() / ".cache"), str(Path(tempfile.gettempdir()) / "lance-scratch-"),
)  # fmt: skip
_MODES = frozenset({"r", "rb", "w", "wb", "x", "xb", "r+b", "a", "ab"})


class FileCases:
    """Tables with one damaged or hostile file, and what readers of that file do with it.

    Which verbs read which file is seen on the good table, once. A file that nobody reads is no case, and a verb that does
    not read the changed file is not asked: it would answer as it did before. Every second file of an index is given the
    checksums that fit, because its bytes are looked at by nobody otherwise.
    """

    def __init__(self) -> None:
        self._readers: dict[str, dict[str, list[str]]] = {}

    def __call__(self, seed: int, good: Path, work: Path, watch: Watch) -> list[Escape]:
        rng = random.Random(seed)
        name = rng.choice(sorted(path.name for path in good.iterdir()))
        if name not in self._readers:
            self._readers[name] = _readers_of_files(good / name, watch)
        readers = self._readers[name]
        shutil.rmtree(work / name, ignore_errors=True)
        shutil.copytree(good / name, work / name, copy_function=os.link)  # files are replaced, never written to
        path = rng.choice(sorted(readers))
        place = work / name / path
        data = place.read_bytes()
        changed, note = data, ""
        while changed == data:
            changed, note = changed_bytes(rng, data)
        place.unlink()
        place.write_bytes(changed)
        watch.cases.add(hash((path, changed)))
        if (place.parent / INDEX_CHECKSUMS).exists() and place.name != INDEX_CHECKSUMS and rng.random() < 0.5:
            seal(place.parent)
            note += ", checksums that fit"
        found = []
        for verb, action in verbs(str(work / name)).items():
            if verb in readers[path]:
                shared_cache().clear()  # what the case before read from a file of this name
                what = guarded(action, watch, work)
                if what:
                    found.append(Escape(seed, f"{name}/{path}: {note}", verb, what))
        return found


def seal(folder: Path) -> None:
    """Write the checksums that fit the files of an index as they are."""
    store = resolve_store(str(folder))
    names = [item.name for item in folder.iterdir() if item.name != INDEX_CHECKSUMS]
    (folder / INDEX_CHECKSUMS).unlink()
    (folder / INDEX_CHECKSUMS).write_bytes(encode_sums({name: sums_of_file(store, name) for name in names}))


def _readers_of_files(table: Path, watch: Watch) -> dict[str, list[str]]:
    """The reading verbs that open a data, index or deletion file, by the file's path below the table."""
    readers: dict[str, list[str]] = {}
    for verb, action in verbs(str(table)).items():
        if verb in _READING:
            shared_cache().clear()
            watch.opened = set()
            with suppress(LanceError):  # a table without the column that a verb asks for
                action()
            for path in watch.opened:
                if path.startswith(tuple(f"{table}/{folder}/" for folder in ("data", "_indices", "_deletions"))):
                    readers.setdefault(str(Path(path).relative_to(table)), []).append(verb)
    watch.opened = None
    return readers


_READING = frozenset({"scan", "filter", "search", "nearest", "take"})


def run_case(seed: int, good: Path, work: Path, watch: Watch) -> list[Escape]:
    """One hostile table and every verb on it."""
    rng = random.Random(seed)
    shutil.rmtree(work, ignore_errors=True)
    name = rng.choice(("addresses", "stable"))
    shutil.copytree(good / name, work / name)
    change = "; ".join(change_one(rng, work / name) for _ in range(rng.choice((1, 1, 1, 2))))
    watch.cases.add(hash((name, change)))
    shared_cache().clear()  # what the case before read from files of these names
    found = []
    is_closed = False
    for verb, action in verbs(str(work / name)).items():
        if is_closed and verb not in _OPENING_OTHERWISE:
            continue  # it begins with what "open" did, which ends as it ended there
        what = guarded(action, watch, work)
        is_closed = is_closed or (verb == "open" and watch.refused)
        if what:
            found.append(Escape(seed, f"{name}/{change}", verb, what))
    return found


_OPENING_OTHERWISE = frozenset({"tag", "branch", "ledger", "failure", "stage", "clones", "commit", "gc"})


def guarded(action: Callable[[], object], watch: Watch, work: Path, *, seconds: float = CASE_SECONDS) -> str:
    watch.found, watch.root, watch.refused = [], str(work), False
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, WAIT_SECONDS)
    try:
        action()
    except LanceError:
        watch.refused = True
    except TooLongError:
        return f"more than {seconds:.0f} s of work, or {WAIT_SECONDS:.0f} s of waiting"
    except EndedError:
        raise
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        watch.root = None
    return "; ".join(watch.found)


def _too_long(*_: object) -> None:
    raise TooLongError


def _ended(*_: object) -> None:
    raise EndedError


def prepare(prefix: str) -> tuple[Path, Watch]:
    """The timers of `guarded`, a folder for tables, and a watch."""
    signal.signal(signal.SIGALRM, _too_long)
    signal.signal(signal.SIGPROF, _too_long)
    signal.signal(signal.SIGTERM, _ended)  # its folder is in memory: remove it
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    # In memory where there is such a folder: every commit waits for the disk otherwise.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    place = Path(tempfile.mkdtemp(prefix=prefix, dir=memory))
    watch = Watch()
    return place, watch


Case = Callable[[int, Path, Path, Watch], list[Escape]]


def limit_to(size: int) -> None:
    """Allow this process so many bytes more than it has."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + size, resource.RLIM_INFINITY))


def run_many(seeds: range, make: Callable[[Path], None], case: Case, *, what: str, limit_memory: bool = True) -> int:
    """Many cases in this process, under the budgets; what escaped is printed at once. The exit status."""
    place, watch = prepare("hostile-")
    escapes: list[Escape] = []
    try:
        make(place / "good")
        for seed in range(seeds.start, seeds.start + 2):  # compile and import everything first
            case(seed, place / "good", place / "warm", watch)
        watch.cases = set()
        if limit_memory:
            limit_to(MEMORY_BYTES)
        for seed in seeds:
            found = case(seed, place / "good", place / "work", watch)
            escapes += found
            for escape in found:
                print(str(escape).replace("\n", " "), flush=True)
            if (seed - seeds.start) % 500 == 499:
                print(f"up to seed {seed}: {seed - seeds.start + 1} of {len(seeds)}, {len(escapes)} escapes", flush=True)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    print(f"{len(seeds)} {what} of the seeds from {seeds.start}, {len(watch.cases)} distinct, {len(escapes)} escapes")
    return 1 if escapes else 0


def run_shares(command: list[str], seed: int, count: int, processes: int) -> int:
    """The same in several processes, each with its own share of the seeds; the worst exit status."""
    bounds = [seed + count * number // processes for number in range(processes + 1)]
    shares = [
        subprocess.Popen([*command, "--seed", str(first), "--count", str(last - first)]) for first, last in pairwise(bounds)
    ]
    try:
        return max(share.wait() for share in shares)
    finally:
        for share in shares:
            share.terminate()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", action="store_true", help="change bytes of files, and only read")
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    if given.processes > 1:
        own = [sys.executable, __file__, *(["--files"] if given.files else [])]
        return run_shares(own, given.seed, given.count, given.processes)
    seeds = range(given.seed, given.seed + given.count)
    return (
        run_many(seeds, build_files, FileCases(), what="mutated files")
        if given.files
        else run_many(seeds, build, run_case, what="hostile tables")
    )


if __name__ == "__main__":
    sys.exit(main())
