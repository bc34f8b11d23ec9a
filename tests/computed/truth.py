"""The sweep of truth: random histories of a table with declared columns, by several writers, and a refresh now and then.

    python -m tests.computed.truth --seeds 0:500 --actors ours,pylance --folder /dev/shm --tally truth.txt

A model in plain Python knows each row by its key: its text, the text and definition that its value was last computed from,
and whether somebody wrote over that value. After every refresh each value is what the function makes of the row's text, and
the function was given exactly the rows that the model calls stale. Whoever finds more to compute, or less, is wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import random
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import lance_core
from lance_core.jobs import api
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.branches import PublishBranchSpec
from lance_core.jobs.specs.maintenance import BranchSpec
from lance_core.maintenance.erasure import Erasure, erase
from tests.computed.dying_store import dies_at

FUNCTION = "tests.computed.truth:stand_in"
SECOND, BATCH_ROWS = "bytes", 4
TEXTS = ("", "a", "b", "a longer text, of some bytes", "é", None)
REFUSED = "refused"
"""What the function fails for, in the worlds where its declaration says that failed rows are skipped."""


@dataclass
class Row:
    """A row of the model. `made_of`: what its value was computed from (definition, text); None: it never was."""

    text: str | None
    number: int
    made_of: tuple[int, str | None] | None = None
    spoilt: bool = False
    second_of: int | None = None

    def copy(self) -> Row:
        return Row(self.text, self.number, self.made_of, self.spoilt, self.second_of)


class PlannedFailureError(Exception):
    """A function that was made to fail in the middle of a refresh."""


@dataclass
class Function:
    """The declared function: what it makes of a text, how many rows it was given, and after how many it fails."""

    definition: int = 1
    given: int = 0
    fails_after: int | None = None
    during: Callable[[], None] | None = None
    refuses: bool = False

    def __call__(self, batch: pa.RecordBatch, **arguments: Any) -> pa.Array[Any]:
        if self.during is not None:
            act, self.during = self.during, None
            act()
        if self.fails_after is not None and self.given >= self.fails_after:
            raise PlannedFailureError
        self.given += batch.num_rows
        texts = batch.column("text").to_pylist()
        if self.refuses and REFUSED in texts:
            raise ValueError("refused")
        return pa.array([made(self.definition, text) for text in texts], pa.string())


def stand_in(batch: pa.RecordBatch) -> None:
    """What the table names; it is never loaded."""
    raise AssertionError("a function that the caller passes is not loaded")


def made(definition: int, text: str | None) -> str | None:
    """What a row's value must be; null is a value as others are."""
    return None if text is None else f"{definition}:{text.upper()}"


@dataclass
class World:
    """A table, its model, and the models of the versions that may be restored."""

    uri: str
    draw: random.Random
    actors: tuple[str, ...]
    rows: dict[int, Row] = field(default_factory=dict)
    function: Function = field(default_factory=Function)
    definition: int = 1
    next_key: int = 0
    past: dict[int, tuple[dict[int, Row], int]] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    skips: bool = False
    """Whether the declaration skips rows for which the function fails; such a world has them."""
    others: int = 0
    """Branches and clones that were made."""
    keeps: bool = False
    """Whether the declaration has a lasting cache."""
    cached: dict[str, set[tuple[int, str | None]]] = field(default_factory=dict)
    """What the cache of a table, by its uri, must have: definition and text."""

    def actor(self) -> str:
        return self.draw.choice(self.actors)

    def remember(self) -> None:
        version = lance_core.dataset(self.uri).version
        self.past[version] = ({key: row.copy() for key, row in self.rows.items()}, self.definition)

    def some(self, share: float = 0.3) -> list[int]:
        return [key for key in sorted(self.rows) if self.draw.random() < share]

    def text(self) -> str | None:
        return self.draw.choice((*TEXTS, REFUSED, REFUSED) if self.skips else TEXTS)

    def value(self, text: str | None) -> str | None:
        """What the column must hold for a text."""
        return None if self.skips and text == REFUSED else made(self.definition, text)

    def most_given(self, stale: int) -> int:
        """How many rows the function may be given where so many are stale: equal inputs once, where there is a cache."""
        if not self.keeps:
            return stale
        texts = {(self.definition, row.text) for row in self.rows.values() if _is_stale(self, row)}
        return len(texts - self.cached.get(self.uri, set()))

    def num_refused(self) -> int:
        """Rows that stay stale however often they are tried."""
        return sum(self.skips and row.text == REFUSED for row in self.rows.values())


