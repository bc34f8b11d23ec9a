"""The pages in the UI of every Airflow that has places for them: 3.1 and 3.2 beside ours, with a prefix and without.

The environments of other releases are those of `make matrix` (`.venv-matrix/`); where one is missing its tests skip.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from tests.ui.pages.chromium import WIDE, Page
from tests.ui.server import ROOT, Server, below, prepare_release, start, stop

HERE = ".".join(metadata.version("apache-airflow").split(".")[:2])
RELEASES = ("3.1", "3.2", "3.3")
PREFIXES = ("", "/team/airflow")


@dataclass(frozen=True)
class Release:
    """A server of one release, with a browser that is logged in."""

    name: str
    prefix: str
    server: Server
    driver: Any

    def open(self, path: str) -> Page:
        page = Page(self.driver, origin=f"{self.server.url}/")
        self.driver.get("about:blank")
        page.size(*WIDE)
        page.prefer("light")
        name, value = self.server.cookie("admin")
        cookie = {"name": name, "value": value, "url": self.server.url, "path": "/"}
        self.driver.execute_cdp_cmd("Network.setCookie", cookie)
        page.complaints()
        page.open(path)
        return page

    @property
    def run(self) -> str:
        """The run of the DAG `shop`."""
        runs = self.server.call("GET", "/api/v2/dags/shop/dagRuns", user="admin").json()["dag_runs"]
        return str(runs[0]["dag_run_id"])

    def picture(self, page: Page, tmp_path: Path, name: str) -> None:
        page.picture(tmp_path / f"release-{self.name}-{name}.png", full=False)


def interpreter(release: str) -> str | None:
    """The Python of an environment with an Airflow of a release; `make matrix` names one."""
    if release == HERE:
        return sys.executable
    named = os.environ.get("LANCE_RELEASE_PYTHON", "")
    if f"/{release}." in named:
        return named
    made = sorted((ROOT / ".venv-matrix").glob(f"{release}.*-py*/bin/python"), key=str)
    return str(made[-1]) if made else None


@pytest.fixture(scope="module", params=[(name, prefix) for name in RELEASES for prefix in PREFIXES], ids="".join)
def release(request: pytest.FixtureRequest, chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    name, prefix = request.param
    python = interpreter(name)
    if python is None:
        pytest.skip(f"no environment with Airflow {name}: `make matrix` makes one and runs this test")
    if name == HERE:  # what the other tests of the folder ask stands for our own
        shared: Server = request.getfixturevalue("server")
        if not prefix:
            yield Release(name, prefix, shared, chromium)
            return
        server = below(shared, prefix)
    else:
        server = prepare_release(tmp_path_factory.mktemp("release"), interpreter=python, prefix=prefix)
    process = start(server)
    try:
        listed = server.get("api/tables").json()
        server.tables.update({row["name"]: row["id"] for row in listed["tables"]})
        yield Release(name, prefix, server, chromium)
    finally:
        stop(process)


def test_the_server_is_of_that_release(release: Release) -> None:
    told = release.server.call("GET", "/api/v2/version").json()["version"]
    assert told.startswith(f"{release.name}."), told


def test_the_menu_leads_to_the_tables_and_on_to_a_task(release: Release, tmp_path: Path) -> None:
    page = release.open("")
    page.wait(lambda: browse(page), "the menu Browse")
    page.see("a[href$='/plugin/lance']").click()
    page.read("shop/orders", ".lance-ui table[aria-label=Tables]")
    release.picture(page, tmp_path, "tables")
    page.click(f".lance-ui tbody a[href$='{release.server.tables['shop/orders.lance']}']")
    page.read("shop/orders.lance", ".lance-ui h1")
    page.click(".lance-ui .tabs a[href$='/versions']")
    page.read("forget", "table[aria-label=Versions]")
    page.click("table[aria-label=Versions] a[href*='dags/shop']")
    page.gone(".lance-ui")
    page.wait(lambda: f"{release.prefix}/dags/shop/runs/" in page.driver.current_url, "the task's page")
    assert [line for line in page.complaints() if "lance" in line] == []


def browse(page: Page) -> bool:
    """Press the button of the menu Browse, and whether its entry is there then."""
    if page.all("a[href$='/plugin/lance']"):
        return True
    for item in page.all("nav button, button"):
        if re.search(r"\bBrowse\b", item.text or ""):
            item.click()
    return bool(page.all("a[href$='/plugin/lance']"))


@pytest.mark.parametrize(
    "place",
    [
        "dags/shop/plugin/lance-dag",
        "dags/shop/runs/{run}/plugin/lance-run",
        "dags/shop/tasks/forget/plugin/lance-task",
        "dags/shop/runs/{run}/tasks/forget/plugin/lance-ti",
    ],
    ids=["dag", "run", "task", "instance"],
)
def test_the_four_tabs_show_what_landed(release: Release, tmp_path: Path, place: str) -> None:
    path = place.format(run=release.run)
    page = release.open(path.partition("/plugin/")[0])
    page.click(f"a[href$='/plugin/{path.rpartition('/')[2]}']")
    page.read("shop/orders.lance", ".lance-ui .piece")
    page.read("committed", ".lance-ui .piece")
    release.picture(page, tmp_path, path.rpartition("/")[2])
    page.open(path)
    page.read("shop/orders.lance", ".lance-ui .piece")
    page.click(".lance-ui .piece header a")
    page.read("shop/orders.lance", ".lance-ui h1")
    assert f"{release.prefix}/plugin/lance#/table/" in page.driver.current_url
    assert [line for line in page.complaints() if "lance" in line] == []
