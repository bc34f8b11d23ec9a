"""The Python examples of every page run as they are written, one after the other, in a folder of the test's own."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from click.testing import CliRunner

import airflow_lance
import lance_core
from lance_core.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = {
    "docs/operators.md": "test_operators_page.py",
    "docs/indices.md": "test_indices_page.py",
    "docs/how-to.md": "../airflow/test_how_to_page.py",
    "docs/spark.md": "../spark/test_spark_page.py",
}
"""Pages whose examples have a test of their own."""
PLACES = ("/tmp/", "/data/", "/etc/lance/", "/tables/")
_BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def _blocks(page: str, kind: str) -> list[str]:
    return [text for word, text in _BLOCK.findall((ROOT / page).read_text(encoding="utf-8")) if word == kind]


def _pages() -> list[str]:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "reference").glob("*.md"))]
    return [name for page in pages if _blocks(name := str(page.relative_to(ROOT)), "python")]


def _moved(text: str, place: Path) -> str:
    """The example in the test's folder instead of the page's."""
    for root in PLACES:
        text = text.replace(root, f"{place}{root}")
    return text.replace("memory://lake", f"memory://{place.name}")


def _policy(place: Path) -> Mapping[str, Any]:
    """The policy of the page about maintenance, carried out once on a table."""
    (place / "etc" / "lance").mkdir(parents=True)
    policy = place / "etc" / "lance" / "lance_policy.yaml"
    policy.write_text(_moved(_blocks("docs/maintenance.md", "yaml")[0], place))
    lance_core.write_dataset(pa.table({"id": [1]}), str(place / "data" / "lake" / "orders.lance"))
    done = CliRunner().invoke(cli, ["maintain", str(policy), "--run"])
    assert done.exit_code == 0, done.output
    return {}


def _events(place: Path) -> Mapping[str, Any]:
    """A table with a data file of the name that the page uses."""
    table = place / "tables" / "events"
    lance_core.write_dataset(pa.table({"id": [1]}), str(table))
    shutil.copy(next((table / "data").glob("*.lance")), table / "data" / "a.lance")
    return {}


def _flights(place: Path) -> Mapping[str, Any]:
    return {"table": pa.table({"carrier": ["AA"], "dep_delay": [61], "month": [7]})}


PREPARED: Mapping[str, Callable[[Path], Mapping[str, Any]]] = {
    "README.md": _flights,
    "docs/maintenance.md": _policy,
    "docs/pages.md": _policy,
    "docs/tables.md": _events,
}
"""What a page takes for granted."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for folder in ("tmp", "data"):
        (tmp_path / folder).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    lake = {"conn_type": "lance", "extra": {"base_uri": str(tmp_path / "data")}}
    for name in ("LAKE", "LANCE_DEFAULT"):  # found before anybody asks a metadata database
        monkeypatch.setenv(f"AIRFLOW_CONN_{name}", json.dumps(lake))
    return tmp_path


@pytest.mark.parametrize("page", [page for page in _pages() if page not in ELSEWHERE])
def test_the_examples_of_a_page_run(page: str, place: Path) -> None:
    names: dict[str, Any] = {"__name__": "example", "LanceAppendOperator": airflow_lance.LanceAppendOperator}
    if page in PREPARED:
        names |= PREPARED[page](place)
    for number, text in enumerate(_blocks(page, "python")):
        if page == "docs/tutorial.md" and "import lance_core" in text:
            _carry_out(names["dag"])
        exec(compile(_moved(text, place), f"{page}, example {number}", "exec"), names)


def _carry_out(dag: Any, *, run_id: str = "r") -> None:
    """The tasks of the tutorial's DAG, as a worker would run them."""
    from tests.airflow.operator_support import execute

    for task in dag.topological_sort():
        task.resolve_template_files()
        execute(task, publishes=True, run_id=run_id)


def test_the_tutorials_dag_runs_on_a_second_day(place: Path) -> None:
    """With new files between; `tests/matrix/stranger.py` runs the daily one for three days."""
    dag, files, *_ = _blocks("docs/tutorial.md", "python")
    names: dict[str, Any] = {"__name__": "tutorial"}
    for text in (dag, files):
        exec(compile(_moved(text, place), "docs/tutorial.md", "exec"), names)
    _carry_out(names["dag"], run_id="first")
    (names["RAW"] / "orders.csv").write_text("id,city\n5,Kyiv\n6,Oslo\n")
    (names["RAW"] / "corrections.csv").write_text("id,city\n3,Dakar\n6,Bergen\n")
    _carry_out(names["dag"], run_id="second")
    orders = lance.dataset(names["TABLE"])
    orders.validate()
    cities = {1: "Berlin", 2: "Lagos", 3: "Dakar", 4: "Pune", 5: "Kyiv", 6: "Bergen"}
    assert {row["id"]: row["city"] for row in orders.to_table().to_pylist()} == cities
    assert orders.version == 4
    found = lance.dataset(str(names["TABLE"]).replace("orders", "cities")).to_table()
    assert sorted(found["city"].to_pylist()) == sorted(cities.values())


def test_no_page_is_left_out() -> None:
    for page, test in ELSEWHERE.items():
        assert Path(page).name in (ROOT / "tests" / "docs" / test).read_text(encoding="utf-8")
    assert {*ELSEWHERE, *PREPARED} <= {*_pages()}