def _official(world: World) -> Any:
    import lance

    return lance.dataset(world.uri)


def _table(keys: list[int], texts: list[str | None], numbers: list[int]) -> pa.Table:
    return pa.table(
        {"key": pa.array(keys, pa.int64()), "text": pa.array(texts, pa.string()), "number": pa.array(numbers, pa.int32())}
    )


def append(world: World) -> None:
    keys = [world.next_key + place for place in range(world.draw.randrange(1, 12))]
    world.next_key += len(keys)
    texts, numbers = [world.text() for _ in keys], [world.draw.randrange(100) for _ in keys]
    rows = _table(keys, texts, numbers)
    who = world.actor()
    world.told.append(f"append {who} {keys}")
    if who == "ours":
        lance_core.write_dataset(rows, world.uri, mode="append", max_rows_per_file=world.draw.choice([3, 100]))
    elif who == "pylance":
        import lance

        lance.write_dataset(rows, world.uri, mode="append")
    else:
        _lancedb(world).add(rows)
    world.rows.update({key: Row(text, number) for key, text, number in zip(keys, texts, numbers, strict=True)})


def _lancedb(world: World) -> Any:
    import lancedb

    place = Path(world.uri)
    return lancedb.connect(str(place.parent)).open_table(place.stem)


def update_text(world: World) -> None:
    keys, text, who = world.some(), world.text(), world.actor()
    if not keys:
        return
    where, value = f"key IN ({', '.join(map(str, keys))})", "NULL" if text is None else f"'{text}'"
    value = "CAST(NULL AS STRING)" if text is None else value
    world.told.append(f"update {who} {keys} to {text!r}")
    if who == "ours":
        lance_core.dataset(world.uri).update({"text": value}, where=where)
    elif who == "pylance":
        _official(world).update({"text": value}, where=where)
    else:
        _lancedb(world).update(where=where, values_sql={"text": value})
    for key in keys:
        world.rows[key].text = text


def update_other(world: World) -> None:
    """A column that nothing reads: the rows move, their evidence with them."""
    keys, who = world.some(), world.actor()
    if not keys:
        return
    where = f"key IN ({', '.join(map(str, keys))})"
    world.told.append(f"touch {who} {keys}")
    if who == "ours":
        lance_core.dataset(world.uri).update({"number": "number + 1"}, where=where)
    elif who == "pylance":
        _official(world).update({"number": "number + 1"}, where=where)
    else:
        _lancedb(world).update(where=where, values_sql={"number": "number + 1"})
    for key in keys:
        world.rows[key].number += 1


def spoil(world: World) -> None:
    """Somebody who knows nothing of declarations writes over values."""
    keys = world.some(0.15)
    if not keys or "pylance" not in world.actors:
        return
    world.told.append(f"spoil {keys}")
    _official(world).update({"made": "'spoilt'"}, where=f"key IN ({', '.join(map(str, keys))})")
    for key in keys:
        world.rows[key].spoilt = True


def delete(world: World) -> None:
    keys, who = world.some(0.15), world.actor()
    if not keys:
        return
    where = f"key IN ({', '.join(map(str, keys))})"
    world.told.append(f"delete {who} {keys}")
    if who == "ours":
        lance_core.dataset(world.uri).delete(where)
    elif who == "pylance":
        _official(world).delete(where)
    else:
        _lancedb(world).delete(where)
    for key in keys:
        del world.rows[key]


def upsert(world: World) -> None:
    old, who = world.some(0.2), world.actor()
    new = [world.next_key + place for place in range(world.draw.randrange(3))]
    world.next_key += len(new)
    keys = old + new
    if not keys:
        return
    texts, numbers = [world.text() for _ in keys], [world.draw.randrange(100) for _ in keys]
    rows = _table(keys, texts, numbers)
    world.told.append(f"upsert {who} {keys}")
    if who == "ours":
        lance_core.dataset(world.uri).merge_insert("key").when_matched_update_all().when_not_matched_insert_all().execute(
            rows
        )
    elif who == "pylance":
        _official(world).merge_insert("key").when_matched_update_all().when_not_matched_insert_all().execute(rows)
    else:
        _lancedb(world).merge_insert("key").when_matched_update_all().when_not_matched_insert_all().execute(rows)
    for key, text, number in zip(keys, texts, numbers, strict=True):
        row = world.rows.setdefault(key, Row(None, 0))
        row.text, row.number = text, number


