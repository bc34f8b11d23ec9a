"""One identity, other work: cleared tasks, lists that changed, tables made again, uris spelled another way."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pytest

from lance_core.errors import CommitStateUnknownError, LanceError, StoreError
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.identity import make_identity
from lance_core.jobs.specs.maintenance import RestoreSpec
from tests.protocol.protocol_support import append, commit, hooked, ids, new_identity, refusal, replace, rows

DAY = "id >= 1000 and id < 2000"


def test_other_work_under_an_identity_that_landed_is_never_silently_done(uri: str) -> None:
    identity = new_identity()
    commit(uri, [replace(uri, DAY, range(1000, 1005), 1, identity)])

    def again() -> None:
        replace(uri, DAY, range(1000, 1010), 2, identity)
        commit(uri, [identity])

    refused = refusal(again)
    before, after = [(item, 1) for item in range(1000, 1005)], [(item, 2) for item in range(1000, 1010)]
    assert rows(uri, since=1000) == (after if refused is None else before)


def test_a_cleared_load_whose_rows_were_restored_away_is_not_silently_done(uri: str) -> None:
    identity = new_identity()
    commit(uri, [append(uri, range(1000, 1005), identity)])
    run_job(RestoreSpec(uri=uri, version=1))

    def again() -> None:
        append(uri, range(1000, 1005), identity)
        commit(uri, [identity])

    refused = refusal(again)
    assert ids(uri, since=1000) == ([] if refused is not None else [*range(1000, 1005)])


def test_a_mapped_list_in_another_order_neither_doubles_nor_loses_silently(uri: str) -> None:
    files = {"A": range(1000, 1003), "B": range(2000, 2003)}
    identities = [make_identity(uri, dag_id="d", run_id="r", task_id="t", map_index=index) for index in (0, 1)]
    commit(uri, [append(uri, files["A"], identities[0])])
    refused = []
    for identity, name in zip(identities, ["B", "A"], strict=True):
        refused.append(refusal(lambda identity=identity, name=name: append(uri, files[name], identity)))  # type: ignore[misc]
    assert refused[0] is not None, "index 0 landed A; now it asks for B"
    assert ids(uri, since=1000) == [1000, 1001, 1002]


def _only_the_official_folders_go(uri: str) -> None:
    for folder in ("_versions", "data", "_transactions", "_deletions", "_indices"):
        shutil.rmtree(Path(uri) / folder, ignore_errors=True)


@pytest.mark.parametrize("versions", [2, 8])
def test_a_table_made_again_owes_nothing_to_the_old_ledger(uri: str, versions: int) -> None:
    for number in range(2):
        commit(uri, [append(uri, [200 + number])])
    identity = new_identity()
    commit(uri, [append(uri, [1000], identity)])
    _only_the_official_folders_go(uri)
    for number in range(versions):
        commit(uri, [append(uri, [number])])
    append(uri, [1000], identity)
    commit(uri, [identity])
    assert ids(uri) == [*range(versions), 1000]


def test_a_table_restored_from_a_backup_owes_nothing_to_the_newer_ledger(uri: str) -> None:
    identity, other = new_identity(), new_identity()
    shutil.copytree(f"{uri}/_versions", f"{uri}.backup")
    commit(uri, [append(uri, [1000], identity)])
    shutil.rmtree(f"{uri}/_versions")
    shutil.copytree(f"{uri}.backup", f"{uri}/_versions")
    commit(uri, [append(uri, [2000], other)])

    def again() -> None:
        append(uri, [1000], identity)
        commit(uri, [identity])

    refused = refusal(again)
    assert ids(uri, since=1000) == ([1000, 2000] if refused is None else [2000])


def test_a_failed_ledger_write_and_a_foreign_prune_do_not_double_rows(uri: str) -> None:
    identity = new_identity()
    append(uri, range(1000, 1010), identity)

    def hook(name: str, path: str, action: Callable[[], Any]) -> Any:
        if path.startswith("_lance_core/ledger") and name.startswith("put"):
            raise StoreError("503 slow down")
        return action()

    with hooked(hook):
        refusal(lambda: commit(uri, [identity]))
    lance.dataset(uri).optimize.compact_files(target_rows_per_fragment=10_000)
    lance.dataset(uri).cleanup_old_versions(older_than=dt.timedelta(0))
    try:
        commit(uri, [identity])
    except CommitStateUnknownError:
        pass
    except LanceError:
        # What the message says: its staging task, then the commit.
        refusal(lambda: append(uri, range(1000, 1010), identity))
        refusal(lambda: commit(uri, [identity]))
    assert ids(uri, since=1000) == [*range(1000, 1010)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s3://lake/t.lance", "s3a://lake/t.lance"),
        ("s3://lake/a/t.lance", "s3://lake/a//t.lance"),
        ("/data/t.lance", "/data//t.lance"),
        ("/data/t.lance", "/data/./t.lance"),
        ("gs://lake/t.lance", "gcs://lake/t.lance"),
    ],
)
def test_two_spellings_of_one_place_are_one_identity(one: str, other: str) -> None:
    asks = {"dag_id": "d", "run_id": "r", "task_id": "t"}
    assert make_identity(one, **asks) == make_identity(other, **asks)
