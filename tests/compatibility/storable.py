"""Tables of one column of every type, in every file version, and what the official library makes of those we accepted.

::

    python tests/compatibility/storable.py --count 500 --seed 0        exit status 1 when a case fails

A case is (type, shape of the values, version). What this library writes, by one of its seven doors, the official one opens,
scans, takes, appends to, compacts and scans again, and this library reads the outcome; what this library refuses must be
refused with a version that holds it, and every version above that one must hold it too. Over the seven shapes every type
goes through every door in every version. Cases run in child processes, as the official library may end its process.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import decimal
import functools
import random
import shutil
import sys
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[2]))

import lance

import lance_core
from lance_core.dataset import LanceDataset, LanceOperation
from lance_core.errors import InputError
from tests.compatibility.questions import files
from tests.security.children import run_in_children

VERSIONS = ("0.1", "2.0", "2.1", "2.2", "2.3")
DAY = dt.date(2020, 2, 29)
MOMENT = dt.datetime(2020, 2, 29, 12, 30, 5, 123000)
PLAIN: dict[str, tuple[pa.DataType, list[Any]]] = {
    "null": (pa.null(), [None]),
    "bool": (pa.bool_(), [True, False]),
    "int8": (pa.int8(), [0, -128, 127]),
    "uint16": (pa.uint16(), [0, 65535]),
    "int32": (pa.int32(), [0, -(2**31), 2**31 - 1]),
    "uint64": (pa.uint64(), [0, 2**64 - 1]),
    "float16": (pa.float16(), [0.5, -1.0]),
    "float": (pa.float32(), [0.0, float("inf"), 1.5]),
    "double": (pa.float64(), [0.0, -0.0, 1e300]),
    "decimal128": (pa.decimal128(38, 2), [decimal.Decimal("1.25"), decimal.Decimal("-7.00")]),
    "decimal256": (pa.decimal256(60, 3), [decimal.Decimal("1.250"), decimal.Decimal(10**50)]),
    "decimal32": (pa.decimal32(9, 2), [decimal.Decimal("1.25")]),
    "decimal64": (pa.decimal64(18, 2), [decimal.Decimal("1.25")]),
    "date32": (pa.date32(), [DAY]),
    "date64": (pa.date64(), [DAY]),
    "time32": (pa.time32("s"), [dt.time(1, 2, 3)]),
    "time64": (pa.time64("ns"), [dt.time(1, 2, 3)]),
    "timestamp": (pa.timestamp("us"), [MOMENT]),
    "timestamp_zone": (pa.timestamp("ns", "Europe/Berlin"), [MOMENT]),
    "timestamp_offset": (pa.timestamp("s", "+05:30"), [dt.datetime(2020, 1, 1)]),
    "duration": (pa.duration("ms"), [dt.timedelta(seconds=5)]),
    "month_day_nano": (pa.month_day_nano_interval(), [pa.MonthDayNano([1, 2, 3])]),
    "string": (pa.string(), ["", "a", "\u00e9t\u00e9 " * 30]),
    "large_string": (pa.large_string(), ["", "long " * 90]),
    "string_view": (pa.string_view(), ["", "longer than twelve"]),
    "binary": (pa.binary(), [b"", b"\x00\xff"]),
    "large_binary": (pa.large_binary(), [b"", b"x" * 300]),
    "binary_view": (pa.binary_view(), [b"", b"x" * 30]),
    "fixed_binary": (pa.binary(5), [b"abcde", b"\x00" * 5]),
    "empty_binary": (pa.binary(0), [b""]),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), ["", "k1", "k2"]),
    "dictionary_large": (pa.dictionary(pa.uint8(), pa.large_string()), ["", "k1"]),
    "dictionary_int": (pa.dictionary(pa.int16(), pa.int64()), [7, 8]),
    "dictionary_binary": (pa.dictionary(pa.uint64(), pa.binary()), [b"", b"x"]),
    "empty_struct": (pa.struct([]), [{}]),
    "run_end": (pa.run_end_encoded(pa.int32(), pa.string()), ["a", "a", "b"]),
    "list_view": (pa.list_view(pa.int32()), [[], [1, 2]]),
    "union": (pa.dense_union([pa.field("a", pa.int32())]), []),
    "uuid": (pa.uuid(), [b"0123456789abcdef"]),
    "bool8": (pa.bool8(), [True, False]),
    "json": (pa.json_(), ['{"a":1}', "[]"]),
    "tensor": (pa.fixed_shape_tensor(pa.float32(), [2, 2]), [[1.0, 2.0, 3.0, 4.0]]),
    "opaque": (pa.opaque(pa.int32(), "t", "v"), [1, 2]),
}
Make = Callable[[random.Random], Any]
Kind = tuple[pa.DataType, Make]


def _maybe(make: Make, share: float) -> Make:
    return lambda rng: None if rng.random() < share else make(rng)


def _some(make: Make, share: float) -> Make:
    inner = _maybe(make, share)
    return lambda rng: [inner(rng) for _ in range(rng.choice([0, 0, 1, 3]))]


def _fixed(make: Make, share: float, size: int = 2) -> Make:
    inner = _maybe(make, share)
    return lambda rng: [inner(rng) for _ in range(size)]


def _fields(share: float, **makes: Make) -> Make:
    inner = {name: _maybe(make, share) for name, make in makes.items()}
    return lambda rng: {name: make(rng) for name, make in inner.items()}


def _number(rng: random.Random) -> int:
    return rng.randrange(100)


Wrap = Callable[[pa.DataType, Make, float], Kind]
WRAPS: dict[str, Wrap] = {
    "": lambda kind, make, _: (kind, make),
    "list": lambda kind, make, share: (pa.list_(kind), _some(make, share)),
    "large_list": lambda kind, make, share: (pa.large_list(kind), _some(make, share)),
    "fixed": lambda kind, make, share: (pa.list_(kind, 2), _fixed(make, share)),
    "fixed1": lambda kind, make, share: (pa.list_(kind, 1), _fixed(make, share, 1)),
    "fixed0": lambda kind, make, share: (pa.list_(kind, 0), _fixed(make, share, 0)),
    "struct": lambda kind, make, share: (pa.struct([("a", kind)]), _fields(share, a=make)),
    "pair": lambda kind, make, share: (pa.struct([("n", pa.int32()), ("a", kind)]), _fields(share, n=_number, a=make)),
    "map": lambda kind, make, share: (pa.map_(pa.string(), kind), _entries(make, share)),
}


def _entries(make: Make, share: float) -> Make:
    inner = _maybe(make, share)
    return lambda rng: [(f"k{key}", inner(rng)) for key in range(rng.choice([0, 1, 3]))]


def _types() -> list[tuple[str, ...]]:
    """Every plain type in every wrapping; some plain types in two and three."""
    names = [name for name in WRAPS if name not in ("", "fixed0")]
    found = [(name,) for name in PLAIN]
    found += [(wrap, name) for wrap in names for name in PLAIN]
    few = ("int32", "string", "bool", "dictionary")
    found += [("fixed0", name) for name in few] + [("list", "fixed0", "int32")]
    found += [(outer, inner, name) for outer in names for inner in names for name in few]
    deep = ("list", "fixed", "pair", "map")
    found += [(top, outer, inner, "int32") for top in deep for outer in deep for inner in deep]
    return found


Case = tuple[tuple[str, ...], str, str]
SHAPES = ("full", "nulls", "inner", "all", "one", "none", "required")
"""No nulls; of the rows; of anything; only nulls; one row; no row; NOT NULL at every level."""


def cases() -> list[Case]:
    """All cases, in an order that spreads types, shapes and versions over any share of them."""
    product = [(kind, shape, version) for kind in _types() for shape in SHAPES for version in VERSIONS]
    random.Random(29).shuffle(product)
    return product


def kind_of(names: tuple[str, ...], share: float) -> Kind:
    """The type of a name, outermost wrapping first, and how to draw a value."""
    kind, values = PLAIN[names[-1]]
    make: Make = lambda rng: rng.choice(values)  # noqa: E731
    for wrap in reversed(names[:-1]):
        kind, make = WRAPS[wrap](kind, make, share)
    return kind, make


def rows_of(names: tuple[str, ...], shape: str, seed: int) -> pa.Table:
    """Some rows with an id."""
    rng = random.Random(seed)
    kind, make = kind_of(names, 0.3 if shape in ("inner", "one") else 0.0)
    count = {"one": 1, "none": 0}.get(shape, 21)
    share = {"all": 1.0, "nulls": 0.3, "inner": 0.3}.get(shape, 0.0)
    values = [_maybe(make, share)(rng) for _ in range(count)]
    column = array_of(values, kind)
    field = pa.field("c", kind)
    if shape == "required":
        field = _required(field)
        column = column.cast(field.type) if field.type != kind else column
    return pa.Table.from_arrays([pa.array(range(count), pa.int64()), column], schema=pa.schema([("id", pa.int64()), field]))


def _required(field: pa.Field[Any]) -> pa.Field[Any]:
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_required(kind.field(number)) for number in range(kind.num_fields)])
    return pa.field(field.name, kind, nullable=pa.types.is_null(kind))


def array_of(values: list[Any], kind: pa.DataType) -> pa.Array[Any]:
    """The array, also of kinds that Arrow does not make of Python values."""
    with contextlib.suppress(pa.ArrowNotImplementedError):
        return pa.array(values, kind)
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, array_of(values, kind.storage_type))
    raise LookupError(f"no array of {kind}")


def is_left_out(case: Case) -> bool:
    """Legacy dictionaries, which append their first values only and have tests of their own; structs without fields below
    others, whose rows are refused where they are written."""
    names, _, version = case
    if names[-1].startswith("dictionary"):
        return version == "0.1"
    return names[-1] == "empty_struct" and len(names) > 1 and version != "2.0"


def judge(case: Case, folder: Path) -> str | None:
    """What is wrong about a case, None when nothing is."""
    names, shape, version = case
    if is_left_out(case):
        return None
    try:
        rows = rows_of(names, shape, 7)
        more = rows_of(names, "required" if shape == "required" else "full", 8)
    except (LookupError, pa.ArrowException, TypeError, ValueError):
        return None  # Arrow itself makes no such array
    path = folder / "t"
    door = door_of(case)
    shutil.rmtree(path, ignore_errors=True)
    try:
        WRITERS[door](rows, str(path), version)
    except InputError as error:
        if door != "create" and _is_created(rows, folder / "created", version):
            # A column of a table that has rows may not be required, by whatever door it comes.
            by_rule = shape == "required" and door in ("add a stream", "merge")
            return None if by_rule else f"{door}: refused by this door only: {error}"
        return f"refused only here: {error}" if _first_problem(case, rows, more, folder) is None else None
    except Exception as error:
        return f"{door}: {type(error).__name__}: {error}"
    problem = _problem(case, rows, more, path)
    if problem is None:
        return None
    return f"{door}: {problem} | officially alone: {_first_problem(case, rows, more, folder)}"


def _ids(rows: pa.Table, path: str, version: str) -> Any:
    """A table of the ids alone, in as many fragments as the whole has."""
    return lance_core.write_dataset(rows.select(["id"]), path, data_storage_version=version, max_rows_per_file=16)


def _by_fragments(rows: pa.Table, path: str, version: str) -> None:
    made = lance_core.fragment.write_fragments(rows, path, data_storage_version=version, max_rows_per_file=16)
    if not made:  # no file tells the version of the table
        WRITERS["create"](rows, path, version)
        return
    LanceDataset.commit(path, LanceOperation.Overwrite(rows.schema, made))


def _by_overwriting(rows: pa.Table, path: str, version: str) -> None:
    _ids(rows, path, version)
    lance_core.write_dataset(rows, path, mode="overwrite", max_rows_per_file=16)


def _by_appending(rows: pa.Table, path: str, version: str) -> None:
    lance_core.write_dataset(rows.slice(0, 16), path, data_storage_version=version)
    lance_core.write_dataset(rows.slice(16), path, mode="append")


def _by_merging_rows(rows: pa.Table, path: str, version: str) -> None:
    table = lance_core.write_dataset(rows.slice(0, 16), path, data_storage_version=version)
    table.merge_insert("id").when_not_matched_insert_all().execute(rows)


WRITERS: dict[str, Callable[[pa.Table, str, str], Any]] = {
    "create": lambda rows, path, version: lance_core.write_dataset(
        rows, path, data_storage_version=version, max_rows_per_file=16
    ),
    "fragments": _by_fragments,
    "overwrite": _by_overwriting,
    "append": _by_appending,
    "merge rows": _by_merging_rows,
    "add a stream": lambda rows, path, version: _ids(rows, path, version).add_columns(rows.select(["c"]).to_reader()),
    "merge": lambda rows, path, version: _ids(rows, path, version).merge(rows, "id"),
}
"""Every way in which rows, or a column, come into a table; each case goes through one of them."""


def door_of(case: Case) -> str:
    """The writer of a case: all of them for every type and version, over the shapes."""
    names, shape, version = case
    return [*WRITERS][(SHAPES.index(shape) + zlib.crc32("/".join((*names, version)).encode())) % len(WRITERS)]


def _is_created(rows: pa.Table, path: Path, version: str) -> bool:
    shutil.rmtree(path, ignore_errors=True)
    try:
        lance_core.write_dataset(rows, str(path), data_storage_version=version)
    except InputError:
        return False
    return True


def _first_problem(case: Case, rows: pa.Table, more: pa.Table, folder: Path) -> str | None:
    """The same with a table that the official library has written itself."""
    path = folder / "theirs"
    shutil.rmtree(path, ignore_errors=True)
    try:
        lance.write_dataset(rows, path, data_storage_version=case[2], max_rows_per_file=16)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"write: {type(error).__name__}: {str(error)[:200]}"
    return _problem(case, rows, more, path)


def _problem(case: Case, rows: pa.Table, more: pa.Table, path: Path) -> str | None:
    """The first step that goes wrong on a table of some rows."""
    if case[2] == "0.1" and case[0][-1].startswith("dictionary"):
        more = more.slice(0, 0)  # a legacy table keeps its first dictionary, officially to the letter
    steps: tuple[tuple[str, Callable[[], None]], ...] = (
        ("scan", lambda: _compared(path, rows if case[2] not in ("0.1", "2.0") else None)),
        ("take", lambda: _taken(path) if case[2] != "0.1" else None),  # it ends in a panic for lists of a fixed size
        ("append", lambda: _appended(path, more)),
        ("scan after append", lambda: _compared(path, None)),
        ("compact", lambda: _compacted(path)),
        ("scan after compact", lambda: _compared(path, None)),
    )
    for what, step in steps:
        try:
            step()
        except BaseException as error:  # panics are no Exceptions
            if isinstance(error, KeyboardInterrupt):
                raise
            return f"{what}: {type(error).__name__}: {str(error)[:200]}"
    return None


def _compared(path: Path, expected: pa.Table | None) -> None:
    theirs = lance.dataset(path).to_table()
    ours = lance_core.dataset(str(path)).to_table()
    if theirs.num_rows == ours.num_rows == 0:
        return
    found = [*files.differences(_spelled(ours), _spelled(theirs), what="ours")]
    if expected is not None:
        found += files.differences(theirs.select(["id"]), expected.select(["id"]), what="theirs")
        mine, whole = theirs.column("c").to_pylist(), _stored(expected).to_pylist()
        if repr(mine) != repr(whole):
            found.append(f"{mine!r:.200} stored of {whole!r:.200}")
    if found:
        raise AssertionError("; ".join(found)[:400])


def _spelled(rows: pa.Table) -> pa.Table:
    """Dictionaries with nulls, which Arrow does not unify, as one chunk of values."""
    if "dictionary" not in str(rows.schema.field("c").type):
        return rows
    return pa.table({"id": rows["id"], "c": [repr(value) for value in rows["c"].to_pylist()]})


def _stored(rows: pa.Table) -> Any:
    return rows.column("c")


def _taken(path: Path) -> None:
    theirs, ours = lance.dataset(path), lance_core.dataset(str(path))
    count = ours.count_rows()
    if count != theirs.count_rows():
        raise AssertionError(f"{count} rows, expected {theirs.count_rows()}")
    if not count:
        return
    picks = [count - 1, 0, count // 2]
    found = [*files.differences(ours.take(picks), theirs.take(picks), what="take")]
    if found:
        raise AssertionError("; ".join(found)[:400])


def _appended(path: Path, more: pa.Table) -> None:
    lance.write_dataset(_as_stored(more, lance.dataset(path).schema), path, mode="append")
    lance_core.write_dataset(more, str(path), mode="append")


def _as_stored(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Views, which the official library does not write everywhere, as what the table says."""
    with contextlib.suppress(pa.ArrowException):
        return rows.cast(schema)
    return rows


