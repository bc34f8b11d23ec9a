"""The screenshots of the documentation: `make pictures` writes them into docs/images, other runs into a temporary folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.ui.pages.chromium import NARROW, Page
from tests.ui.pages.conftest import Visit
from tests.ui.pages.test_every_page import until_rows_are_read
from tests.ui.server import Server

pytestmark = pytest.mark.slow

PICTURES = {
    "pages-tables": ("#/", "light", (1360, 700)),
    "pages-tables-dark": ("#/", "dark", (1360, 700)),
    "pages-table": ("#/table/{clicks}", "light", (1360, 900)),
    "pages-table-dark": ("#/table/{clicks}", "dark", (1360, 900)),
    "pages-fragments": ("#/table/{clicks}/fragments", "light", (1360, 700)),
    "pages-declared": ("#/table/{reviews}", "light", (1360, 700)),
    "pages-schema": ("#/table/{products}/schema", "light", (1360, 700)),
    "pages-doctor": ("#/table/{clicks}/doctor", "light", (1360, 700)),
    "pages-rows": ("#/table/{products}/rows", "light", (1360, 700)),
    "pages-plan": ("#/plan", "light", (1360, 700)),
    "pages-narrow": ("#/table/{clicks}", "light", NARROW),
}
TALLEST = 1500


def folder(tmp_path: Path) -> Path:
    named = os.environ.get("LANCE_PICTURES")
    return Path(named).absolute() if named else tmp_path


RENAME = """
const walk = document.createTreeWalker(document.querySelector('.lance-ui'), NodeFilter.SHOW_TEXT);
while (walk.nextNode()) walk.currentNode.data = walk.currentNode.data.replaceAll(arguments[0], arguments[1]);
"""


def take(page: Page, place: Path, name: str, server: Server) -> None:
    """A picture of the whole page, whatever the folder of the tests is called."""
    page.gone(".skeleton")
    for place_here, shown in ((server.lake, "/data/lake"), (server.lake.parent, "/data")):
        page.script(RENAME, str(place_here), shown)
    page.script("document.activeElement && document.activeElement.blur(); document.fonts.ready")
    width, height = page.script("return [innerWidth, document.querySelector('.shell').scrollHeight]")
    page.size(width, min(int(height), TALLEST))
    page.picture(place / f"{name}.png", full=False)
    assert (place / f"{name}.png").stat().st_size > 10_000


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture(visit: Visit, server: Server, tmp_path: Path, name: str) -> None:
    path, scheme, size = PICTURES[name]
    if path.endswith("/rows"):
        until_rows_are_read(server, "shop/products.lance")
    page = visit("#/")
    page.size(*size)
    page.prefer(scheme)
    tables = {key: server.tables[f"shop/{key}.lance"] for key in ("clicks", "products", "orders", "reviews")}
    page.open(f"lance/{path.format(**tables)}")
    page.see(".section, .strip")
    page.see("table tbody tr, .bar-row, .findings li")
    take(page, folder(tmp_path), name, server)


def test_a_picture_of_a_button(visit: Visit, server: Server, tmp_path: Path) -> None:
    page = visit(f"#/table/{server.tables['shop/clicks.lance']}")
    page.size(1360, 760)
    page.click("[data-action=cleanup]")
    page.see("dialog")
    page.script(RENAME, str(server.lake), "/data/lake")
    page.picture(folder(tmp_path) / "pages-button.png", full=False)


def test_a_picture_of_a_dag(visit: Visit, tmp_path: Path) -> None:
    page = visit("dags/desk/plugin/lance-dag", inside="")
    page.size(1360, 900)
    page.read("the table was dropped", ".lance-ui .piece")
    page.picture(folder(tmp_path) / "pages-dag.png", full=False)


def test_a_picture_of_a_task(visit: Visit, server: Server, tmp_path: Path) -> None:
    run = server.call("GET", "/api/v2/dags/shop/dagRuns", user="admin").json()["dag_runs"][0]["dag_run_id"]
    page = visit(f"dags/shop/runs/{run}/tasks/forget/plugin/lance-ti", inside="")
    page.size(1360, 760)
    page.read("committed", ".lance-ui .piece")
    page.picture(folder(tmp_path) / "pages-task.png", full=False)
