"""Tables by name in a DAG: the connection's catalog, operators, sensors, the hook, and tables that move."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from airflow.exceptions import AirflowFailException
from airflow.sdk import DAG, task

import lance_core
from airflow_lance.checks import row_count
from airflow_lance.connection import parse_connection
from airflow_lance.hooks.lance import LanceHook
from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.commit import LanceCommitOperator
from airflow_lance.operators.create_table import LanceCreateTableOperator
from airflow_lance.operators.delete import LanceDeleteOperator
from airflow_lance.operators.drop_table import LanceDropTableOperator
from airflow_lance.operators.write_audit_publish import LanceWriteAuditPublish
from airflow_lance.sensors.rows import LanceRowsSensor
from lance_core import namespace as ns
from lance_core.errors import InputError, NotFoundError
from tests.airflow.operator_support import execute
from tests.namespace.support import catalog_of

Define = Callable[[str, str], None]
TOKEN = "tok-hush-hush"


@contextmanager
def lake(kind: str, root: Path, define: Define) -> Iterator[LanceHook]:
    """A connection `lake` with a catalog of a kind, in which the namespace `sales` exists."""
    with catalog_of(kind, root) as (catalog, _):
        catalog.create_namespace(ns.CreateNamespaceRequest(id=["sales"]))
        address = str(root) if kind == "dir" else catalog.namespace_id().split('"')[1]
        extra = {"catalog_uri": address, "catalog_token": TOKEN if kind == "rest" else "", "base_uri": str(root)}
        define("lake", json.dumps({"conn_type": "lance", "extra": extra}))
        yield LanceHook("lake")


@pytest.fixture(params=["dir", "rest"])
def hook(request: pytest.FixtureRequest, tmp_path: Path, connection: Define) -> Iterator[LanceHook]:
    with lake(request.param, tmp_path / "lake", connection) as found:
        yield found


@pytest.fixture
def source(tmp_path: Path) -> dict[str, Any]:
    parquet.write_table(pa.table({"id": [1, 2, 3]}), tmp_path / "rows.parquet")
    return {"format": "parquet", "paths": [str(tmp_path / "rows.parquet")]}


def append(source: dict[str, Any], uri: str = "sales.orders", **more: Any) -> LanceAppendOperator:
    return LanceAppendOperator(task_id="a", uri=uri, source=source, lance_conn_id="lake", execution="local", **more)


def fresh() -> LanceHook:
    return LanceHook("lake")


def test_operators_create_append_delete_and_drop_by_name(hook: LanceHook, source: dict[str, Any]) -> None:
    assert not hook.table_exists("sales.orders")
    first = execute(append(source), publishes=True)
    assert (first["version"], first["rows"]) == (1, 3)
    assert first["uri"] == hook.get_uri("sales.orders")
    assert execute(append(source), publishes=True)["version"] == 1, "a retry lands nothing more"
    assert execute(append(source), publishes=True, run_id="r2")["version"] > 1
    delete = LanceDeleteOperator(
        task_id="d", uri="sales.orders", predicate="id = 1", lance_conn_id="lake", execution="local"
    )
    assert execute(delete, publishes=True)["rows_deleted"] == 2
    assert hook.dataset("sales.orders").to_table()["id"].to_pylist() == [2, 3, 2, 3]
    assert hook.list_tables() == ["sales.orders"]
    assert hook.list_namespaces() == ["sales"]
    about = hook.describe("sales.orders")
    assert (about["uri"], about["is_only_declared"]) == (first["uri"], False)
    drop = LanceDropTableOperator(task_id="x", uri="sales.orders", lance_conn_id="lake")
    assert execute(drop)["dropped"] is True
    assert fresh().list_tables() == [] and not Path(first["uri"]).exists()
    assert execute(drop)["dropped"] is False


def test_the_hook_writes_and_reads_by_name(hook: LanceHook) -> None:
    rows = pa.table({"id": [1]})
    hook.write(rows, "sales.orders")
    hook.write(rows, "sales.orders", mode="append")
    hook.write(pa.table({"id": [2], "new": ["x"]}), "sales.orders", mode="append", schema_drift="add_extra")
    assert hook.dataset("sales.orders").count_rows() == 3
    assert hook.table_exists("sales.orders") and not hook.table_exists("sales.no")
    ok, message = hook.test_connection()
    assert ok, message


def test_a_full_uri_stays_what_it_is(hook: LanceHook, tmp_path: Path) -> None:
    other = str(tmp_path / "elsewhere.lance")
    hook.write(pa.table({"id": [1]}), other)
    assert hook.get_uri(other) == other and hook.dataset(other).count_rows() == 1
    assert not hook.is_named(other)


def test_a_name_that_is_a_path_or_unknown_is_one_clear_sentence(hook: LanceHook) -> None:
    with pytest.raises(InputError, match=r"such as sales\.orders"):
        hook.get_uri("sales/orders")
    with pytest.raises(NotFoundError):
        hook.dataset("sales.typo")
    delete = LanceDeleteOperator(task_id="d", uri="sales.typo", predicate="id = 1", lance_conn_id="lake", execution="local")
    with pytest.raises(AirflowFailException, match="typo"):
        execute(delete, publishes=True)
    assert hook.list_tables() == []


def test_a_sensor_waits_for_a_name_that_does_not_exist_yet(hook: LanceHook, source: dict[str, Any]) -> None:
    sensor = LanceRowsSensor(task_id="s", uri="sales.orders", min_rows=1, lance_conn_id="lake")
    assert sensor.poke({}) is False
    execute(append(source), publishes=True)
    assert sensor.poke({}) is True


def test_a_task_that_was_killed_after_the_declaration_is_run_again(hook: LanceHook, source: dict[str, Any]) -> None:
    place = hook.get_uri("sales.orders", declare=True)
    assert hook.describe("sales.orders")["is_only_declared"] is True
    assert execute(append(source), publishes=True)["uri"] == place


def test_two_tasks_that_create_one_name_at_once_make_one_table(hook: LanceHook, source: dict[str, Any]) -> None:
    with ThreadPoolExecutor(2) as pool:
        done = [*pool.map(lambda run: execute(append(source), publishes=True, run_id=run), ["r1", "r2"])]
    assert len({result["uri"] for result in done}) == 1
    assert hook.dataset("sales.orders").to_table()["id"].to_pylist() == [1, 2, 3, 1, 2, 3]
    assert hook.list_tables() == ["sales.orders"]


def test_a_created_table_is_found_by_the_name_it_was_declared_with(hook: LanceHook) -> None:
    make = LanceCreateTableOperator(task_id="c", uri="sales.empty", schema="id BIGINT", lance_conn_id="lake")
    execute(make)
    assert hook.dataset("sales.empty").count_rows() == 0


def moved(root: Path, hook: LanceHook, name: str) -> None:
    """The table's files in another folder, registered under the same name: as a person does it who moves a table."""
    old = Path(hook.get_uri(name))
    old.rename(root / "moved")
    hook.named_tables.catalog.deregister_table(ns.DeregisterTableRequest(id=name.split(".")))
    hook.named_tables.catalog.register_table(ns.RegisterTableRequest(id=name.split("."), location="moved"))


