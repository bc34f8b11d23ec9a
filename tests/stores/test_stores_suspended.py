"""The first try of a staging task is suspended (SIGSTOP), the second stages and publishes, the first goes on.

With real processes, on a disk and on S3: nobody knows whether a try that is silent is dead.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import lance_core
from lance_core.io.resolve import resolve_store
from lance_core.jobs.run import run_job
from lance_core.jobs.specs.edits import AddColumnsSpec, CompactSpec
from lance_core.jobs.specs.spec import CommitSpec, JobSpec
from lance_core.publish.collect import collect_garbage
from tests.dataset.exact_storage import missing
from tests.stores.emulators import new_bucket, s3_options

FIRST_TRY = """
import dataclasses, importlib, json, os, signal, sys
from lance_core.jobs.kinds import spec_from_json
from lance_core.jobs.run import run_job

module = importlib.import_module(sys.argv[1])
call = getattr(module, sys.argv[2])

def stop_after(*args, **kwargs):
    setattr(module, sys.argv[2], call)
    found = call(*args, **kwargs)
    os.kill(os.getpid(), signal.SIGSTOP)
    return found

setattr(module, sys.argv[2], stop_after)
run_job(dataclasses.replace(spec_from_json(sys.argv[3]), storage_options=json.loads(sys.argv[4])))
"""
STAGED, COLUMNS = "lance_core.publish.stage", "lance_core.jobs.plans.add_columns"
PLACES = {
    "on record": (STAGED, "write_started"),
    "a part done": ("lance_core.jobs.plans.column_parts", "put_on_record"),
    "parts read": (COLUMNS, "read_parts"),
    "before it finishes": (COLUMNS, "data_paths"),
    "finished on record": (STAGED, "decide"),
    "finished": (COLUMNS, "finish_attempt"),
}
"""Behind which call of its module the first try is suspended."""


@pytest.fixture(params=["disk", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, dict[str, str]]:
    """A place for a table, and its storage options."""
    if request.param == "disk":
        return str(tmp_path / "t.lance"), {}
    endpoint = request.getfixturevalue("moto_endpoint")
    return f"s3://{new_bucket(endpoint)}/t.lance", s3_options(endpoint)


@pytest.mark.parametrize("stop", PLACES, ids=lambda name: name.replace(" ", "-"))
def test_a_suspended_first_try_takes_nothing_from_the_second(place: tuple[str, dict[str, str]], stop: str) -> None:
    uri, options = place
    _begin(uri, options)
    spec = AddColumnsSpec(uri=uri, columns={"twice": "id * 2"}, identity="5d7a0c0e-6a53-4b7e-9a55-5b1f7a0c2e11")
    first = _suspended(spec, options, *PLACES[stop])
    try:
        run_job(_with(spec, options))
        run_job(_with(CommitSpec(uri=uri, identities=(spec.identity,)), options))
        _look(uri, options)
    finally:
        os.kill(first.pid, signal.SIGCONT)
    first.wait(timeout=120)
    _look(uri, options)
    run_job(_with(spec, options))
    run_job(_with(CommitSpec(uri=uri, identities=(spec.identity,)), options))
    collect_garbage(resolve_store(uri, options))
    _look(uri, options)


def test_a_suspended_commit_takes_nothing_from_the_next(place: tuple[str, dict[str, str]]) -> None:
    """Both bring staged columns up to a newer version; the first is suspended with a part of them."""
    uri, options = place
    _begin(uri, options)
    spec = AddColumnsSpec(uri=uri, columns={"twice": "id * 2"}, identity="5d7a0c0e-6a53-4b7e-9a55-5b1f7a0c2e12")
    run_job(_with(spec, options))
    run_job(_with(CompactSpec(uri=uri, identity="5d7a0c0e-6a53-4b7e-9a55-5b1f7a0c2e13"), options))
    run_job(_with(CommitSpec(uri=uri, identities=("5d7a0c0e-6a53-4b7e-9a55-5b1f7a0c2e13",)), options))
    commit = CommitSpec(uri=uri, identities=(spec.identity,))
    first = _suspended(commit, options, "lance_core.jobs.plans.refresh_columns", "compute_part")
    try:
        run_job(_with(commit, options))
        _look(uri, options)
    finally:
        os.kill(first.pid, signal.SIGCONT)
    first.wait(timeout=120)
    run_job(_with(commit, options))
    _look(uri, options)


def _begin(uri: str, options: dict[str, str]) -> None:
    for start in (0, 10):
        rows = pa.table({"id": pa.array(range(start, start + 10), pa.int64())})
        lance_core.write_dataset(rows, uri, mode="append" if start else "create", storage_options=options)


def _with(spec: JobSpec, options: dict[str, str]) -> JobSpec:
    return replace(spec, storage_options=options)


def _suspended(spec: JobSpec, options: dict[str, str], module: str, name: str) -> subprocess.Popen[bytes]:
    arguments = [module, name, spec.to_json(), json.dumps(options)]
    process = subprocess.Popen([sys.executable, "-c", FIRST_TRY, *arguments], stderr=subprocess.DEVNULL)
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status), "the first try ended before it came to that place"
    return process


def _look(uri: str, options: dict[str, str]) -> None:
    """Every file of every version is there, and every row has its value, once."""
    found = lance_core.dataset(uri, storage_options=options).to_table().to_pydict()
    assert sorted(zip(found["id"], found["twice"], strict=True)) == [(number, 2 * number) for number in range(20)]
    assert missing(resolve_store(uri, options)) == []
