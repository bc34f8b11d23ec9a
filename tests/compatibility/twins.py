"""Twin tables: the same rows, the same verbs, one touched by this library, the other by the official one.

    problem = judge(Case(("int32", "list"), "2.1", True, ("append", "delete", "compact"), 7), folder)    None: they agree

A case that fails is shrunk: verbs and columns are left out as long as it still fails. What the official library refuses ends
a case; what only this library refuses is a failure.
"""

from __future__ import annotations

import datetime as dt
import decimal
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from lance.arrow import BFloat16Type

import lance_core
from tests.compatibility.questions import files

Make = Callable[[random.Random], Any]


def maybe(make: Make, share: float = 0.2) -> Make:
    """A null now and then."""
    return lambda rng: None if rng.random() < share else make(rng)


def word(rng: random.Random) -> str:
    """A text, sometimes empty or long."""
    return rng.choice(["", "a", "\u00e9t\u00e9", f"w{rng.randrange(50)}", "long " * rng.randrange(1, 90)])


def required(name: str, kind: pa.DataType, metadata: dict[str, str] | None = None) -> pa.Field[Any]:
    """A field that is NOT NULL."""
    return pa.field(name, kind, nullable=False, metadata=metadata)


def small(rng: random.Random) -> int:
    """A number that fits eight bits."""
    return rng.randrange(-100, 100)


_POINT = pa.struct([pa.field("x", pa.int32()), pa.field("y", pa.string())])
_TIGHT = pa.struct([pa.field("x", pa.int32()), pa.field("y", pa.float64())])


def _point(rng: random.Random) -> dict[str, Any]:
    return {"x": maybe(small)(rng), "y": maybe(word)(rng)}


def _tight(rng: random.Random) -> dict[str, Any]:
    return {"x": small(rng), "y": rng.random()}


def _some(make: Make) -> Make:
    return lambda rng: [make(rng) for _ in range(rng.randrange(4))]


def _plain(kind: pa.DataType, make: Make) -> tuple[pa.Field[Any], Make]:
    return pa.field("c", kind), maybe(make)


def _day(rng: random.Random) -> dt.date:
    return dt.date(2020, 1, 1) + dt.timedelta(days=rng.randrange(999))


def _bytes(rng: random.Random) -> bytes:
    """Mostly few, so that they stay in line, some in a file of their own."""
    return rng.randbytes(rng.choice([0, 1, 300, 70_000]))


SHAPES: dict[str, tuple[pa.Field[Any], Make]] = {
    "bool": _plain(pa.bool_(), lambda rng: rng.random() < 0.5),
    "int8": _plain(pa.int8(), small),
    "int32": _plain(pa.int32(), small),
    "uint64": _plain(pa.uint64(), lambda rng: rng.randrange(1 << 60)),
    "float16": _plain(pa.float16(), lambda rng: float(rng.randrange(64))),
    "float": _plain(pa.float32(), lambda rng: rng.randrange(999) / 4),
    "double": _plain(pa.float64(), lambda rng: rng.choice([0.0, -0.0, float("inf"), rng.random()])),
    "decimal": _plain(pa.decimal128(12, 2), lambda rng: decimal.Decimal(small(rng)) / 100),
    "string": _plain(pa.string(), word),
    "large_string": _plain(pa.large_string(), word),
    "binary": _plain(pa.binary(), lambda rng: word(rng).encode()),
    "fixed_binary": _plain(pa.binary(5), lambda rng: rng.randbytes(5)),
    "date": _plain(pa.date32(), _day),
    "timestamp": _plain(pa.timestamp("us", "UTC"), lambda rng: dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc)),
    "duration": _plain(pa.duration("ms"), lambda rng: dt.timedelta(seconds=small(rng))),
    "view": _plain(pa.string_view(), word),
    "dictionary": _plain(pa.dictionary(pa.int32(), pa.string()), lambda rng: f"k{rng.randrange(3)}"),
    "list": _plain(pa.list_(pa.int32()), _some(maybe(small))),
    "large_list": _plain(pa.large_list(pa.string()), _some(maybe(word))),
    "list_list": _plain(pa.list_(pa.list_(pa.int16())), _some(maybe(_some(small)))),
    "vector": _plain(pa.list_(pa.float32(), 4), lambda rng: [float(small(rng)) for _ in range(4)]),
    "matrix": _plain(pa.list_(pa.list_(pa.int16(), 2), 3), lambda rng: [[small(rng), small(rng)] for _ in range(3)]),
    "struct": _plain(_POINT, _point),
    "list_struct": _plain(pa.list_(_POINT), _some(maybe(_point))),
    "struct_list": _plain(pa.struct([pa.field("l", pa.list_(pa.string()))]), lambda rng: {"l": maybe(_some(word))(rng)}),
    "map": _plain(
        pa.map_(pa.string(), pa.int32()), lambda rng: [(f"k{key}", small(rng)) for key in range(rng.randrange(3))]
    ),
    "required": (required("c", pa.int64()), small),
    "required_text": (required("c", pa.string()), word),
    "required_struct": (
        required("c", pa.struct([required("x", pa.int32()), required("l", pa.list_(required("item", pa.string())))])),
        lambda rng: {"x": small(rng), "l": _some(word)(rng)},
    ),
    "packed": (pa.field("c", _TIGHT, metadata={"packed": "true", "lance-encoding:packed": "true"}), _tight),
    "zstd": (pa.field("c", pa.string(), metadata={"lance-encoding:compression": "zstd"}), maybe(word)),
    "fullzip": (pa.field("c", pa.string(), metadata={"lance-encoding:structural-encoding": "fullzip"}), maybe(word)),
    "bss": (pa.field("c", pa.float64(), metadata={"lance-encoding:bss": "on"}), maybe(lambda rng: rng.random())),
    "json": (pa.field("c", pa.json_()), maybe(lambda rng: f'{{"a":{small(rng)}}}')),
    "null": (pa.field("c", pa.null()), lambda _rng: None),
    "bfloat16": _plain(BFloat16Type(), lambda rng: rng.randbytes(2)),
    "uuid": _plain(pa.uuid(), lambda rng: rng.randbytes(16)),
    "fixed_structs": _plain(pa.list_(_TIGHT, 2), lambda rng: [_tight(rng), _tight(rng)]),
    "old_blob": (pa.field("c", pa.large_binary(), metadata={"lance-encoding:blob": "true"}), maybe(_bytes)),
    "blob": (lance.blob_field("c"), maybe(_bytes)),
}
INDEXED = {
    "int32": "BTREE",
    "required": "BTREE",
    "required_text": "BITMAP",
    "string": "BTREE",
    "large_string": "ZONEMAP",
    "float": "BTREE",
    "date": "ZONEMAP",
    "bool": "BITMAP",
    "uint64": "BLOOMFILTER",
    "zstd": "NGRAM",
    "fullzip": "INVERTED",
}


