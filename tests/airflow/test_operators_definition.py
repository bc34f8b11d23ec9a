"""Operators that change a table's definition, query it, check it: each twice, for twice is the same as once."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lance
import pyarrow as pa
import pyarrow.csv as pc_csv
import pyarrow.parquet as pq
import pytest

from airflow_lance import checks
from airflow_lance.assets import create_asset, event_facts
from airflow_lance.compat import AirflowFailException
from airflow_lance.operators.alter_columns import LanceAlterColumnsOperator
from airflow_lance.operators.check import LanceCheckOperator
from airflow_lance.operators.clone import LanceCloneOperator
from airflow_lance.operators.create_table import LanceCreateTableOperator
from airflow_lance.operators.declare_column import LanceDeclareColumnOperator
from airflow_lance.operators.describe import LanceDescribeOperator
from airflow_lance.operators.drop_columns import LanceDropColumnsOperator
from airflow_lance.operators.drop_index import LanceDropIndexOperator
from airflow_lance.operators.drop_table import LanceDropTableOperator
from airflow_lance.operators.query import LanceQueryOperator
from airflow_lance.operators.rename_column import LanceRenameColumnOperator
from airflow_lance.operators.table_config import LanceTableConfigOperator
from airflow_lance.triggers.version import version_event
from lance_core.conditions import TableFacts
from lance_core.errors import InputError
from tests.airflow.operator_support import FakeTi, execute, ids, make_table


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return make_table(tmp_path / "t.lance", 0, 10)


def _twice(operator: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    first = execute(operator)
    second = execute(operator)
    assert first.get("version") == second.get("version")
    return first, second


def test_columns_are_dropped_renamed_and_retyped_once(uri: str) -> None:
    wanted = [{"path": "day", "name": "month"}, {"path": "id", "data_type": "INT"}]
    altered, again = _twice(LanceAlterColumnsOperator(task_id="a", uri=uri, alterations=wanted))
    assert (altered["altered"], again["altered"]) == (["day", "id"], [])
    assert lance.dataset(uri).schema.field("id").type == pa.int32()
    dropped, again = _twice(LanceDropColumnsOperator(task_id="d", uri=uri, columns=["month"]))
    assert (dropped["dropped"], again["dropped"]) == (["month"], [])
    assert lance.dataset(uri).schema.names == ["id"]
    assert ids(uri) == list(range(20))


def test_a_column_is_renamed_once(uri: str) -> None:
    renamed, again = _twice(LanceRenameColumnOperator(task_id="r", uri=uri, column="day", new_name="month"))
    assert (renamed["altered"], again["altered"]) == (["day"], [])
    assert lance.dataset(uri).schema.names == ["id", "month"]
    with pytest.raises(AirflowFailException, match="nothing"):
        execute(LanceRenameColumnOperator(task_id="r", uri=uri, column="nothing", new_name="x"))


def test_a_column_that_is_nowhere_fails(uri: str) -> None:
    operator = LanceAlterColumnsOperator(task_id="a", uri=uri, alterations=[{"path": "nothing", "name": "x"}])
    with pytest.raises(AirflowFailException, match="nothing"):
        execute(operator)


def test_an_index_and_configuration(uri: str) -> None:
    lance.dataset(uri).create_scalar_index("id", "BTREE")
    dropped, again = _twice(LanceDropIndexOperator(task_id="i", uri=uri, index_name="id_idx"))
    assert (dropped["dropped"], again["dropped"]) == (["id_idx"], [])
    assert lance.dataset(uri).list_indices() == []
    _twice(LanceTableConfigOperator(task_id="c", uri=uri, values={"owner": "we"}))
    assert lance.dataset(uri).config()["owner"] == "we"
    result = execute(LanceTableConfigOperator(task_id="c", uri=uri, values={"owner": None}))
    assert "owner" not in result["config"]


def test_tables_are_created_cloned_and_dropped(tmp_path: Path, uri: str) -> None:
    new = str(tmp_path / "new.lance")
    created, again = _twice(LanceCreateTableOperator(task_id="c", uri=new, schema="id BIGINT, tags ARRAY<STRING>"))
    assert (created["created"], again["created"]) == (True, False)
    assert lance.dataset(new).schema.names == ["id", "tags"]
    with pytest.raises(AirflowFailException, match="is already a table"):
        execute(LanceCreateTableOperator(task_id="c", uri=new, schema="id BIGINT", if_exists="fail"))
    for depth in ("shallow", "deep"):
        target = str(tmp_path / f"{depth}.lance")
        cloned, again = _twice(LanceCloneOperator(task_id="k", uri=uri, target=target, version=1, depth=depth))
        assert (cloned["cloned"], again["cloned"], ids(target)) == (True, False, list(range(10)))
    dropped = execute(LanceDropTableOperator(task_id="d", uri=new))
    assert (dropped["dropped"], execute(LanceDropTableOperator(task_id="d", uri=new))["dropped"]) == (True, False)
    with pytest.raises(AirflowFailException, match="there is no table"):
        execute(LanceDropTableOperator(task_id="d", uri=new, if_missing="fail"))


def test_a_query_is_a_result_a_file_or_a_table(tmp_path: Path, uri: str) -> None:
    result = execute(LanceQueryOperator(task_id="q", uri=uri, columns=["id"], filter="id in (3, 14)"))
    assert (result["rows"], result["version"]) == ([{"id": 3}, {"id": 14}], 2)
    readers = {
        "parquet": pq.read_table,
        "csv": pc_csv.read_csv,
        "arrow": lambda path: pa.ipc.open_file(path).read_all(),
        "json": lambda path: pa.Table.from_pylist([json.loads(line) for line in Path(path).read_text().splitlines()]),
        "lance": lambda path: lance.dataset(path).to_table(),
    }
    for kind, read in readers.items():
        target = str(tmp_path / "out" / f"rows.{kind}")
        for _ in range(2):
            done = execute(LanceQueryOperator(task_id="q", uri=uri, filter="id < 5", target=target, format=kind))
        assert (done["num_rows"], read(target)["id"].to_pylist()) == (5, [0, 1, 2, 3, 4])
    with pytest.raises(AirflowFailException, match="more than 7 rows"):
        execute(LanceQueryOperator(task_id="q", uri=uri, max_rows=7))


def test_vectors_and_words_are_searched(tmp_path: Path) -> None:
    uri = str(tmp_path / "v.lance")
    vectors = pa.array([[float(number), 0.0] for number in range(9)], pa.list_(pa.float32(), 2))
    lance.write_dataset(pa.table({"id": list(range(9)), "v": vectors, "text": ["red fox", "blue sea", "grey day"] * 3}), uri)
    lance.dataset(uri).create_scalar_index("text", "INVERTED")
    near = LanceQueryOperator(task_id="q", uri=uri, columns=["id"], nearest={"column": "v", "q": [3.2, 0.0], "k": 2})
    assert [row["id"] for row in execute(near)["rows"]] == [3, 4]
    words = LanceQueryOperator(task_id="q", uri=uri, columns=["id"], full_text="fox")
    assert {row["id"] for row in execute(words)["rows"]} == {0, 3, 6}


def test_checks_hold_for_a_version_that_is_there(uri: str) -> None:
    good = [checks.row_count(at_least=20, at_most=20), checks.not_null("id"), checks.unique("id"), checks.no_rows("id < 0"),
            checks.accepted_values("day", 0, 1)]  # fmt: skip
    result = execute(LanceCheckOperator(task_id="c", uri=uri, checks=good))
    assert (result["version"], result["num_rows"], len(result["gates"])) == (2, 20, 5)
    with pytest.raises(AirflowFailException, match=r"GateFailedError.*at version 1.*'row count': the table has 10 rows"):
        execute(LanceCheckOperator(task_id="c", uri=uri, checks=good, version=1))


def test_a_run_reads_the_version_of_its_event(uri: str) -> None:
    asset = create_asset(uri=uri)
    events = {asset: [SimpleNamespace(extra={"uri": uri, "version": 1}), SimpleNamespace(extra={})]}
    context: Any = {"ti": FakeTi("q", "r"), "outlet_events": {}, "triggering_asset_events": events}
    operator = LanceQueryOperator(task_id="q", uri=uri, version="triggering")
    assert (operator.execute(context)["num_rows"], operator.version) == (10, 1)
    with pytest.raises(AirflowFailException, match="no asset event"):
        execute(LanceQueryOperator(task_id="q", uri=uri, version="triggering"))


def test_a_run_that_a_watcher_set_off_reads_the_version_that_it_told(uri: str) -> None:
    """Airflow keeps what a watcher says in another place than what a task's event says."""
    told = version_event(TableFacts(uri=uri, version=1), since=0)
    event = SimpleNamespace(extra={"from_trigger": True, "payload": told})
    context: Any = {"ti": FakeTi("q", "r"), "outlet_events": {}, "triggering_asset_events": {create_asset(uri=uri): [event]}}
    operator = LanceQueryOperator(task_id="q", uri=uri, version="triggering")
    assert (operator.execute(context)["num_rows"], operator.version) == (10, 1)


