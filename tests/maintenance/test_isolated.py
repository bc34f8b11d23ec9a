"""Checks in a process of their own: what ends that process is an answer, and nothing else ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_core
from lance_core.conditions import RowsAtLeast
from lance_core.errors import CheckEndedError, InputError, NotFoundError, StoreError
from lance_core.maintenance import isolated
from lance_core.maintenance.isolated import MEMORY_VARIABLE, IsolatedChecks, shared_checks
from lance_core.maintenance.policy import ServiceLevels
from tests.maintenance.library_abort import abort_in

SECRET = "pl4nted-s3cret"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp("isolated") / "t.lance")
    lance_core.write_dataset(pa.table({"id": range(100), "s": [f"row {n}" for n in range(100)]}), uri)
    return uri


@pytest.fixture(scope="module")
def checks() -> Iterator[IsolatedChecks]:
    found = IsolatedChecks(remembered_seconds=0.0)
    yield found
    found.close()


def _doctor(checks: IsolatedChecks, uri: str, *, seconds: float = 60.0) -> Any:
    return checks.run(uri, "doctor", {"uri": uri, "deep": True, "levels": {}, "options": {}}, seconds=seconds)


def _rows(checks: IsolatedChecks, uri: str, *, table: str = "", **request: Any) -> Any:
    asked = {"uri": uri, "request": {"limit": 3, **request}, "options": {}, "seconds": 60.0}
    return checks.run(table or uri, "rows", asked, seconds=60.0)


def test_answers_are_those_of_this_process(checks: IsolatedChecks, table: str) -> None:
    from lance_core.maintenance.doctor import diagnose

    assert _doctor(checks, table) == json.loads(json.dumps([item.to_dict() for item in diagnose(table, deep=True)]))
    assert [row[0] for row in _rows(checks, table, filter="id > 90")["rows"]] == [91, 92, 93]
    condition = RowsAtLeast(rows=5, predicate="id < 7").to_dict()
    facts = checks.run(table, "facts", {"uri": table, "condition": condition, "options": {}}, seconds=60.0)
    assert list(facts["matching_rows"].values()) == [7]
    assert len(checks.pids()) == 1, "one child for all questions about a table"


def test_errors_are_those_of_this_process(checks: IsolatedChecks, table: str) -> None:
    with pytest.raises(InputError, match="no column 'z'"):
        _rows(checks, table, columns=["z"])
    with pytest.raises(NotFoundError):
        checks.run(table, "doctor", {"uri": table + "-gone", "deep": True, "levels": {}, "options": {}}, seconds=60.0)
    with pytest.raises(lance_core.LanceError, match="TypeError: see the log"):
        checks.run(table, "doctor", {"uri": table, "text of nobody": SECRET}, seconds=60.0)


def _while_stopped(checks: IsolatedChecks, uri: str, then: signal.Signals) -> BaseException:
    """Ask a child that does not get to answer before a signal ends it."""
    pid = checks.pids()[uri]
    os.kill(pid, signal.SIGSTOP)
    errors: list[BaseException] = []

    def ask() -> None:
        try:
            _doctor(checks, uri)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    while uri in checks.pids():
        time.sleep(0.001)
    if then == signal.SIGABRT:
        abort_in(pid)
    else:
        os.kill(pid, then)
        os.kill(pid, signal.SIGCONT)
    thread.join()
    return errors[0]


@pytest.mark.parametrize("name", ["SIGABRT", "SIGKILL"])
def test_the_end_of_a_child_is_an_answer(checks: IsolatedChecks, table: str, name: str) -> None:
    _rows(checks, table)
    error = _while_stopped(checks, table, signal.Signals[name])
    assert isinstance(error, CheckEndedError)
    assert f"the check (doctor) of {table} ended with {name}" in str(error)
    assert MEMORY_VARIABLE in str(error)
    assert error.uri == table
    assert _rows(checks, table)["version"] == 1, "another child answers the next question"


def test_how_it_ended_is_remembered_for_the_same_question_only(table: str) -> None:
    checks = IsolatedChecks(remembered_seconds=600.0)
    try:
        _rows(checks, table)
        _while_stopped(checks, table, signal.SIGABRT)
        with pytest.raises(CheckEndedError, match="SIGABRT"):
            _doctor(checks, table)
        assert checks.pids() == {}, "nothing was started for that"
        assert _rows(checks, table)["version"] == 1
    finally:
        checks.close()


def test_a_child_that_takes_too_long_is_ended(checks: IsolatedChecks, table: str) -> None:
    _rows(checks, table)
    pid = checks.pids()[table]
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(StoreError, match="took longer than it may"):
        _doctor(checks, table, seconds=0.2)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(StoreError, match="took longer than it may"):  # a question that fills the pipe
        _rows(checks, table)
        os.kill(checks.pids()[table], signal.SIGSTOP)
        asked = {"uri": table, "deep": "x" * 300_000, "levels": {}, "options": {}}
        checks.run(table, "doctor", asked, seconds=0.2)


def test_a_child_has_so_much_memory_and_no_more(checks: IsolatedChecks, table: str) -> None:
    _rows(checks, table)
    folder = Path(f"/proc/{checks.pids()[table]}")
    (limit,) = [line for line in (folder / "limits").read_text().splitlines() if line.startswith("Max address space")]
    (peak,) = [line for line in (folder / "status").read_text().splitlines() if line.startswith("VmPeak")]
    assert int(limit.split()[3]) <= (int(peak.split()[1]) << 10) + isolated.MEMORY_BYTES


@pytest.mark.slow
def test_there_are_few_children_and_the_longest_idle_one_makes_room(table: str) -> None:
    checks = IsolatedChecks(most=2)
    try:
        for name in ("a", "b", "a", "c"):
            _rows(checks, table, table=name)
        assert set(checks.pids()) == {"a", "c"}
        stopped = list(checks.pids().values())
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        threads = [threading.Thread(target=_rows_quietly, args=(checks, table, name)) for name in ("a", "c")]
        for thread in threads:
            thread.start()
        while checks.pids():
            time.sleep(0.001)
        with pytest.raises(StoreError, match="checks that began before have not ended"):
            checks.run("d", "rows", {"uri": table}, seconds=0.05)
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        for thread in threads:
            thread.join()
        assert set(checks.pids()) == {"a", "c"}
    finally:
        checks.close()


def _rows_quietly(checks: IsolatedChecks, uri: str, name: str) -> None:
    _rows(checks, uri, table=name)


@pytest.mark.slow
def test_a_child_ends_when_nothing_is_asked(table: str) -> None:
    checks = IsolatedChecks(idle_seconds=0.05)
    try:
        pids = set()
        for _ in range(2):  # the second question finds that it is gone, and starts another
            assert _rows(checks, table)["version"] == 1
            (pid,) = checks.pids().values()
            pids.add(pid)
            while "zombie" not in Path(f"/proc/{pid}/status").read_text():
                time.sleep(0.01)
        assert len(pids) == 2
    finally:
        checks.close()


@pytest.mark.slow
def test_a_child_ends_with_its_parent(table: str) -> None:
    code = f"""
