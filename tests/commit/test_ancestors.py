"""Whether a version is in the newest one's past, where what lay between was pruned: judged by what later versions hold."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import lance
import pyarrow as pa
import pytest

from lance_core.commit import naming
from lance_core.commit.history import is_ancestor
from lance_core.commit.loop import commit_transaction
from lance_core.commit.manifests import list_versions, load_manifest
from lance_core.commit.transactions import load_transaction
from lance_core.dataset import LanceDataset
from lance_core.errors import CommitStateUnknownError, LanceError
from lance_core.io.local.store import LocalStore
from tests.commit.commit_support import create, paths
from tests.commit.test_rebase import delete


def _prune(store: LocalStore, *versions: int) -> None:
    for entry in list_versions(store):
        if entry.version in versions:
            store.delete(entry.path)


@pytest.mark.parametrize("name", [None, "5d2c1f2e-7c0b-4c9a-9d55-0f3e6a1b2c3d.lance"], ids=["names of today", "older names"])
def test_deletions_are_found_again_in_those_of_later_versions(
    name: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each delete writes a fragment's deletion file anew, so nothing that version 2 brought is named in version 4."""
    store = LocalStore(tmp_path / "t")
    if name is not None:  # of a writer whose files name no attempt
        monkeypatch.setattr(naming, "data_file_name", lambda _=None: name)
    create(store, range(10))
    shutil.copytree(tmp_path / "t", tmp_path / "asleep")
    for row in (1, 2, 5):
        commit_transaction(store, delete(store, {0: [row]}, read_version=load_manifest(store).version))
    mine, transaction = load_manifest(store, 2), load_transaction(store, 2)
    _prune(store, 1, 3)
    assert [entry.version for entry in list_versions(store)] == [2, 4]
    assert is_ancestor(store, mine, transaction)
    with pytest.raises(CommitStateUnknownError):
        is_ancestor(store, mine, transaction, may_be_twice=True)

    # Another version 2, of a writer that slept while that number was pruned: its row is there in version 4.
    asleep = LocalStore(tmp_path / "asleep")
    commit_transaction(asleep, delete(asleep, {0: [8]}, read_version=1))
    for path in paths(asleep) - paths(store):
        store.put(path, asleep.get(path))
    with pytest.raises(CommitStateUnknownError):
        is_ancestor(store, load_manifest(asleep, 2), load_transaction(asleep, 2))


class Verb(NamedTuple):
    """What a writer does, and whether a table shows it."""

    run: Callable[[LanceDataset], object]
    shows: Callable[[Any], bool]


NEW = pa.table({"a": pa.array([8, 77], pa.int64()), "c": pa.array([-8, 77], pa.int64())})
VERBS: Mapping[str, Verb] = {
    "append": Verb(lambda table: table.insert(NEW.slice(1)), lambda found: 77 in _values(found, "a")),
    "delete": Verb(lambda table: table.delete("a = 8"), lambda found: 8 not in _values(found, "a")),
    "update": Verb(lambda table: table.update({"c": "-8"}, where="a = 8"), lambda found: -8 in _values(found, "c")),
    "merge": Verb(
        lambda table: table.merge_insert("a").when_matched_update_all().when_not_matched_insert_all().execute(NEW),
        lambda found: -8 in _values(found, "c"),
    ),
    "add columns": Verb(lambda table: table.add_columns({"b": "a + 1"}), lambda found: "b" in found.schema.names),
    "rename a column": Verb(
        lambda table: table.alter_columns({"path": "c", "name": "d"}), lambda found: "d" in found.schema.names
    ),
    "set configuration": Verb(
        lambda table: table.update_config({"mine": "1"}), lambda found: found.config().get("mine") == "1"
    ),
    "set metadata": Verb(
        lambda table: table.update_schema_metadata({"mine": "1"}), lambda found: found.schema.metadata == {b"mine": b"1"}
    ),
    "drop an index": Verb(lambda table: table.drop_index("there"), lambda found: "there" not in _indices(found)),
    "drop columns": Verb(lambda table: table.drop_columns(["c"]), lambda found: "c" not in found.schema.names),
    "compact": Verb(
        lambda table: table.optimize.compact_files(),
        lambda found: {0, 1}.isdisjoint(fragment.fragment_id for fragment in found.get_fragments()),
    ),
    "build an index": Verb(lambda table: table.create_scalar_index("a", "BTREE"), lambda found: "a_idx" in _indices(found)),
}


