"""Under CI the property tests draw the same examples every time; by hand they explore. No example has a deadline: machines
that do other things beside would fail it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("by hand", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "by hand")

HERE = Path(__file__).parent
SHARED_SERVERS = {
    "stack": "stack", "cluster": "stack", "airflow_database": "airflow", "spark": "spark",
    "moto_endpoint": "emulators", "azurite_options": "emulators", "gcs_endpoint": "emulators",
}  # fmt: skip
"""Fixtures of a session that start a server or a JVM: tests that share one run in one worker, so that it starts once."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Group the tests that share a server, for `--dist loadgroup`."""
    for item in items:
        names = getattr(item, "fixturenames", ())
        group = next((group for fixture, group in SHARED_SERVERS.items() if fixture in names), None)
        if group is None and item.path.is_relative_to(HERE / "spark"):
            group = "spark"
        if group is not None and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(group))
