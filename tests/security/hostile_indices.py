"""Index files by somebody who computes their checksums anew: values, columns, metadata and bytes at their extremes.

::

    python tests/security/hostile_indices.py --count 16000      exit status 1 when something escaped

A CRC finds damage, not forgery. A case takes one file of one index, changes it by its structure (columns and their values,
the JSON of its metadata, its global buffers and every field of a message in one, bitmaps that claim billions of rows) or by
its bytes, writes the checksums that fit, and then searches, describes and checks. Allowed are an answer and a LanceError,
within 5 s of processor time and 512 MB; every case runs in a child process (`children.py`), so that an abort is a finding.
"""

from __future__ import annotations

import functools
import random
import shutil
import struct
import sys
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError

import lance_core
from lance_core.arrow import schema_from_arrow
from lance_core.commit.naming import INDEX_CHECKSUMS
from lance_core.file.open import open_file
from lance_core.file.writer import FileWriter
from lance_core.format.version import FileVersion
from lance_core.index.vector.parameters import KINDS as VECTOR_KINDS
from lance_core.io.cache import shared_cache
from lance_core.io.resolve import resolve_store
from lance_core.wire.pb import index_pb2

sys.path.insert(0, str(Path(__file__).parent))

from budget import Budget
from children import sweep
from hostile_tables import NUMBERS, TEXTS, Watch, changed_bytes, changed_json, prepare, seal
from reflection import edited, places

ROWS, DIMENSION = 256, 8
SCALAR: Mapping[str, tuple[str, str]] = {
    "BTREE": ("id", "id = 7"),
    "BITMAP": ("c", "c = 3"),
    "ZONEMAP": ("id", "id > 250"),
    "BLOOMFILTER": ("c", "c = 3"),
    "NGRAM": ("s", "contains(s, 'row')"),
    "LABEL_LIST": ("l", "array_has_any(l, [3])"),
    "INVERTED": ("s", ""),
}
KINDS = (*SCALAR, *VECTOR_KINDS)


def rows(count: int) -> pa.Table:
    """Rows of such a table."""
    values = np.random.default_rng(1).normal(size=count * DIMENSION).astype(np.float32)
    return pa.table({
        "id": range(count), "c": [number % 5 for number in range(count)],
        "s": [f"row {number} of many" for number in range(count)],
        "l": [[number % 7, 3] for number in range(count)],
        "v": pa.FixedSizeListArray.from_arrays(pa.array(values), DIMENSION),
    })  # fmt: skip


