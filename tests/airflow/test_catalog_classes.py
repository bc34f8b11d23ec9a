"""Catalogs of other packages: the deployment names their classes, a connection only a kind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from airflow.exceptions import AirflowFailException

from airflow_lance.hooks.lance import LanceHook
from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.drop_table import LanceDropTableOperator
from lance_core import namespace as ns
from lance_core.errors import InputError
from tests.airflow.operator_support import execute

Define = Callable[[str, str], None]
OPTION = "AIRFLOW__LANCE__CATALOG_CLASSES"


def _connect(define: Define, **extra: Any) -> LanceHook:
    define("lake", json.dumps({"conn_type": "lance", "extra": extra}))
    return LanceHook("lake")


@pytest.fixture
def official(tmp_path: Path, connection: Define, monkeypatch: pytest.MonkeyPatch) -> LanceHook:
    """A connection to the official library's own client of a directory."""
    monkeypatch.setenv(OPTION, "glue=no.such:Class, official=lance.namespace:DirectoryNamespace")
    root = str(tmp_path / "lake")
    ns.DirectoryNamespace(root=root).create_namespace(ns.CreateNamespaceRequest(id=["sales"]))
    extra = {"catalog_kind": "official", "catalog_uri": "official://lake", "base_uri": root}
    return _connect(connection, **extra, catalog_properties={"root": root})


def test_tables_are_written_listed_read_and_dropped_by_name(official: LanceHook, tmp_path: Path) -> None:
    parquet.write_table(pa.table({"id": [1, 2, 3]}), tmp_path / "rows.parquet")
    source = {"format": "parquet", "paths": [str(tmp_path / "rows.parquet")]}
    append = LanceAppendOperator(task_id="a", uri="sales.orders", source=source, lance_conn_id="lake", execution="local")
    assert execute(append, publishes=True)["rows"] == 3
    assert official.dataset("sales.orders").count_rows() == 3
    assert (official.list_namespaces(), official.list_tables("sales")) == (["sales"], ["sales.orders"])
    assert official.describe("sales.orders")["uri"].startswith(str(tmp_path / "lake"))
    execute(LanceDropTableOperator(task_id="d", uri="sales.orders", lance_conn_id="lake"))
    assert official.list_tables("sales") == []


def test_a_namespace_that_does_not_exist_is_named(official: LanceHook, tmp_path: Path) -> None:
    parquet.write_table(pa.table({"id": [1]}), tmp_path / "rows.parquet")
    source = {"format": "parquet", "paths": [str(tmp_path / "rows.parquet")]}
    with pytest.raises(AirflowFailException, match="no_such"):
        execute(
            LanceAppendOperator(task_id="a", uri="no_such.orders", source=source, lance_conn_id="lake", execution="local")
        )


def test_a_connection_alone_chooses_no_class(connection: Define) -> None:
    hook = _connect(connection, catalog_kind="os:system", catalog_uri="x://y", catalog_properties={"command": "true"})
    with pytest.raises(InputError, match="must be one of dir, rest, got 'os:system'") as caught:
        hook.list_tables()
    assert "catalog_classes" in caught.value.cure


def test_a_class_that_is_not_installed_is_named(connection: Define, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OPTION, "glue=no_such_package.glue:GlueNamespace")
    hook = _connect(connection, catalog_kind="glue", catalog_uri="glue://1", catalog_properties={})
    with pytest.raises(InputError, match="'glue' cannot be imported: No module named 'no_such_package'"):
        hook.list_tables()


@pytest.mark.parametrize(("uri", "token"), [("", ""), ("glue://1", "t0ken")])
def test_what_such_a_kind_does_not_take_is_refused(
    connection: Define, monkeypatch: pytest.MonkeyPatch, uri: str, token: str
) -> None:
    monkeypatch.setenv(OPTION, "glue=a.b:C")
    hook = _connect(connection, catalog_kind="glue", catalog_uri=uri, catalog_token=token)
    with pytest.raises(InputError, match="needs a catalog_uri and takes no catalog_token"):
        hook.list_tables()


def test_secrets_of_such_a_client_are_masked(connection: Define, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OPTION, "glue=a.b:C")
    properties = {"secret_access_key": "hush-hush", "region": "eu-west-1"}
    hook = _connect(connection, catalog_kind="glue", catalog_uri="glue://1", catalog_properties=properties)
    assert "hush-hush" in hook.settings.secrets
    assert "eu-west-1" not in hook.settings.secrets
    assert "hush-hush" not in repr(hook.settings)
