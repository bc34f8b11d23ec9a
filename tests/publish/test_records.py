"""Records of many identities at once: a decision each, flat names, removals in bulk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from lance_core.errors import InputError
from lance_core.io import many as bulk
from lance_core.io.local.store import LocalStore
from lance_core.io.memory import MemoryStore
from lance_core.io.store import Store
from lance_core.io.wrapped import CountingStore
from lance_core.publish.abort import abort_attempt
from lance_core.publish.attempts import list_staged, started_keys
from lance_core.publish.commit import commit_staged
from lance_core.publish.decisions import CommittedWork, decision_path, list_identities, look, look_many, say_committed
from lance_core.publish.stage import begin_attempt
from tests.commit.commit_support import append, create, paths, stage
from tests.publish.publish_support import records


@pytest.mark.parametrize("kind", ["local", "memory"])
def test_each_member_of_a_fold_has_its_decision(kind: str, tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "t") if kind == "local" else MemoryStore("records-of-a-fold")
    create(store)
    refs = [stage(store, (7,), identity=f"job-{number}") for number in range(140)]
    say_committed(store, CommittedWork("job-5", 1), by="an action that was done before")
    result = commit_staged(store, refs)
    assert (result.num_versions, result.rows_added) == (1, 139)
    states = look_many(store, [ref.identity for ref in refs])
    for ref in refs:
        done = states[ref.identity].committed
        assert done is not None
        expected = (1, ref.attempt, "") if ref.identity == "job-5" else (2, ref.attempt, ref.digest)
        assert (done.version, done.attempt, done.digest) == expected
        assert states[ref.identity].number == 2
    # What was noted without a version is left to whoever has noted it, and to garbage collection.
    assert {path.split(".")[0] for path in records(store)} <= {"_lance_core/staged/job-5"}


def test_identities_that_look_like_attempts_keep_apart() -> None:
    store = MemoryStore("names-of-records")
    create(store)
    outer, inner = "job", "job.0123456789abcdef"
    one, two = stage(store, (7,), identity=outer), stage(store, (8,), identity=inner)
    numbered = stage(store, (9,), identity="job.000001")
    running = begin_attempt(store, identity="job.finished", spec={}, read_version=1)
    assert started_keys(store, outer) == [(outer, one.attempt)]
    assert started_keys(store, inner) == [(inner, two.attempt)]
    assert [(entry.identity, entry.state) for entry in list_staged(store, identity=outer)] == [(outer, "finished")]
    assert {entry.identity: entry.attempt for entry in list_staged(store)} == {
        outer: one.attempt, inner: two.attempt, "job.finished": running.attempt, "job.000001": numbered.attempt,
    }  # fmt: skip
    assert list_identities(store) == {outer: [1], inner: [1], "job.000001": [1]}
    assert decision_path(outer, 1) != decision_path("job.000001", 1)
    assert [look(store, name).finished for name in (outer, inner, "job.000001")] == [one, two, numbered]
    assert look(store, "job.finished").number == 0
    abort_attempt(store, inner, two.attempt)
    assert commit_staged(store, [one]).rows_added == 1


def test_a_commit_of_many_asks_little_for_each(tmp_path: Path) -> None:
    """Of each: its decisions, its file, a decision, two removals."""
    inner = LocalStore(tmp_path / "t")
    create(inner)
    counted: list[int] = []
    for count in (10, 30):
        refs = [stage(inner, (7,)) for _ in range(count)]
        store = CountingStore(inner)
        commit_staged(store, refs)
        counted.append(store.counts.calls)
        append(inner, (8,))
    assert counted[1] - counted[0] <= 20 * 7


def test_slow_removals_are_shared_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "_QUICK_SECONDS", 0.0)
    store: Store = LocalStore(tmp_path / "t")
    names: Sequence[str] = [f"notes/{number}" for number in range(100)]
    for name in names:
        store.put(name, b"x", durable=False)
    store.put("kept", b"x")
    bulk.delete_groups(store, [names[start : start + 3] for start in range(0, 100, 3)])
    assert paths(store) == {"kept"}
    bulk.delete_all(store, [])


class Asked(LocalStore):
    """Notes which files it was asked for one by one."""

    def missing(self, paths: Sequence[str]) -> list[str]:
        """As the store's, with a note."""
        self.asked = [*getattr(self, "asked", []), *paths]
        return super().missing(paths)


@pytest.mark.parametrize("many", [True, False], ids=["listed", "asked"])
def test_files_that_are_missing_among_very_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many: bool) -> None:
    monkeypatch.setattr(bulk, "_VERY_MANY", 40 if many else 4096)
    store = Asked(tmp_path / "t")
    names = [f"{folder}/{number}" for number in range(50) for folder in ("data", "_deletions", "_indices/a")]
    for name in names:
        store.put(name, b"x", durable=False)
    gone = ["data/7", "nowhere/1", "_indices/a/49", "data/folder", "data/dangling"]
    for name in ("data/7", "_indices/a/49"):
        store.delete(name)
    (tmp_path / "t/data/folder").mkdir()
    (tmp_path / "t/data/dangling").symlink_to("nothing")
    (tmp_path / "t/data/link").symlink_to("8")
    assert bulk.missing(store, [*names, "data/link", *gone[1:2], *gone[3:]]) == [
        name for name in [*names, *gone[1:2], *gone[3:]] if name in gone
    ]
    if many:
        assert sorted(store.asked) == sorted([*gone, "data/link"])


def test_a_crowded_folder_is_not_listed_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "_VERY_MANY", 4)
    monkeypatch.setattr(bulk, "_LISTED_PER_ASKED", 2)
    store = Asked(tmp_path / "t")
    names = [f"data/{number}" for number in range(100)]
    for name in names:
        store.put(name, b"x", durable=False)
    assert bulk.missing(store, [*names[:3], "data/none"]) == ["data/none"]
    assert "data/none" in store.asked
    assert store.not_listed(names, most=8) != []
    assert len(store.not_listed(names, most=8)) == 92
    assert store.not_listed(names, most=100) == []


def test_very_many_paths_are_checked_as_one_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "_VERY_MANY", 4)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_text("x")
    store = LocalStore(tmp_path / "t")
    store.put("data/a", b"x")
    for climbing in ("../outside/a", "data/../../outside/a", "/etc/passwd"):
        with pytest.raises(InputError):
            bulk.missing(store, ["data/a", "data/a", "data/a", climbing])