@dataclass(frozen=True)
class Case:
    """What is done to twin tables."""

    shapes: tuple[str, ...]
    version: str
    stable: bool
    verbs: tuple[str, ...]
    seed: int


def rows(case: Case, first: int, count: int) -> pa.Table:
    """Rows of a case; the same for both twins."""
    rng = random.Random(case.seed * 1000 + first)
    fields, columns = [pa.field("id", pa.int64())], [pa.array(range(first, first + count), pa.int64())]
    for number, shape in enumerate(case.shapes):
        field, make = SHAPES[shape]
        fields.append(field.with_name(f"c{number}"))
        columns.append(_array([make(rng) for _ in range(count)], field.type))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _array(values: list[Any], kind: pa.DataType) -> Any:
    if getattr(kind, "extension_name", None) == "lance.blob.v2":
        return lance.blob_array(values)
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))
    return pa.array(values, kind)


def _merge(dataset: Any, case: Case, step: int) -> None:
    merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(pa.concat_tables([rows(case, 10, 6), rows(case, 5000 + 100 * step, 5)]))


def _index(dataset: Any, case: Case, _step: int) -> None:
    dataset.create_scalar_index("id", "BTREE")
    for number, shape in enumerate(case.shapes):
        if shape in INDEXED:
            dataset.create_scalar_index(f"c{number}", INDEXED[shape])


def _restore(dataset: Any, _case: Case, _step: int) -> None:
    older = type(dataset)(dataset.uri, version=max(1, dataset.version - 1))
    older.restore()


def _drop(dataset: Any, _case: Case, _step: int) -> None:
    names = [name for name in dataset.schema.names if name != "id"]
    if len(names) > 1:
        dataset.drop_columns(names[-1:])


def _branch(dataset: Any, _case: Case, step: int) -> None:
    dataset.create_branch(f"b{step}").delete(f"id % 5 = {step % 5}")


def _clone(dataset: Any, case: Case, step: int) -> None:
    path = Path(str(dataset.uri))
    clone = dataset.shallow_clone(str(path.with_name(f"{path.name}_clone{step}")), dataset.version)
    clone.delete(f"id % 3 = {step % 3}")


VERBS: dict[str, Callable[[Any, Case, int], Any]] = {
    "branch": _branch,
    "clone": _clone,
    "delete": lambda dataset, _case, step: dataset.delete(f"id % 7 = {step % 7}"),
    "update": lambda dataset, _case, step: dataset.update({"id": "id + 100000"}, where=f"id % 11 = {step % 11}"),
    "merge": _merge,
    "add": lambda dataset, _case, step: dataset.add_columns({f"n{step}": "id * 2", f"e{step}": "id > 5"}),
    "drop": _drop,
    "rename": lambda dataset, _case, step: dataset.alter_columns({"path": dataset.schema.names[-1], "name": f"r{step}"}),
    "compact": lambda dataset, _case, _step: dataset.optimize.compact_files(),
    "index": _index,
    "optimize": lambda dataset, _case, _step: dataset.optimize.optimize_indices(),
    "restore": _restore,
    "cleanup": lambda dataset, _case, _step: dataset.cleanup_old_versions(older_than=dt.timedelta(0)),
}
WRITES = ("append", "overwrite")
VERSIONS = ("0.1", "2.0", "2.1", "2.1", "2.2", "2.2", "2.2", "2.3")


