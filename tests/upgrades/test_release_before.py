"""Workers are upgraded one by one: a wheel of the release before stages, commits, aborts and collects beside this one."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import time
import uuid
import venv
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pytest
from click.testing import CliRunner

import lance_core
from lance_core.cli.main import cli
from lance_core.commit.log.manifests import list_versions, load_manifest
from lance_core.commit.naming import ledger_path
from lance_core.commit.records import encode_record, read_record
from lance_core.commit.references import referenced_files
from lance_core.commit.registry.attempts import list_staged
from lance_core.commit.registry.claims import guarded_attempts
from lance_core.commit.registry.folded import newest_index
from lance_core.commit.registry.ledger import recorded_identities
from lance_core.commit.staging.abort import abort_attempt
from lance_core.commit.staging.garbage import collect_garbage
from lance_core.errors import LanceError
from lance_core.io import resolve
from lance_core.io.resolve import resolve_store
from lance_core.io.store import Store
from lance_core.io.wrapped import WrappedStore
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.edits import DeleteSpec
from lance_core.jobs.specs.spec import AppendSpec, CommitSpec, SourceSpec

pytestmark = pytest.mark.slow

FORMER = "d9df23750ffc174be1088763c01a33ad35a26613"
"""The commit of the release before."""
_HERE = Path(__file__).parent
_ROOT = _HERE.parent.parent


class Former:
    """A worker with the release before."""

    def __init__(self, python: Path) -> None:
        self._process = subprocess.Popen(
            [str(python), str(_HERE / "release_before.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        )

    def ask(self, do: str, **what: Any) -> Any:
        """Its answer; {"refused": …} when it said no."""
        return self._exchange({"do": do, **what})

    def go_on(self) -> Any:
        """The end of a commit that paused before its put."""
        return self._exchange({})

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)

    def _exchange(self, what: object) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the worker of the release before died"
        return json.loads(line)


def _python_of_the_release_before(folder: Path) -> Path:
    source, wheels, place = folder / "source", folder / "wheels", folder / "venv"
    done = subprocess.run(["git", "-C", str(_ROOT), "archive", "--format=tar", FORMER], capture_output=True, check=False)
    assert done.returncode == 0, f"the release before cannot be built without its commit {FORMER}: {done.stderr.decode()}"
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(source, filter="data")
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels)]
    subprocess.run([*build, str(source)], check=True, capture_output=True)
    venv.create(place, with_pip=False, symlinks=True)
    python = place / "bin" / "python"
    (wheel,) = wheels.glob("*.whl")
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(subprocess.check_output([str(python), "-c", ask], text=True).strip())
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(site), str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    (site / "same-packages.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


@pytest.fixture(scope="module")
def former(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Former]:
    worker = Former(_python_of_the_release_before(tmp_path_factory.mktemp("former")))
    yield worker
    worker.end()


@pytest.fixture
def uri(tmp_path: Path) -> str:
    place = str(tmp_path / "t.lance")
    identity = _stage(place, range(10))
    _commit(place, identity)
    return place


def _stage(uri: str, ids: range, identity: str = "") -> str:
    name = identity or str(uuid.uuid4())
    source = SourceSpec(callable="tests.upgrades.upgrade_rows:rows", kwargs={"ids": list(ids)})
    run_job(AppendSpec(uri=uri, source=source, identity=name))
    return name


def _commit(uri: str, identity: str) -> Any:
    return run_job(CommitSpec(uri=uri, identities=(identity,)))


def _abort(uri: str, identity: str) -> None:
    store = resolve_store(uri)
    for entry in [entry for entry in list_staged(store) if entry.identity == identity]:
        abort_attempt(store, identity, entry.attempt)


def _refused(action: Any) -> bool:
    try:
        action()
    except LanceError:
        return True
    return False


def _ids(uri: str) -> list[int]:
    dataset = lance.dataset(uri)
    dataset.validate()
    return sorted(dataset.to_table(columns=["id"])["id"].to_pylist())


def _is_whole(uri: str) -> bool:
    store = resolve_store(uri)
    there = {entry.path for entry in store.list("")}
    named = {path for entry in list_versions(store) for path in referenced_files(load_manifest(store, entry.version))}
    return all(path in there for path in named if not path.endswith("/"))


def test_what_the_former_release_staged_lands_once(former: Former, uri: str) -> None:
    identity = str(uuid.uuid4())
    former.ask("stage", uri=uri, identity=identity, ids=[100, 101])
    _commit(uri, identity)
    assert former.ask("commit", uri=uri, identity=identity)["ok"]["identities"] == {identity: "already_landed"}
    former.ask("stage", uri=uri, identity=identity, ids=[100, 101])
    former.ask("commit", uri=uri, identity=identity)
    assert _ids(uri) == [*range(10), 100, 101]


def test_what_this_release_staged_is_landed_once_by_the_former(former: Former, uri: str) -> None:
    identity = _stage(uri, range(100, 102))
    assert former.ask("commit", uri=uri, identity=identity)["ok"]["identities"] == {identity: "landed"}
    assert _commit(uri, identity).identities == {identity: "already_landed"}
    _stage(uri, range(100, 102), identity)
    _commit(uri, identity)
    assert _ids(uri) == [*range(10), 100, 101]


def test_the_ledger_is_not_folded_beside_the_former_release(former: Former, uri: str) -> None:
    identity = _stage(uri, range(100, 102))
    assert former.ask("commit", uri=uri, identity=identity)["ok"]["identities"] == {identity: "landed"}
    recorded = recorded_identities(resolve_store(uri))
    refused = CliRunner().invoke(cli, ["ledger", "fold", uri, "--older-than", "1s"])
    assert isinstance(refused.exception, LanceError)
    assert "earlier release" in str(refused.exception)
    assert recorded_identities(resolve_store(uri)) == recorded


def test_deletes_of_both_releases_on_one_fragment(former: Former, uri: str) -> None:
    theirs, ours = str(uuid.uuid4()), str(uuid.uuid4())
    former.ask("delete", uri=uri, identity=theirs, predicate="id = 1")
    run_job(DeleteSpec(uri=uri, predicate="id = 2", identity=ours))
    _commit(uri, theirs)
    assert "ok" in former.ask("commit", uri=uri, identity=ours)
    assert _ids(uri) == [0, *range(3, 10)]


@pytest.mark.parametrize("meanwhile", ["abort", "gc", "commit", "stage other work"])
def test_a_commit_of_the_former_release_at_its_put(former: Former, uri: str, meanwhile: str) -> None:
    identity = str(uuid.uuid4())
    former.ask("stage", uri=uri, identity=identity, ids=[100])
    assert former.ask("commit", uri=uri, identity=identity, pause=True) == {"paused": True}
    ours = {
        "abort": lambda: _abort(uri, identity),
        "gc": lambda: collect_garbage(resolve_store(uri)),
        "commit": lambda: _commit(uri, identity),
        "stage other work": lambda: _stage(uri, range(100, 105), identity),
    }
    _refused(ours[meanwhile])
    said = former.go_on()
    while said == {"paused": True}:
        said = former.go_on()
    assert _is_whole(uri)
    if "ok" in said or meanwhile in ("gc", "commit"):
        assert _ids(uri) == [*range(10), 100]
    else:
        assert _ids(uri) == [*range(10)]


class _Between(WrappedStore):
    """Does something before a version is published."""

    def __init__(self, inner: Store, action: Any) -> None:
        super().__init__(inner)
        self.action = action

    @property
    def is_local(self) -> bool:
        return True

    def _around(self, inner: Store) -> _Between:
        return _Between(inner, self.action)

    def _call(self, name: str, path: str, action: Any) -> Any:
        if name == "put_if_absent" and path.startswith("_versions/"):
            self.action()
        return action()


@pytest.mark.parametrize("meanwhile", ["abort", "gc", "commit"])
def test_a_commit_of_this_release_at_its_put(
    former: Former, uri: str, meanwhile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = _stage(uri, range(100, 101))
    said: list[Any] = []

    def ask() -> None:
        if not said:
            more = {} if meanwhile == "gc" else {"identity": identity}
            said.append(former.ask(meanwhile, uri=uri, **more))

    real = resolve._resolve
    with monkeypatch.context() as patch:
        patch.setattr(resolve, "_resolve", lambda place, options: _Between(real(place, options), ask))
        refused = _refused(lambda: _commit(uri, identity))
    assert said
    assert _is_whole(uri)
    if refused:
        _refused(lambda: _commit(uri, identity))
    assert _is_whole(uri)
    assert _ids(uri) == ([*range(10)] if meanwhile == "abort" and "ok" in said[0] else [*range(10), 100])


@pytest.mark.parametrize("what", ["abort", "stage other work"])
def test_the_former_release_does_not_withdraw_what_this_one_has_staged(former: Former, uri: str, what: str) -> None:
    """A commit of this release may do without a claim, which is all that an abort of the former looks for: a guard is there
    in its place, and its name is in the refusal."""
    identity = _stage(uri, range(100, 102))
    asked = {"abort": ("abort", {}), "stage other work": ("stage", {"ids": [*range(100, 105)]})}
    said = former.ask(asked[what][0], uri=uri, identity=identity, **asked[what][1])
    assert f"commit later-release.{identity}." in said["text"], said
    former.ask("gc", uri=uri)
    assert _commit(uri, identity).identities == {identity: "landed"}
    assert _is_whole(uri)
    assert _ids(uri) == [*range(10), 100, 101]
    assert not (Path(uri) / "_lance_core" / "commits").exists() or not [*(Path(uri) / "_lance_core" / "commits").iterdir()]


def test_a_guard_goes_when_the_former_release_has_cleared_its_attempt(former: Former, uri: str) -> None:
    identity = _stage(uri, range(100, 102))
    former.ask("commit", uri=uri, identity=identity)
    store = resolve_store(uri)
    assert [key[0] for key in guarded_attempts(store, before=time.time() + 1)] == [identity]
    collect_garbage(store)
    assert guarded_attempts(store, before=time.time() + 1), "too young: its attempt may be about to begin"
    collect_garbage(store, now=time.time() + 2 * 3600)
    assert not guarded_attempts(store, before=time.time() + 1)
    assert _ids(uri) == [*range(10), 100, 101]


def test_nothing_is_folded_before_a_person_asks_so_the_former_release_finds_what_landed(former: Former, uri: str) -> None:
    """It knows a record of its own for each identity only: nothing that runs by itself may gather them."""
    identity = str(uuid.uuid4())
    former.ask("stage", uri=uri, identity=identity, ids=[100])
    _commit(uri, identity)
    store = resolve_store(uri)
    for landing in [*recorded_identities(store)]:
        path = ledger_path(landing)
        store.put(path, encode_record({**(read_record(store, path) or {}), "landed_at": 1.0}))  # old enough for a fold
    for number in range(3):
        _commit(uri, _stage(uri, range(200 + number, 201 + number)))
    lance_core.dataset(uri).cleanup_old_versions(older_than=timedelta(0), retain_versions=1)
    collect_garbage(store)
    assert len(list_versions(store)) == 1, "the history is gone, so only the ledger knows"
    assert newest_index(store) is None
    assert former.ask("stage", uri=uri, identity=identity, ids=[100])["ok"]["uuid"] == identity
    assert former.ask("commit", uri=uri, identity=identity)["ok"]["identities"] == {identity: "already_landed"}
    assert _ids(uri) == [*range(10), 100, 200, 201, 202]
