"""A store that hangs at one of its folders: every verb of a healthy store goes on, whatever the hanging one was asked.

Nothing is timed: the hanging calls end when the healthy verbs have ended, so a verb that waits for one of them never ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lance_core.io import pool as pools
from lance_core.io.aws_role import AssumedRole
from lance_core.io.external import dynamodb, sql
from lance_core.io.google_identity import GoogleIdentity
from lance_core.io.pool import io_pool, num_io_threads, num_work_threads, work_pool
from lance_core.io.remote import store as remote_store
from lance_core.io.resolve import resolve_store
from lance_core.io.threads import SharedThreads
from tests.io.hanging_stores import (
    FOLDERS,
    PATIENCE,
    Gate,
    Options,
    ask,
    build,
    in_thread,
    key_of,
    local_gate,
    make_buckets,
    s3_gate,
    s3_options,
    stick,
    tidy,
    verbs,
)


def _sweep(slow: str, healthy: str, gate: Gate, *, options: Options | None, folders: tuple[str, ...], every: int) -> None:
    build(slow, options)
    build(healthy, options)
    for folder in folders:
        gate.begin(folder)
        try:
            stuck = stick(slow, options, every)
            assert gate.has_begun(), folder
            for name, action in verbs(healthy, options).items():
                ask(name, action, folder)
            assert any(thread.is_alive() for thread in stuck), folder
        finally:
            gate.end()
        for thread in stuck:
            thread.join(PATIENCE)
        tidy(slow, options)
        tidy(healthy, options)


def _local_sweep(tmp_path: Path, folders: tuple[str, ...], every: int) -> None:
    slow, healthy = str(tmp_path / "slow.lance"), str(tmp_path / "healthy.lance")
    with local_gate(slow) as gate:
        _sweep(slow, healthy, gate, options=None, folders=folders, every=every)


def test_a_store_that_hangs_at_its_data(tmp_path: Path) -> None:
    _local_sweep(tmp_path, ("data",), 3)


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_a_store_that_hangs_in_any_folder_at_any_verb(tmp_path: Path, folder: str) -> None:
    _local_sweep(tmp_path, (folder,), 1)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["obstore", "fsspec"])
def test_a_bucket_that_hangs_in_any_folder_at_any_verb(engine: str) -> None:
    """The healthy bucket is on the same server."""
    slow, healthy = f"slow-{engine}", f"healthy-{engine}"  # moto's servers share their buckets
    with s3_gate(f"{slow}/t.lance") as (endpoint, gate):
        make_buckets(endpoint, slow, healthy)
        options = s3_options(endpoint, engine)
        _sweep(f"s3://{slow}/t.lance", f"s3://{healthy}/t.lance", gate, options=options, folders=FOLDERS, every=1)


@pytest.mark.parametrize("engine", ["obstore", "fsspec"])
def test_a_bucket_that_hangs_keeps_its_own_connections(engine: str) -> None:
    """Seventy requests that hang: fsspec has 64 connections for all buckets of the same options."""
    slow, healthy = f"full-{engine}", f"free-{engine}"
    with s3_gate(f"{slow}/t.lance") as (endpoint, gate):
        make_buckets(endpoint, slow, healthy)
        options = s3_options(endpoint, engine)
        stores = [resolve_store(f"s3://{bucket}/t.lance", options) for bucket in (slow, healthy)]
        for store in stores:
            store.put("data/a", b"abc")
        gate.begin("data")
        try:
            stuck = [in_thread(lambda: stores[0].get("data/a"))[0] for _ in range(70)]
            assert gate.has_begun()
            assert ask("get", lambda: stores[1].get("data/a"), "data") < PATIENCE
            assert all(thread.is_alive() for thread in stuck)
        finally:
            gate.end()
        for thread in stuck:
            thread.join(PATIENCE)


def test_the_paths_that_requests_are_about() -> None:
    """A gate that knows no request holds nobody."""
    assert key_of("/b/t/data/1.lance", "b/t") == "data/1.lance"
    assert key_of("/b?list-type=2&prefix=t%2Fdata%2F", "b/t") == "data/"
    assert key_of("/b?list-type=2&prefix=t%2F", "b/t") == ""
    assert key_of("/b/u", "b/t") is None


@pytest.mark.parametrize("kind", ["io", "work"])
def test_tasks_of_others_that_hang_keep_nobody(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every thread of a pool waits for a store; who needs the pool for another one does it alone."""
    monkeypatch.setattr(pools, "_IO", pools._LazyPool("io", num_io_threads))  # the process's may know many buckets already
    pool = io_pool("s3://hangs/t") if kind == "io" else work_pool()
    over = threading.Event()
    stuck = [pool.submit(over.wait) for _ in range(2 * max(num_io_threads(), num_work_threads()))]
    answers: list[int] = []
    try:
        thread, _ = in_thread(lambda: answers.extend(pool.map(lambda number: number + 1, range(5))))
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
    first, _ = in_thread(call)
    try:
        assert begun.wait(PATIENCE)
        second, failed = in_thread(call)
        second.join(PATIENCE)
        assert not second.is_alive()
        assert not failed
        assert first.is_alive()
    finally:
        gate.set()
        first.join(PATIENCE)
