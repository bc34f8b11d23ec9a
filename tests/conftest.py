"""Under CI the property tests draw the same examples every time; by hand they explore. No example has a deadline: machines
that do other things beside would fail it."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("by hand", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "by hand")

SHARED_SERVERS = ("integration", "spark", "stores", "ui")
"""Folders whose tests share servers or a JVM of the session: one worker runs a whole folder, so that each starts once."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: Any, log: Any) -> Any:
    """Hand out tests one by one, except those of the folders above."""
    from xdist.scheduler import LoadScopeScheduling

    class FolderScheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            folder = nodeid.partition("::")[0].split("/")[1:2]
            return folder[0] if folder and folder[0] in SHARED_SERVERS else nodeid

    return FolderScheduling(config, log)
