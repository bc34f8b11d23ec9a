"""Many small files of a local store at once: links to one content, removals that look at each folder once."""

from __future__ import annotations

from pathlib import Path

import pytest

from lance_core.errors import InputError
from lance_core.io.local.store import LocalStore


def test_one_content_under_many_names(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "t")
    store.put_if_absent("notes/b", b"mine")
    assert store.put_same_if_absent(["notes/a", "notes/b", "notes/c"], b"same", durable=False) == ["notes/b"]
    assert [bytes(store.get(f"notes/{name}")) for name in "abc"] == [b"same", b"mine", b"same"]
    assert not [*store.list_unfinished("")]
    assert (tmp_path / "t/notes/a").samefile(tmp_path / "t/notes/c")
    # A name that is written anew leaves the others alone.
    store.put("notes/a", b"other")
    store.delete("notes/b")
    assert bytes(store.get("notes/c")) == b"same"
    assert store.put_same_if_absent([], b"") == []


def test_removals_in_bulk_leave_no_empty_folder(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "t")
    for path in ("a/b/1", "a/b/2", "a/c/3", "d/4", "d/5"):
        store.put(path, b"x")
    store.delete_many(["a/b/1", "a/b/2", "nothing/here", "a/c/3", "d/4"])
    assert [entry.path for entry in store.list("")] == ["d/5"]
    assert [path.name for path in (tmp_path / "t").iterdir()] == ["d"]
    with pytest.raises(InputError):
        store.delete_many(["../up"])
