"""Random histories done in turn by this library and by the official one leave one table that both agree about."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.histories.alternating import run_history

VARIANTS = [(storage, stable) for storage in ("2.0", "2.1", "2.2") for stable in (False, True)]


SAMPLE = [seed for seed in range(200) if seed % 25 < len(VARIANTS)]


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=() if seed in SAMPLE else pytest.mark.slow) for seed in range(200)]
)
def test_thirty_operations_in_turn(tmp_path: Path, seed: int) -> None:
    storage, stable = VARIANTS[seed % len(VARIANTS)]
    run_history(tmp_path / "t", seed=seed, storage=storage, stable=stable)


@pytest.mark.slow
def test_more_seeds(tmp_path: Path) -> None:
    """`HISTORIES=1000 pytest -m slow tests/histories`: that many fresh seeds."""
    for seed in range(1000, 1000 + int(os.environ.get("HISTORIES", "100"))):
        storage, stable = VARIANTS[seed % len(VARIANTS)]
        run_history(tmp_path / str(seed), seed=seed, storage=storage, stable=stable)
