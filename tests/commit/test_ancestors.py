"""Whether a version is in the newest one's past, where what lay between was pruned: judged by what later versions hold."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
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
    "drop columns": Verb(lambda table: table.drop_columns(["c"]), lambda found: "c" not in found.schema.names),
    "compact": Verb(
        lambda table: table.optimize.compact_files(),
        lambda found: {0, 1}.isdisjoint(fragment.fragment_id for fragment in found.get_fragments()),
    ),
    "build an index": Verb(lambda table: table.create_scalar_index("a", "BTREE"), lambda found: bool(found.list_indices())),
}


def _values(found: Any, column: str) -> list[int]:
    values: list[int] = found.to_table()[column].to_pylist()
    return values


@pytest.mark.parametrize("others", [1, 2, 3, 5])
@pytest.mark.parametrize("name", VERBS)
def test_whoever_sleeps_before_its_put_loses_no_work_in_silence(
    name: str, others: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others commit and prune all but the newest version, so that the number is free again: what is told is so."""
    uri = str(tmp_path / "t")
    for start in (0, 5):
        values = pa.array(range(start, start + 5), pa.int64())
        lance.write_dataset(pa.table({"a": values, "c": values}), uri, mode="append" if start else "create")
    lance.dataset(uri).delete("a = 6")
    put, slept = LocalStore.put_if_absent, list[str]()

    def late(store: LocalStore, path: str, *more: Any, **options: Any) -> None:
        if path.endswith(".manifest") and not slept:
            slept.append(path)
            for number in range(others):
                rows = pa.array([100 + number], pa.int64())
                lance.write_dataset(pa.table({"a": rows, "c": rows}), uri, mode="append")
            newest = lance.dataset(uri).version
            plain = LocalStore(uri)
            for entry in list_versions(plain):
                if entry.version != newest:
                    plain.delete(entry.path)
        put(store, path, *more, **options)

    monkeypatch.setattr(LocalStore, "put_if_absent", late)
    is_done = True
    try:
        VERBS[name].run(LanceDataset(uri))
    except LanceError:
        is_done = False
    assert slept
    found = lance.dataset(uri)
    assert set(range(100, 100 + others)) <= set(_values(found, "a"))
    assert VERBS[name].shows(found) == is_done