def rewrite_column(world: World) -> None:
    """The input's column is written anew in place, beside the value."""
    found = lance_core.dataset(world.uri).get_fragments()
    if not found:
        return
    fragment = world.draw.choice(found)
    keys = [key for key in fragment.to_table(columns=["key"]).column(0).to_pylist() if world.draw.random() < 0.4]
    if not keys:
        return
    texts = [world.text() for _ in keys]
    rows = pa.table({"key": pa.array(keys, pa.int64()), "text": pa.array(texts, pa.string())})
    who = "pylance" if "pylance" in world.actors and world.draw.random() < 0.5 else "ours"
    world.told.append(f"rewrite column {who} {keys}")
    if who == "pylance":
        import lance

        official = _official(world)
        changed, fields = official.get_fragment(fragment.fragment_id).update_columns(rows, "key")[:2]
        operation = lance.LanceOperation.Update(
            updated_fragments=[changed], fields_modified=fields, update_mode="rewrite_columns"
        )
        lance.LanceDataset.commit(world.uri, operation, read_version=official.version)
    else:
        ours = lance_core.dataset(world.uri)
        changed, fields = ours.get_fragment(fragment.fragment_id).update_columns(rows, "key")[:2]
        operation = lance_core.LanceOperation.Update(
            updated_fragments=[changed], fields_modified=fields, update_mode="rewrite_columns"
        )
        lance_core.LanceDataset.commit(world.uri, operation, read_version=ours.version)
    for key, text in zip(keys, texts, strict=True):
        world.rows[key].text = text


def compact(world: World) -> None:
    who = world.actor()
    world.told.append(f"compact {who}")
    if who == "ours":
        options = {"defer_index_remap": True} if world.draw.random() < 0.3 else {}
        lance_core.dataset(world.uri).optimize.compact_files(
            target_rows_per_fragment=world.draw.choice([20, 1000]), **options
        )
    elif who == "pylance":
        _official(world).optimize.compact_files(target_rows_per_fragment=world.draw.choice([20, 1000]))
    else:
        _lancedb(world).optimize()


def clean_up(world: World) -> None:
    """Everything old goes, and with it what could be restored."""
    import datetime as dt

    world.told.append("cleanup")
    if "pylance" in world.actors and world.draw.random() < 0.5:
        _official(world).cleanup_old_versions(dt.timedelta(0), delete_unverified=True)
    else:
        lance_core.dataset(world.uri).cleanup_old_versions(dt.timedelta(0))
    world.past.clear()


def erase_rows(world: World) -> None:
    """Nothing of the rows is left, and nothing that was computed for any row."""
    keys = world.some(0.1)
    if not world.keeps or not keys or world.uri.rpartition("/tree/")[1]:
        return
    world.told.append(f"erase {keys}")
    report = erase(Erasure(uri=world.uri, predicate=f"key IN ({', '.join(map(str, keys))})"), options={})
    assert not [holder for holder in report["holders"] if holder["name"].endswith(".values")], report["holders"]
    for key in keys:
        del world.rows[key]
    world.cached.pop(world.uri, None)
    world.past.clear()


def restore(world: World) -> None:
    if not world.past:
        return
    version = world.draw.choice(sorted(world.past))
    world.told.append(f"restore {version}")
    rows, definition = world.past[version]
    lance_core.dataset(world.uri).checkout_version(version).restore()
    world.rows, world.definition = {key: row.copy() for key, row in rows.items()}, definition


def clone(world: World) -> None:
    """From now on a clone is the table; its files are where they were."""
    if "lancedb" in world.actors:
        return
    world.others += 1
    target = f"{world.uri.removesuffix('.lance')}_{world.others}.lance"
    who = "pylance" if "pylance" in world.actors and world.draw.random() < 0.5 else "ours"
    world.told.append(f"shallow clone {who}")
    opened = _official(world) if who == "pylance" else lance_core.dataset(world.uri)
    opened.shallow_clone(target, opened.version)
    world.uri = target
    world.past.clear()


