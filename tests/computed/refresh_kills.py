"""What a killed refresh runs: in a process that dies at the n-th change of the store; its function notes its rows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa

from lance_core.jobs.run import run_job
from lance_core.jobs.specs.columns import RefreshColumnsSpec
from tests.exactly_once.kill_plan import KillPlan, install

FUNCTION = "tests.computed.refresh_kills:double"
NOTED = "LANCE_TEST_ROWS_GIVEN"
BATCH_ROWS = 3


def double(batch: pa.RecordBatch) -> list[Any]:
    """Twice each number; what it is given is on disk before it answers. It refuses 13."""
    numbers = batch.column("id").to_pylist()
    with Path(os.environ[NOTED]).open("a", encoding="utf-8") as file:
        file.write("".join(f"{number}\n" for number in numbers))
    if 13 in numbers:
        raise ValueError("not 13")
    return [2 * number for number in numbers]


def refresh(uri: str, identity: str) -> None:
    """One try of the task: two fragments in a version."""
    run_job(RefreshColumnsSpec(uri=uri, identity=identity, functions=(FUNCTION,), commit_every=2))


def refresh_and_die(uri: str, identity: str, at: int, names: str, noted: str) -> None:
    """In a process of its own: dies at step `at`; 0 never."""
    os.environ[NOTED] = noted
    install(KillPlan(at=at, names=names, under=uri))
    refresh(uri, identity)
