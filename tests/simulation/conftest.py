"""The simulator is silent; tests that come later in the same process are not to be."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def heard_again() -> Iterator[None]:
    before = logging.root.manager.disable
    yield
    logging.disable(before)