from lance_core.maintenance.isolated import shared_checks
asked = {{"uri": {table!r}, "request": {{"limit": 1}}, "options": {{}}, "seconds": 60.0}}
shared_checks().run("t", "rows", asked, seconds=60.0)
print(shared_checks().pids()["t"])
import os; os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    pid = int(done.stdout)
    limit = time.monotonic() + 60
    while Path(f"/proc/{pid}").exists() and "zombie" not in Path(f"/proc/{pid}/status").read_text():
        assert time.monotonic() < limit
        time.sleep(0.01)


def test_options_are_neither_in_the_arguments_nor_in_the_environment_of_a_child(checks: IsolatedChecks, table: str) -> None:
    asked = {"uri": table, "request": {"limit": 1}, "options": {"aws_secret_access_key": SECRET}, "seconds": 60.0}
    checks.run(table, "rows", asked, seconds=60.0)
    folder = Path(f"/proc/{checks.pids()[table]}")
    assert SECRET.encode() not in (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()


def test_the_limit_of_memory_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    isolated._checks_of.cache_clear()
    monkeypatch.setenv(MEMORY_VARIABLE, "4 GB")
    with pytest.raises(InputError, match=MEMORY_VARIABLE):
        shared_checks()
    monkeypatch.setenv(MEMORY_VARIABLE, str(1 << 30))
    assert shared_checks() is shared_checks()
    isolated._checks_of.cache_clear()


def test_levels_travel_as_plain_data() -> None:
    from dataclasses import asdict

    levels = ServiceLevels(max_dead_bytes=7)
    assert ServiceLevels(**json.loads(json.dumps(asdict(levels)))) == levels
