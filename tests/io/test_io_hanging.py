"""A store that hangs at one of its folders: every verb of a healthy store goes on, whatever the hanging one was asked.

Nothing is timed: the hanging calls end when the healthy verbs have ended, so a verb that waits for one of them never ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import LanceError
from lance_core.io import pool as pools
from lance_core.io.aws_role import AssumedRole
from lance_core.io.external import dynamodb, sql
from lance_core.io.google_identity import GoogleIdentity
from lance_core.io.local import store as local_store
from lance_core.io.pool import io_pool, num_io_threads, num_work_threads, work_pool
from lance_core.io.remote import store as remote_store
from lance_core.io.threads import SharedThreads
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.edits import DeleteSpec
from lance_core.jobs.specs.spec import CommitSpec
from lance_core.maintenance.doctor import diagnose
from lance_core.publish.collect import collect_garbage

PATIENCE = 120.0
"""Seconds after which a verb counts as one that waits; they take one."""
FOLDERS = ("_versions", "data", "_deletions", "_indices", "_transactions", "_refs", "tree", "_lance_core")
CALLS = ("get", "get_ranges", "size", "put", "put_if_absent", "copy_if_absent", "open_writer", "list", "list_unfinished",
         "list_names", "list_folders", "delete", "delete_many", "missing", "not_listed", "get_scattered",
         "first_entries", "names_after")  # fmt: skip


def build(uri: str) -> None:
    """A table with something in every folder."""
    rows = pa.table({
        "id": pa.array(range(40), pa.int64()), "s": [f"row {number % 3}" for number in range(40)],
        "v": pa.array([[1.0, float(number)] for number in range(40)], pa.list_(pa.float32(), 2)),
    })  # fmt: skip
    held: Any = lance_core.write_dataset(rows, uri, max_rows_per_file=10)
    held.create_scalar_index("id", "BTREE")
    held.create_scalar_index("s", "INVERTED")
    held.create_index("v", "IVF_FLAT", num_partitions=1)
    held.delete("id = 3")
    held.tags.create("good", 1)
    held.create_branch("side")
    run_job(DeleteSpec(uri=uri, predicate="id = 7"))


def verbs(uri: str) -> dict[str, Callable[[], object]]:
    """What users do with a table."""

    def table() -> Any:
        return lance_core.dataset(uri)

    def stage() -> object:
        staged: Any = run_job(DeleteSpec(uri=uri, predicate="id = 9"))
        return run_job(CommitSpec.of([staged], uri=uri))

    rows = pa.table(
        {"id": pa.array([100], pa.int64()), "s": ["new"], "v": pa.array([[0.0, 0.0]], pa.list_(pa.float32(), 2))}
    )
    return {
        "scan": lambda: table().to_table(),
        "filter": lambda: table().to_table(filter="id = 5 or s = 'row 1'"),
        "take": lambda: table().take([0, 9]),
        "nearest": lambda: table().to_table(nearest={"column": "v", "q": [1.0, 2.0], "k": 3}),
        "search": lambda: table().to_table(full_text_query="row", limit=3),
        "log": lambda: [version["version"] for version in table().versions()],
        "tag": lambda: lance_core.dataset(uri, version="good").count_rows(),
        "branch": lambda: table().checkout_version(("side", None)).count_rows(),
        "stats": lambda: table().stats.index_stats("id_idx"),
        "validate": lambda: table().validate(deep=True),
        "doctor": lambda: diagnose(uri),
        "append": lambda: lance_core.write_dataset(rows, uri, mode="append"),
        "delete": lambda: table().delete("id = 5"),
        "update": lambda: table().update({"s": "'x'"}, where="id = 8"),
        "merge": lambda: table().merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows),
        "columns": lambda: table().add_columns({"t": "id + 1"}),
        "index": lambda: table().create_scalar_index("s", "BITMAP", name="more"),
        "optimize": lambda: table().optimize.optimize_indices(),
        "compact": lambda: table().optimize.compact_files(),
        "stage": stage,
        "restore": lambda: lance_core.dataset(uri, version=2).restore(),
        "collect": lambda: collect_garbage(local_store.LocalStore(uri)),
        "cleanup": lambda: table().cleanup_old_versions(older_than=timedelta(days=1)),
    }  # fmt: skip


@contextmanager
def hanging(monkeypatch: pytest.MonkeyPatch, uri: str, folder: str) -> Iterator[threading.Event]:
    """The calls that touch a folder of this table's store wait until the block ends; the event says that one does."""
    begun, over = threading.Event(), threading.Event()

    def waiting(call: Callable[..., Any]) -> Callable[..., Any]:
        def waits(store: Any, first: Any = "", *given: Any, **named: Any) -> Any:
            touched = first if isinstance(first, str) else folder
            if f"{store.uri}/{touched}".startswith(f"{uri}/{folder}"):
                begun.set()
                over.wait()
            return call(store, first, *given, **named)

        return waits

    with monkeypatch.context() as patched:
        for name in CALLS:
            if hasattr(local_store.LocalStore, name):
                patched.setattr(local_store.LocalStore, name, waiting(getattr(local_store.LocalStore, name)))
        try:
            yield begun
        finally:
            over.set()


