"""Under CI the property tests draw the same examples every time; by hand they explore. No example has a deadline: machines
that do other things beside would fail it. Servers of a folder end with its last test, not with the session."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("by hand", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "by hand")

SHARED_SERVERS = ("integration", "spark", "stores", "ui")
"""Folders whose tests share servers or a JVM of the session: one worker runs a whole folder, so that each starts once."""

OF_THEIR_OWN = ("test_spark_kills.py", "test_spark_with_bridge.py")
"""Modules of such a folder that have a server or a JVM of their own: their tests are handed out one by one."""


def folder_of(nodeid: str) -> str:
    """The folder below `tests`, where it is one that shares servers, else ""."""
    parts = nodeid.partition("::")[0].split("/")
    is_shared = len(parts) > 2 and parts[1] in SHARED_SERVERS and parts[-1] not in OF_THEIR_OWN
    return parts[1] if is_shared else ""


class FolderServers:
    """Ends what a folder started for the session once its last test is done; who asks in another order starts it again.

    A stack of Airflow or a JVM that lives on takes memory and processor time from thousands of tests after it. A plugin of
    its own: hooks of a conftest do not hear of what belongs to the session.
    """

    def __init__(self) -> None:
        self._left: Counter[str] = Counter()
        self._started: dict[str, list[tuple[Any, Any]]] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Count the tests of each such folder."""
        self._left = Counter(folder_of(item.nodeid) for item in session.items)

    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> None:
        """Note what a folder starts."""
        folder = folder_of(f"{fixturedef.baseid}/-")
        if folder and fixturedef.scope == "session":
            self._started.setdefault(folder, []).append((fixturedef, request))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        """End it, the last one first."""
        try:
            yield
        finally:
            folder = folder_of(item.nodeid)
            self._left[folder] -= 1
            if folder and not self._left[folder]:
                for fixturedef, request in reversed(self._started.pop(folder, [])):
                    fixturedef.finish(request)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(FolderServers(), "servers of a folder")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: Any, log: Any) -> Any:
    """Hand out tests one by one, except those of the folders above."""
    from xdist.scheduler import LoadScopeScheduling

    class FolderScheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return folder_of(nodeid) or nodeid

    return FolderScheduling(config, log)
