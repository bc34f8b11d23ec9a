"""Asset uris and the lane of a table."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from airflow_lance.assets import asset_uri, create_asset, table_uri
from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.tag import LanceTagOperator
from airflow_lance.operators.transaction import LanceTransaction
from airflow_lance.pools import check_pools, ensure_pool, explain_pool, main, named_pools, pool_of


@pytest.mark.parametrize(
    ("table", "asset"),
    [
        ("s3://lake/a/t.lance", "lance://s3/lake/a/t.lance"),
        ("/data/t.lance", "lance://file/data/t.lance"),
        ("GS://lake/t.lance/", "lance://gs/lake/t.lance"),
    ],
)
def test_a_tables_asset(table: str, asset: str) -> None:
    assert asset_uri(table) == asset
    assert create_asset(uri=table).uri == asset
    assert create_asset(uri=asset).uri == asset
    assert table_uri(asset).lower() == table.rstrip("/").lower()


@pytest.mark.parametrize("uri", ["lance://", "lance:///x", "lance://s3", "lance://s3/"])
def test_an_asset_must_name_a_table(uri: str) -> None:
    from airflow.sdk import Asset

    with pytest.raises(ValueError):
        Asset(uri=uri)


def test_a_relative_path_names_no_asset() -> None:
    with pytest.raises(ValueError, match="absolute path"):
        asset_uri("t.lance")


def test_the_lane_is_named_after_the_place_not_its_spelling() -> None:
    name = pool_of("/data/flights.lance")
    assert name.startswith("lance_flights_")
    assert pool_of("file:///data/flights.lance/") == name
    assert pool_of("/other/flights.lance") != name
    assert len(pool_of("s3://b/" + "x" * 500)) < 60


def test_ensure_pool_creates_checks_and_explains(
    airflow_database: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from airflow.models.pool import Pool

    assert "created" in ensure_pool("lane_a", uri="/data/t.lance")
    assert "exists" in ensure_pool("lane_a")
    Pool.create_or_update_pool("lane_b", slots=3, description="", include_deferred=False)
    with pytest.raises(ValueError, match="has 3 slots"):
        ensure_pool("lane_b")
    monkeypatch.setattr(sys, "argv", ["pools", "/data/t.lance"])
    main()
    assert f"pool {pool_of('/data/t.lance')!r} created" in capsys.readouterr().out
    assert "airflow pools set lane_a 1" in explain_pool("lane_a", "/data/t.lance")


def _waiting(dag_id: str) -> Any:
    from airflow.sdk import DAG

    with DAG(dag_id, schedule=None) as dag:
        with LanceTransaction("month", uri="/data/t.lance", pool=f"{dag_id}_lane"):
            LanceAppendOperator(task_id="append", uri="/data/t.lance", source="/raw/a.parquet", execution="local")
        LanceTagOperator(task_id="tag", uri="/data/t.lance", tag="prod")
    return dag


def test_a_task_that_waits_for_its_pool_says_how_to_make_it() -> None:
    commit = _waiting("documented").get_task("month.commit")
    assert "airflow pools set documented_lane 1" in commit.doc_md
    assert "'scheduled'" in commit.doc_md
    tag = LanceTagOperator(task_id="tag", uri="/t.lance", tag="prod", pool="lane", doc_md="ours")
    assert tag.doc_md == "ours", "what the author wrote stays"
    assert LanceTagOperator(task_id="tag", uri="/t.lance", tag="prod").doc_md is None


def test_only_pools_that_tasks_of_this_provider_name_are_looked_at() -> None:
    assert named_pools([_waiting("named")]) == {"named_lane": ["named.month.commit"]}


def test_missing_pools_of_stored_dags_are_named_and_made(store_dag: Callable[[Any], None]) -> None:
    from airflow.models.pool import Pool

    store_dag(_waiting("stored"))
    lines, missing = check_pools()
    assert missing >= 1
    (line,) = [line for line in lines if "stored_lane" in line]
    assert "does not exist, and stored.month.commit would wait" in line
    assert "airflow pools set stored_lane 1" in line
    lines, missing = check_pools(create=True)
    assert missing == 0
    found = Pool.get_pool("stored_lane")
    assert found is not None
    assert found.slots == 1
    assert any("'stored_lane' is there, for stored.month.commit" in line for line in check_pools()[0])


def test_airflows_command_line_has_the_command(store_dag: Callable[[Any], None]) -> None:
    store_dag(_waiting("commanded"))

    command = [sys.executable, "-m", "airflow", "lance", "pools"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, "airflow pools set commanded_lane 1" in done.stdout) == (1, True), done.stdout + done.stderr
