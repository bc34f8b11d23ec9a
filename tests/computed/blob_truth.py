"""The sweep of truth for blobs: random histories of a table whose declared column reads blobs, in calls bounded by bytes.

    python -m tests.computed.blob_truth --seeds 0:200 --actors ours,pylance --folder /dev/shm --tally blobs.txt

The model knows each row's blob and what its value was last computed from. After every refresh each value is what the
function makes of the blob beside it, the function was given no row that was fresh, no call had more bytes than its bound
unless it was one row, a second refresh reads no blob; and where rows were only moved or deleted since the last one, none was
read but those that were computed.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

import lance_core
from lance_core import blob_array, blob_field
from lance_core.computed import blob_inputs
from tests.computed.dying_store import dies_at
from tests.computed.truth import main

FUNCTION = "tests.computed.blob_truth:stand_in"
MOST_BYTES, MOST_ROWS = 5_000, 4
SIZES = (0, 1, 40, 900, 2_000, 4_900, 5_100, 20_000)
REFUSED = b"refused"


@dataclass
class Row:
    """A row of the model. `made_of`: the definition and the blob that its value was computed from."""

    blob: bytes | None
    number: int = 0
    made_of: tuple[int, bytes | None] | None = None

    def copy(self) -> Row:
        return Row(self.blob, self.number, self.made_of)


class PlannedFailureError(Exception):
    """A function that was made to fail in the middle of a refresh."""


@dataclass
class Function:
    """What it was given, and after how many rows it fails."""

    definition: int = 1
    given: int = 0
    fails_after: int | None = None

    def __call__(self, batch: pa.RecordBatch) -> list[str | None]:
        blobs = batch.column("b").to_pylist()
        size = sum(len(blob or b"") for blob in blobs)
        assert len(blobs) <= MOST_ROWS and (size <= MOST_BYTES or len(blobs) == 1), (len(blobs), size)
        if self.fails_after is not None and self.given >= self.fails_after:
            raise PlannedFailureError
        self.given += len(blobs)
        if REFUSED in blobs:
            raise ValueError("refused")
        return [made(self.definition, blob) for blob in blobs]


def made(definition: int, blob: bytes | None) -> str | None:
    """What a row's value must be."""
    if blob is None or blob == REFUSED:
        return None
    return f"{definition}:{len(blob)}:{hashlib.sha256(blob).hexdigest()[:12]}"


@dataclass
class World:
    """A table, its model, and the models of the versions that may be restored."""

    uri: str
    draw: random.Random
    actors: tuple[str, ...]
    version: str
    rows: dict[int, Row] = field(default_factory=dict)
    past: dict[int, tuple[dict[int, Row], int]] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    function: Function = field(default_factory=Function)
    definition: int = 1
    next_key: int = 0
    refuses: bool = False
    only_moved: bool = False
    """Whether rows were only moved and deleted since the last refresh, and the log is there."""
    reads: int = 0

    def actor(self) -> str:
        return self.draw.choice(self.actors)

    def blob(self) -> bytes | None:
        if self.draw.random() < 0.15:
            return None
        if self.refuses and self.draw.random() < 0.15:
            return REFUSED
        return bytes([self.draw.randrange(4)]) * self.draw.choice(SIZES)

    def some(self, share: float = 0.3) -> list[int]:
        return [key for key in sorted(self.rows) if self.draw.random() < share]

    def remember(self) -> None:
        version = lance_core.dataset(self.uri).version
        self.past[version] = {key: row.copy() for key, row in self.rows.items()}, self.definition

    def stale(self) -> int:
        return sum(row.made_of != (self.definition, row.blob) for row in self.rows.values())

    def failed(self) -> int:
        return sum(row.blob == REFUSED for row in self.rows.values())


def _table(world: World, rows: dict[int, Row]) -> pa.Table:
    blobs = [row.blob for row in rows.values()]
    if world.version == "2.2":
        item = blob_field("b", inline_size_threshold=500, dedicated_size_threshold=4_950)
        column: Any = blob_array(blobs)
    else:
        item = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
        column = pa.array(blobs, pa.large_binary())
    fields = [pa.field("key", pa.int64()), item, pa.field("number", pa.int32())]
    numbers = pa.array([row.number for row in rows.values()], pa.int32())
    return pa.table([pa.array(rows, pa.int64()), column, numbers], schema=pa.schema(fields))