def _do(library: Any, path: Path, case: Case, verb: str, step: int) -> None:
    if verb in WRITES:
        known = library.dataset(str(path)).schema.names
        new = rows(case, 1000 * (step + 1), 15)
        if verb == "append" and set(known) != set(new.column_names):
            return
        options = {"data_storage_version": case.version} if verb == "overwrite" else {}
        library.write_dataset(new, str(path), mode=verb, **options)
    else:
        VERBS[verb](library.dataset(str(path)), case, step)


def judge(case: Case, folder: Path) -> str | None:
    """What differs between twins, None when nothing does."""
    shutil.rmtree(folder, ignore_errors=True)
    options = {"data_storage_version": case.version, "enable_stable_row_ids": case.stable, "max_rows_per_file": 16}
    ours, theirs = folder / "ours", folder / "theirs"
    try:
        lance.write_dataset(rows(case, 0, 40), theirs, **options)
        kept = _content(lance, theirs)["main"]
        if case.version != "0.1" and [*files.differences(kept, rows(case, 0, 40))]:
            return None  # it does not keep such columns itself
    except BaseException as error:  # panics are no Exceptions
        if isinstance(error, KeyboardInterrupt):
            raise
        return None
    try:
        lance_core.write_dataset(rows(case, 0, 40), str(ours), **options)
    except Exception as error:
        return f"write: only refused here: {type(error).__name__}: {error}"
    for step, verb in enumerate(("", *case.verbs)):
        if verb:
            try:
                _do(lance, theirs, case, verb, step)
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                return None
            try:
                _do(lance_core, ours, case, verb, step)
            except Exception as error:
                return f"{verb}: only refused here: {type(error).__name__}: {error}"
        try:
            expected = _content(lance, theirs)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            return None
        for what, library, path in (
            ("ours", lance_core, ours),
            ("ours by them", lance, ours),
            ("theirs by us", lance_core, theirs),
        ):
            try:
                found = _differences(_content(library, path), expected, what=what)
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                return f"after {verb or 'write'}: {what}: {type(error).__name__}: {error}"
            if found:
                return f"after {verb or 'write'}: {found[0]}"
    return None


def _content(library: Any, path: Path) -> dict[str, pa.Table]:
    """The rows of the table, of its branches and of its clones, blobs with their bytes."""
    newest = library.dataset(str(path))
    found = {"main": newest}
    found |= {name: newest.checkout_version((name, None)) for name in newest.branches.list()}
    found |= {
        clone.name.removeprefix(path.name): library.dataset(str(clone)) for clone in path.parent.glob(f"{path.name}_*")
    }
    return {name: item.to_table(blob_handling="all_binary").sort_by("id") for name, item in found.items()}


def _differences(found: dict[str, pa.Table], expected: dict[str, pa.Table], *, what: str) -> list[str]:
    if found.keys() != expected.keys():
        return [f"{what}: lines {sorted(found)}, expected {sorted(expected)}"]
    return [line for name, rows in found.items() for line in files.differences(rows, expected[name], what=f"{what}, {name}")]


def draw(rng: random.Random) -> Case:
    """A case at random."""
    version = rng.choice(VERSIONS)
    shapes = tuple(rng.choice(sorted(SHAPES)) for _ in range(rng.randrange(1, 4)))
    verbs = tuple(rng.choice([*VERBS, "append", "append", "overwrite"]) for _ in range(rng.randrange(1, 6)))
    return Case(shapes, version, rng.random() < 0.4, verbs, rng.randrange(1 << 20))


def shrunk(case: Case, folder: Path) -> tuple[Case, str]:
    """The smallest case found that still fails, and how."""
    problem = judge(case, folder)
    assert problem is not None
    while True:
        for smaller in _smaller(case):
            found = judge(smaller, folder)
            if found is not None:
                case, problem = smaller, found
                break
        else:
            return case, problem


def _smaller(case: Case) -> Iterator[Case]:
    for number in range(len(case.verbs)):
        yield replace(case, verbs=case.verbs[:number] + case.verbs[number + 1 :])
    if len(case.shapes) > 1:
        for number in range(len(case.shapes)):
            yield replace(case, shapes=case.shapes[:number] + case.shapes[number + 1 :])
    if case.stable:
        yield replace(case, stable=False)
