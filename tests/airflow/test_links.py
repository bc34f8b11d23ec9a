"""The link of a task, once it has run: to what its version changed, to work that waits, else to the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow_lance.get_provider_info import get_provider_info
from airflow_lance.links import table_id
from airflow_lance.operators.delete import LanceDeleteOperator
from airflow_lance.operators.stage import LanceStageOperator
from airflow_lance.operators.tag import LanceTagOperator
from tests.airflow.operator_support import FakeTi, execute, make_table


def _links(operator: Any) -> dict[str, str]:
    ti = FakeTi(operator.task_id, "r")
    return {link.name: link.get_link(operator, ti_key=ti) for link in operator.operator_extra_links}


def _delete(uri: str) -> LanceDeleteOperator:
    return LanceDeleteOperator(task_id="forget", uri=uri, execution="local", predicate="id < 3")


def test_a_task_links_to_what_it_changed(tmp_path: Path) -> None:
    uri = make_table(tmp_path / "t.lance", 0)
    operator = _delete(uri)
    execute(operator, publishes=True)
    page = f"/plugin/lance#/table/{table_id('lance_default', uri)}"
    assert _links(operator) == {"Lance table": f"{page}/diff/1/2"}


def test_a_task_that_only_stages_links_to_the_table(tmp_path: Path) -> None:
    uri = make_table(tmp_path / "t.lance", 0)
    operator = _delete(uri)
    operator.commit = "elsewhere"
    execute(operator)
    page = f"/plugin/lance#/table/{table_id('lance_default', uri)}"
    assert _links(operator) == {"Lance table": f"{page}/staged"}


def test_a_task_that_did_not_run_has_no_link() -> None:
    assert set(_links(LanceTagOperator(task_id="tag", uri="/t.lance", tag="x")).values()) == {""}


def test_the_provider_names_every_link() -> None:
    named = {name.rpartition(".")[2] for name in get_provider_info()["extra-links"]}
    assert {type(link).__name__ for link in LanceStageOperator.operator_extra_links} == named
