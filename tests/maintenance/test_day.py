"""A simulated day: the policy keeps the service levels at a fraction of what an hourly compaction of everything rewrites."""

from __future__ import annotations

import pytest

from bench.maintenance_day import simulate_day


@pytest.mark.parametrize("seed", [1, 2])
def test_a_day_of_tables(seed: int) -> None:
    day = simulate_day(by_policy=True, num_tables=15, seed=seed)
    assert day.rewrite_factor < 2
    assert day.levels_kept >= 0.99
    assert day.prediction_error < 0.15
    assert day.rewrite_factor < 0.6 * simulate_day(by_policy=False, num_tables=15, seed=seed).rewrite_factor
