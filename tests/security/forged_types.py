"""Tables whose schema names types that nobody has: the strings of a schema, forged from the words of their grammar.

::

    python tests/security/forged_types.py --count 20000            exit status 1 when something escaped

Each case is one column of a small table whose logical type, metadata, extension or field id a stranger wrote. A type that
is refused ends when the table is opened; one that is accepted is read, searched, counted and changed. Every case runs in a
child process (`children.py`), so that an abort inside Arrow is a finding and not the end of the run.
"""

from __future__ import annotations

import contextlib
import io
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent))

from budget import Budget
from children import sweep
from hostile_tables import _framed, prepare

import lance_core
from lance_core.arrow.logical import logical_of, parse_logical
from lance_core.cli.main import cli
from lance_core.errors import LanceError
from lance_core.io.cache import shared_cache
from lance_core.maintenance.doctor import diagnose
from lance_core.wire.manifest_file import FOOTER, section_bytes
from lance_core.wire.pb import table_pb2

SIMPLE = (
    "null", "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "halffloat", "float",
    "double", "string", "large_string", "binary", "large_binary", "date32:day", "date64:ms", "time32:s", "time32:ms",
    "time64:us", "time64:ns", "duration:s", "duration:ms", "duration:us", "duration:ns", "json", "struct", "list",
    "large_list", "list.struct", "large_list.struct", "map", "blob", "interval", "utf8", "lance.bfloat16",
    "string_view", "dict", "decimal", "timestamp",
)  # fmt: skip
NUMBERS = (
    "0", "1", "2", "3", "7", "8", "16", "127", "128", "38", "39", "76", "77", "1000", "65536", "268435456",
    "268435457", "2147483647", "2147483648", "4294967296", "9223372036854775807", "18446744073709551616", "-1",
    "-128", "+3", "03", "1e3", "1_000", "0x10", "\u00b2", "\u0663", "3.0", "nan", "", " 3", "9" * 5_000,
)  # fmt: skip
ZONES = (
    "UTC", "utc", "Europe/Berlin", "America/Argentina/Buenos_Aires", "+05:30", "-00:00", "+0530", "+05", "+24:00",
    "+99:99", "Nowhere/At_All", "../../etc/passwd", "/etc/localtime", "Europe/", "posixrules", "Factory", "GMT+3",
    "Etc/GMT-14", "Z", "-", "localtime", "zone.tab", "tzdata.zi", "", "a\x00b", "x" * 100_000, "\u03a9/\u03a9",
    "+05:30:00", " UTC",
)  # fmt: skip
WORDS = (
    "", ":", "::", "\x00", "\n", " ", "x" * 70_000, "é", "true", "false", "unknown:1:2", "a.b", "../x", "%s", "{}",
    "tensor:2:3",
)  # fmt: skip
KNOWN = (
    "dict:dict:string:int8:false:int8:false", "dict:fixed_size_list:float:2:int8:false", "dict:string:double:false",
    "fixed_size_list:" * 3000 + "float" + ":1" * 3000, "fixed_size_list:float:2147483647", "fixed_size_binary:2147483647",
    "fixed_size_list:fixed_size_list:float:65536:65536", "timestamp:us:Nowhere/At_All", "decimal:128:38:-2147483648",
    "fixed_size_list:struct:²", "fixed_size_list:struct:2147483647", "fixed_size_list:null:268435456",
)  # fmt: skip
"""What fell before, and its neighbours: the first cases of every run."""

