"""Merge, add-columns, index and branch operators on real tables, in this process, and together in a real DAG run."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow.sdk import DAG

from airflow_lance.compat import AirflowFailException
from airflow_lance.operators.add_columns import LanceAddColumnsOperator
from airflow_lance.operators.branch import LanceBranchOperator
from airflow_lance.operators.build_index import LanceBuildIndexOperator
from airflow_lance.operators.commit import LanceCommitOperator
from airflow_lance.operators.merge import LanceMergeOperator
from airflow_lance.operators.optimize_indices import LanceOptimizeIndicesOperator
from airflow_lance.operators.transaction import LanceTransaction
from lance_core.errors import InputError
from lance_core.jobs.specs.edits import AddColumnsSpec
from lance_core.jobs.specs.indices import BuildIndexSpec, OptimizeIndicesSpec
from lance_core.jobs.specs.merge import MergeSpec
from lance_core.jobs.specs.spec import SourceSpec
from tests.airflow.operator_support import execute, ids, make_table

LOCAL: dict[str, Any] = {"execution": "local"}


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return make_table(tmp_path / "t.lance", 0, 10, 20)


@pytest.fixture
def corrections(tmp_path: Path) -> dict[str, Any]:
    path = tmp_path / "corrections.parquet"
    pq.write_table(pa.table({"id": [3, 100], "day": [99, 99]}), path)
    return {"format": "parquet", "paths": [str(path)]}


def _commit(*staged: Any) -> Any:
    return execute(LanceCommitOperator(task_id="commit", staged=list(staged)))


def test_merge(uri: str, corrections: dict[str, Any]) -> None:
    operator = LanceMergeOperator(task_id="upsert", uri=uri, on="id", source=corrections, rows_per_task="5", **LOCAL)
    staged = execute(operator)
    assert (staged["num_rows"], staged["num_deleted_rows"]) == (2, 1)
    _commit(staged)
    assert set(_commit(execute(operator))["identities"].values()) == {"already_committed"}
    assert ids(uri) == [*range(30), 100]
    assert lance.dataset(uri).to_table(filter="day = 99")["id"].to_pylist() == [3, 100]
    with pytest.raises(AirflowFailException, match="no column 'nope' in the source"):
        execute(LanceMergeOperator(task_id="w", uri=uri, on="nope", source=corrections, **LOCAL))


def test_columns_then_an_index_on_them(uri: str) -> None:
    add = LanceAddColumnsOperator(task_id="add", uri=uri, columns={"twice": "id * 2"}, **LOCAL)
    _commit(execute(add))
    build = LanceBuildIndexOperator(task_id="index", uri=uri, column="twice", index_type="BTREE", **LOCAL)
    _commit(execute(build))
    lance.write_dataset(pa.table({"id": [40], "day": [4], "twice": [80]}), uri, mode="append")
    extend = LanceOptimizeIndicesOperator(task_id="extend", uri=uri, index_names=["twice_idx"], **LOCAL)
    _commit(execute(extend))
    (index,) = lance.dataset(uri).describe_indices()
    assert (index.name, index.num_rows_indexed) == ("twice_idx", 31)
    assert lance.dataset(uri).to_table(filter="twice = 80")["id"].to_pylist() == [40]
    assert set(_commit(execute(extend, run_id="again"))["identities"].values()) == {"already_committed"}


def test_a_branch_is_written_like_a_table(uri: str) -> None:
    operator = LanceBranchOperator(task_id="branch", uri=uri, branch="try/out")
    place = execute(operator)["uri"]
    _commit(execute(LanceAddColumnsOperator(task_id="add", uri=place, columns={"twice": "id * 2"}, **LOCAL)))
    assert execute(operator)["changed"] is False
    assert lance.dataset(uri).schema.names == ["id", "day"]
    assert lance.dataset(uri).checkout_version(("try/out", None)).schema.names == ["id", "day", "twice"]
    assert execute(LanceBranchOperator(task_id="gone", uri=uri, branch="try/out", action="delete"))["uri"] is None


def test_arguments_become_specs() -> None:
    own = {"uri": "/t", "identity": "i"}
    source = {"format": "csv", "paths": ["/a.csv"]}
    merge = LanceMergeOperator(
        task_id="m", uri="/t", on=["a", "b"], source=source, when_matched="keep", when_not_matched_by_source="delete"
    )
    assert merge.make_spec(**own) == MergeSpec(
        **own, on=("a", "b"), source=SourceSpec(**{**source, "paths": ("/a.csv",)}), when_matched="keep",
        when_not_matched_by_source="delete",
    )  # fmt: skip
    add = LanceAddColumnsOperator(
        task_id="a", uri="/t", function="m:f", reads=["x"], function_kwargs={"n": 3}, rows_per_task="7"
    )
    assert add.make_spec(**own) == AddColumnsSpec(**own, function="m:f", reads=("x",), kwargs={"n": 3}, rows_per_task=7)
    build = LanceBuildIndexOperator(task_id="b", uri="/t", column="x", index_type="ZONEMAP", parameters={"rows_per_zone": 9})
    assert build.make_spec(**own) == BuildIndexSpec(**own, column="x", index_type="ZONEMAP", parameters={"rows_per_zone": 9})
    extend = LanceOptimizeIndicesOperator(task_id="o", uri="/t", num_indices_to_merge="0")
    assert extend.make_spec(**own) == OptimizeIndicesSpec(**own, num_indices_to_merge=0)
    with pytest.raises(InputError, match="exactly one of columns, function, source"):
        LanceAddColumnsOperator(task_id="c", uri="/t").make_spec(**own)


@pytest.mark.slow
def test_all_of_them_in_one_dag(uri: str, corrections: dict[str, Any], run_dag: Callable[..., Any]) -> None:
    shared: dict[str, Any] = {"uri": uri, **LOCAL}
    with DAG("columns", schedule=None, start_date=datetime(2013, 1, 1, tzinfo=timezone.utc)) as dag:
        with LanceTransaction("rows") as rows:
            LanceMergeOperator(task_id="upsert", on="id", source=corrections, **shared)
        with LanceTransaction("columns") as columns:
            LanceAddColumnsOperator(task_id="twice", columns={"twice": "id * {{ 1 + 1 }}"}, **shared)
            LanceAddColumnsOperator(task_id="half", columns={"half": "id / 2"}, **shared)
        with LanceTransaction("index") as index:
            LanceBuildIndexOperator(task_id="index", column="twice", index_type="BTREE", **shared)
        branch = LanceBranchOperator(task_id="branch", uri=uri, branch="released")
        rows >> columns >> index >> branch
    run = run_dag(dag)
    assert run.state == "success"
    assert run.get_task_instance("columns.commit").xcom_pull(task_ids="columns.commit")["num_versions"] == 2
    table = lance.dataset(uri)
    assert table.to_table(filter="twice = 200")["id"].to_pylist() == [100]
    assert sorted(table.schema.names) == ["day", "half", "id", "twice"]
    assert [item.name for item in table.describe_indices()] == ["twice_idx"]
    assert "released" in table.branches.list()
