"""The rows of a kill's append; under Spark they come with a plan by which the driver dies, once."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WORKERS_WRITE = "workers write"
"""The step at which a worker that has begun to write kills its driver."""


def spark_rows(session: Any, raw: str, plans: str) -> Any:
    """A file's rows in two tasks; called in the driver, which then dies at the plan's step."""
    from kill_plan import KillPlan, install

    plan = json.loads(plans)
    while plan is not None and Path(plan["once"]).exists():
        plan = plan.get("second")
    frame = session.read.parquet(raw).repartition(2)
    if plan is None:
        return frame
    if plan["step"] == WORKERS_WRITE:
        return _deadly(frame, os.getpid(), plan["once"])
    install(KillPlan(**{name: value for name, value in plan.items() if name != "second"}))
    return frame


def _deadly(frame: Any, driver: int, once: str) -> Any:
    def kill(batches: Iterator[Any]) -> Iterator[Any]:
        yield from batches
        try:
            os.close(os.open(once, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            return
        os.kill(driver, signal.SIGKILL)

    return frame.mapInArrow(kill, frame.schema)


def numbers(*, first: int, count: int, value: int) -> Any:
    """The same without Spark."""
    import pyarrow as pa

    return pa.table({"id": list(range(first, first + count)), "value": [value] * count})


def spark_numbers(session: Any, first: int, count: int, value: int) -> Any:
    """`id` and `value`, from one task."""
    return session.range(first, first + count, 1, 1).selectExpr("id", f"CAST({value} AS BIGINT) AS value")
