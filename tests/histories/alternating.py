"""One table, two libraries, random operations in turn, and a plain Python model of what it must hold.

The model is a dict of rows by id; ids are unique. Each operation is a function (library, handle, model, rng) -> new model.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

import lance_core

Rows = dict[int, dict[str, Any]]
_WORDS = ("", "a", "beta", "über", "x" * 30)
TYPES = {"id": pa.int64(), "x": pa.int64(), "s": pa.string(), "v": pa.float64()}


@dataclass(frozen=True)
class Model:
    """What the newest version holds: rows by id, columns in order, the next unused id."""

    rows: Rows
    columns: tuple[str, ...]
    next_id: int = 0
    added: int = 0
    types: dict[str, pa.DataType] = field(default_factory=dict)

    def type_of(self, name: str) -> pa.DataType:
        return self.types.get(name) or TYPES.get(name, pa.int64())

    def table(self) -> list[dict[str, Any]]:
        return [{name: row[name] for name in self.columns} for _, row in sorted(self.rows.items())]


@dataclass
class Turn:
    """Who acts: `library` is lance or lance_core, `dataset` its fresh handle on the table."""

    library: Any
    dataset: Any
    model: Model
    rng: random.Random
    past: dict[int, Model]

    @property
    def ours(self) -> bool:
        return self.library is lance_core


def new_rows(model: Model, ids: list[int], rng: random.Random) -> Rows:
    values: dict[str, Callable[[int], Any]] = {
        "id": lambda key: key,
        "x": lambda key: None if rng.random() < 0.15 else rng.randrange(-50, 50),
        "s": lambda key: None if rng.random() < 0.15 else rng.choice(_WORDS),
        "v": lambda key: None if rng.random() < 0.15 else float(rng.randrange(100)) / 4,
    }
    made = {}
    for key in ids:
        made[key] = {name: values[name](key) if name in values else rng.randrange(1000) for name in model.columns}
    return made


def as_table(model: Model, rows: Rows) -> pa.Table:
    schema = pa.schema([(name, model.type_of(name)) for name in model.columns])
    return pa.Table.from_pylist([*rows.values()], schema=schema)


def append(turn: Turn) -> Model:
    model = turn.model
    count = turn.rng.choice((1, 3, 12, 30))
    rows = new_rows(model, [*range(model.next_id, model.next_id + count)], turn.rng)
    size = turn.rng.choice((8, 20, 1000))
    turn.library.write_dataset(as_table(model, rows), turn.dataset.uri, mode="append", max_rows_per_file=size)
    return replace(model, rows={**model.rows, **rows}, next_id=model.next_id + count)


def _condition(turn: Turn) -> tuple[str, Callable[[dict[str, Any]], bool]]:
    model, rng = turn.model, turn.rng
    low = rng.randrange(-1, max(model.next_id, 1))
    high = low + rng.choice((0, 1, 5, 30))
    rest, number = rng.randrange(5), rng.randrange(-40, 40)
    return rng.choice(
        [
            (f"id >= {low} AND id <= {high}", lambda row: low <= row["id"] <= high),
            (f"id % 5 = {rest}", lambda row: row["id"] % 5 == rest),
            ("x IS NULL", lambda row: row["x"] is None),
            (f"x > {number}", lambda row: row["x"] is not None and row["x"] > number),
            ("s = 'beta' OR s = ''", lambda row: row["s"] in ("beta", "")),
        ]
    )


def delete(turn: Turn) -> Model:
    text, chosen = _condition(turn)
    turn.dataset.delete(text)
    return replace(turn.model, rows={key: row for key, row in turn.model.rows.items() if not chosen(row)})


def update(turn: Turn) -> Model:
    text, chosen = _condition(turn)
    turn.dataset.update({"x": "id * 2 + 1", "s": "'up'"}, where=text)
    rows = {key: {**row, "x": key * 2 + 1, "s": "up"} if chosen(row) else row for key, row in turn.model.rows.items()}
    return replace(turn.model, rows=rows)


def merge_insert(turn: Turn) -> Model:
    model, rng = turn.model, turn.rng
    known = rng.sample(sorted(model.rows), min(len(model.rows), rng.choice((0, 2, 9))))
    fresh = [*range(model.next_id, model.next_id + rng.choice((1, 4)))]
    source = new_rows(model, known + fresh, rng)
    builder = turn.dataset.merge_insert("id")
    mode = rng.choice(("upsert", "insert", "update", "mirror", "delete"))
    rows = dict(model.rows)
    if mode in ("upsert", "update", "mirror"):
        builder = builder.when_matched_update_all()
        rows.update({key: source[key] for key in known})
    if mode in ("upsert", "insert", "mirror"):
        builder = builder.when_not_matched_insert_all()
        rows.update({key: source[key] for key in fresh})
    if mode == "mirror":
        builder = builder.when_not_matched_by_source_delete("id % 3 = 0")
        rows = {key: row for key, row in rows.items() if key in source or key % 3}
    if mode == "delete":
        builder = builder.when_matched_delete()
        rows = {key: row for key, row in rows.items() if key not in source}
    builder.execute(as_table(model, source))
    return replace(model, rows=rows, next_id=model.next_id + len(fresh))


def add_column(turn: Turn) -> Model:
    model = turn.model
    if len(model.columns) > 7:
        return drop_column(turn)
    name = f"c{model.added}"
    if turn.rng.random() < 0.3:
        turn.dataset.add_columns(pa.field(name, pa.int64()))
        rows = {key: {**row, name: None} for key, row in model.rows.items()}
    else:
        turn.dataset.add_columns({name: "id + 7"})
        rows = {key: {**row, name: key + 7} for key, row in model.rows.items()}
    return replace(model, rows=rows, columns=(*model.columns, name), added=model.added + 1)


def drop_column(turn: Turn) -> Model:
    model = turn.model
    extra = [name for name in model.columns if name not in ("id", "x", "s")]
    if not extra:
        return add_column(turn)
    gone = turn.rng.choice(extra)
    turn.dataset.drop_columns([gone])
    return replace(model, columns=tuple(name for name in model.columns if name != gone))


def rename_column(turn: Turn) -> Model:
    model = turn.model
    extra = [name for name in model.columns if name not in TYPES]
    if not extra:
        return add_column(turn)
    old, new = turn.rng.choice(extra), f"c{model.added}"
    turn.dataset.alter_columns({"path": old, "name": new})
    rows = {key: {(new if name == old else name): value for name, value in row.items()} for key, row in model.rows.items()}
    columns = tuple(new if name == old else name for name in model.columns)
    types = {**model.types, new: model.type_of(old)}
    return replace(model, rows=rows, columns=columns, added=model.added + 1, types=types)


def retype_column(turn: Turn) -> Model:
    model = turn.model
    extra = [name for name in model.columns if name not in TYPES]
    if not extra:
        return add_column(turn)
    name, made = turn.rng.choice(extra), turn.rng.choice((pa.int32(), pa.int64()))
    turn.dataset.alter_columns({"path": name, "data_type": made})
    return replace(model, types={**model.types, name: made})


def merge_column(turn: Turn) -> Model:
    """The column of another table, joined by id; rows without a partner get null."""
    model, name = turn.model, f"c{turn.model.added}"
    if len(model.columns) > 7 or not model.rows:
        return drop_column(turn)
    known = {key: turn.rng.randrange(1000) for key in turn.rng.sample(sorted(model.rows), min(len(model.rows), 9))}
    turn.dataset.merge(pa.table({"id": [*known], name: [*known.values()]}), "id")
    rows = {key: {**row, name: known.get(key)} for key, row in model.rows.items()}
    return replace(model, rows=rows, columns=(*model.columns, name), added=model.added + 1)


def replace_rows(turn: Turn) -> Model:
    """`replace_where` is ours alone; the other library says the same in two steps."""
    model, low = turn.model, turn.rng.randrange(max(turn.model.next_id, 1))
    fresh = {key: model.rows[key] for key in range(low, low + 4) if key in model.rows}
    changed = {key: {**row, "x": key + 3} for key, row in fresh.items()}
    if turn.ours:
        turn.dataset.replace_where(f"id >= {low} AND id < {low + 4}", as_table(model, changed))
    else:
        turn.dataset.update({"x": "id + 3"}, where=f"id >= {low} AND id < {low + 4}")
    return replace(model, rows={**model.rows, **changed})


def truncate(turn: Turn) -> Model:
    turn.dataset.truncate_table()
    return replace(turn.model, rows={})


def index(turn: Turn) -> Model:
    column, kind = turn.rng.choice((("id", "BTREE"), ("x", "BTREE"), ("x", "BITMAP"), ("id", "ZONEMAP"), ("s", "BITMAP")))
    turn.dataset.create_scalar_index(column, kind, replace=True)
    return turn.model


def upkeep(turn: Turn) -> Model:
    turn.dataset.optimize.optimize_indices()
    return turn.model


def branch(turn: Turn) -> Model:
    """A branch that goes its own way: both read it alike, and the main line (checked after each step) does not see it."""
    name = f"b{turn.dataset.version}_{len(turn.dataset.branches.list())}"
    made = turn.dataset.create_branch(name)
    made.delete("id % 2 = 0")
    turn.library.write_dataset(as_table(turn.model, new_rows(turn.model, [10**9], turn.rng)), made, mode="append")
    expected = sorted([*(key for key in turn.model.rows if key % 2), 10**9])
    for library in (lance, lance_core):
        found = library.dataset(turn.dataset.uri).checkout_version((name, None))
        found.validate()
        assert sorted(found.to_table(columns=["id"])["id"].to_pylist()) == expected, "rows of the branch"
    return turn.model


def tag(turn: Turn) -> Model:
    turn.dataset.tags.create(f"t{turn.dataset.version}_{len(turn.dataset.tags.list())}", turn.rng.choice(sorted(turn.past)))
    return turn.model


def cleanup(turn: Turn) -> Model:
    turn.dataset.cleanup_old_versions(retain_versions=turn.rng.choice((1, 3)), error_if_tagged_old_versions=False)
    left = {version["version"] for version in lance.dataset(turn.dataset.uri).versions()}
    for version in [*turn.past]:
        if version not in left:
            del turn.past[version]
    return turn.model


def compact(turn: Turn) -> Model:
    turn.dataset.optimize.compact_files(target_rows_per_fragment=turn.rng.choice((40, 1000)))
    return turn.model


def merge_files(turn: Turn) -> Model:
    lance_core.dataset(turn.dataset.uri).optimize.merge_column_files(max_files_per_fragment=turn.rng.choice((1, 2)))
    return turn.model


def restore(turn: Turn) -> Model:
    version = turn.rng.choice(sorted(turn.past))
    turn.dataset.checkout_version(version).restore()
    # Ids and names of columns handed out stay handed out, so that they never mean two things.
    return replace(turn.past[version], next_id=turn.model.next_id, added=turn.model.added)


def overwrite(turn: Turn) -> Model:
    model = replace(turn.model, columns=("id", "x", "s", "v"), types={})
    rows = new_rows(model, [*range(model.next_id, model.next_id + 30)], turn.rng)
    turn.library.write_dataset(as_table(model, rows), turn.dataset.uri, mode="overwrite", max_rows_per_file=11)
    return replace(model, rows=rows, next_id=model.next_id + 30)


def configure(turn: Turn) -> Model:
    value = str(turn.rng.randrange(100))
    turn.dataset.update_config({"k": value})
    return turn.model


OPERATIONS: list[tuple[Callable[[Turn], Model], float]] = [
    (append, 6),
    (delete, 5),
    (update, 5),
    (merge_insert, 5),
    (add_column, 3),
    (drop_column, 2),
    (rename_column, 1),
    (compact, 3),
    (merge_files, 1),
    (restore, 1),
    (overwrite, 1),
    (configure, 1),
    (retype_column, 1),
    (merge_column, 1),
    (replace_rows, 1),
    (truncate, 0.3),
    (index, 2),
    (upkeep, 2),
    (branch, 0.6),
    (tag, 0.5),
    (cleanup, 0.7),
]


FILTERS: list[tuple[str, Callable[[dict[str, Any]], bool]]] = [
    ("id >= 20 AND id < 50", lambda row: 20 <= row["id"] < 50),
    ("x > 0", lambda row: row["x"] is not None and row["x"] > 0),
    ("s = 'up'", lambda row: row["s"] == "up"),
]


def run_history(path: Path, *, seed: int, storage: str, stable: bool, steps: int = 30) -> list[str]:
    """Do it; AssertionError (with what was done) at the first step after which anything differs. Returns what was done."""
    rng = random.Random(seed)
    model = Model(rows={}, columns=("id", "x", "s", "v"))
    rows = new_rows(model, [*range(40)], rng)
    model = replace(model, rows=rows, next_id=40)
    first = lance if rng.random() < 0.5 else lance_core
    first.write_dataset(
        as_table(model, rows), str(path), max_rows_per_file=16, data_storage_version=storage, enable_stable_row_ids=stable
    )
    past = {1: model}
    done = [f"create by {first.__name__}"]
    functions, weights = [item for item, _ in OPERATIONS], [weight for _, weight in OPERATIONS]
    for step in range(steps):
        library: Any = (lance, lance_core)[step % 2]
        (operation,) = rng.choices(functions, weights)
        done.append(f"{operation.__name__} by {library.__name__}")
        where = f"seed {seed}, storage {storage}, stable {stable}: " + "; ".join(done)
        turn = Turn(library, library.dataset(str(path)), model, rng, past)
        try:
            model = operation(turn)
        except Exception as error:
            raise AssertionError(f"{where}: {error}") from error
        past[check(path, model, where, stable=stable)] = model
    return done


def check(path: Path, model: Model, where: str, *, stable: bool) -> int:
    """Both libraries see the same rows, which are the model's, in the same order, with the same identity."""
    ours, theirs = lance_core.dataset(str(path)), lance.dataset(str(path))
    try:
        ours.validate()
        theirs.validate()
        assert ours.version == theirs.version, "version"
        extra = ["_row_created_at_version", "_row_last_updated_at_version"] if stable else []
        names = [*ours.schema.names, *extra]
        mine, other = (item.to_table(columns=names, with_row_id=True) for item in (ours, theirs))
        assert ours.schema.equals(theirs.schema), "schema"
        assert mine.equals(other), "rows as the two libraries read them, with their identity"
        expected = model.table()
        assert mine.num_rows == len(expected) == ours.count_rows() == theirs.count_rows(), "count"
        found = mine.drop_columns(["_rowid", *extra]).sort_by("id").to_pylist()
        assert found == expected, "rows as the model has them"
        ids = mine.column("_rowid").to_pylist()
        assert len(set(ids)) == len(ids), "row ids"
        text, chosen = FILTERS[ours.version % len(FILTERS)]  # answered by an index, where there is one
        wanted = [row["id"] for row in expected if chosen(row)]
        for item in (ours, theirs):
            assert sorted(item.to_table(columns=["id"], filter=text)["id"].to_pylist()) == wanted, text
        if ids:
            picked = [0, len(ids) // 2, len(ids) - 1]
            assert ours.take(picked).equals(theirs.take(picked)), "take"
    except Exception as error:
        raise AssertionError(f"{where}: {type(error).__name__}: {error}") from error
    return int(ours.version)