def _indices(found: Any) -> set[str]:
    return {index.name for index in found.describe_indices()}


def _values(found: Any, column: str) -> list[int]:
    values: list[int] = found.to_table()[column].to_pylist()
    return values


ROWS = 10
FREE = (9, 5, 7, 0, 1)
"""Rows that others may delete or update: in the fragment of row 8, which the sleeping verbs change, and in the other."""


def _append(table: Any, number: int) -> None:
    rows = pa.array([100 + number], pa.int64())
    lance.write_dataset(pa.table({"a": rows, "c": rows}), table, mode="append")


def _add_column(table: Any, number: int) -> None:
    table.add_columns({f"z{number}": "a"})


def _delete_and_compact(table: Any, number: int) -> None:
    table.delete(f"a = {FREE[number]}")
    table.optimize.compact_files()


OTHERS: Mapping[str, Callable[[Any, int], object]] = {
    "append": _append,
    "delete": lambda table, number: table.delete(f"a = {FREE[number]}"),
    "update": lambda table, number: table.update({"c": f"{1000 + number}"}, where=f"a = {FREE[number]}"),
    "delete and compact": _delete_and_compact,
    "add columns": _add_column,
    "append, add columns": lambda table, number: (_append if number % 2 == 0 else _add_column)(table, number),
    "delete, add columns": lambda table, number: (
        table.delete(f"a = {FREE[number]}") if number % 2 == 0 else _add_column(table, number)
    ),
    "build indices": lambda table, number: table.create_scalar_index("a", "BTREE", name=f"a{number}", replace=False),
    "rename a column": lambda table, number: table.alter_columns({"path": f"e{number}", "name": f"e{number + 1}"}),
    "set configuration": lambda table, number: table.update_config({f"theirs{number}": "1"}),
}
PROVES_NOTHING = {("compact", "delete and compact")}
"""Whose trace others leave as well."""


class Sleeper:
    """A table of ten rows on a branch or on none, and a writer that sleeps right before the put of its manifest."""

    def __init__(self, uri: str, branch: str | None) -> None:
        self._uri, self._branch = uri, branch
        self.folder = uri if branch is None else f"{uri}/tree/{branch}"
        for start in (0, 5):
            values = pa.array(range(start, start + 5), pa.int64())
            rows = pa.table({"a": values, "c": values, "e0": values})
            lance.write_dataset(rows, uri, mode="append" if start else "create")
        lance.dataset(uri).create_scalar_index("c", "BTREE", name="there")
        if branch is not None:
            lance.dataset(uri).create_branch(branch)
        self.official().delete("a = 6")

    def official(self) -> Any:
        """The newest version as the official library has it."""
        table = lance.dataset(self._uri)
        return table if self._branch is None else table.checkout_version((self._branch, None))

    def run(self, verb: Verb, others: Callable[[Any, int], object], rounds: int, monkeypatch: pytest.MonkeyPatch) -> bool:
        """Whether the verb tells that it is done; while it slept, others committed and pruned all but the newest version."""
        put, slept = LocalStore.put_if_absent, list[str]()

        def late(store: LocalStore, path: str, *more: Any, **options: Any) -> None:
            if path.endswith(".manifest") and not slept:
                slept.append(path)
                for number in range(rounds):
                    others(self.official(), number)
                plain = LocalStore(self.folder)
                _prune(plain, *(entry.version for entry in list_versions(plain) if entry.version != self.official().version))
            put(store, path, *more, **options)

        monkeypatch.setattr(LocalStore, "put_if_absent", late)
        table = LanceDataset(self._uri)
        try:
            verb.run(table if self._branch is None else table.checkout_version((self._branch, None)))
        except LanceError:
            return False
        finally:
            assert slept
            monkeypatch.undo()
        return True


