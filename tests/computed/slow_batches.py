"""What a killed refresh of many slow batches runs: several calls at once, each on disk before it answers."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from lance_core.jobs.run import run_job
from lance_core.jobs.specs.columns import RefreshColumnsSpec
from tests.exactly_once.kill_plan import KillPlan, install

FUNCTION, MORTAL = "tests.computed.slow_batches:Slow", "tests.computed.slow_batches:Mortal"
NOTED = "LANCE_TEST_BATCHES_GIVEN"
BATCH_ROWS, WORKERS = 4, 4


class Slow:
    """A model that takes its time: three times each number. In a process that is to die, each call is a step of the plan."""

    plan: KillPlan | None = None

    def __call__(self, batch: pa.RecordBatch) -> list[Any]:
        numbers = batch.column("id").to_pylist()
        with Path(os.environ[NOTED]).open("a", encoding="utf-8") as file:
            file.write(f"{' '.join(map(str, numbers))}\n")
        if self.plan is not None:
            self.plan.reach("call")
        time.sleep(0.001)
        return [3 * number for number in numbers]


def refresh(uri: str, identity: str) -> None:
    """One try of the task: three fragments in a version."""
    spec = RefreshColumnsSpec(uri=uri, identity=identity, functions=(FUNCTION,), commit_every=3, concurrency=WORKERS)
    run_job(spec)


def refresh_and_die(uri: str, identity: str, at: int, names: str, noted: str) -> None:
    """In a process of its own: dies at step `at`, a call or a change of the store; 0 never."""
    os.environ[NOTED] = noted
    Slow.plan = install(KillPlan(at=at, names=names, under=uri))
    refresh(uri, identity)


class Mortal:
    """Three times each number. The process that makes call number `at`, of those of all processes, dies in it, once."""

    def __init__(self, log: str, at: int) -> None:
        self._log, self._at = Path(log), at

    def __call__(self, batch: pa.RecordBatch) -> list[Any]:
        numbers = batch.column("id").to_pylist()
        with self._log.open("a", encoding="utf-8") as file:
            file.write(f"{' '.join(map(str, numbers))}\n")
        if len(self._log.read_text(encoding="utf-8").splitlines()) >= self._at:
            with suppress(FileExistsError):
                Path(f"{self._log}.killed").touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.001)
        return [3 * number for number in numbers]
