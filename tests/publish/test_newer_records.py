"""Records of a newer release: every kind of record before everything that commits, removes or lists."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import lance_core
from lance_core.cli.main import cli
from lance_core.commit import naming
from lance_core.commit.loop import commit_transaction
from lance_core.commit.manifests import find_latest_version
from lance_core.dataset.versions.cleanup import plan_cleanup, run_cleanup
from lance_core.errors import UnsupportedRecordError
from lance_core.io.local.store import LocalStore
from lance_core.io.store import Store
from lance_core.jobs import run_job
from lance_core.jobs.specs.edits import DeleteSpec
from lance_core.jobs.specs.spec import CommitSpec
from lance_core.publish.abort import abort_attempt
from lance_core.publish.attempts import list_staged, record_path
from lance_core.publish.collect import collect_garbage
from lance_core.publish.commit import commit_staged
from lance_core.publish.decisions import ABORTED, COMMITTED, FINISHED, decision_path
from lance_core.publish.history import SETTLED_PATH
from lance_core.publish.intent import ABORTS, COMMITS, list_intents
from lance_core.publish.records import FORMAT
from lance_core.publish.segments import HINT_PATH
from lance_core.publish.stage import begin_attempt
from lance_core.publish.table_id import RECORDS_KEY, TABLE_PATH
from lance_core.table.operations.update_config import MapUpdate, UpdateConfig
from lance_core.table.transaction import Transaction
from tests.commit.commit_support import append, create, stage, write_fragment


class World:
    """A table with committed work, staged work that waits for its commit, and a try whose lease is over."""

    def __init__(self, folder: Path) -> None:
        self.store = LocalStore(folder / "t")
        self.uri = str(folder / "t")
        create(self.store)
        self.done = stage(self.store, (7,))
        commit_staged(self.store, [self.done])
        append(self.store, (8,))
        self.waiting, self.second = stage(self.store, (9,)), stage(self.store, (11,))
        self.dead = begin_attempt(self.store, identity="dead", spec={"kind": "append"}, read_version=3, lease_seconds=1)
        write_fragment(self.store, (10,), attempt=self.dead.attempt)

    def content(self) -> dict[str, bytes]:
        """Every object of the table."""
        return {entry.path: bytes(self.store.get(entry.path)) for entry in self.store.list("")}

    def plant(self, kind: str, changed: Mapping[str, object]) -> str:
        """Put a record of this kind, valid but for what is changed; where it is."""
        path, plain = KINDS[kind](self)
        if not plain:
            plain = json.loads(bytes(self.store.get(path)))
        self.store.put(path, json.dumps({"format": 2, **plain, **changed}).encode())
        return path


_SEGMENT = {"name": "00000001-0123456789abcdef.seg", "count": 1, "firsts": [""], "ends": [9]}


def _next(world: World, outcome: str, number: int = 2) -> tuple[str, dict[str, object]]:
    """A further decision of what waits for its commit."""
    ref = world.waiting
    plain: dict[str, object] = {"identity": ref.identity, "number": number, "outcome": outcome, "attempt": ref.attempt}
    state = {FINISHED: {"finished": ref.to_dict()}, ABORTED: {"aborted": {ref.attempt: "abort"}}}
    committed = {"committed": {"version": 2, "transaction": ref.identity, "attempt": ref.attempt}}
    return decision_path(ref.identity, number), {**plain, **state.get(outcome, committed)}


def _intent(world: World, outcome: str) -> tuple[str, dict[str, object]]:
    commit, ref = "00ff00ff00ff00ff", world.waiting
    plain: dict[str, object] = {"commit": commit, "outcome": outcome, "uuids": [], "base": 3, "since": 1.0}
    return f"{naming.INTENTS}/{commit}.json", {**plain, "attempts": {ref.identity: ref.attempt}}


KINDS: Mapping[str, Callable[[World], tuple[str, dict[str, object]]]] = {
    "started": lambda world: (record_path(world.waiting.identity, world.waiting.attempt), {}),
    "started, over": lambda world: (record_path("dead", world.dead.attempt), {}),
    "finished": lambda world: (decision_path(world.waiting.identity, 1), {}),
    "aborted": lambda world: _next(world, ABORTED),
    "committed": lambda world: _next(world, COMMITTED),
    "committed before": lambda world: (decision_path(world.done.identity, 2), {}),
    "settled": lambda world: (SETTLED_PATH, {"version": 1}),
    "segments": lambda world: (HINT_PATH, {"number": 1, "count": 1, "segments": [_SEGMENT]}),
    "intent of a commit": lambda world: _intent(world, COMMITS),
    "intent of an abort": lambda world: _intent(world, ABORTS),
    "table": lambda world: (TABLE_PATH, {"table_id": "a", "version": 3, "transaction": "b"}),
}


def _commit(world: World, kind: str) -> None:
    identity = world.done.identity if kind == "committed before" else world.waiting.identity
    run_job(CommitSpec(uri=world.uri, identities=(identity, world.second.identity)))


def _commit_one(world: World, kind: str) -> None:
    ref = world.done if kind == "committed before" else world.waiting
    commit_staged(world.store, [ref])


def _stage(world: World, kind: str) -> None:
    identity = {"started, over": "dead", "committed before": world.done.identity}.get(kind, world.waiting.identity)
    stage(world.store, (9,), identity=identity)


def _abort(world: World, kind: str) -> None:
    ref = world.done if kind == "committed before" else world.waiting
    key = ("dead", world.dead.attempt) if kind == "started, over" else (ref.identity, ref.attempt)
    abort_attempt(world.store, *key)


def _gc(world: World, kind: str) -> None:
    collect_garbage(world.store, now=time.time() + 1e6)


def _cleanup(world: World, kind: str) -> None:
    run_cleanup(world.store, plan_cleanup(world.store, retain_versions=1))


def _list(world: World, kind: str) -> None:
    found = CliRunner().invoke(cli, ["staged", "list", world.uri])
    if found.exception is not None:
        raise found.exception


ACTIONS: Mapping[str, Callable[[World, str], None]] = {
    "commit": _commit,
    "commit of one": _commit_one,
    "stage": _stage,
    "abort": _abort,
    "gc": _gc,
    "cleanup": _cleanup,
    "list": _list,
}

UNREAD: Mapping[str, set[str]] = {
    "started": {"commit", "commit of one", "stage"},
    "started, over": {"commit", "commit of one", "stage"},
    "committed before": {"gc", "list"},
    "settled": {"commit", "commit of one", "stage", "abort", "gc", "list"},
    "segments": {"commit of one"},
    "intent of a commit": {"commit", "commit of one", "stage"},
    "intent of an abort": {"commit", "commit of one", "stage"},
    "table": {"commit", "commit of one", "stage", "abort", "gc", "list"},
}
"""By kind: what has no need to read it, and leaves what it speaks of alone."""

FORGOTTEN = {("started", "commit"), ("started", "commit of one")}
"""A commit removes the record of the try that it publishes: its decision says all."""

CASES = [(kind, action) for kind in KINDS for action in ACTIONS]


@pytest.mark.parametrize(("kind", "action"), CASES, ids=[f"{kind}-{action}" for kind, action in CASES])
def test_an_unknown_format_is_refused_by_name(tmp_path: Path, kind: str, action: str) -> None:
    _refused(World(tmp_path), kind, action, {"format": 99})


@pytest.mark.parametrize("changed", ["2", None, True, -1], ids=repr)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_known_number_is_refused_as_well(tmp_path: Path, kind: str, changed: object) -> None:
    _refused(World(tmp_path), kind, "abort", {"format": changed})


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("finished", [FINISHED, ABORTED, COMMITTED]),
        ("aborted", [FINISHED, ABORTED, COMMITTED]),
        ("intent of a commit", [COMMITS, ABORTS]),
    ],
)
def test_an_unknown_outcome_is_refused_by_name(tmp_path: Path, kind: str, expected: list[str], action: str) -> None:
    world = World(tmp_path)
    refusal = _refused(world, kind, action, {"outcome": "parked"})
    assert not refusal or "'parked'" in refusal
    assert not refusal or " or ".join(expected) in refusal


def _refused(world: World, kind: str, action: str, changed: Mapping[str, object]) -> str:
    path = world.plant(kind, changed)
    before, version = world.content(), find_latest_version(world.store)
    if action in UNREAD.get(kind, ()):
        ACTIONS[action](world, kind)
        assert (kind, action) in FORGOTTEN or bytes(world.store.get(path)) == before[path]
        return ""
    with pytest.raises(UnsupportedRecordError, match=re.escape(path)) as caught:
        ACTIONS[action](world, kind)
    assert "newer release" in str(caught.value)
    assert not caught.value.retryable
    after = world.content()
    assert before.items() <= after.items()
    assert find_latest_version(world.store) == version
    # Nothing is left over what was spared.
    added = [name for name in after.keys() - before.keys() if not name.startswith(TABLE_PATH)]
    assert action.startswith("commit") or not added
    return str(caught.value)


def _need(world: World, text: str) -> None:
    """What a newer release does before it writes a record that this one does not know."""
    _configure(world.store, text)


def _configure(store: Store, text: str) -> None:
    update = UpdateConfig(MapUpdate({RECORDS_KEY: text}))
    commit_transaction(store, Transaction(find_latest_version(store) or 0, str(uuid.uuid4()), update))


@pytest.mark.parametrize("action", ["commit", "commit of one", "abort", "gc", "cleanup"])
@pytest.mark.parametrize("needed", ['{"min_reader":2,"min_writer":3}', '{"min_reader":3,"min_writer":3}', '{"new":[]}', "x"])
def test_a_table_of_a_newer_release_is_left_alone(tmp_path: Path, action: str, needed: str) -> None:
    """It says so in its config, which every manifest has: no record of it need be read."""
    world = World(tmp_path)
    _need(world, needed)
    before, version = world.content(), find_latest_version(world.store)
    with pytest.raises(UnsupportedRecordError, match=re.escape(RECORDS_KEY)) as caught:
        ACTIONS[action](world, "finished")
    assert not caught.value.retryable
    if "min_" in needed:
        assert ("min_reader" if '"min_reader":3' in needed else "min_writer") + ": expected at most 2, got 3" in str(
            caught.value
        )
    assert before.items() <= world.content().items()
    assert find_latest_version(world.store) == version


def test_nothing_is_staged_on_a_table_of_a_newer_release(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance_core.write_dataset(pa.table({"id": [1]}), uri)
    spec = DeleteSpec(uri=uri, predicate="id = 1", identity="work")
    table = LocalStore(tmp_path / "t")
    _configure(table, '{"min_reader":3,"min_writer":3}')
    before = {entry.path for entry in table.list("")}
    with pytest.raises(UnsupportedRecordError, match=r"min_reader: expected at most 2, got 3"):
        run_job(spec)
    assert {entry.path for entry in table.list("")} == before


def test_what_speaks_of_another_table_does_not_count(tmp_path: Path) -> None:
    """A clone has the config of its source, a table that was made again may have been given that of the one before."""
    world = World(tmp_path)
    _need(world, '{"min_reader":3,"min_writer":3,"table_id":"another"}')
    _commit(world, "finished")
    assert [entry.identity for entry in list_staged(world.store)] == ["dead"]


def test_who_knows_as_much_as_is_needed_goes_on(tmp_path: Path) -> None:
    world = World(tmp_path)
    _need(world, f'{{"min_reader":{FORMAT},"min_writer":{FORMAT}}}')
    _commit(world, "finished")
    assert [entry.identity for entry in list_staged(world.store)] == ["dead"]


def test_a_list_shows_the_rest_and_names_the_record(tmp_path: Path) -> None:
    world = World(tmp_path)
    path = world.plant("started, over", {"format": 99})
    found = CliRunner().invoke(cli, ["staged", "list", world.uri, "--json"])
    assert world.waiting.identity in found.output
    assert isinstance(found.exception, UnsupportedRecordError)
    assert path in str(found.exception)
    unsupported: list[UnsupportedRecordError] = []
    assert [entry.identity for entry in list_staged(world.store, unsupported=unsupported)] == [
        world.waiting.identity,
        world.second.identity,
    ]
    assert len(unsupported) == 1
    # What is not about this one is not in its way.
    assert CliRunner().invoke(cli, ["staged", "show", world.uri, world.waiting.identity]).exit_code == 0
    assert path in str(CliRunner().invoke(cli, ["staged", "show", world.uri, "dead"]).exception)


def test_all_goes_on_when_the_record_is_known(tmp_path: Path) -> None:
    """The same actions on the same table, with nothing planted: what refuses above is the record alone."""
    world = World(tmp_path)
    for action in ("list", "commit", "gc", "cleanup"):
        ACTIONS[action](world, "finished")
    assert (list_staged(world.store), list_intents(world.store)) == ([], [])