def _compacted(path: Path) -> None:
    lance.dataset(path).optimize.compact_files()


@functools.cache
def _cases() -> list[Case]:
    return cases()


def child(start: int, count: int) -> None:
    """Try some cases, say what they find."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        for number in range(start, min(start + count, len(_cases()))):
            print(f"start {number}", flush=True)
            problem = judge(_cases()[number], Path(folder))
            if problem is not None:
                print(f"escape {number} {_shown(number)}: {problem}".replace("\n", " "), flush=True)


def _shown(number: int) -> str:
    names, shape, version = _cases()[number]
    return f"{'/'.join(names)} {shape} {version}"


def sweep(start: int, count: int, *, state: Path | None = None) -> Iterator[str]:
    """The cases that fail, in words."""
    last = min(start + count, len(_cases()))
    for finding in run_in_children([__file__, "--child"], range(start, last), state=state):
        yield f"case {finding.case}, {_shown(finding.case)}: {finding.what}"


def main() -> int:
    """For people, and for the children."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=len(_cases()))
    parser.add_argument("--seed", type=int, default=0, help="the first case")
    parser.add_argument("--state", type=Path)
    parser.add_argument("--child", action="store_true")
    options = parser.parse_args()
    if options.child:
        child(options.seed, options.count)
        return 0
    return 1 if [*sweep(options.seed, options.count, state=options.state)] else 0


if __name__ == "__main__":
    sys.exit(main())