def branch(world: World) -> None:
    """Changes on a branch, refreshed there or not, and published."""
    world.others += 1
    main, name = world.uri, f"b{world.others}"
    world.told.append("on a branch:")
    run_job(BranchSpec(uri=main, name=name))
    world.uri = f"{main}/tree/{name}"
    actors, world.actors = world.actors, ("ours",)
    rows = {key: row.copy() for key, row in world.rows.items()}
    for _ in range(world.draw.randrange(1, 4)):
        world.draw.choice([append, update_text, delete, upsert, refresh])(world)
    world.uri, world.actors = main, actors
    if world.draw.random() < 0.3:
        world.told.append("branch is left")
        world.rows = rows
        return
    world.told.append("publish the branch")
    staged = api.run(PublishBranchSpec(uri=main, branch=name, if_moved="publish"), options={})
    api.commit(main, [staged], options={}, max_attempts=None)
    if world.draw.random() < 0.5:
        run_job(BranchSpec(uri=main, name=name, action="delete"))


def two_refreshes(world: World) -> None:
    """A second refresh, of its own function, in the middle of the first one's."""
    first, second = world.function, Function(world.definition, refuses=world.skips)
    stale = _stale(world)
    first.definition, first.given, first.fails_after = world.definition, 0, None
    first.during = lambda: _refresh_by(world, second)
    world.told.append(f"two refreshes, {stale} stale")
    _refresh_by(world, first)
    first.during = None
    _settle(world)
    # The batch that the second met in the first's hands is computed by both; what one published the other does not compute.
    assert world.skips or first.given + second.given <= stale + stale, (first.given, second.given, stale)
    assert world.skips or second.given <= stale
    again = lance_core.refresh_columns(world.uri, functions={FUNCTION: first}, retry_failed=False)
    assert again.stale == _left_stale(world), f"a refresh after two refreshes found stale rows: {again}"
    check(world)


def _refresh_by(world: World, function: Function) -> None:
    lance_core.refresh_columns(world.uri, functions={FUNCTION: function}, commit_every=world.draw.choice([1, 2]))


def killed_refresh(world: World) -> None:
    """A refresh whose process ends at a change of the store; the next one pays for one batch at most."""
    stale, given = _stale(world), 0
    most = world.most_given(stale)
    world.function.definition, world.function.fails_after, world.function.during = world.definition, None, None
    is_dead, tries = True, 0
    while is_dead and tries < 4:
        tries += 1
        at = world.draw.randrange(1, 40)
        world.told.append(f"refresh that ends at change {at}, {stale} stale")
        world.function.given = 0
        with dies_at(at, under=world.uri) as death:
            _refresh_by(world, world.function)
        given, is_dead = given + world.function.given, death.is_dead
    world.function.given = 0
    _refresh_by(world, world.function)
    given += world.function.given
    _settle(world)
    assert world.skips or given <= most + tries * BATCH_ROWS, f"{given} rows were given of {most}, with {tries} ends"
    again = lance_core.refresh_columns(world.uri, functions={FUNCTION: world.function}, retry_failed=False)
    assert again.stale == _left_stale(world), f"a refresh after killed refreshes found stale rows: {again}"
    check(world)


def redefine(world: World) -> None:
    world.definition += world.draw.choice([0, 1])
    world.told.append(f"define {world.definition}")
    _declare(world)


def _declare(world: World) -> None:
    lance_core.declare_column(
        world.uri,
        "made",
        function=FUNCTION,
        inputs=["text"],
        type=pa.string(),
        version=str(world.definition),
        batch_size=BATCH_ROWS,
        on_error={"ValueError": "skip"} if world.skips else "fail",
        cache_bytes=1 << 24 if world.keeps else 0,
    )