def build(root: Path) -> None:
    """A table for each kind of index."""
    for kind in KINDS:
        ds = lance_core.write_dataset(rows(ROWS), str(root / kind), max_rows_per_file=ROWS // 2)
        if kind in SCALAR:
            ds.create_scalar_index(SCALAR[kind][0], kind)
        else:
            more = {"num_sub_vectors": 4} if "PQ" in kind else {}
            ds.create_index("v", kind, metric="l2", num_partitions=2, **more)


def verbs(uri: str, kind: str) -> dict[str, Callable[[], object]]:
    """What asks an index."""

    def table() -> Any:
        return lance_core.dataset(uri)

    query = np.zeros(DIMENSION, np.float32)
    if kind in SCALAR:
        column, where = SCALAR[kind]
        ask: Callable[[], object] = lambda: table().to_table(filter=where)  # noqa: E731
        if kind == "INVERTED":
            ask = lambda: table().to_table(full_text_query="row many", limit=5)  # noqa: E731
        name = f"{column}_idx"
    else:
        ask, name = lambda: table().to_table(nearest={"column": "v", "q": query, "k": 5, "nprobes": 2, "ef": 20}), "v_idx"
    return {"ask": ask, "describe": lambda: table().stats.index_stats(name), "check": lambda: table().validate()}


def change(rng: random.Random, folder: Path) -> str:
    """Change one file of an index and write checksums that fit; what was changed, for a person."""
    path = rng.choice(sorted(item for item in folder.iterdir() if item.name != INDEX_CHECKSUMS))
    turn = rng.random()
    if turn < 0.05:
        return _change_checksums(rng, folder)
    if turn < 0.4 or path.suffix != ".lance":
        data, note = changed_bytes(rng, path.read_bytes())
        path.unlink()
        path.write_bytes(data)
    else:
        note = _restructured(rng, path)
    seal(folder)
    return f"{path.name}: {note}"


def _change_checksums(rng: random.Random, folder: Path) -> str:
    path = folder / INDEX_CHECKSUMS
    body, note = changed_json(rng, path.read_bytes()[9:])
    path.unlink()
    path.write_bytes(b"%08x\n" % zlib.crc32(body) + body)
    return f"checksums: {note}"


def _restructured(rng: random.Random, path: Path) -> str:
    store = resolve_store(str(path.parent))
    opened = open_file(store, path.name)
    table = pa.Table.from_batches(list(opened.read()))
    metadata = {key: bytes(value) for key, value in opened.schema.metadata.items()}
    buffers = [opened.global_buffer(number) for number in range(1, opened.num_global_buffers)]
    turn = rng.choice(("values", "values", "values", "rows", "columns", "metadata", "metadata", "buffers"))
    if turn == "metadata" and metadata:
        key = rng.choice(sorted(metadata))
        metadata[key], note = changed_json(rng, metadata[key])
        note = f"metadata {key}: {note}"
    elif turn == "buffers" and buffers:
        number = rng.randrange(len(buffers))
        buffers[number], note = _changed_buffer(rng, bytes(buffers[number]))
        note = f"buffer {number}: {note}"
    elif turn == "columns":
        name = rng.choice(table.column_names)
        table, note = table.drop_columns([name]), f"without the column {name}"
    elif turn == "rows":
        count = rng.choice((0, 1, max(0, table.num_rows - 1)))
        table, note = rng.choice(((table.slice(0, count), f"{count} rows"), (pa.concat_tables([table] * 3), "rows thrice")))
    else:
        table, note = _other_values(rng, table)
    path.unlink()
    schema = schema_from_arrow(table.schema, version=FileVersion.V2_2)
    with FileWriter(store, path.name, schema, version=FileVersion.V2_2) as writer:
        for data in buffers:
            writer.add_global_buffer(data)
        for key, value in metadata.items():
            writer.add_metadata(key, value)
        for batch in table.combine_chunks().to_batches():
            writer.write(batch)
        writer.finish()
    return note


def _changed_buffer(rng: random.Random, data: bytes) -> tuple[bytes, str]:
    """A message of an index with another field, or other bytes."""
    kind = rng.choice((index_pb2.IVF, index_pb2.PQ, index_pb2.Tensor))
    if rng.random() < 0.8:
        try:
            message = kind.FromString(data)
            place = rng.choice(list(places(message)))
            word = rng.choice(place.words)
            return edited(message, place, word), f"{place} = {word!r:.60}"
        except (DecodeError, ValueError, TypeError):
            pass
    return changed_bytes(rng, data)


@functools.cache
def runs(containers: int) -> bytes:
    """A roaring bitmap in which each container is one run of all its 65,536 numbers: 16 bytes each."""
    head = struct.pack("<I", 12347 | (containers - 1) << 16) + b"\xff" * ((containers + 7) // 8)
    keys = b"".join(struct.pack("<HH", key, 0xFFFF) for key in range(containers))
    first = len(head) + len(keys) + (4 * containers if containers >= 4 else 0)
    offsets = b"".join(struct.pack("<I", first + 6 * key) for key in range(containers)) if containers >= 4 else b""
    return head + keys + offsets + struct.pack("<HHH", 1, 0, 0xFFFF) * containers


def _bomb(rng: random.Random) -> bytes:
    """A bitmap, a treemap or a map of addresses that claims up to billions of rows, of one fragment or of many."""
    bitmap = runs(rng.choice((1, 16, 1000, 1 << 16)))
    fragments = rng.choice((1, 3)) if len(bitmap) > 100_000 else rng.choice((1, 100))
    parts = [struct.pack("<I", number) + bitmap for number in range(fragments)]
    sized = [struct.pack("<II", number, len(bitmap)) + bitmap for number in range(fragments)]
    whole = struct.pack("<I", 100_000) + b"".join(struct.pack("<II", number, 0) for number in range(100_000))
    treemap, addresses = struct.pack("<Q", fragments) + b"".join(parts), struct.pack("<I", fragments) + b"".join(sized)
    return rng.choice((bitmap, treemap, addresses, whole))


def _other_values(rng: random.Random, table: pa.Table) -> tuple[pa.Table, str]:
    if not table.num_columns or not table.num_rows:
        return table, "nothing to change"
    place = rng.randrange(table.num_columns)
    field, values = table.schema.field(place), table.column(place).to_pylist()
    for number in rng.sample(range(len(values)), min(len(values), rng.choice((1, 3, 1000)))):
        values[number] = _extreme(rng, field.type, values[number])
        if _is_large(values[number]):
            break  # one bomb is enough, and many are a large file
    try:
        column = pa.array(values, field.type)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return table, "nothing that fits"
    same = pa.field(field.name, field.type, metadata=field.metadata)
    return table.set_column(place, same, column), f"values of {field.name}"


def _is_large(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_is_large, value))
    return isinstance(value, bytes) and len(value) > 1 << 16


def _extreme(rng: random.Random, kind: pa.DataType, value: Any) -> Any:
    if rng.random() < 0.1:
        return None
    if pa.types.is_integer(kind):
        bits = kind.bit_width - (0 if pa.types.is_unsigned_integer(kind) else 1)
        low = 0 if pa.types.is_unsigned_integer(kind) else -(2**bits)
        return rng.choice([number for number in NUMBERS if low <= number < 2**bits])
    if pa.types.is_floating(kind):
        return rng.choice((float("nan"), float("inf"), -1.0, 1e30))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return rng.choice(TEXTS)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        if rng.random() < 0.4:
            return _bomb(rng)
        return changed_bytes(rng, value)[0] if value else b"\xff" * 8
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        items: list[Any] = []
        for _ in range(rng.choice((0, 1, 40))):
            items.append(_extreme(rng, kind.value_type, None))
            if _is_large(items[-1]):
                break
        return items
    if pa.types.is_fixed_size_list(kind):
        return [_extreme(rng, kind.value_type, item) for item in (value or [0] * kind.list_size)]
    if pa.types.is_struct(kind):
        return {item.name: _extreme(rng, item.type, (value or {}).get(item.name)) for item in kind}
    return value


def try_case(case: int, good: Path, work: Path, watch: Watch, budget: Budget) -> list[str]:
    """What escaped of one forged index, and of what asks it."""
    rng = random.Random(case)
    kind = KINDS[case % len(KINDS)]
    shutil.rmtree(work / kind, ignore_errors=True)
    shutil.copytree(good / kind, work / kind)
    folder = rng.choice(sorted(item for item in (work / kind / "_indices").iterdir() if item.is_dir()))
    note = change(rng, folder)
    found = []
    for verb, action in verbs(str(work / kind), kind).items():
        shared_cache().clear()
        what = budget.guarded(action, watch, work)
        if what:
            found.append(f"{kind}/{note}: {verb}: {what}".replace("\n", " "))
    return found


def child(cases: range) -> int:
    """The cases of one process."""
    place, watch = prepare("indices-")
    try:
        build(place / "good")
        for kind in KINDS:  # compile and import everything first
            for action in verbs(str(place / "good" / kind), kind).values():
                action()
        budget = Budget()
        for case in cases:
            print(f"start {case}", flush=True)
            for what in try_case(case, place / "good", place / "work", watch, budget):
                print(f"escape {case} {what}", flush=True)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(sweep(__file__, child, what="forged indices", count=16_000, doc=__doc__))
