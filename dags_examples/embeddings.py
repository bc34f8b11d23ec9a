"""An embedding becomes a column of a table, gets an index, and answers a question.

::

    texts.merge -> texts.commit           paragraphs of Python's language reference: id, topic, text; known ones stay
    vectors.add -> vectors.commit         `embedding`, for the rows that have none: a second run computes what is new
    index.build -> index.commit           IVF_PQ on it
    search                                the paragraphs nearest to a question, as the task's result

The embedding hashes words (`hash_embedding.py`): small, and the same everywhere. A model takes its place by another
`function`. Places come from the environment: TEXTS_TABLE. Needs the pool `lance_texts` with one slot. The question can be
given: `airflow dags trigger lance_embeddings --conf '{"question": "..."}'`.
"""

from __future__ import annotations

import os
from datetime import datetime, timezone
from typing import Any

from airflow.sdk import DAG, Param, task

from airflow_lance.operators.add_columns import LanceAddColumnsOperator
from airflow_lance.operators.build_index import LanceBuildIndexOperator
from airflow_lance.operators.merge import LanceMergeOperator
from airflow_lance.operators.transaction import LanceTransaction

TABLE = os.environ.get("TEXTS_TABLE", "/tmp/lance/texts.lance")
POOL = "lance_texts"
QUESTION = "the sort method of a list sorts the list in place"


@task
def search(uri: str, question: str, limit: int = 5) -> list[dict[str, Any]]:
    """The paragraphs nearest to a question."""
    from hash_embedding import nearest

    rows = nearest(uri, question, limit=limit)
    for row in rows:
        print(f"{row['_distance']:.3f}  {row['topic']:<20} {row['text'][:90]}")
    return rows


with DAG(
    dag_id="lance_embeddings",
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
            when_matched="keep",
            source={"callable": "hash_embedding:paragraphs"},
            max_rows_per_file=500,
        )
    with LanceTransaction(group_id="vectors", uri=TABLE, pool=POOL) as vectors:
        LanceAddColumnsOperator(
            task_id="add",
            uri=TABLE,
            execution="local",
            function="hash_embedding:embed",
            reads=["text"],
            if_exists="fill",
            rows_per_task=500,
        )
    with LanceTransaction(group_id="index", uri=TABLE, pool=POOL) as index:
        LanceBuildIndexOperator(
            task_id="build",
            uri=TABLE,
            execution="local",
            column="embedding",
            index_type="IVF_PQ",
            parameters={"num_partitions": 8, "num_sub_vectors": 32, "metric": "cosine"},
        )
    texts >> vectors >> index >> search(TABLE, "{{ params.question }}")
