"""Hypothesis without deadlines, because a first call compiles its kernel; and kernels are compiled for small input, too."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from lance_core.kernels import jit

settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


@pytest.fixture(autouse=True, scope="module")
def _compiled_kernels() -> Iterator[None]:
    """`tests/kernels` compares the plain functions with the compiled ones; these tests are about the latter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jit, "_SPARED", -1)
        patch.setattr(jit, "_SPARED_LATER", -1)
        yield