def refresh(world: World) -> None:
    """With another writer in its middle, or an end in its middle, now and then; then to its end, and all is compared."""
    world.function.definition = world.definition
    world.function.given, world.function.fails_after, world.function.during = 0, None, None
    stale = _stale(world)
    allowed = world.most_given(stale)
    options: dict[str, Any] = {"functions": {FUNCTION: world.function}, "commit_every": world.draw.choice([1, 2, 16])}
    chance = world.draw.random()
    if chance < 0.25 and stale:
        world.function.fails_after = world.draw.randrange(stale)
        world.told.append(f"refresh that fails after {world.function.fails_after}")
        with contextlib.suppress(PlannedFailureError):
            lance_core.refresh_columns(world.uri, **options)
        world.function.fails_after = None
    is_partial = 0.5 <= chance < 0.7 and stale > 1
    if is_partial:
        most = world.draw.randrange(1, stale)
        world.told.append(f"refresh of {most} rows at most")
        part = lance_core.refresh_columns(
            world.uri, ["made"], max_rows=most, concurrency=world.draw.choice([1, 3]), **options
        )
        # A batch that was begun is settled: where rows fail it is given again in halves.
        most += 3 * BATCH_ROWS * 2 if world.skips else 0
        assert part.columns["made"].rows_given <= most, f"{part} where {most} rows were allowed"
        assert world.function.given <= most
    meets = 0.25 <= chance < 0.5
    if meets:
        world.function.during = lambda: _meddle(world)
    world.told.append(f"refresh, {stale} stale")
    report = lance_core.refresh_columns(world.uri, **options)
    if meets and world.function.during is None:
        world.told.append("refresh after the meddling")
        lance_core.refresh_columns(world.uri, **options)
        _settle(world)
    else:
        counts = report.columns["made"]
        texts = {row.text for row in world.rows.values() if _is_stale(world, row)}
        _settle(world)
        # Some were published before a failure. A value that waits for its commit serves all rows with its text.
        done = counts.rows_given + counts.reused
        assert world.skips or done == counts.stale, f"{counts} where {stale} rows were stale"
        assert counts.stale <= stale, f"{counts} where {stale} rows were stale"
        assert chance < 0.25 or is_partial or counts.stale == stale, f"{counts} where {stale} rows were stale"
        assert world.keeps or len(texts) <= world.function.given, f"{world.function.given} were given of {stale} stale rows"
        # A batch with a row that fails is given again in halves.
        assert world.skips or world.function.given <= allowed, f"{world.function.given} were given of {allowed} stale rows"
        assert counts.failed_now == world.num_refused(), f"{counts} where {world.num_refused()} rows must fail"
    again = lance_core.refresh_columns(world.uri, retry_failed=False, **options)
    assert again.columns["made"].rows_given == 0, f"a refresh after a refresh, with nothing stale, computed {again}"
    assert again.stale == _left_stale(world), f"a refresh after a refresh found stale rows: {again}"
    check(world)


def _left_stale(world: World) -> int:
    """Rows that are stale behind a whole refresh: those that failed."""
    return world.num_refused()


def _meddle(world: World) -> None:
    """Another writer, while a batch is computed."""
    world.told.append("meanwhile:")
    world.draw.choice([append, update_text, delete, upsert, compact, rewrite_column])(world)


def _stale(world: World) -> int:
    return sum(_is_stale(world, row) for row in world.rows.values())


def _is_stale(world: World, row: Row) -> bool:
    return row.made_of != (world.definition, row.text) or row.spoilt


def _settle(world: World) -> None:
    if world.keeps:
        texts = {row.text for row in world.rows.values() if _is_stale(world, row)} - ({REFUSED} if world.skips else set())
        world.cached.setdefault(world.uri, set()).update((world.definition, text) for text in texts)
    for row in world.rows.values():
        if world.skips and row.text == REFUSED:
            row.made_of, row.spoilt = None, False
            continue
        row.made_of, row.spoilt, row.second_of = (world.definition, row.text), False, None


def check(world: World) -> None:
    """Every value is what a computation from scratch gives; each row is there once; and no computed value waits any more."""
    waiting = [path.name for path in Path(world.uri, "_lance_core", "columns").rglob("results/*.values")]
    assert waiting == [], waiting
    table = lance_core.dataset(world.uri).to_table()
    assert table.column_names == ["key", "text", "number", "made", SECOND], table.column_names
    found = {row["key"]: row for row in table.to_pylist()}
    assert len(found) == table.num_rows == len(world.rows), (len(found), table.num_rows, len(world.rows))
    for key, row in world.rows.items():
        there = found[key]
        assert (there["text"], there["number"]) == (row.text, row.number), (key, there, row)
        assert there["made"] == world.value(row.text), (key, there, row)
        expected = None if there["made"] is None else len(there["made"].encode()) + row.number
        assert there[SECOND] == expected, (key, there, row)


