"""A record below the table never decides what code a commit runs: only the digest in the commit's own spec does."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from lance_core.errors import IncompatibleConflictError, LanceError, RetryableConflictError
from lance_core.io.resolve import resolve_store
from lance_core.jobs.publish.trust import is_plain
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.edits import DeleteSpec, ReplaceWhereSpec
from lance_core.jobs.specs.spec import CommitSpec, SourceSpec
from lance_core.publish.attempts import list_staged
from lance_core.publish.collect import collect_garbage
from lance_core.publish.records import work_digest

CALLS: list[str] = []


def attacker(**kwargs: Any) -> pa.Table:
    """What a planted record names; a test fails when it has been called."""
    CALLS.append(repr(kwargs))
    return pa.table({"id": [666], "day": [0]})


def rows() -> pa.Table:
    """What a DAG's own source gives."""
    return pa.table({"id": [900], "day": [0]})


SOURCE = {"callable": f"{__name__}:attacker", "kwargs": {"command": "touch /tmp/owned"}}

PLANTED: Mapping[str, Mapping[str, Any]] = {
    "replace_where": {"spec": 1, "kind": "replace_where", "predicate": "day = 0", "source": SOURCE},
    "merge": {"spec": 1, "kind": "merge", "on": ["id"], "source": SOURCE},
    "append": {"spec": 1, "kind": "append", "source": SOURCE},
    "overwrite": {"spec": 1, "kind": "overwrite", "source": SOURCE},
    "add_columns": {"spec": 1, "kind": "add_columns", "function": f"{__name__}:attacker"},
    "sql": {
        "spec": 1,
        "kind": "replace_where",
        "predicate": "day = 0",
        "source": {"sql": "SELECT 1 AS id, 0 AS day FROM read_text('/etc/passwd')"},
    },
    "path": {
        "spec": 1,
        "kind": "replace_where",
        "predicate": "day = 0",
        "source": {"format": "text", "paths": ["/etc/passwd"]},
    },
    "engine": {"spec": 1, "kind": "add_columns", "engine": "spark", "columns": {"a": "reflect('java.lang.Runtime')"}},
    "commit": {"spec": 1, "kind": "commit", "gates": [{"callable": f"{__name__}:attacker"}]},
    "nested": {"spec": 1, "kind": "delete", "predicate": "id = 0", "source": SOURCE},
}


@pytest.fixture
def uri(tmp_path: Path) -> str:
    CALLS.clear()
    place = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"id": list(range(10)), "day": [0] * 10}), place)
    return place


def plant_interrupted(uri: str, identity: str, record: Mapping[str, Any]) -> None:
    """Finished work that has to be staged again, whose records say what an attacker wrote."""
    run_job(DeleteSpec(uri=uri, identity=identity, predicate="id = 1"))
    lance.dataset(uri).update({"day": "0"}, where="id = 1")
    (started,) = Path(uri).glob("_lance_core/staged/*.started.json")
    plain = json.loads(started.read_text())
    plain["attempt"] |= {"spec": record, "digest": work_digest(record)}
    started.write_text(json.dumps(plain))
    (decision,) = Path(uri).glob("_lance_core/decisions/*.000001.json")
    known = json.loads(decision.read_text())
    known["finished"]["digest"] = work_digest(record)
    decision.write_text(json.dumps({**known, "spec": record}))


def ids(uri: str) -> list[int]:
    found: list[int] = sorted(lance.dataset(uri).to_table(columns=["id"])["id"].to_pylist())
    return found


def refused(action: Callable[[], object]) -> None:
    """The action raises a typed error or leaves the planted work alone; no code of the attacker ran."""
    with suppress(LanceError):
        action()
    assert CALLS == []


@pytest.mark.parametrize("name", PLANTED)
@pytest.mark.parametrize("re_execute", [True, False])
def test_a_planted_record_of_interrupted_work_is_not_run(uri: str, name: str, re_execute: bool) -> None:
    identity = str(uuid.uuid4())
    plant_interrupted(uri, identity, PLANTED[name])
    refused(lambda: run_job(CommitSpec(uri=uri, identities=(identity,), re_execute=re_execute)))
    refused(lambda: run_job(CommitSpec(uri=uri, re_execute=re_execute)))
    assert ids(uri) == list(range(10))


@pytest.mark.parametrize("name", PLANTED)
def test_a_digest_of_other_work_does_not_vouch_for_a_planted_record(uri: str, name: str) -> None:
    identity = str(uuid.uuid4())
    plant_interrupted(uri, identity, PLANTED[name])
    other = work_digest({"kind": "delete", "predicate": "id = 1"})
    # It is staged work that another writer has outrun: its own task may stage it again, nobody runs what the record says.
    with pytest.raises((IncompatibleConflictError, RetryableConflictError)):
        run_job(CommitSpec(uri=uri, identities=(identity,), digests={identity: other}))
    assert CALLS == []
    assert ids(uri) == list(range(10))


