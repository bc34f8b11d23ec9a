"""A person asks to be forgotten: delete, rewrite, clean up, and then prove that no byte is left.

::

    forget.delete -> forget.commit      no reader sees the rows any more; the files still hold them
    rewrite.compact -> rewrite.commit   the fragments that held them are rewritten without them
    clean                               older versions go, and the files only they needed
    prove                               every version and every byte of the table is checked; fails if anything is found

The person is given when the run is triggered: `airflow dags trigger lance_gdpr_delete --conf '{"tail_number": "N14228"}'`.
The place comes from the environment: GDPR_TABLE. Needs the pool `lance_gdpr` with one slot. Tagged versions are kept by a
cleanup: the proof fails, and names the version, while a tag still holds the rows.
"""

from __future__ import annotations

import os
from datetime import datetime, timezone
from typing import Any

from airflow.sdk import DAG, Param, task

from airflow_lance.operators.cleanup import LanceCleanupOperator
from airflow_lance.operators.compact import LanceCompactOperator
from airflow_lance.operators.delete import LanceDeleteOperator
from airflow_lance.operators.transaction import LanceTransaction

TABLE = os.environ.get("GDPR_TABLE", "/tmp/lance/gdpr.lance")
POOL = "lance_gdpr"


@task
def prove(uri: str, column: str, value: str) -> dict[str, Any]:
    """Rows of every version and bytes of every file; ValueError when the value is found anywhere."""
    import lance_core as lance
    from lance_core.io.resolve import resolve_store

    table = lance.dataset(uri)
    versions = [int(entry["version"]) for entry in table.versions()]
    predicate = f"{column} = '{value}'"
    rows = {version: lance.dataset(uri, version=version).count_rows(filter=predicate) for version in versions}
    store = resolve_store(uri)
    files = [entry.path for entry in store.list("data/")]
    # A compressed page would hide the text from this search: rows are what proves; bytes are the second look.
    holding = [path for path in files if value.encode() in bytes(store.get(path))]
    found = {version: count for version, count in rows.items() if count}
    if found or holding:
        raise ValueError(f"{value} is still there: rows of versions {found}, bytes of files {holding}")
    return {"versions": versions, "files": len(files), "rows": 0, "searched_for": value}


with DAG(
    dag_id="lance_gdpr_delete",
    schedule=None,
    start_date=datetime(2013, 1, 1, tzinfo=timezone.utc),
    max_active_runs=1,
    params={"tail_number": Param("N14228", type="string", pattern="^[A-Za-z0-9-]+$")},
    doc_md=__doc__,
) as dag:
    with LanceTransaction(group_id="forget", uri=TABLE, pool=POOL) as forget:
        LanceDeleteOperator(task_id="delete", uri=TABLE, execution="local", predicate="tailnum = '{{ params.tail_number }}'")
    with LanceTransaction(group_id="rewrite", uri=TABLE, pool=POOL) as rewrite:
        # Every fragment with a deleted row, however few: a share of zero leaves none out.
        LanceCompactOperator(task_id="compact", uri=TABLE, execution="local", materialize_deletions_threshold=0.0)
    clean = LanceCleanupOperator(
        task_id="clean", uri=TABLE, older_than_days=0, retain_versions=1, delete_unverified=True, pool=POOL
    )
    proof = prove(TABLE, "tailnum", "{{ params.tail_number }}")
    forget >> rewrite >> clean >> proof