def test_events_of_commits_and_watchers_have_one_shape(uri: str) -> None:
    told = version_event(TableFacts(uri=uri, version=7), since=6)
    watcher = event_facts(SimpleNamespace(extra={"from_trigger": True, "payload": told}))
    commit = event_facts(SimpleNamespace(extra={"uri": uri, "version": 7, "rows": 0, "table_id": ""}))
    assert {"uri", "version", "rows", "table_id"} <= watcher.keys() & commit.keys()
    assert watcher["version"] == commit["version"] == 7
    assert event_facts(SimpleNamespace(extra=None)) == {}


@pytest.mark.parametrize("within", ["26", "26 parsecs", "{{ params.hours }} parsecs"])
def test_a_freshness_that_is_no_duration_is_refused_when_the_dag_is_parsed(uri: str, within: str) -> None:
    with pytest.raises(InputError, match="fresh_within") as caught:
        LanceDescribeOperator(task_id="d", uri=uri, fresh_within=within).resolve_template_files()
    assert "26h" in str(caught.value)


@pytest.mark.parametrize("within", ["26h", "1h 30m", "", "{{ params.within }}", "{{ params.hours }}h", None])
def test_a_freshness_that_is_one_or_a_template_is_not(uri: str, within: str | None) -> None:
    LanceDescribeOperator(task_id="d", uri=uri, description="orders", fresh_within=within).resolve_template_files()


def test_what_becomes_of_failed_rows_is_checked_when_the_dag_is_parsed(uri: str) -> None:
    with pytest.raises(InputError, match="skipp"):
        LanceDeclareColumnOperator(task_id="d", uri=uri, column="n", sql="id", on_error="skipp").resolve_template_files()