ACTIONS: tuple[tuple[Callable[[World], None], int], ...] = (
    (append, 4),
    (update_text, 3),
    (update_other, 2),
    (delete, 2),
    (upsert, 3),
    (rewrite_column, 2),
    (spoil, 1),
    (compact, 2),
    (clean_up, 1),
    (restore, 1),
    (redefine, 1),
    (clone, 1),
    (branch, 1),
    (two_refreshes, 1),
    (killed_refresh, 2),
    (refresh, 4),
)


def begin(seed: int, actors: tuple[str, ...], folder: str) -> World:
    """A new table with two declared columns, the second of which reads the first."""
    world = World(str(Path(folder) / f"t{seed}.lance"), random.Random(seed), actors)
    keys = list(range(world.draw.randrange(1, 15)))
    world.next_key = len(keys)
    texts, numbers = [world.text() for _ in keys], [world.draw.randrange(100) for _ in keys]
    rows = _table(keys, texts, numbers)
    lance_core.write_dataset(
        rows,
        world.uri,
        max_rows_per_file=world.draw.choice([4, 100]),
        data_storage_version=world.draw.choice(["2.0", "2.1", "2.2"]),
        enable_stable_row_ids=world.draw.random() < 0.4,
    )
    world.rows = {key: Row(text, number) for key, text, number in zip(keys, texts, numbers, strict=True)}
    world.skips = world.function.refuses = world.draw.random() < 0.25
    world.keeps = random.Random(f"cache of {seed}").random() < 0.4
    _declare(world)
    lance_core.declare_column(world.uri, SECOND, sql="octet_length(made) + number")
    return world


def run(seed: int, actors: tuple[str, ...], folder: str, *, steps: int = 25) -> World:
    """One history. AssertionError, with what was done, when the table does not tell the truth."""
    world = begin(seed, actors, folder)
    actions, weights = zip(*ACTIONS, strict=True)
    try:
        for step in range(steps):
            world.draw.choices(actions, weights)[0](world)
            if world.keeps and step % 8 == 7:
                erase_rows(world)
            world.remember()
        refresh(world)
    except Exception as error:
        raise AssertionError("\n".join([f"seed {seed}: {error!r}", *world.told])) from error
    return world


@dataclass
class Tally:
    """Which histories were run, a line for each in a file: a sweep that was ended goes on, and several add up.

    ::

        ours,pylance 70000 fine
        ours,pylance 70001 failed
    """

    path: Path | None
    done: dict[tuple[str, int], bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.path is not None and self.path.exists():
            for actors, seed, how in map(str.split, self.path.read_text().splitlines()):
                self.done[actors, int(seed)] = how == "fine"

    def add(self, actors: str, seed: int, *, is_fine: bool) -> None:
        self.done[actors, seed] = is_fine
        if self.path is not None:
            with self.path.open("a") as lines:
                lines.write(f"{actors} {seed} {'fine' if is_fine else 'failed'}\n")

    def told(self, actors: str) -> str:
        """How many histories of these actors there are, and which of them failed."""
        found = {seed: is_fine for (who, seed), is_fine in self.done.items() if who == actors}
        failed = sorted(seed for seed, is_fine in found.items() if not is_fine)
        return f"{len(found)} histories by {actors}: {len(failed)} failed{f', seeds {failed}' if failed else ''}"


def main(run: Callable[..., Any] = run) -> None:
    """Run seeds, and say which failed. Of the time of a history a third goes to a disk: give a folder in memory."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", default="0:100")
    parser.add_argument("--actors", default="ours,pylance")
    parser.add_argument("--folder", type=Path, help="where tables are made")
    parser.add_argument("--tally", type=Path, help="a file that counts histories, which are not run twice")
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    pa.set_cpu_count(1)
    first, last = map(int, given.seeds.split(":"))
    tally = Tally(given.tally)
    for seed in range(first, last):
        if (given.actors, seed) in tally.done:
            continue
        folder = tempfile.mkdtemp(dir=given.folder)
        try:
            run(seed, tuple(given.actors.split(",")), folder)
        except AssertionError as error:
            print(error, flush=True)
            tally.add(given.actors, seed, is_fine=False)
        else:
            tally.add(given.actors, seed, is_fine=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    print(tally.told(given.actors))


if __name__ == "__main__":
    main()
