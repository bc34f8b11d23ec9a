"""Random histories done in turn by this library and by the official one leave one table that both agree about."""

from __future__ import annotations

from pathlib import Path

import pytest
from alternating import run_history

VARIANTS = [(storage, stable) for storage in ("2.0", "2.1", "2.2") for stable in (False, True)]


@pytest.mark.parametrize(("storage", "stable"), VARIANTS)
@pytest.mark.parametrize("seed", range(3))
def test_thirty_operations_in_turn(tmp_path: Path, seed: int, storage: str, stable: bool) -> None:
    run_history(tmp_path / "t", seed=seed, storage=storage, stable=stable)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1200))
def test_two_hundred_seeds(tmp_path: Path, seed: int) -> None:
    storage, stable = VARIANTS[seed % len(VARIANTS)]
    run_history(tmp_path / "t", seed=seed, storage=storage, stable=stable)
