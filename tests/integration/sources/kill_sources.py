"""Ten rows; under Spark they come with a plan by which the driver dies, once."""

from __future__ import annotations

from typing import Any


def rows() -> Any:
    """Ids 100 to 110."""
    import pyarrow as pa

    return pa.table({"id": pa.array(range(100, 110), pa.int64())})


def spark_rows(session: Any, step: str, once: str) -> Any:
    """The same ids; called in the driver, which then dies at the step."""
    from kill_plan import KillPlan, install

    install(KillPlan(step=step, once=once))
    return session.range(100, 110, 1, 2)


def spark_numbers(session: Any, first: int, count: int, value: int) -> Any:
    """`id` and `value`, from one task."""
    return session.range(first, first + count, 1, 1).selectExpr("id", f"CAST({value} AS BIGINT) AS value")
