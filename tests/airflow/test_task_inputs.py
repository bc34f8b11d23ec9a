"""`@task.lance(inputs=...)`: the function is called with tables, each opened at one version."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from airflow.sdk import DAG

import lance_core
from airflow_lance.assets import create_asset
from airflow_lance.decorators.lance import lance_task
from airflow_lance.execution.inputs import open_input, plain_inputs
from lance_core.errors import InputError, NotFoundError

RunDag = Callable[..., Any]
_START = datetime(2013, 1, 1, tzinfo=timezone.utc)


def _dag(dag_id: str) -> DAG:
    return DAG(dag_id, schedule=None, start_date=_START)


def _table(path: Path, versions: int) -> str:
    for number in range(versions):
        lance.write_dataset(pa.table({"id": [number]}), str(path), mode="append" if number else "create")
    return str(path)


def _orders(orders: Any) -> Any:
    return orders


def _no_orders() -> None:
    return None


def _context(uri: str, *versions: int) -> Any:
    events = [type("Event", (), {"extra": {"version": number, "uri": uri}})() for number in versions]
    return {"triggering_asset_events": {create_asset(uri=uri): events} if events else {}}


def test_a_function_gets_its_tables(tmp_path: Path, run_dag: RunDag) -> None:
    orders, prices = _table(tmp_path / "orders.lance", 3), _table(tmp_path / "prices.lance", 3)
    lance.dataset(prices).tags.create("gold", 2)  # type: ignore[no-untyped-call]
    uri = str(tmp_path / "daily.lance")
    with _dag("inputs") as dag:

        @lance_task(uri=uri, inputs={"orders": orders, "prices": {"uri": prices, "version": "{{ 'go' ~ 'ld' }}"}})
        def daily(factor: int, orders: Any, prices: Any, ds: str | None = None) -> Any:
            assert isinstance(orders, lance_core.LanceDataset)
            return {"day": [ds], "orders": [orders.count_rows() * factor], "prices": [prices.count_rows()]}

        made = daily(10)
        assert daily is not None
    assert run_dag(dag, logical_date=_START, run_after=_START).state == "success"
    assert lance.dataset(uri).to_table().to_pylist() == [{"day": "2013-01-01", "orders": 30, "prices": 2}]
    # A second run of the same work calls nothing, although the input has grown.
    lance.write_dataset(pa.table({"id": [9]}), orders, mode="append")
    assert run_dag(dag, logical_date=_START, run_after=_START).state == "success"
    assert lance.dataset(uri).count_rows() == 1
    assert made.operator.inputs == ("orders", "prices")


def test_mapped_functions_get_their_tables(tmp_path: Path, run_dag: RunDag) -> None:
    source, uri = _table(tmp_path / "s.lance", 2), str(tmp_path / "t.lance")
    with _dag("inputs_mapped") as dag:

        @lance_task(uri=uri, inputs={"rows": source})
        def one(number: int, rows: Any) -> Any:
            return rows.to_table(filter=f"id = {number}")

        one.expand(number=[0, 1])
    assert run_dag(dag).state == "success"
    assert sorted(lance.dataset(uri).to_table()["id"].to_pylist()) == [0, 1]


def test_openlineage_hears_of_the_versions(tmp_path: Path, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch) -> None:
    source, uri = _table(tmp_path / "s.lance", 2), str(tmp_path / "t.lance")
    seen: list[Any] = []
    kind = type(lance_task(uri=uri)(_no_orders)().operator)
    finish = kind._finish

    def spy(self: Any, *args: Any) -> Any:
        result = finish(self, *args)
        seen.extend(self._lineage_inputs())
        return result

    monkeypatch.setattr(kind, "_finish", spy)
    with _dag("inputs_lineage") as dag:

        @lance_task(uri=uri, inputs={"rows": source})
        def one(rows: Any) -> Any:
            return rows.to_table()

        one()
    assert run_dag(dag).state == "success"
    assert [(item.uri, item.version) for item in seen] == [(source, 2)]


@pytest.mark.parametrize(
    ("version", "events", "expected"),
    [(None, (), 3), (None, (2,), 2), (None, (1, 2), 2), (1, (2,), 1), ("1", (2,), 1), ("triggering", (2,), 2)],
    ids=["newest", "of the event", "of the newest event", "named", "as text", "triggering"],
)
def test_the_version_is_that_of_the_event_that_triggered_the_run(
    tmp_path: Path, version: Any, events: tuple[int, ...], expected: int
) -> None:
    uri = _table(tmp_path / "t.lance", 3)
    (item,) = plain_inputs({"t": {"uri": uri, "version": version}}, where="f").values()
    opened = open_input("t", item, _context(uri, *events), lance_conn_id="lance_default")
    assert (opened.table.version, opened.table.count_rows(), opened.uri) == (expected, expected, uri)


def test_an_event_of_another_table_pins_nothing(tmp_path: Path) -> None:
    uri = _table(tmp_path / "t.lance", 2)
    context = _context(str(tmp_path / "other.lance"), 1)
    assert open_input("t", {"uri": uri}, context, lance_conn_id="lance_default").table.version == 2
    with pytest.raises(InputError, match="no asset event"):
        open_input("t", {"uri": uri, "version": "triggering"}, context, lance_conn_id="lance_default")


def test_a_table_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"none\.lance"):
        open_input("t", {"uri": str(tmp_path / "none.lance")}, _context("/x.lance"), lance_conn_id="lance_default")


@pytest.mark.parametrize("given", [{"uri": "/t.lance", "verison": 1}, {"version": 1}, "", 3, None])
def test_what_has_no_uri_is_refused_when_the_dag_is_parsed(given: Any) -> None:
    with pytest.raises(InputError, match="input 'orders'"):
        lance_task(uri="/t.lance", inputs={"orders": given})(_orders)()


def test_an_input_that_is_also_passed_is_refused() -> None:
    with pytest.raises(InputError, match="'orders' is an input and is also passed"):
        lance_task(uri="/t.lance", inputs={"orders": "/o.lance"})(_orders)(orders=1)


def test_an_input_that_the_function_does_not_take_is_refused() -> None:
    with pytest.raises((TypeError, InputError), match="orders"):
        lance_task(uri="/t.lance", inputs={"orders": "/o.lance"})(_no_orders)()
