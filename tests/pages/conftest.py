"""These tests run the compiled kernels, however small the input; `tests/kernels` compares the plain functions with them."""

import pytest

from lance_core.kernels import jit


@pytest.fixture(autouse=True)
def _compiled_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "_SPARED", -1)
    monkeypatch.setattr(jit, "_SPARED_LATER", -1)