def _new(world: World, count: int) -> dict[int, Row]:
    keys = [world.next_key + place for place in range(count)]
    world.next_key += count
    return {key: Row(world.blob(), world.draw.randrange(100)) for key in keys}


def append(world: World) -> None:
    rows, who = _new(world, world.draw.randrange(1, 8)), world.actor()
    world.told.append(f"append {who} {[*rows]}")
    world.only_moved = False
    library: Any = lance_core if who == "ours" else lance
    library.write_dataset(_table(world, rows), world.uri, mode="append", max_rows_per_file=world.draw.choice([3, 100]))
    world.rows.update(rows)


def upsert(world: World) -> None:
    rows = {key: Row(world.blob(), world.draw.randrange(100)) for key in world.some(0.2)}
    rows.update(_new(world, world.draw.randrange(2)))
    if not rows:
        return
    world.told.append(f"upsert {[*rows]}")
    world.only_moved = False
    merge = lance_core.dataset(world.uri).merge_insert("key").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(_table(world, rows))
    for key, row in rows.items():
        there = world.rows.setdefault(key, Row(None))
        there.blob, there.number = row.blob, row.number


def _opened(world: World, who: str) -> Any:
    return lance_core.dataset(world.uri) if who == "ours" else lance.dataset(world.uri)


def _where(keys: list[int]) -> str:
    return f"key IN ({', '.join(map(str, keys))})"


def touch(world: World) -> None:
    """Rows are written again with the same blobs."""
    keys, who = world.some(), world.actor()
    if keys:
        world.told.append(f"touch {who} {keys}")
        world.only_moved = False
        _opened(world, who).update({"number": "number + 1"}, where=_where(keys))
        for key in keys:
            world.rows[key].number += 1


def delete(world: World) -> None:
    keys, who = world.some(0.15), world.actor()
    if keys:
        world.told.append(f"delete {who} {keys}")
        _opened(world, who).delete(_where(keys))
        for key in keys:
            del world.rows[key]


def compact(world: World) -> None:
    who = world.actor()
    options = {"defer_index_remap": True} if who == "ours" and world.draw.random() < 0.3 else {}
    world.told.append(f"compact {who} {options}")
    _opened(world, who).optimize.compact_files(target_rows_per_fragment=world.draw.choice([6, 20, 1000]), **options)


def clean_up(world: World) -> None:
    world.told.append("cleanup")
    world.only_moved = False
    lance_core.dataset(world.uri).cleanup_old_versions(dt.timedelta(0))
    world.past.clear()


def restore(world: World) -> None:
    if world.past:
        version = world.draw.choice(sorted(world.past))
        world.told.append(f"restore {version}")
        world.only_moved = False
        rows, world.definition = world.past[version]
        world.rows = {key: row.copy() for key, row in rows.items()}
        lance_core.dataset(world.uri).checkout_version(version).restore()


def redefine(world: World) -> None:
    world.definition += 1
    world.told.append(f"define {world.definition}")
    world.only_moved = False
    declare(world)


def declare(world: World) -> None:
    lance_core.declare_column(
        world.uri,
        "made",
        function=FUNCTION,
        inputs=["b"],
        type=pa.string(),
        version=str(world.definition),
        batch_size=MOST_ROWS,
        batch_bytes=MOST_BYTES,
        on_error={"ValueError": "skip"} if world.refuses else "fail",
    )


def _refresh(world: World, **options: Any) -> Any:
    world.function.definition, world.function.given = world.definition, 0
    return lance_core.refresh_columns(
        world.uri, functions={FUNCTION: world.function}, commit_every=world.draw.choice([1, 2, 16]), **options
    )


