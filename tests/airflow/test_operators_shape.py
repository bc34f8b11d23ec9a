"""Operators as a DAG file sees them: arguments, templates, the commit that a group adds by itself."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest
from airflow.sdk import DAG, TaskGroup, task

from airflow_lance.assets import create_asset
from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.commit import LanceCommitOperator, staged_references
from airflow_lance.operators.overwrite import LanceOverwriteOperator
from airflow_lance.operators.stage import LanceStageOperator, identity_of
from airflow_lance.operators.transaction import LanceTransaction
from lance_core.errors import InputError
from lance_core.jobs.specs.spec import AppendSpec, OverwriteSpec, SourceSpec

URI = "/data/t.lance"
SOURCE = {"format": "csv", "paths": ["/raw/{{ ds }}.csv"], "options": {"header": "true"}}


def _dag(dag_id: str = "d") -> DAG:
    return DAG(dag_id, schedule=None, start_date=datetime(2013, 1, 1, tzinfo=timezone.utc))


class FakeTi:
    def __init__(self, **fields: Any) -> None:
        self.__dict__.update({"dag_id": "d", "run_id": "r", "task_id": "t", "map_index": -1, "try_number": 1, **fields})


def test_append_says_what_the_spec_says() -> None:
    operator = LanceAppendOperator(
        task_id="append", uri=URI, source=SOURCE, max_rows_per_file="5000", num_partitions=2, schema_drift="fill_missing"
    )
    spec = operator.make_spec(uri=URI, identity="i")
    assert spec == AppendSpec(
        uri=URI,
        identity="i",
        source=SourceSpec(format="csv", paths=("/raw/{{ ds }}.csv",), options={"header": "true"}),
        max_rows_per_file=5000,
        num_partitions=2,
        schema_drift="fill_missing",
    )


def test_overwrite_is_strict_unless_told() -> None:
    source = SourceSpec(callable="module:function", kwargs={"n": 3})
    spec = LanceOverwriteOperator(task_id="o", uri=URI, source=source).make_spec(uri=URI, identity="i")
    assert spec == OverwriteSpec(uri=URI, identity="i", source=source, if_moved="fail")
    loose = LanceOverwriteOperator(task_id="o", uri=URI, source=source, if_moved="overwrite")
    assert loose.make_spec(uri=URI, identity="i") == OverwriteSpec(
        uri=URI, identity="i", source=source, if_moved="overwrite"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"source": {"format": "csv", "path": "x"}}, "did you mean 'paths'"),
        ({"source": {"paths": ["x"]}}, "exactly one of format, sql, callable"),
        ({"source": SOURCE, "max_rows_per_file": "many"}, "spec.max_rows_per_file"),
        ({"source": SOURCE, "schema_drift": "hope"}, "spec.schema_drift"),
        ({"source": SOURCE, "num_partitions": 0}, "num_partitions must be at least 1"),
    ],
)
def test_a_wrong_argument_is_named(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        LanceAppendOperator(task_id="append", uri=URI, **arguments).make_spec(uri=URI, identity="i")


def test_execution_is_checked_where_the_dag_is_parsed() -> None:
    with pytest.raises(InputError, match="execution must be one of"):
        LanceAppendOperator(task_id="append", uri=URI, source=SOURCE, execution="spark")  # type: ignore[arg-type]


def test_templates_reach_every_part_of_the_source() -> None:
    operator = LanceAppendOperator(
        task_id="append",
        uri="/data/{{ name }}.lance",
        source={
            "sql": "SELECT * FROM raw WHERE month = {{ month }}",
            "views": {"raw": {"format": "csv", "paths": ["/{{ name }}"]}},
        },
        max_rows_per_file="{{ month * 1000 }}",
        conf={"spark.app.name": "{{ name }}"},
        key="{{ name }}",
        spark_submit={"driver_memory": "{{ month }}g"},
        storage_options={"region": "{{ name }}"},
        properties={"month": "{{ month }}"},
    )
    with _dag():
        operator.render_template_fields({"name": "flights", "month": 7})  # type: ignore[typeddict-item]
    spec = operator.make_spec(uri=operator.uri, identity="i")
    assert operator.uri == "/data/flights.lance"
    assert isinstance(spec, AppendSpec)
    assert spec.source.sql == "SELECT * FROM raw WHERE month = 7"
    assert spec.source.views["raw"].paths == ("/flights",)
    assert (spec.max_rows_per_file, operator.key, spec.properties) == (7000, "flights", {"month": "7"})
    assert (operator.conf, operator.spark_submit) == ({"spark.app.name": "flights"}, {"driver_memory": "7g"})
    assert operator.storage_options == {"region": "flights"}


@pytest.mark.parametrize("operator", [LanceAppendOperator, LanceOverwriteOperator, LanceCommitOperator])
def test_every_template_field_is_an_attribute(operator: Any) -> None:
    made = operator(task_id="t", uri=URI, **({"staged": []} if operator is LanceCommitOperator else {"source": SOURCE}))
    for field in operator.template_fields:
        assert hasattr(made, field), field


def test_identity_survives_tries_and_tells_tasks_apart() -> None:
    def identity(key: str = "", **fields: Any) -> str:
        return identity_of({"ti": FakeTi(**fields)}, uri=URI, key=key)  # type: ignore[typeddict-item]

    assert identity(try_number=1) == identity(try_number=7)
    others = [identity(map_index=3), identity(task_id="u"), identity(run_id="s"), identity(dag_id="e"), identity(key="k")]
    assert len({identity(), *others}) == 6


def test_the_group_adds_its_commit_after_everything_inside() -> None:
    with _dag() as dag:

        @task
        def before() -> None: ...

        @task
        def check() -> None: ...

        with LanceTransaction(
            "month", uri=URI, pool="lane", outlets=[create_asset(uri=URI)], commit_args={"retries": 3}
        ) as month:
            append = LanceAppendOperator(task_id="append", uri=URI, source=SOURCE)
            mapped = LanceAppendOperator.partial(task_id="mapped", uri=URI).expand(source=[SOURCE, SOURCE])
            with TaskGroup("inner"):
                deep = LanceOverwriteOperator(task_id="deep", uri=URI, source=SOURCE)
                deep >> check()
        before() >> month
    commit = dag.get_task("month.commit")
    assert isinstance(commit, LanceCommitOperator)
    assert commit.upstream_task_ids == {"month.append", "month.mapped", "month.inner.deep", "month.inner.check"}
    assert (commit.pool, commit.retries, commit.uri) == ("lane", 3, URI)
    assert [xcom.operator for xcom in commit.staged] == [append, mapped, deep]
    assert [asset.uri for asset in commit.outlets] == ["lance://file/data/t.lance"]
    assert dag.get_task("month.append").upstream_task_ids == {"before"}
    assert [leaf.task_id for leaf in month.leaves] == ["month.commit"]


def test_the_commit_reaches_the_table_as_its_tasks_do() -> None:
    with _dag() as dag:
        with LanceTransaction("alike"):
            LanceAppendOperator(task_id="a", uri="t", lance_conn_id="lake", storage_options={"region": "x"}, source=SOURCE)
            LanceAppendOperator.partial(task_id="b", uri="t", lance_conn_id="lake", storage_options={"region": "x"}).expand(
                source=[SOURCE]
            )
        with LanceTransaction("told", lance_conn_id="other", storage_options={"region": "y"}):
            LanceAppendOperator(task_id="a", uri="t", lance_conn_id="lake", source=SOURCE)
    alike, told = dag.get_task("alike.commit"), dag.get_task("told.commit")
    assert (alike.lance_conn_id, alike.storage_options, alike.uri) == ("lake", {"region": "x"}, "")
    assert (told.lance_conn_id, told.storage_options) == ("other", {"region": "y"})


def test_the_group_survives_serialization() -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    with _dag() as dag, LanceTransaction("month", uri=URI):
        LanceAppendOperator.partial(task_id="append", uri=URI).expand(source=[SOURCE])
    stored = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag))
    assert set(stored.task_dict) == {"month.append", "month.commit"}
    assert stored.task_dict["month.commit"].upstream_task_ids == {"month.append"}


def test_a_group_that_fails_to_parse_adds_nothing() -> None:
    with _dag() as dag:
        with pytest.raises(ZeroDivisionError), LanceTransaction("month", uri=URI):
            LanceAppendOperator(task_id="append", uri=URI, source=SOURCE)
            raise ZeroDivisionError
        after = LanceAppendOperator(task_id="after", uri=URI, source=SOURCE)
    assert set(dag.task_ids) == {"month.append", "after"}
    assert after.task_id == "after"


def test_references_are_flattened_and_checked() -> None:
    one, two = {"uri": URI, "identity": "1"}, {"uri": URI, "identity": "2"}
    assert list(staged_references([one, None, [two, None]])) == [one, two]
    assert list(staged_references(one)) == [one]
    assert list(staged_references(None)) == []
    with pytest.raises(InputError, match="needs a uri and an identity"):
        list(staged_references([{"version": 3}]))
    with pytest.raises(InputError, match="got int"):
        list(staged_references([3]))


def test_a_commit_is_of_one_table() -> None:
    from airflow.sdk.exceptions import AirflowFailException

    commit = LanceCommitOperator(task_id="c", staged=[{"uri": "/a", "identity": "1"}, {"uri": "/b", "identity": "2"}])
    with pytest.raises(AirflowFailException, match="a commit task publishes to one table"):
        commit.execute({})  # type: ignore[typeddict-item]


def test_a_base_class_is_not_an_operator() -> None:
    with pytest.raises(TypeError, match="abstract"):
        LanceStageOperator(task_id="t", uri=URI)  # type: ignore[abstract]
