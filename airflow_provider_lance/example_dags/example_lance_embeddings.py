"""New texts get their embedding, and a search finds them; run it as often as you like, and it computes only what is new.

::

    load -> embed -> index -> search

Each run appends a hundred paragraphs, without an embedding. `embed` computes the rows in which it is null
(`if_exists="fill"`), `index` is built over all of them, and `search` returns the paragraphs nearest to a question.

It needs no Spark, no cloud and no connection. The table is in the temporary folder of this machine, and may be deleted.
"""

from __future__ import annotations

import tempfile
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from airflow.providers.common.compat.sdk import DAG, Param, chain, task

from airflow_lance.operators.add_columns import LanceAddColumnsOperator
from airflow_lance.operators.build_index import LanceBuildIndexOperator

TEXTS = Path(tempfile.gettempdir()) / "lance_examples" / "texts.lance"
VECTORS = "airflow_provider_lance.example_dags.word_vectors"


with DAG(
    dag_id="example_lance_embeddings",
    schedule=None,
    start_date=datetime(2024, 1, 1, tzinfo=timezone.utc),
    catchup=False,
    max_active_runs=1,
    params={"question": Param("the sort method of a list sorts it in place", type="string", minLength=3)},
    tags=["example", "lance"],
    doc_md=__doc__,
):

    @task.lance(uri=TEXTS, schema_drift="fill_missing")
    def load() -> list[dict[str, Any]]:
        """A hundred more paragraphs."""
        from airflow_lance.hooks.lance import LanceHook
        from airflow_provider_lance.example_dags.word_vectors import paragraphs

        hook = LanceHook()
        first = int(hook.dataset(TEXTS).count_rows()) if hook.table_exists(TEXTS) else 0
        return paragraphs(first, 100)

    embed = LanceAddColumnsOperator(
        task_id="embed",
        uri=TEXTS,
        function=f"{VECTORS}:embed",
        reads=["text"],
        if_exists="fill",
        execution="local",
    )
    index = LanceBuildIndexOperator(
        task_id="index",
        uri=TEXTS,
        column="embedding",
        index_type="IVF_FLAT",
        parameters={"num_partitions": 4, "metric": "cosine"},
        execution="local",
    )

    @task
    def search(params: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """The five paragraphs nearest to the question."""
        from airflow_lance.hooks.lance import LanceHook
        from airflow_provider_lance.example_dags.word_vectors import vector_of

        nearest = {"column": "embedding", "q": vector_of((params or {})["question"]), "k": 5, "nprobes": 4}
        found = LanceHook().dataset(TEXTS).to_table(columns=["id", "topic", "text"], nearest=nearest)
        rows: list[dict[str, Any]] = found.to_pylist()
        return rows

    chain(load(), embed, index, search())