def test_a_table_that_moves_between_two_tries_keeps_its_work_once(
    hook: LanceHook, source: dict[str, Any], tmp_path: Path
) -> None:
    first = execute(append(source), publishes=True)
    moved(tmp_path / "lake", hook, "sales.orders")
    again = execute(append(source), publishes=True)
    assert again["identity"] == first["identity"] and again["uri"].endswith("/moved")
    assert (again["rows"], [*again["identities"].values()]) == (3, ["already_committed"])


def test_a_table_that_moves_between_staging_and_commit_is_refused(
    hook: LanceHook, source: dict[str, Any], tmp_path: Path
) -> None:
    execute(append(source), publishes=True)
    staged = execute(append(source), run_id="r2")
    moved(tmp_path / "lake", hook, "sales.orders")
    commit = LanceCommitOperator(task_id="c", uri="sales.orders", staged=[staged], lance_conn_id="lake")
    with pytest.raises(AirflowFailException, match="publishes to one table"):
        execute(commit)
    assert fresh().dataset("sales.orders").count_rows() == 3


def test_a_dag_by_name(hook: LanceHook, source: dict[str, Any], run_dag: Callable[..., Any]) -> None:
    with DAG("by_name", schedule=None, start_date=datetime(2026, 1, 1)) as dag:
        first = append(source)

        @task.lance(uri="sales.{{ 'orders' }}", lance_conn_id="lake", execution="local", task_id="more")
        def more() -> pa.Table:
            return pa.table({"id": [4, 5]})

        @task(task_id="count")
        def count() -> int:
            return int(LanceHook("lake").dataset("sales.orders").count_rows())

        first >> more() >> count()
    assert str(run_dag(dag).state) == "success"
    assert hook.dataset("sales.orders").count_rows() == 5


