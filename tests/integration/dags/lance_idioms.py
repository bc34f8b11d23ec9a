"""What people write in DAG files: functions that return rows or compute a column, paths, the hook, a branch that is
audited, pinned versions.

Conf: `{"place": folder}`. The folder has `more.parquet` with the ids 50 and 51.
"""

from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, chain, task

from airflow_lance.assets import create_asset
from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.write_audit_publish import LanceWriteAuditPublish
from airflow_lance.sensors.partitions import LancePartitionsSensor

if TYPE_CHECKING:
    import pyarrow as pa

PLACE = Path(os.environ["LANCE_TEST_PLACE"]) / "idioms"
TABLE = str(PLACE / "t.lance")
MORE = PLACE / "more.parquet"
START = datetime(2013, 1, 1, tzinfo=timezone.utc)

with DAG("lance_idioms", schedule=None, start_date=START):

    @task.lance(uri=TABLE)
    def load(first: int) -> Any:
        """Columns."""
        return {"id": list(range(first, first + 10)), "value": [0] * 10}

    @task.lance(uri=TABLE, mode="merge", on="id")
    def correct() -> Any:
        """An Arrow table."""
        import pyarrow as pa

        return pa.table({"id": [8, 9, 10], "value": [1, 1, 1]})

    @task.lance(uri=TABLE, mode="replace_where", predicate="id < 2")
    def first_two() -> Any:
        """Rows."""
        return [{"id": 0, "value": 7}]

    @task.lance(uri=TABLE, mode="add_columns", on="id")
    def names() -> Any:
        """A frame."""
        import pandas as pd

        return pd.DataFrame({"id": [0, 10], "name": ["a", "b"]})

    @task.lance(uri=TABLE, schema_drift="fill_and_add")
    def wider() -> Any:
        """A column that the table lacks, in the version that brings it."""
        return [{"id": 60, "note": "new"}]

    @task.lance_column(uri=TABLE, column="length", inputs=["name"], data_type="long", version="1", batch_bytes=1 << 20)
    def length(batch: pa.RecordBatch, missing: int = 0) -> pa.Array:
        """A column that this file computes; it is called with its arguments, and a refresh passes the rows."""
        import pyarrow.compute as pc

        return pc.fill_null(pc.utf8_length(batch["name"]).cast("int64"), missing)

    @task.lance(uri=str(PLACE / "copy.lance"), mode="overwrite", outlets=[create_asset(uri=TABLE, name="idioms")])
    def copy() -> Any:
        """What the hook reads, batch by batch."""
        from airflow_lance.hooks.lance import LanceHook

        return iter(LanceHook().dataset(TABLE).to_table(columns=["id"]).to_batches())

    with LanceWriteAuditPublish("audited", uri=TABLE, checks=[{"unique": ["id"]}], execution="local") as audited:
        LanceAppendOperator(
            task_id="more", uri=audited.branch_uri, source=MORE, schema_drift="fill_missing", execution="local"
        )
    whole = LancePartitionsSensor(
        task_id="whole", uri=TABLE, column="id", keys=["50", "51"], deferrable=True, poke_interval=1
    )

    @task
    def write_by_hook() -> int:
        """Not exactly once; for scratch tables."""
        from airflow_lance.hooks.lance import LanceHook

        return int(LanceHook().write({"id": [1, 2]}, str(PLACE / "scratch.lance"), mode="overwrite").count_rows())

    chain(load(0), correct(), first_two(), names(), audited, whole, wider(), length(missing=-1), copy(), write_by_hook())
