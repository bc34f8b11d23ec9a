"""A task publishes its own work unless somebody else does; nothing ends green with rows that nobody will ever see."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow.sdk import DAG, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from airflow_lance.assets import create_asset
from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.commit import LanceCommitOperator
from airflow_lance.operators.delete import LanceDeleteOperator
from airflow_lance.operators.transaction import LanceTransaction
from lance_core.errors import InputError, SourceMissingError
from tests.airflow.operator_support import execute as execute_once
from tests.airflow.operator_support import ids, make_table

RunDag = Callable[..., Any]


def execute(operator: Any) -> Any:
    """One try of a task as it is written."""
    return execute_once(operator, publishes=True)


def _dag(dag_id: str) -> DAG:
    return DAG(dag_id, schedule=None, start_date=datetime(2013, 1, 1, tzinfo=timezone.utc))


@pytest.fixture
def local(tmp_path: Path) -> dict[str, Any]:
    """Arguments of an append of the ids 0 to 9, in the worker."""
    pq.write_table(pa.table({"id": list(range(10))}), tmp_path / "rows.parquet")
    source = {"format": "parquet", "paths": [f"{tmp_path}/rows.parquet"]}
    return {"uri": f"{tmp_path}/t.lance", "execution": "local", "source": source}


def test_a_task_by_itself_publishes_its_work_once(local: dict[str, Any]) -> None:
    append = LanceAppendOperator(task_id="append", **local)
    first = execute(append)
    assert (first["version"], first["rows_added"], list(first["identities"].values())) == (1, 10, ["committed"])
    again = execute(append)
    assert (again["version"], again["rows_added"], list(again["identities"].values())) == (1, 0, ["already_committed"])
    assert ids(local["uri"]) == list(range(10))


def test_every_plain_task_of_a_run_is_visible_in_the_end(tmp_path: Path, local: dict[str, Any], run_dag: RunDag) -> None:
    with _dag("plain") as dag:
        append = LanceAppendOperator(task_id="append", outlets=[create_asset(uri=local["uri"])], **local)
        append >> LanceDeleteOperator(task_id="delete", uri=local["uri"], execution="local", predicate="id < 4")
    run = run_dag(dag)
    assert run.state == "success"
    assert ids(local["uri"]) == [4, 5, 6, 7, 8, 9]


def test_gates_of_a_task_by_itself_keep_its_rows_back(local: dict[str, Any]) -> None:
    append = LanceAppendOperator(task_id="append", gates=[{"name": "enough", "min_rows": 11}], **local)
    with pytest.raises(AirflowFailException, match="enough"):
        execute(append)
    assert not (Path(local["uri"]) / "_versions").exists()


def test_rows_that_a_gate_rejected_are_read_again_by_the_next_run_with_their_key(
    local: dict[str, Any], tmp_path: Path
) -> None:
    append = LanceAppendOperator(task_id="append", idempotency_key="day 1", gates=[{"max_null_rates": {"id": 0}}], **local)
    pq.write_table(pa.table({"id": [1, None]}), tmp_path / "rows.parquet")
    with pytest.raises(AirflowFailException, match="null"):
        execute_once(append, publishes=True, run_id="by hand 1")
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "rows.parquet")
    execute_once(append, publishes=True, run_id="by hand 2")
    execute_once(append, publishes=True, run_id="by hand 3")
    assert ids(local["uri"]) == [1, 2]


def test_work_that_a_commit_task_takes_is_left_to_it(local: dict[str, Any]) -> None:
    with _dag("taken") as dag:
        plain = LanceAppendOperator(task_id="plain", **local)
        through = LanceAppendOperator(task_id="through", key="b", **local)
        mapped = LanceAppendOperator.partial(task_id="mapped", uri=local["uri"], execution="local").expand(
            source=[local["source"]]
        )

        @task
        def collect(reference: Any) -> Any:
            return reference

        LanceCommitOperator(task_id="commit", staged=[plain.output, mapped.output, collect(through.output)])
    assert not plain.publishes
    assert not through.publishes
    assert mapped.operator.partial_kwargs["commit"] == "later" if hasattr(mapped, "operator") else True
    for each in dag.tasks:
        each.resolve_template_files()
    assert "version" not in execute(plain)


def test_work_for_a_commit_that_is_nowhere_is_refused_when_the_dag_is_parsed(
    tmp_path: Path, local: dict[str, Any], airflow_database: None
) -> None:
    from airflow.dag_processing.dagbag import BundleDagBag

    with _dag("nobody") as dag:
        LanceAppendOperator(task_id="append", commit="later", **local)
    bag = BundleDagBag(dag_folder=tmp_path, bundle_path=tmp_path, bundle_name="b")
    with pytest.raises(InputError, match=r"commit='later'.*LanceTransaction"):
        bag.bag_dag(dag)
    elsewhere = LanceAppendOperator(task_id="append", commit="elsewhere", **local)
    elsewhere.resolve_template_files()
    assert "version" not in execute(elsewhere)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"commit": "never"}, "now, later, elsewhere"),
        ({"commit": "elsewhere", "gates": [{"min_rows": 1}]}, "commit task"),
        ({"on_missing": "wait"}, "retry, skip, fail"),
        ({"execution": "locally"}, "spark-submit, spark-connect, local"),
    ],
)
def test_contradictions_are_refused_where_they_are_written(
    local: dict[str, Any], arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        LanceAppendOperator(task_id="append", **{**local, **arguments})


def test_a_task_of_a_transaction_does_not_publish_by_itself(local: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="only the commit task"), _dag("twice"), LanceTransaction("load"):
        LanceAppendOperator(task_id="append", commit="now", **local)


def test_a_transaction_survives_a_skipped_task(local: dict[str, Any], run_dag: RunDag) -> None:
    with _dag("skips") as dag, LanceTransaction("load", uri=local["uri"]):

        @task
        def skipped() -> None:
            raise AirflowSkipException("not today")

        LanceAppendOperator(task_id="append", **local)
        late = {"format": "parquet", "paths": ["/nowhere/*.parquet"]}
        LanceAppendOperator(task_id="late", **{**local, "source": late}, on_missing="skip")
        skipped()
    run = run_dag(dag)
    assert str(run.get_task_instance("load.late").state) == "skipped"
    assert str(run.get_task_instance("load.commit").state) == "success"
    assert ids(local["uri"]) == list(range(10))


def test_a_commit_written_by_hand_survives_a_skipped_task(local: dict[str, Any], run_dag: RunDag) -> None:
    late = {"format": "parquet", "paths": ["/nowhere/*.parquet"]}
    with _dag("skips_by_hand") as dag:
        append = LanceAppendOperator(task_id="append", **local)
        skipped = LanceAppendOperator(task_id="late", **{**local, "source": late}, on_missing="skip")
        LanceCommitOperator(task_id="commit", staged=[append.output, skipped.output])
    run = run_dag(dag)
    assert {ti.task_id: str(ti.state) for ti in run.get_task_instances()} == {
        "append": "success",
        "late": "skipped",
        "commit": "success",
    }
    assert ids(local["uri"]) == list(range(10))


def test_the_trigger_rule_of_a_commit_is_the_users_to_choose(local: dict[str, Any]) -> None:
    def commit(**arguments: Any) -> Any:
        append = LanceAppendOperator(task_id="append", **local)
        return LanceCommitOperator(task_id="commit", staged=append.output, **arguments)

    with _dag("ruled_by_default"):
        assert commit().trigger_rule == "none_failed_min_one_success"
    with _dag("ruled_by_task"):
        assert commit(trigger_rule="all_success").trigger_rule == "all_success"
    with DAG("ruled_by_dag", schedule=None, default_args={"trigger_rule": "all_done"}):
        assert commit().trigger_rule == "all_done"


@pytest.mark.parametrize("missing", ["/nowhere/x.parquet", "/nowhere/*.parquet", "{folder}"])
def test_missing_sources_follow_on_missing(tmp_path: Path, local: dict[str, Any], missing: str) -> None:
    (tmp_path / "empty").mkdir()
    source = {"format": "parquet", "paths": [missing.format(folder=tmp_path / "empty")]}
    local = {**local, "source": source}
    # Any exception but Airflow's own fail and skip counts for `retries`.
    with pytest.raises(SourceMissingError):
        execute(LanceAppendOperator(task_id="append", **local))
    with pytest.raises(AirflowFailException, match="SourceMissingError"):
        execute(LanceAppendOperator(task_id="append", on_missing="fail", **local))
    with pytest.raises(AirflowSkipException):
        execute(LanceAppendOperator(task_id="append", on_missing="skip", **local))


def test_killing_a_task_while_it_publishes_removes_nothing(local: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow_lance.execution import publish as module

    append = LanceAppendOperator(task_id="append", **local)

    def killed(*_: Any, **__: Any) -> None:
        append.on_kill()
        raise AirflowException("stopped")

    with monkeypatch.context() as patch:
        patch.setattr(module, "publish", killed)
        with pytest.raises(AirflowException, match="stopped"):
            execute(append)
    assert len(list(Path(local["uri"]).rglob("data/*.lance"))) == 1
    assert execute(append)["rows_added"] == 10


def test_a_skipped_on_an_existing_table_is_not_an_error(tmp_path: Path, local: dict[str, Any]) -> None:
    uri = make_table(tmp_path / "there.lance", 0)
    with pytest.raises(AirflowSkipException):
        execute(
            LanceAppendOperator(
                task_id="append", on_missing="skip",
                **{**local, "uri": uri, "source": {"format": "csv", "paths": ["/nowhere/a.csv"]}},
            )
        )  # fmt: skip
    assert lance.dataset(uri).version == 1


def test_results_of_mapped_tasks_are_asked_for_at_once() -> None:
    from airflow_lance.operators.commit import staged_references

    class Lazy(Sequence[Any]):
        """What Airflow hands over for the results of a mapped task: each access is a request."""

        def __init__(self) -> None:
            self.requests: list[Any] = []

        def __len__(self) -> int:
            return 3

        def __getitem__(self, key: Any) -> Any:
            self.requests.append(key)
            return [{"uri": "/t", "identity": str(number)} for number in range(3)][key]

    lazy = Lazy()
    assert [item["identity"] for item in staged_references([lazy])] == ["0", "1", "2"]
    assert lazy.requests == [slice(None)]