def _is_there(found: Any, others: str, number: int) -> bool:
    """Whether the table shows what others did in this round."""
    if others in ("append, add columns", "delete, add columns"):
        others = others.split(", ")[number % 2]
    names = found.schema.names
    if others == "append":
        return 100 + number in _values(found, "a")
    if others == "update":
        column = "c" if "c" in names else "d" if "d" in names else None
        return (
            column is None
            or dict(zip(_values(found, "a"), _values(found, column), strict=True))[FREE[number]] == 1000 + number
        )
    if others == "add columns":
        return f"z{number}" in names
    if others == "build indices":
        return f"a{number}" in _indices(found)
    if others == "rename a column":
        return f"e{number}" not in names
    return found.config().get(f"theirs{number}") == "1" if "config" in others else FREE[number] not in _values(found, "a")


def _situations() -> Iterator[Any]:
    """Others, branch and rounds. The number is taken right below the newest version with two rounds; the rest is slow."""
    for others, branch, rounds in product(OTHERS, (None, "side"), (1, 2, 3, 5)):
        is_quick = (
            rounds == 2 or others == "append" if branch is None else rounds == 2 and others in ("append", "add columns")
        )
        marks = () if is_quick else pytest.mark.slow
        yield pytest.param(others, branch, rounds, marks=marks, id=f"{others}-{branch or 'main'}-{rounds}")


@pytest.mark.parametrize(("others", "branch", "rounds"), _situations())
@pytest.mark.parametrize("name", VERBS)
def test_whoever_sleeps_before_its_put_loses_no_work_in_silence(
    name: str, others: str, branch: str | None, rounds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number is free again, since others pruned it: what is told is so, theirs is all there, no row is there twice."""
    if (name, others) in PROVES_NOTHING:
        pytest.skip("others leave the same trace")
    sleeper = Sleeper(str(tmp_path / "t"), branch)
    is_done = sleeper.run(VERBS[name], OTHERS[others], rounds, monkeypatch)
    found = sleeper.official()
    assert VERBS[name].shows(found) == is_done
    assert all(_is_there(found, others, number) for number in range(rounds))
    ids = _values(found, "a")
    deleted = set(FREE[: rounds : 2 if "," in others else 1]) if "delete" in others else set()
    gone = {6} | deleted | ({8} if is_done and name == "delete" else set())
    assert sorted(value for value in ids if value < ROWS) == sorted(set(range(ROWS)) - gone)
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("is_pruned", [False, True], ids=["all are kept", "the one before is pruned"])
@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("name", VERBS)
def test_whoever_is_followed_at_once_is_not_taken_for_a_stray(
    name: str, others: str, is_pruned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version of others comes from the one that was just put: known as such, or unknown where the one before is gone."""
    sleeper = Sleeper(str(tmp_path / "t"), None)
    put, followed = LocalStore.put_if_absent, list[str]()

    def at_once(store: LocalStore, path: str, *more: Any, **options: Any) -> None:
        put(store, path, *more, **options)
        if path.endswith(".manifest") and not followed:
            followed.append(path)
            try:
                OTHERS[others](sleeper.official(), 0)
            except (OSError, ValueError, KeyError) as error:
                pytest.skip(f"others cannot: {error}")  # its column is not there any more
            if is_pruned:
                plain = LocalStore(sleeper.folder)
                mine = load_manifest(plain).version - (2 if "compact" in others else 1)
                _prune(plain, *(entry.version for entry in list_versions(plain) if entry.version < mine))

    monkeypatch.setattr(LocalStore, "put_if_absent", at_once)
    try:
        VERBS[name].run(LanceDataset(sleeper.folder))
    except CommitStateUnknownError:
        assert is_pruned
    monkeypatch.undo()
    assert followed
    found = sleeper.official()
    assert VERBS[name].shows(found)
    assert _is_there(found, others, 0)