def refresh(world: World) -> None:
    """To its end, with an end in its middle before it now and then; then all is compared."""
    stale, chance, given = world.stale(), world.draw.random(), 0
    is_new = chance >= 0.6
    tries = 0
    if chance < 0.2 and stale:
        world.function.fails_after = world.draw.randrange(stale)
        world.told.append(f"refresh that fails after {world.function.fails_after}")
        with contextlib.suppress(PlannedFailureError):
            _refresh(world)
        world.function.fails_after, given = None, world.function.given
    elif chance < 0.4 and stale > 1:
        most = world.draw.randrange(1, stale)
        world.told.append(f"refresh of {most} rows")
        _refresh(world, max_rows=most, concurrency=world.draw.choice([1, 3]))
        given = world.function.given
    elif chance < 0.6:
        at = world.draw.randrange(1, 40)
        world.told.append(f"refresh that ends at change {at}")
        with dies_at(at, under=world.uri) as death:
            _refresh(world)
        given, tries = world.function.given, int(death.is_dead)
    world.told.append(f"refresh, {stale} stale")
    with _count(world):
        report = _refresh(world, concurrency=world.draw.choice([1, 2]))
    counts = report.columns["made"]
    given += world.function.given
    if not world.refuses:
        assert given <= stale + tries * MOST_ROWS, f"{given} rows were given of {stale}"
    assert not is_new or counts.stale == stale, f"{counts} where {stale} rows were stale"
    assert counts.failed_now == world.failed(), f"{counts} where {world.failed()} rows must fail"
    if is_new and world.only_moved:
        most = sum(bool(row.blob) for row in world.rows.values() if row.made_of != (world.definition, row.blob))
        assert world.reads <= most, f"{world.reads} blobs were read where rows were only moved, and {most} are stale"
    with _count(world):
        again = _refresh(world, retry_failed=False)
    assert (again.stale, world.function.given, world.reads) == (world.failed(), 0, 0), f"a refresh behind a refresh: {again}"
    for row in world.rows.values():
        row.made_of = None if row.blob == REFUSED else (world.definition, row.blob)
    world.only_moved = True
    check(world)


@contextlib.contextmanager
def _count(world: World) -> Iterator[None]:
    """Count the blobs that are read."""
    plain, world.reads = blob_inputs._bytes_of, 0

    def counted(places: Any) -> Any:
        world.reads += sum(place is not None and place.size > 0 for place in places)
        return plain(places)

    blob_inputs._bytes_of = counted
    try:
        yield
    finally:
        blob_inputs._bytes_of = plain


def check(world: World) -> None:
    """Each row is there once, with its blob and the value of it; no value waits."""
    waiting = [path.name for path in Path(world.uri, "_lance_core", "columns").rglob("results/*.values")]
    assert waiting == [], waiting
    table = lance.dataset(world.uri).to_table(columns=["key", "b", "number", "made"], blob_handling="all_binary")
    found = {row["key"]: row for row in table.to_pylist()}
    assert len(found) == table.num_rows == len(world.rows), (len(found), table.num_rows, len(world.rows))
    for key, row in world.rows.items():
        there = found[key]
        assert (there["b"], there["number"]) == (row.blob, row.number), (key, there["number"], row.number)
        assert there["made"] == made(world.definition, row.blob), (key, there["made"])


ACTIONS: tuple[tuple[Callable[[World], None], int], ...] = (
    (append, 3),
    (upsert, 3),
    (touch, 1),
    (delete, 3),
    (compact, 4),
    (clean_up, 1),
    (restore, 1),
    (redefine, 1),
    (refresh, 6),
)


def begin(seed: int, actors: tuple[str, ...], folder: str) -> World:
    """A new table with a declared column."""
    draw = random.Random(seed)
    world = World(str(Path(folder) / f"t{seed}.lance"), draw, actors, draw.choice(["2.0", "2.1", "2.2"]))
    world.refuses = draw.random() < 0.25
    world.rows = _new(world, draw.randrange(1, 12))
    lance_core.write_dataset(
        _table(world, world.rows),
        world.uri,
        max_rows_per_file=draw.choice([4, 100]),
        data_storage_version=world.version,
        enable_stable_row_ids=draw.random() < 0.4,
    )
    declare(world)
    return world


def run(seed: int, actors: tuple[str, ...], folder: str, *, steps: int = 20) -> World:
    """One history. AssertionError, with what was done, when the table does not tell the truth."""
    world = begin(seed, actors, folder)
    actions, weights = zip(*ACTIONS, strict=True)
    try:
        for _ in range(steps):
            world.draw.choices(actions, weights)[0](world)
            world.remember()
        refresh(world)
    except Exception as error:
        raise AssertionError("\n".join([f"seed {seed}, {world.version}: {error!r}", *world.told])) from error
    return world


if __name__ == "__main__":
    main(run)
