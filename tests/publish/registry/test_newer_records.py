"""Records of a newer release: every kind of record before everything that commits, removes or lists."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from lance_core.cli.main import cli
from lance_core.commit import naming
from lance_core.commit.manifests import find_latest_version
from lance_core.dataset.versions.cleanup import plan_cleanup, run_cleanup
from lance_core.errors import UnsupportedRecordError
from lance_core.io.local.store import LocalStore
from lance_core.jobs import run_job
from lance_core.jobs.specs.spec import CommitSpec
from lance_core.publish.model import StagedTransaction
from lance_core.publish.record_types import APART, PUBLISH, WITHDRAW
from lance_core.publish.registry.attempts import finished_path, list_staged, record_path
from lance_core.publish.registry.claims import list_claims
from lance_core.publish.registry.fences import fence_path
from lance_core.publish.registry.incarnation import INCARNATION_PATH
from lance_core.publish.registry.ledger import COMPLETE_PATH
from lance_core.publish.registry.segments import HINT_PATH
from lance_core.publish.service.commit_staged import commit_staged
from lance_core.publish.staging.abort import abort_attempt
from lance_core.publish.staging.garbage import collect_garbage
from lance_core.publish.staging.staged import begin_attempt
from tests.commit.commit_support import append, create, stage, write_fragment

INTERRUPTED = "interrupted"


class World:
    """A table with landed work, staged work that waits for its commit, and a try whose lease is over."""

    def __init__(self, folder: Path) -> None:
        self.store = LocalStore(folder / "t")
        self.uri = str(folder / "t")
        create(self.store)
        self.landed = stage(self.store, (7,))
        commit_staged(self.store, [self.landed])
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


def _ledger(ref: StagedTransaction) -> tuple[str, dict[str, object]]:
    plain = {"identity": ref.identity, "version": 2, "transaction": ref.identity, "attempt": ref.attempt}
    return naming.ledger_path(ref.identity), plain


def _fence(ref: StagedTransaction) -> str:
    return fence_path(ref.identity, ref.attempt)


_SEGMENT = {"name": "00000001-0123456789abcdef.seg", "count": 1, "firsts": [""], "ends": [9]}

KINDS: Mapping[str, Callable[[World], tuple[str, dict[str, object]]]] = {
    "started": lambda world: (record_path(world.waiting.identity, world.waiting.attempt, "started"), {}),
    "started, over": lambda world: (record_path("dead", world.dead.attempt, "started"), {}),
    "finished": lambda world: (finished_path(world.waiting.identity), {}),
    "mark": lambda world: (
        record_path(world.waiting.identity, world.waiting.attempt, "withdrawn"),
        {"attempt": world.waiting.attempt, "since": 1.0},
    ),
    "fence": lambda world: (_fence(world.waiting), {"outcome": WITHDRAW, "by": "abort"}),
    "group": lambda world: (naming.group_path(world.waiting.group), {"outcome": APART}),
    "ledger, landed": lambda world: (_ledger(world.landed)[0], {}),
    "ledger, staged": lambda world: _ledger(world.waiting),
    "ledger, complete to": lambda world: (COMPLETE_PATH, {"version": 1}),
    "ledger, index": lambda world: (HINT_PATH, {"number": 1, "count": 1, "segments": [_SEGMENT]}),
    "claim": lambda world: (
        f"{naming.COMMITS}/00ff00ff00ff00ff.json",
        {"commit": "00ff00ff00ff00ff", "uuids": [], "identities": [world.waiting.identity], "since": 1.0},
    ),
    "incarnation": lambda world: (INCARNATION_PATH, {"incarnation": "a", "version": 3, "transaction": "b"}),
    "re-execution": lambda world: (
        f"{naming.staged_folder(INTERRUPTED)}/reexecute.json",
        {"identity": INTERRUPTED, "spec": {"kind": "append"}},
    ),
}


def _commit(world: World, kind: str) -> None:
    identity = {"ledger, landed": world.landed.identity, "re-execution": INTERRUPTED}.get(kind, world.waiting.identity)
    # A group is asked for only where several of it are committed together.
    more = (world.second.identity,) if kind == "group" else ()
    run_job(CommitSpec(uri=world.uri, identities=(identity, *more)))


def _abort(world: World, kind: str) -> None:
    ref = world.landed if kind == "ledger, landed" else world.waiting
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
    "abort": _abort,
    "gc": _gc,
    "cleanup": _cleanup,
    "list": _list,
}

UNREAD = {
    "started": {"commit"},
    "started, over": {"commit"},
    "mark": {"commit", "gc", "cleanup", "list"},
    "fence": {"cleanup"},
    "group": {"cleanup", "list"},
    "ledger, landed": {"gc", "list"},
    "ledger, staged": {"commit", "list"},
    "ledger, complete to": {"commit", "abort", "gc", "list"},
    "ledger, index": {"commit", "list"},
    "claim": {"commit"},
    "incarnation": {"commit", "abort", "gc", "list"},
    "re-execution": {"abort", "gc", "cleanup", "list"},
}
"""By kind: what has no need to read it, and leaves what it speaks of alone."""

FORGOTTEN = {("started", "commit")}
"""A commit removes the record of the try that it publishes: its finished record says all."""

TOLD_LATE = {("ledger, staged", "commit")}
"""The log alone decides about work that was staged on one of its versions: only telling the ledger is refused."""

CASES = [(kind, action) for kind in KINDS for action in ACTIONS if (kind, action) not in TOLD_LATE]


@pytest.mark.parametrize(("kind", "action"), CASES, ids=[f"{kind}-{action}" for kind, action in CASES])
def test_an_unknown_format_is_refused_by_name(tmp_path: Path, kind: str, action: str) -> None:
    _refused(World(tmp_path), kind, action, {"format": 99})


@pytest.mark.parametrize("changed", ["2", None, True, -1], ids=repr)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_known_number_is_refused_as_well(tmp_path: Path, kind: str, changed: object) -> None:
    _refused(World(tmp_path), kind, "abort", {"format": changed})


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize(("kind", "expected"), [("fence", [PUBLISH, WITHDRAW]), ("group", [PUBLISH, APART])])
def test_an_unknown_decision_is_refused_by_name(tmp_path: Path, kind: str, expected: list[str], action: str) -> None:
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
    # Neither a decision nor a mark is left over what was spared.
    added = [name for name in after.keys() - before.keys() if not name.startswith((naming.FENCES, INCARNATION_PATH))]
    assert action == "commit" or not added
    return str(caught.value)


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
        ACTIONS[action](world, "group")
    assert (list_staged(world.store), list_claims(world.store)) == ([], [])