def test_write_audit_publish_by_name(hook: LanceHook, source: dict[str, Any], run_dag: Callable[..., Any]) -> None:
    hook.write(pa.table({"id": [0]}), "sales.orders")
    dag = DAG("audit_by_name", schedule=None, start_date=datetime(2026, 1, 1))
    given: dict[str, Any] = {"uri": "sales.orders", "lance_conn_id": "lake", "execution": "local"}
    with dag, LanceWriteAuditPublish("day", checks=[row_count(at_least=4)], **given) as day:
        append(source, day.branch_uri)
    assert str(run_dag(dag).state) == "success"
    assert sorted(hook.dataset("sales.orders").to_table()["id"].to_pylist()) == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["sales.orders/tree/", "sales.orders/tree/../x", "sales.orders/data"])
def test_a_name_with_another_path_is_refused(hook: LanceHook, name: str) -> None:
    with pytest.raises(InputError):
        hook.get_uri(name)


def test_the_token_is_sent_and_masked(connection: Define, monkeypatch: pytest.MonkeyPatch) -> None:
    masked: list[str] = []
    monkeypatch.setattr("airflow_lance.hooks.lance.mask_secret", masked.append)
    extra = {
        "catalog_uri": "https://catalog:2333",
        "catalog_token": TOKEN,
        "catalog_properties": {"header.x-api-key": "api-hush"},
    }
    connection("lake", json.dumps({"conn_type": "lance", "extra": extra}))
    found = LanceHook("lake")
    assert TOKEN not in repr(found.settings) and "api-hush" not in repr(found.settings)
    assert {TOKEN, "api-hush"} <= {*masked}


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"catalog_kind": "glue", "catalog_uri": "x"}, "must be one of dir, rest"),
        ({"catalog_kind": "rest", "catalog_uri": "/data"}, r"the http\(s\) address"),
        ({"catalog_kind": "dir", "catalog_uri": "https://x"}, "its folder"),
        ({"catalog_kind": "dir"}, "its folder"),
        ({"catalog_uri": "/x", "catalog_properties": "hush"}, "catalog_properties: expected a JSON object"),
    ],
)
def test_a_wrong_catalog_is_one_clear_sentence(extra: dict[str, Any], words: str) -> None:
    from airflow.sdk import Connection

    with pytest.raises(InputError, match=words) as caught:
        parse_connection(Connection(conn_id="c", conn_type="lance", extra=json.dumps(extra)))
    assert "hush" not in str(caught.value)


def test_a_connection_without_a_catalog_is_as_before(connection: Define, tmp_path: Path) -> None:
    connection("plain", json.dumps({"conn_type": "lance", "host": str(tmp_path)}))
    found = LanceHook("plain")
    assert found.get_uri("sales.orders") == f"{tmp_path}/sales.orders"
    assert found.identity_uri("sales.orders") == f"{tmp_path}/sales.orders"
    with pytest.raises(InputError, match="has no catalog"):
        found.list_namespaces()
    lance_core.write_dataset(pa.table({"id": [1]}), tmp_path / "t.lance")
    assert found.list_tables() == ["t.lance"]
