"""`declared_embeddings` of the examples with Spark: texts -> embedding -> index -> switch to another model, in one run.

The function may die in the middle (`dying_embedding`); nothing is retried, so that a person's clear is what goes on.
"""

from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from airflow.sdk import DAG

from airflow_lance.operators.build_index import LanceBuildIndexOperator
from airflow_lance.operators.declare_column import LanceDeclareColumnOperator
from airflow_lance.operators.merge import LanceMergeOperator
from airflow_lance.operators.refresh_columns import LanceRefreshColumnsOperator
from airflow_lance.operators.switch_column import LanceSwitchColumn
from airflow_lance.operators.transaction import LanceTransaction

TABLE = str(Path(os.environ["LANCE_TEST_PLACE"]) / "declared_spark" / "texts.lance")
FUNCTION = "dying_embedding:embed"
KIND: dict[str, Any] = {"function": FUNCTION, "inputs": ["text"], "data_type": "float", "list_size": 256, "batch_size": 50}
INDEX: dict[str, Any] = {
    "index_type": "IVF_PQ", "parameters": {"num_partitions": 8, "num_sub_vectors": 32, "metric": "cosine"},
}  # fmt: skip
REFRESH: dict[str, Any] = {"execution": "spark-submit", "commit_every": 2, "rows_per_task": 500}

with DAG("lance_declared_spark", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=timezone.utc)):
    with LanceTransaction(group_id="texts", uri=TABLE) as texts:
        LanceMergeOperator(
            task_id="merge",
            uri=TABLE,
            execution="local",
            on="id",
            source={"callable": "hash_embedding:paragraphs"},
            schema_drift="fill_missing",
            max_rows_per_file=500,
        )
    declare = LanceDeclareColumnOperator(task_id="declare", uri=TABLE, column="embedding", version="1", **KIND)
    refresh = LanceRefreshColumnsOperator(
        task_id="refresh", uri=TABLE, columns=["embedding"], functions=[FUNCTION], task_resources={"cpus": 2}, **REFRESH
    )
    with LanceTransaction(group_id="index", uri=TABLE) as index:
        LanceBuildIndexOperator(task_id="build", uri=TABLE, execution="spark-submit", column="embedding", **INDEX)
    to_2 = LanceSwitchColumn(
        "to_2",
        uri=TABLE,
        column="embedding",
        version="2",
        definition={**KIND, "arguments": {"salt": "2"}},
        refresh=REFRESH,
        index=INDEX,
        switch={"min_recall": 0.8, "sample": 200, "search": {"nprobes": 8, "refine_factor": 10}},
    )
    texts >> declare >> refresh >> index >> to_2
