"""Which connections the pages show where the deployment names none."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from airflow_lance.ui import catalog, service
from airflow_lance.ui.catalog import Source, TableRef, connection_ids, find, in_environment, open_source
from airflow_lance.ui.errors import PageError
from airflow_lance.ui.service import Pages
from airflow_lance.ui.settings import PagesSettings
from lance_core.errors import NotFoundError, StoreError
from lance_core.maintenance.find import check_base


@pytest.mark.parametrize(
    ("text", "is_ours"),
    [
        (json.dumps({"conn_type": "lance", "extra": {"base_uri": "/lake"}}), True),
        (" " + json.dumps({"conn_type": "lance"}), True),
        ("lance://?base_uri=%2Flake", True),
        ("lance:///", True),
        (json.dumps({"conn_type": "spark"}), False),
        (json.dumps({"description": "lance"}), False),
        ("spark://lance", False),
        ("lancelot://host", False),
        ("{lance", False),
        ("[1]", False),
        ("", False),
    ],
)
def test_connections_of_the_environment_are_found_by_their_type(text: str, is_ours: bool) -> None:
    found = in_environment({"AIRFLOW_CONN_MY_LAKE": text, "MY_LAKE": "lance://", "AIRFLOW__CORE__X": "lance://"})
    assert found == (["my_lake"] if is_ours else [])


def test_the_default_connection_and_those_of_the_environment_are_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lake = json.dumps({"conn_type": "lance", "extra": {"base_uri": str(tmp_path)}})
    monkeypatch.setattr(catalog, "_in_database", lambda: ["stored"])
    monkeypatch.delenv("AIRFLOW_CONN_LANCE_DEFAULT", raising=False)
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", lake)
    monkeypatch.setenv("AIRFLOW_CONN_DB", "postgres://host")
    assert connection_ids(()) == ["lake", "stored"]
    assert connection_ids(("only",)) == ["only"]
    monkeypatch.setenv("AIRFLOW_CONN_LANCE_DEFAULT", lake)
    assert connection_ids(()) == ["lake", "lance_default", "stored"]
    assert find(open_source("lake")) == []


@pytest.mark.parametrize("form", ["{}/nowhere", "file://{}/nowhere", "{}/a_file"])
def test_a_base_uri_that_does_not_exist_is_an_error(form: str, tmp_path: Path) -> None:
    (tmp_path / "a_file").touch()
    base = form.format(tmp_path)
    with pytest.raises(NotFoundError, match="is no folder") as refused:
        find(Source("lake", base))
    assert base in str(refused.value) and "base_uri" in str(refused.value)


@pytest.mark.parametrize("form", ["{}", "file://{}", "{}/", "{}/with space"])
def test_a_base_uri_without_tables_is_none(form: str, tmp_path: Path) -> None:
    (tmp_path / "with space").mkdir()
    assert find(Source("lake", form.format(tmp_path))) == []


def test_prefixes_of_object_stores_are_not_looked_for() -> None:
    for uri in ("s3://bucket/never", "memory://never", "az://container/x"):
        check_base(uri)


def test_an_unknown_table_is_not_asked_of_a_store_that_did_not_answer_a_moment_ago(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    now = [1000.0]
    asked: list[str] = []

    def look(source: Source) -> list[TableRef]:
        asked.append(source.conn_id)
        if source.conn_id == "far":
            raise StoreError("no answer")
        return []

    monkeypatch.setattr(service, "find", look)
    monkeypatch.setattr(service, "open_source", lambda conn_id, base_uri="": Source(conn_id, str(tmp_path)))
    pages = Pages(PagesSettings(connections=("near", "far")), clock=lambda: now[0])

    def ask() -> list[str]:
        asked.clear()
        with pytest.raises(PageError, match="no such table"):
            asyncio.run(pages.table("0" * 16))
        return sorted(asked)

    assert ask() == ["far", "near"]
    assert ask() == ["near"], "a table that is new there is found"
    now[0] += pages.settings.cache_seconds + 1
    assert ask() == ["far", "near"]
