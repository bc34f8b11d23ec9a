"""One Chromium for all tests of the folder; each test starts with an empty window of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.ui.pages.chromium import chromium_commands, start


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if chromium_commands() is None:
        pytest.skip(
            "no Chromium with its driver here: `make setup` installs both where apt-get is (chromium, chromium-driver)"
        )
    driver = start(tmp_path_factory.mktemp("chromium"))
    try:
        yield driver
    finally:
        driver.quit()