def _in_thread(action: Callable[[], object]) -> tuple[threading.Thread, list[BaseException]]:
    """A thread that does it, and what it ended with."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            action()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, failed


def _sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folders: tuple[str, ...], every: int) -> None:
    slow, healthy = str(tmp_path / "slow.lance"), str(tmp_path / "healthy.lance")
    build(slow)
    build(healthy)
    for folder in folders:
        names = [*verbs(slow)][::every]
        with hanging(monkeypatch, slow, folder) as begun:
            stuck = [_in_thread(verbs(slow)[name])[0] for name in names for _ in range(2)]
            assert begun.wait(PATIENCE), folder
            for name, action in verbs(healthy).items():
                thread, failed = _in_thread(action)
                thread.join(PATIENCE)
                assert not thread.is_alive(), f"{name} waited while {folder} of another store hung"
                assert not [error for error in failed if not isinstance(error, LanceError)], (name, failed)
            assert any(thread.is_alive() for thread in stuck), folder
        for thread in stuck:
            thread.join(PATIENCE)
        for number in (slow, healthy):
            with suppress(LanceError):
                lance_core.dataset(number).drop_columns(["t"])


def test_a_store_that_hangs_at_its_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _sweep(tmp_path, monkeypatch, ("data",), 3)


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_a_store_that_hangs_in_any_folder_at_any_verb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    _sweep(tmp_path, monkeypatch, (folder,), 1)


@pytest.mark.parametrize("kind", ["io", "work"])
def test_tasks_of_others_that_hang_keep_nobody(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every thread of a pool waits for a store; who needs the pool for another one does it alone."""
    monkeypatch.setattr(pools, "_IO", pools._LazyPool("io", num_io_threads))  # the process's may know many buckets already
    pool = io_pool("s3://hangs/t") if kind == "io" else work_pool()
    over = threading.Event()
    stuck = [pool.submit(over.wait) for _ in range(2 * max(num_io_threads(), num_work_threads()))]
    answers: list[int] = []
    try:
        thread, _ = _in_thread(lambda: answers.extend(pool.map(lambda number: number + 1, range(5))))
        thread.join(PATIENCE)
        assert answers == [1, 2, 3, 4, 5]
        assert io_pool("s3://healthy/t") is not io_pool("s3://hangs/u") is io_pool("s3://hangs/t")
    finally:
        over.set()
        for future in stuck:
            future.cancel()


def test_a_task_is_done_once() -> None:
    """By a thread, by who waits for it, or by nobody when it was cancelled."""
    made: list[int] = []
    gate = threading.Event()
    with SharedThreads(1) as pool:
        first = pool.submit(gate.wait, PATIENCE)
        tasks = [pool.submit(made.append, number) for number in range(5)]
        assert tasks[0].cancel()
        tasks[2].result()
        assert made == [2]
        gate.set()
        assert first.result()
        failing = pool.submit(int, "x")
        assert isinstance(failing.exception(), ValueError)
        for task in tasks[1:]:
            task.result()
    assert sorted(made) == [1, 2, 3, 4]


def _hangs_first(gate: threading.Event, begun: threading.Event, answer: Any) -> Callable[..., Any]:
    """Something that does not answer who asks first."""
    first = [True]

    def asked(*_: object, **__: object) -> Any:
        if first and first.pop():
            begun.set()
            gate.wait()
        return answer

    return asked


@pytest.mark.parametrize("kind", ["sql", "dynamodb", "fsspec", "google", "google token", "aws role"])
def test_no_lock_is_held_while_somebody_is_asked(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """A second thread asks for itself, where it waited for the first one's answer."""
    gate, begun = threading.Event(), threading.Event()
    credentials = SimpleNamespace(valid=False, token="t")
    asked = _hangs_first(gate, begun, ("engine", "table") if kind == "sql" else credentials)
    call: Callable[[], object]
    if kind == "sql":
        monkeypatch.setattr(sql, "_connect", asked)
        register = sql.SqlRegister("sqlite://")
        call = register._open
    elif kind == "dynamodb":
        monkeypatch.setattr(dynamodb, "_connect", lambda _: None)
        monkeypatch.setattr(dynamodb.DynamoRegister, "_check", asked)
        rows = dynamodb.DynamoRegister("t", {})
        call = rows._client
    elif kind == "fsspec":
        monkeypatch.setattr(remote_store, "_connect", asked)
        remote: Any = remote_store.open_remote("s3://b/t", {"aws_access_key_id": "a", "aws_secret_access_key": "b"})
        call = lambda: remote._fs  # noqa: E731
    elif kind == "aws role":
        monkeypatch.setattr(AssumedRole, "_assume", asked)
        call = AssumedRole("arn:aws:iam::1:role/r").credentials
    else:
        monkeypatch.setattr(GoogleIdentity, "_make", asked if kind == "google" else lambda _: credentials)
        monkeypatch.setattr(GoogleIdentity, "_renew", asked)
        call = GoogleIdentity()
    first, _ = _in_thread(call)
    try:
        assert begun.wait(PATIENCE)
        second, failed = _in_thread(call)
        second.join(PATIENCE)
        assert not second.is_alive()
        assert not failed
        assert first.is_alive()
    finally:
        gate.set()
        first.join(PATIENCE)
