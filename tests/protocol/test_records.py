"""Damaged records and lost files: named, set aside, and never in the way of others."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lance_core.cli.main import cli
from lance_core.commit.transactions import read_transaction_file
from lance_core.errors import LanceError, StoreError
from lance_core.io.resolve import resolve_store
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.maintenance import CleanupSpec
from lance_core.publish.attempts import list_staged
from lance_core.publish.collect import collect_garbage
from tests.protocol.protocol_support import (
    Killed,
    append,
    commit,
    hooked,
    ids,
    is_decision_put,
    is_manifest_put,
    new_identity,
    refusal,
)

DAMAGE = {"cut short": b"{", "another shape": b"{}", "a list": b"[]", "empty": b""}


@dataclass(frozen=True)
class Case:
    """Which records are damaged, and what is put where there is none."""

    pattern: str
    path: str = ""


CASES = {
    "started": Case("staged/{X}*started*"),
    "decision": Case("decisions/{X}.*"),
    "intent": Case("intents/*.json", "intents/00ff00ff00ff00ff.json"),
    "segment": Case("segments/*", "segments/00ff00ff00ff00ff.json"),
    "settled": Case("settled.json", "settled.json"),
}


def _all_cases() -> list[Any]:
    found = []
    for record in CASES:
        for damage in DAMAGE:
            found.append(pytest.param(record, damage))
    return found


@pytest.mark.parametrize(("record", "damage"), _all_cases())
def test_a_damaged_record_is_in_nobody_elses_way(uri: str, record: str, damage: str) -> None:
    mine, other = append(uri, range(1000, 1003)), append(uri, range(2000, 2003))
    case, folder = CASES[record], Path(uri) / "_lance_core"
    if case.path:
        (folder / case.path).parent.mkdir(parents=True, exist_ok=True)
        (folder / case.path).write_bytes(DAMAGE[damage])
    for path in folder.glob(case.pattern.format(X=mine.identity)):
        path.unlink()
        path.write_bytes(DAMAGE[damage])
    store = resolve_store(uri)
    commit(uri, [other])
    list_staged(store)
    collect_garbage(store)
    run_job(CleanupSpec(uri=uri, retain_versions=1))
    assert ids(uri, since=2000) == [2000, 2001, 2002]
    # Its own identity: it lands, or the refusal says what to do.
    refused = refusal(lambda: commit(uri, [mine.identity]))
    assert ids(uri, since=1000) == ([2000, 2001, 2002] if refused else [1000, 1001, 1002, 2000, 2001, 2002])


def test_one_bad_member_of_twenty_does_not_keep_nineteen_from_landing(uri: str) -> None:
    refs = [append(uri, [100 + number]) for number in range(20)]
    transaction = read_transaction_file(resolve_store(uri), refs[7].transaction_path)
    assert transaction is not None
    (Path(uri) / "data" / transaction.operation.fragments[0].files[0].path).unlink()  # type: ignore[attr-defined]
    result = commit(uri, refs, partial=True)
    assert refs[7].identity not in {name for name, outcome in result.identities.items() if outcome == "committed"}
    assert ids(uri, since=100) == [100 + number for number in range(20) if number != 7]


def test_a_late_finished_record_is_not_in_the_way_of_committing_everything(uri: str) -> None:
    identity = new_identity()
    late: list[Callable[[], Any]] = []
    asleep = [True]

    def hook(name: str, path: str, action: Callable[[], Any]) -> Any:
        if is_decision_put(name, path) and asleep:
            late.append(action)
            raise StoreError("timed out")
        return action()

    with pytest.raises(StoreError), hooked(hook):
        append(uri, [1000], identity)
    asleep.clear()
    late[0]()
    collect_garbage(resolve_store(uri), now=time.time() + 8000)
    append(uri, [2000])
    try:
        commit(uri)
    except LanceError:
        commit(uri, partial=True)
    assert ids(uri, since=1000) == [1000, 2000], "it had finished, though its task never heard so"
    refusal(lambda: append(uri, [1000], identity))
    commit(uri, [identity])
    assert ids(uri, since=1000) == [1000, 2000]


def test_what_a_killed_commit_left_is_listed_and_blocks_nobody(uri: str) -> None:
    identity = new_identity()
    append(uri, [1000], identity)

    def hook(name: str, path: str, action: Callable[[], Any]) -> Any:
        if is_manifest_put(name, path):
            raise Killed
        return action()

    with pytest.raises(Killed), hooked(hook):
        commit(uri, [identity])
    listed = CliRunner().invoke(cli, ["staged", "list", uri])
    assert "commit" in listed.output, listed.output
    refusal(lambda: append(uri, [1001], identity))
    commit(uri, [identity])
    assert ids(uri, since=1000) in ([1000], [1001])