METADATA = (
    "lance-encoding:compression", "lance-encoding:compression-level", "lance-encoding:structural-encoding", "packed",
    "lance-encoding:rle-threshold", "lance-encoding:bss", "lance-encoding:dict-divisor", "lance-encoding:packed",
    "lance-encoding:blob", "lance-encoding:dict-size-ratio", "lance-encoding:dict-values-compression",
    "lance-schema:unenforced-primary-key", "lance-schema:unenforced-primary-key:position", "ARROW:extension:name",
    "ARROW:extension:metadata", "lance:field_id", "",
)  # fmt: skip
VALUES = (
    b"", b"true", b"\xff\xfe", b"\x00", b"zstd", b"fsst", b"miniblock", b"9" * 400, b"-1", b"nan", b"1e999", b"arrow.json",
    b"arrow.uuid", b"arrow.fixed_shape_tensor", b'{"shape":[2,2]}', b"{", b"[" * 5000, b"arrow.bool8", b"arrow.opaque",
    b"lance.bfloat16", b"lance.blob.v2", b"lance.json", b"arrow.py_extension_type", b"x" * 70_000,
    b"arrow.variable_shape_tensor",
)  # fmt: skip
IDS = (-3, -2, -1, 0, 1, 7, 65536, 2**31 - 1, 2**31 - 2, 2**31 - 2**20, -(2**31))


def forged_type(rng: random.Random, depth: int = 0) -> str:
    """A logical type of words that are almost, or entirely, of the grammar."""
    kind = rng.randrange(9 if depth < 4 else 3)
    number = rng.choice(NUMBERS)
    if kind == 0:
        return rng.choice(SIMPLE)
    if kind == 1:
        return rng.choice(WORDS)
    if kind == 2:
        return f"timestamp:{rng.choice(('s', 'ms', 'us', 'ns', 'day', ''))}:{rng.choice(ZONES)}"
    if kind == 3:
        return f"decimal:{rng.choice(('32', '128', '256', 'x'))}:{number}:{rng.choice(NUMBERS)}"
    if kind == 4:
        return f"fixed_size_binary:{number}"
    if kind == 5:
        index = rng.choice((*SIMPLE[:12], rng.choice(WORDS)))
        ends = rng.choice(("false", "true", "", "maybe", "false:false"))
        return f"dict:{forged_type(rng, depth + 1)}:{index}:{ends}"
    if kind == 6:
        return f"fixed_size_list:{forged_type(rng, depth + 1)}:{number}"
    if kind == 7:
        text = forged_type(rng, depth + 1)
        at = rng.randrange(len(text) + 1)
        return text[:at] + rng.choice((":", "", "\x00", "9", "-", " ")) + text[at + rng.randrange(2) :]
    count = rng.choice((2, 15, 17, 100, 3000))
    return "fixed_size_list:" * count + rng.choice(SIMPLE) + f":{rng.choice(('1', '2', '3'))}" * count


def forge(case: int, message: Any) -> str:
    """Change the schema of a manifest; what was changed, for a person."""
    rng = random.Random(case)
    column = message.fields[rng.choice((1, 1, 1, 2, 3))]
    if case < len(KNOWN):
        column.logical_type = KNOWN[case]
        return f"logical_type = {KNOWN[case]!r:.60}"
    turn = rng.random()
    if turn < 0.75:
        column.logical_type = forged_type(rng)
        note = f"{column.name}: logical_type = {column.logical_type!r:.80}"
    elif turn < 0.9:
        key, value = rng.choice(METADATA), rng.choice(VALUES)
        column.metadata[key] = value
        note = f"{column.name}: metadata[{key!r}] = {value!r:.60}"
        if key == "ARROW:extension:metadata" or rng.random() < 0.3:
            column.metadata["ARROW:extension:name"] = rng.choice(VALUES)
            note += f", extension {column.metadata['ARROW:extension:name']!r:.40}"
    elif turn < 0.95:
        column.extension_name = rng.choice(VALUES).decode("utf-8", "replace")
        note = f"{column.name}: extension_name = {column.extension_name!r:.60}"
    else:
        column.id = rng.choice(IDS)
        note = f"{column.name}: id = {column.id}"
    return note


