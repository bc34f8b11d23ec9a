"""A small table for every case, and stores that can be hooked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lance_core.io import resolve
from tests.protocol import protocol_support as support


@pytest.fixture(autouse=True)
def _stores_can_be_hooked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(resolve, "_resolve", support.resolve_hooked)
    yield


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """A table of the ids 0 to 99 at version 1."""
    place = str(tmp_path / "table.lance")
    support.commit(place, [support.append(place, range(100))])
    return place
