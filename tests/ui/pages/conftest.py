"""One Chromium for all tests of the folder; each test starts logged out, light, wide and with empty storage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import pytest

from tests.ui.pages.chromium import WIDE, Page, chromium_commands, start
from tests.ui.server import Server


class Visit(Protocol):
    """Open a page as a user: `visit("#/plan", "viewer")` alone, `visit("#/plan", inside="plugin/lance")` in Airflow."""

    def __call__(self, path: str = "#/", user: str = "admin", *, inside: str = "lance/") -> Page: ...


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if chromium_commands() is None:
        pytest.skip(
            "no Chromium with its driver here: `make test` installs both where apt-get may (chromium, chromium-driver)"
        )
    driver = start(tmp_path_factory.mktemp("chromium"))
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture
def visit(chromium: Any, server: Server) -> Visit:
    page = Page(chromium, origin=f"{server.url}/")
    chromium.get("about:blank")
    chromium.execute_cdp_cmd("Network.clearBrowserCookies", {})
    chromium.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": server.url, "storageTypes": "all"})
    page.size(*WIDE)
    page.prefer("light")
    page.complaints()

    def go(path: str = "#/", user: str = "admin", *, inside: str = "lance/") -> Page:
        name, value = server.cookie(user)
        chromium.execute_cdp_cmd("Network.setCookie", {"name": name, "value": value, "url": server.url, "path": "/"})
        page.open(f"{inside}{path}")
        return page

    return go