def build(root: Path) -> None:
    """A table with two fragments: one has the columns, the other lacks them, so that their nulls are made from the type."""
    rows = pa.table({
        "id": pa.array(range(8), pa.int64()),
        "n": pa.array([None, *range(1, 8)], pa.int64()),
        "s": [f"row {n}" for n in range(8)],
        "v": pa.array([[1.0, float(n)] for n in range(8)], pa.list_(pa.float32(), 2)),
    })  # fmt: skip
    lance_core.write_dataset(rows, str(root), enable_v2_manifest_paths=True)
    lance_core.write_dataset(rows.select(["id"]), str(root), mode="append")


def verbs(uri: str) -> dict[str, Callable[[], object]]:
    """What is done with a table whose schema is forged."""

    def command(*arguments: str) -> None:
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            contextlib.suppress(click.exceptions.Exit, click.ClickException),
        ):
            cli(list(arguments), standalone_mode=False)

    return {
        "open": lambda: str(lance_core.dataset(uri).schema),
        "scan": lambda: lance_core.dataset(uri).to_table(),
        "filter": lambda: lance_core.dataset(uri).count_rows("n = 3 or s = 'row 1' or v is null"),
        "take": lambda: lance_core.dataset(uri).take([0, 9]),
        "validate": lambda: lance_core.dataset(uri).validate(),
        "doctor": lambda: diagnose(uri, deep=True),
        "head": lambda: command("head", uri),
        "schema": lambda: command("schema", uri),
        "stats": lambda: lance_core.dataset(uri).stats.dataset_stats(),
        "index": lambda: lance_core.dataset(uri).create_scalar_index("n", "BTREE"),
        "add": lambda: lance_core.dataset(uri).add_columns({"m": "id + 1"}),
        "update": lambda: lance_core.dataset(uri).update({"s": "'x'"}, where="id = 3"),
        "append": lambda: lance_core.write_dataset(lance_core.dataset(uri).to_table(limit=1), uri, mode="append"),
        "compact": lambda: lance_core.dataset(uri).optimize.compact_files(),
    }


def round_trip(text: str) -> None:
    """`logical_of(parse_logical(x))` is `x`, up to the spellings that the grammar names."""
    try:
        found = parse_logical(text, path="c")
    except LanceError:
        return
    again = logical_of(found, path="c")
    assert parse_logical(again, path="c") == found, (text, again)
    assert again == text or "timestamp" in text or "dict" in text, (text, again)


def child(cases: range) -> int:
    """The cases of one process."""
    place, watch = prepare("forged-")
    try:
        good, work = place / "good", place / "work"
        build(good)
        manifest = max((good / "_versions").glob("*.manifest"), key=lambda path: path.stat().st_mtime_ns)
        data = manifest.read_bytes()
        (position, _, _, _) = FOOTER.unpack(data[-FOOTER.size :])
        for action in verbs(str(good)).values():  # compile and import everything first
            with contextlib.suppress(LanceError):
                action()
        shutil.rmtree(good)
        build(good)
        budget = Budget()
        for case in cases:
            print(f"start {case}", flush=True)
            message = table_pb2.Manifest.FromString(section_bytes(data, position, what="manifest"))
            message.ClearField("transaction_file")
            note = forge(case, message)
            shutil.rmtree(work, ignore_errors=True)
            shutil.copytree(good, work)
            (work / "_versions" / manifest.name).write_bytes(_framed(data[:position], message))
            shared_cache().clear()
            for field in message.fields:
                try:
                    round_trip(field.logical_type)
                except Exception as error:
                    print(f"escape {case} {note}: round trip: {type(error).__name__} {error!r:.200}", flush=True)
            for verb, action in verbs(str(work)).items():
                what = budget.guarded(action, watch, work)
                if what:
                    print(f"escape {case} {note}: {verb}: {what}".replace("\n", " "), flush=True)
                if verb == "open" and watch.refused:
                    break
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(sweep(__file__, child, what="forged schemas", count=20_000, doc=__doc__))
