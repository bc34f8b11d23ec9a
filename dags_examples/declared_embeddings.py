"""An embedding that is declared once and kept true, whoever changes the texts: text -> embedding -> index -> question.

::

    texts.merge -> texts.commit      paragraphs of Python's language reference: id, topic, text; known ones are written over
    declare                          `embedding` is computed from `text` by a function, version "1": makes no version twice
    refresh                          rows that are new or changed, and no others; ends for today after 5,000 of them
    index.build -> index.commit      IVF_PQ, built again over what is there
    search                           the paragraphs nearest to a question, as the task's result

Others may append, update, delete and compact in between; a row whose text is another gets another vector, and only that row.
The DAG `lance_switch_embedding` brings the column to another model while readers go on with the old one: a shadow column
is filled and indexed, the index is compared with an exact search, and one version switches column and index.
`lance_switch_back` undoes it.

A model takes the place of the function that hashes words (`hash_embedding.py`); give it another `version` when it means
something else. Places come from the environment: DECLARED_TEXTS_TABLE. Needs the pool `lance_texts` with one slot.
"""

from __future__ import annotations

import os
from datetime import datetime, timezone
from typing import Any

from airflow.sdk import DAG, Param, task

from airflow_lance.operators.build_index import LanceBuildIndexOperator
from airflow_lance.operators.declare_column import LanceDeclareColumnOperator
from airflow_lance.operators.merge import LanceMergeOperator
from airflow_lance.operators.refresh_columns import LanceRefreshColumnsOperator
from airflow_lance.operators.switch_column import LanceSwitchColumn, LanceSwitchColumnOperator
from airflow_lance.operators.transaction import LanceTransaction

TABLE = os.environ.get("DECLARED_TEXTS_TABLE", "/tmp/lance/declared_texts.lance")
POOL = "lance_texts"
FUNCTION = "hash_embedding:embed"
PARAMETERS = {"num_partitions": 8, "num_sub_vectors": 32, "metric": "cosine"}
QUESTION = "the sort method of a list sorts the list in place"


@task
def search(uri: str, question: str, limit: int = 5) -> list[dict[str, Any]]:
    """The paragraphs nearest to a question."""
    from hash_embedding import nearest

    return nearest(uri, question, limit=limit)


with DAG(
    dag_id="lance_declared_embeddings",
    schedule=None,
    start_date=datetime(2024, 1, 1, tzinfo=timezone.utc),
    params={"question": Param(QUESTION, type="string", minLength=3)},
    doc_md=__doc__,
) as dag:
    with LanceTransaction(group_id="texts", uri=TABLE, pool=POOL) as texts:
        LanceMergeOperator(
            task_id="merge",
            uri=TABLE,
            execution="local",
            on="id",
            source={"callable": "hash_embedding:paragraphs"},
            schema_drift="fill_missing",
            max_rows_per_file=500,
        )
    declare = LanceDeclareColumnOperator(
        task_id="declare",
        uri=TABLE,
        column="embedding",
        function=FUNCTION,
        inputs=["text"],
        data_type="float",
        list_size=256,
        version="1",
        on_error={"MemoryError": "fail", "*": "skip"},
    )
    refresh = LanceRefreshColumnsOperator(
        task_id="refresh",
        uri=TABLE,
        execution="local",
        columns=["embedding"],
        functions=[FUNCTION],
        max_rows=5_000,
        pool=POOL,
    )
    with LanceTransaction(group_id="index", uri=TABLE, pool=POOL) as index:
        LanceBuildIndexOperator(
            task_id="build",
            uri=TABLE,
            execution="local",
            column="embedding",
            index_type="IVF_PQ",
            parameters=PARAMETERS,
        )
    texts >> declare >> refresh >> index >> search(TABLE, "{{ params.question }}")

with DAG(dag_id="lance_switch_embedding", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=timezone.utc)) as switch_dag:
    LanceSwitchColumn(
        "to_2",
        uri=TABLE,
        column="embedding",
        version="2",
        definition={
            "function": FUNCTION,
            "arguments": {"salt": "2"},
            "inputs": ["text"],
            "data_type": "float",
            "list_size": 256,
        },
        refresh={"execution": "local", "pool": POOL},
        index={"index_type": "IVF_PQ", "parameters": PARAMETERS},
        switch={"min_recall": 0.8, "sample": 200, "search": {"nprobes": 8, "refine_factor": 10}},
    )

with DAG(dag_id="lance_switch_back", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=timezone.utc)) as back_dag:
    LanceSwitchColumnOperator(task_id="back_to_1", uri=TABLE, column="embedding", version="1", max_stale_share=1.0)