def test_a_short_digest_vouches_for_nothing(uri: str) -> None:
    identity, record = str(uuid.uuid4()), PLANTED["replace_where"]
    plant_interrupted(uri, identity, record)
    with pytest.raises(IncompatibleConflictError):
        run_job(CommitSpec(uri=uri, identities=(identity,), digests={identity: work_digest(record)[:16]}))
    assert CALLS == []


def test_interrupted_work_is_not_staged_again_when_the_commit_says_so(uri: str) -> None:
    identity = str(uuid.uuid4())
    plant_interrupted(uri, identity, {"spec": 1, "kind": "delete", "predicate": "id = 1"})
    with pytest.raises(RetryableConflictError, match="planned on version 1"):
        run_job(CommitSpec(uri=uri, identities=(identity,), re_execute=False))
    assert ids(uri) == list(range(10))
    run_job(CommitSpec(uri=uri, identities=(identity,)))
    assert ids(uri) == [0, *range(2, 10)]


def test_the_record_of_staged_work_is_not_run_once_it_was_changed(uri: str) -> None:
    staged: Any = run_job(
        ReplaceWhereSpec(
            uri=uri, identity=str(uuid.uuid4()), predicate="day = 0", source=SourceSpec(callable=f"{__name__}:rows")
        )
    )
    lance.write_dataset(pa.table({"id": [50], "day": [0]}), uri, mode="append")  # so that it has to be staged again
    (record,) = Path(uri).glob("_lance_core/staged/*.started.json")
    plain = json.loads(record.read_text())
    plain["attempt"]["spec"]["source"] = SOURCE
    record.write_text(json.dumps(plain))
    (finished,) = Path(uri).glob("_lance_core/decisions/*.000001.json")
    told = json.loads(finished.read_text())
    changed = plain["attempt"]["spec"]
    told["finished"]["digest"] = work_digest(changed)
    finished.write_text(json.dumps({**told, "spec": changed}))
    refused(lambda: run_job(CommitSpec.of([staged], uri=uri)))
    refused(lambda: run_job(CommitSpec(uri=uri)))
    assert ids(uri) == [*range(10), 50]


def test_a_reference_in_a_record_is_not_resolved(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", "hunter2")
    identity = str(uuid.uuid4())
    record = {"spec": 1, "kind": "delete", "predicate": "id = 1", "properties": {"a": {"env": "A_SECRET"}}}
    plant_interrupted(uri, identity, record)
    refused(lambda: run_job(CommitSpec(uri=uri, identities=(identity,))))
    texts = [path.read_bytes() for path in Path(uri).rglob("*") if path.is_file()]
    assert not any(b"hunter2" in text for text in texts)


def test_work_that_only_edits_its_own_table_is_staged_again_without_a_digest(uri: str) -> None:
    staged: Any = run_job(DeleteSpec(uri=uri, identity=str(uuid.uuid4()), predicate="id = 3"))
    lance.dataset(uri).delete("id = 4")
    result: Any = run_job(CommitSpec(uri=uri, identities=(staged.identity,)))
    assert result.version > staged.read_version
    assert ids(uri) == [0, 1, 2, 5, 6, 7, 8, 9]


def test_the_digest_of_the_staging_task_lets_its_own_callable_run_again(uri: str) -> None:
    source = SourceSpec(callable=f"{__name__}:rows")
    staged: Any = run_job(ReplaceWhereSpec(uri=uri, identity=str(uuid.uuid4()), predicate="day = 0", source=source))
    lance.write_dataset(pa.table({"id": [50], "day": [0]}), uri, mode="append")
    run_job(CommitSpec.of([staged], uri=uri))
    assert ids(uri) == [900]


@pytest.mark.parametrize("name", PLANTED)
def test_no_planted_record_counts_as_plain(name: str) -> None:
    assert not is_plain(PLANTED[name])


def test_references_are_found_at_any_depth() -> None:
    value: Any = {"env": "HOME"}
    for _ in range(200):
        value = {"a": [value]}
    assert not is_plain({"kind": "build_index", "column": "id", "index_type": "BTREE", "parameters": value})
    assert os.environ.get("HOME") is not None


@pytest.mark.parametrize("renewed", ["1" + "0" * 400, "1e400", "18446744073709551616", "true", '"1"', "null", "NaN"])
def test_a_lease_that_no_clock_shows_damages_its_record_alone(uri: str, renewed: str) -> None:
    run_job(DeleteSpec(uri=uri, identity=str(uuid.uuid4()), predicate="id = 1"))
    (started,) = Path(uri).glob("_lance_core/staged/*.started.json")
    plain = json.loads(started.read_text())
    plain["renewed"] = "HERE"
    started.write_text(json.dumps(plain).replace('"HERE"', renewed))
    store = resolve_store(uri)
    actions: tuple[Callable[[Any], object], ...] = (list_staged, collect_garbage)
    for action in actions:
        with suppress(LanceError):
            action(store)
    assert ids(uri) == [*range(10)]
