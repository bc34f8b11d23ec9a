"""One real API server for all tests of the pages; it starts with the first test that asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.ui.server import Server, prepare, start, stop


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """`server.get("api/tables", "viewer")`: users viewer, user, op, admin, nobody, each with its name as password."""
    found = prepare(tmp_path_factory.mktemp("pages"))
    process = start(found)
    try:
        listed = found.get("api/tables").json()
        found.tables.update({row["name"]: row["id"] for row in listed["tables"]})
        yield found
    finally:
        stop(process)
