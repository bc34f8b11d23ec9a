"""Symbolic links that another user put below a table's root: nothing behind them is read, written or deleted."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import StoreRefusedError
from lance_core.io.local import store as links
from lance_core.io.local.store import LocalStore
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.edits import DeleteSpec

ROWS = pa.table({"id": range(10)})


@pytest.fixture
def other_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on, links count as those of somebody else."""
    monkeypatch.setattr(links, "trusted_users", lambda: frozenset({os.geteuid() + 12345}))


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    """A table of somebody who is careful, and one whose folder a stranger may write to."""
    victim, hostile = tmp_path / "victim", tmp_path / "hostile"
    for place in (victim, hostile):
        lance_core.write_dataset(ROWS, str(place))
    return victim, hostile


def _link(hostile: Path, victim: Path, folder: str) -> None:
    (hostile / folder).rename(hostile.with_name(f"former-{folder}"))
    (hostile / folder).symlink_to(victim / folder, target_is_directory=True)


def _files(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


VERBS: dict[str, Callable[[str], Any]] = {
    "append": lambda uri: lance_core.write_dataset(ROWS, uri, mode="append"),
    "scan": lambda uri: lance_core.dataset(uri).to_table(),
    "stage": lambda uri: run_job(DeleteSpec(uri=uri, predicate="id = 1")),
    "compact": lambda uri: lance_core.dataset(uri).optimize.compact_files(),
    "index": lambda uri: lance_core.dataset(uri).create_scalar_index("id", "BTREE"),
    "cleanup": lambda uri: lance_core.dataset(uri).cleanup_old_versions(timedelta(0), delete_unverified=True),
}


@pytest.mark.parametrize(
    ("folder", "verb"),
    [("data", "append"), ("data", "scan"), ("data", "cleanup"), ("_versions", "append"), ("_versions", "scan"),
     ("_transactions", "append"), ("_versions", "cleanup"), ("_versions", "stage"), ("_transactions", "cleanup")],
)  # fmt: skip
def test_a_folder_that_is_a_link_of_another_user_is_refused(
    tables: tuple[Path, Path], other_user: None, folder: str, verb: str
) -> None:
    victim, hostile = tables
    lance_core.write_dataset(ROWS, str(hostile), mode="append")
    _link(hostile, victim, folder)
    before = _files(victim)
    with pytest.raises(StoreRefusedError, match="symbolic link of user"):
        VERBS[verb](str(hostile))
    assert _files(victim) == before


def test_a_file_that_is_a_link_of_another_user_is_not_read(tmp_path: Path, other_user: None) -> None:
    (tmp_path / "secret").write_text("hush")
    store = LocalStore(tmp_path / "t")
    store.put("data/a", b"x")
    (tmp_path / "t" / "data" / "b").symlink_to(tmp_path / "secret")
    for read in (store.get, lambda path: store.get_ranges(path, [])):
        with pytest.raises(StoreRefusedError, match="symbolic link of user"):
            read("data/b")
    store.put("data/b", b"y")  # the link is replaced, not what it refers to
    assert ((tmp_path / "secret").read_text(), bytes(store.get("data/b"))) == ("hush", b"y")


def test_a_branch_that_is_a_link_of_another_user_is_refused(tables: tuple[Path, Path], other_user: None) -> None:
    victim, hostile = tables
    (hostile / "tree").symlink_to(victim.parent)
    with pytest.raises(StoreRefusedError, match="symbolic link of user"):
        LocalStore(hostile).child("tree/victim")


def test_own_links_and_a_root_behind_any_link_are_followed(tables: tuple[Path, Path], tmp_path: Path) -> None:
    victim, _ = tables
    (tmp_path / "large").mkdir()
    (victim / "data").rename(tmp_path / "large" / "data")
    (victim / "data").symlink_to(tmp_path / "large" / "data", target_is_directory=True)
    (tmp_path / "name").symlink_to(victim)
    lance_core.write_dataset(ROWS, str(tmp_path / "name"), mode="append")
    assert lance_core.dataset(str(tmp_path / "name")).count_rows() == 20
    assert len(list((tmp_path / "large" / "data").iterdir())) == 2
