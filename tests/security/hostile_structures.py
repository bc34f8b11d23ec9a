"""Tables with one field, anywhere, that a stranger wrote: every field by reflection, every word of it, every verb.

::

    python tests/security/hostile_structures.py --count 20000           exit status 1 when something escaped
    python tests/security/hostile_structures.py --state x.state ...     goes on where it was

The structures are the manifest (of the table and of a branch), its index section with the details of each index, the
transaction in it and in its own file, and every kind of JSON record. A case is one place with one word; where all of these
are tried, further cases are two at once, drawn by the seed. Every case runs in a child (`children.py`) and ends in success
or a LanceError, within 5 s of processor time and 512 MB above what the child has when it is idle.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from google.protobuf.message import DecodeError

sys.path.insert(0, str(Path(__file__).parent))

import hostile_tables
from budget import Budget
from children import sweep
from hostile_tables import Watch, prepare
from reflection import JSON_TURNS, JSON_WORDS, Place, edited, json_edited, json_places, places

import lance_core
from lance_core.dataset.refs.clones import cloned_versions
from lance_core.errors import LanceError
from lance_core.io.cache import shared_cache
from lance_core.io.resolve import resolve_store
from lance_core.maintenance.doctor import diagnose
from lance_core.wire.manifest_file import FOOTER, section_bytes
from lance_core.wire.pb import table_pb2, transaction_pb2

FEW = 50
STRIDE = 1_000_003
"""A prime: neighbours in the order of cases are far from each other in the tables, so that a sample is a sample of all."""
TURNS = (
    "manifest",
    "indices",
    "transaction",
    "record",
    "manifest",
    "indices",
    "record",
    "manifest",
    "transaction file",
    "record",
)
"""Of ten cases. A transaction has most places by far, because every operation is entered, and is read least."""


def build(root: Path) -> None:
    """Tables that together have every kind of file and most kinds of fields."""
    hostile_tables.build(root)
    rows = pa.table({
        "id": pa.array(range(12), pa.int64()),
        "s": pa.array([f"row {n % 3}" for n in range(12)]),
        "v": pa.array([[1.0, float(n)] for n in range(12)], pa.list_(pa.float32(), 2)),
        "t": pa.array([[n % 3, 1] for n in range(12)], pa.list_(pa.int32())),
        "p": pa.array([{"x": n, "y": str(n)} for n in range(12)]),
    })  # fmt: skip
    uri = str(root / "wide")
    lance_core.write_dataset(rows, uri, max_rows_per_file=3)
    ds = lance_core.dataset(uri)
    for column, kind in (("id", "ZONEMAP"), ("s", "BITMAP"), ("t", "LABEL_LIST")):
        ds.create_scalar_index(column, kind)
    ds.create_scalar_index("s", "NGRAM", name="grams")
    ds.create_index("v", "IVF_FLAT", metric="l2", num_partitions=1)
    ds.update_config({"lance.compaction.target_rows": "100"})
    ds.optimize.compact_files(target_rows_per_fragment=6, defer_index_remap=True)
    ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows.slice(11))
    ds.tags.create("good", 2)
    ds.create_branch("side")
    lance_core.dataset(str(root / "addresses")).shallow_clone(str(root / "clone"), 2)


@dataclass(frozen=True, slots=True)
class Target:
    """A structure in a file: which table, which file, and which part of it."""

    table: str
    file: str
    part: str

    def __str__(self) -> str:
        return f"{self.table}/{self.file}:{self.part}"


def targets(root: Path) -> list[Target]:
    """One of each kind of structure of each table."""
    found: list[Target] = []
    for table in sorted(item.name for item in root.iterdir()):
        for folder in (root / table, root / table / "tree" / "side"):
            manifests = sorted((folder / "_versions").glob("*.manifest"))
            if manifests:
                newest = str(manifests[0].relative_to(root / table))
                message = _manifest(manifests[0].read_bytes())
                found.append(Target(table, newest, "manifest"))
                found += [Target(table, newest, "indices")] * message.HasField("index_section")
                found += [Target(table, newest, "transaction")] * message.HasField("transaction_section")
        kinds: dict[Any, str] = {}
        for path in sorted((root / table).rglob("*.txn")):
            kinds[transaction_pb2.Transaction.FromString(path.read_bytes()).WhichOneof("operation")] = str(
                path.relative_to(root / table)
            )
        found += [Target(table, kinds[kind], "transaction file") for kind in sorted(kinds, key=str)]
        found += [Target(table, name, "record") for name in _records(root / table)]
    return found


def _records(table: Path) -> list[str]:
    """A record for each folder and set of keys."""
    kinds: dict[Any, str] = {}
    for path in sorted(table.rglob("*.json")):
        plain = json.loads(path.read_bytes())
        kinds[path.parent, tuple(sorted(plain)) if isinstance(plain, dict) else type(plain)] = str(path.relative_to(table))
    return list(kinds.values())


def _manifest(data: bytes) -> Any:
    (position, _, _, _) = FOOTER.unpack(data[-FOOTER.size :])
    return table_pb2.Manifest.FromString(section_bytes(data, position, what="manifest"))


def _message_of(data: bytes, part: str) -> Any:
    """The message of a part of a file."""
    if part == "transaction file":
        return transaction_pb2.Transaction.FromString(data)
    manifest = _manifest(data)
    if part == "indices":
        return table_pb2.IndexSection.FromString(section_bytes(data, manifest.index_section, what="indices"))
    if part == "transaction":
        position = manifest.transaction_section
        return transaction_pb2.Transaction.FromString(section_bytes(data, position, what="transaction"))
    return manifest


def _with_part(data: bytes, part: str, body: bytes) -> bytes:
    """A file with other bytes for one part."""
    if part == "transaction file":
        return body
    (position, _, _, _) = FOOTER.unpack(data[-FOOTER.size :])
    if part == "manifest":
        return _framed(data[:position], body)
    message = _manifest(data)
    before = data[:position] + struct.pack("<I", len(body)) + body
    setattr(message, "index_section" if part == "indices" else "transaction_section", position)
    return _framed(before, message.SerializeToString())


def _framed(before: bytes, body: bytes) -> bytes:
    return before + struct.pack("<I", len(body)) + body + FOOTER.pack(len(before), 0, 2, b"LANC")


@dataclass(frozen=True, slots=True)
class Edit:
    """One word at one place."""

    target: Target
    place: Place | tuple[Any, ...] | None
    word: Any

    def __str__(self) -> str:
        return f"{self.target}: {self.place} = {self.word!r:.70}"

    def apply(self, table: Path) -> None:
        """Change the file. Raises ValueError, TypeError where the word does not fit the place."""
        path = table / self.target.file
        data = path.read_bytes()
        if self.place is None:
            found = JSON_TURNS[self.word](data)
        elif isinstance(self.place, tuple):
            found = json_edited(data, self.place, self.word)
        else:
            body = edited(_message_of(data, self.target.part), self.place, self.word)
            found = _with_part(data, self.target.part, body)
        path.unlink()
        path.write_bytes(found)


def all_edits(root: Path) -> dict[str, list[Edit]]:
    """Every place of every structure with every word, by the kind of structure."""
    kinds: dict[str, list[Edit]] = {turn: [] for turn in TURNS}
    for target in targets(root):
        found = kinds[target.part]
        data = (root / target.table / target.file).read_bytes()
        if target.part == "record":
            found += [Edit(target, None, turn) for turn in JSON_TURNS]
            for path in json_places(json.loads(data)):
                found += [Edit(target, path, word) for word in (*JSON_WORDS, *((...,) if path else ()))]
        else:
            for place in places(_message_of(data, target.part)):
                found += [Edit(target, place, word) for word in place.words]
    return kinds


def edits_of(case: int, kinds: Mapping[str, Sequence[Edit]]) -> list[Edit]:
    """One edit for the first cases of each kind, in an order that mixes tables and places; behind them two of one table."""
    rounds, turn = divmod(case, len(TURNS))
    kind = TURNS[turn]
    number = rounds * TURNS.count(kind) + TURNS[:turn].count(kind)
    edits = kinds[kind]
    if number < len(edits):
        return [edits[number * STRIDE % len(edits)]]
    rng = random.Random(case)
    first = rng.choice(edits)
    while True:
        second = rng.choice(kinds[rng.choice(TURNS)])
        if second.target.table == first.target.table:
            return [first, second]


def reading(uri: str) -> dict[str, Callable[[], object]]:
    """What is asked of a hostile table."""
    kept = ("tag", "branch", "indices", "stats", "log", "ledger", "failure", "clones", "nearest", "search", "versions")
    verbs = hostile_tables.verbs(uri)

    def table() -> Any:
        return lance_core.dataset(uri)

    return {
        "open": lambda: (str(table().schema), table().lance_schema),
        "scan": lambda: table().to_table(with_row_id=True, with_row_address=True),
        "count": lambda: table().count_rows(),
        "filter": lambda: table().count_rows("id = 5 or s = 'row 1'"),
        "take": lambda: table().take([0, 9]),
        "history": lambda: [lance_core.dataset(uri, version=item["version"]).count_rows() for item in table().versions()],
        **{name: verbs[name] for name in kept},
        "validate": lambda: table().validate(deep=True),
        "doctor": lambda: diagnose(uri, deep=True),
        "observe": lambda: cloned_versions(resolve_store(uri)),
    }  # fmt: skip


def writing(uri: str) -> dict[str, Callable[[], object]]:
    """What changes it; of each, only the version that it made is taken back."""
    verbs = hostile_tables.verbs(uri)

    def table(back: int = 0) -> Any:
        return lance_core.dataset(uri, version=lance_core.dataset(uri).version - back) if back else lance_core.dataset(uri)

    def merge() -> object:
        rows = table().to_table(limit=2)
        return table().merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)

    return {
        "append": lambda: lance_core.write_dataset(table().to_table(limit=1), uri, mode="append"),
        "delete": lambda: table().delete("id = 4"),
        "late": lambda: table(1).delete("id = 2"),
        "update": lambda: table().update({"s": "'x'"}, where="id = 3"),
        "merge": merge,
        "index": lambda: table().create_scalar_index("id", "BTREE", name="new"),
        "optimize": lambda: table().optimize.optimize_indices(),
        "restore": lambda: table(1).restore(),
        "compact": lambda: table().optimize.compact_files(),
        **{name: verbs[name] for name in ("stage", "commit", "gc", "cleanup")},
    }


OPENED_OTHERWISE = frozenset({"tag", "branch", "ledger", "failure", "clones", "stage", "commit", "gc", "late", "restore"})


def run_case(table: Path, watch: Watch, budget: Budget) -> Iterator[tuple[str, str]]:
    """Every verb on one table: (verb, what escaped)."""
    is_closed = False
    uri = str(table)
    for verb, action in reading(uri).items():
        if is_closed and verb not in OPENED_OTHERWISE:
            continue  # it begins with what "open" did, which ends as it ended there
        what = budget.guarded(action, watch, table.parent)
        is_closed = is_closed or (verb == "open" and watch.refused)
        if what:
            yield verb, what
    for verb, action in writing(uri).items():
        if is_closed and verb not in OPENED_OTHERWISE:
            continue
        before = _manifests(table)
        what = budget.guarded(action, watch, table.parent)
        if what:
            yield verb, what
        if verb not in ("compact", "commit", "gc", "cleanup"):
            for path in _manifests(table) - before:  # the next verb is to see the hostile version as the newest
                path.unlink(missing_ok=True)


def _manifests(table: Path) -> set[Path]:
    return set((table / "_versions").glob("*.manifest"))


def try_case(case: int, edits: Mapping[str, Sequence[Edit]], place: Path, watch: Watch, budget: Budget) -> list[str]:
    """What escaped of one case."""
    chosen = edits_of(case, edits)
    work = place / "work"
    table = work / chosen[0].target.table
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(place / "good" / chosen[0].target.table, table, copy_function=os.link)  # replaced, never written to
    for edit in chosen:
        with contextlib.suppress(ValueError, TypeError, LookupError, LanceError, DecodeError, struct.error):
            edit.apply(table)  # of two, the second may not fit any more
    shared_cache().clear()
    note = "; ".join(map(str, chosen))
    return [f"{note}: {verb}: {what}".replace("\n", " ") for verb, what in run_case(table, watch, budget)]


def child(cases: range) -> int:
    """The cases of one process."""
    place, watch = prepare("structures-")
    try:
        build(place / "good")
        edits = all_edits(place / "good")
        for table in sorted(item.name for item in (place / "good").iterdir()) if len(cases) > FEW else ():
            # Compile and import everything first; of a few cases, what takes too long for that is asked again.
            shutil.copytree(place / "good" / table, place / "warm" / table)
            list(run_case(place / "warm" / table, watch, Budget(warm=True)))
        budget = Budget()
        for case in cases:
            print(f"start {case}", flush=True)
            for what in try_case(case, edits, place, watch, budget):
                print(f"escape {case} {what}", flush=True)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(sweep(__file__, child, what="hostile structures", count=20_000, doc=__doc__))
