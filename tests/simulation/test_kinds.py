"""Every kind of job that stages is simulated in every situation in which one attempt could get two owners."""

from __future__ import annotations

from lance_core.jobs.kinds import KINDS
from tests.simulation.kinds import KINDS_IN_SITUATIONS, OPEN, SITUATIONS, WORKS
from tests.simulation.scenarios import SCENARIOS


def test_no_kind_that_stages_is_left_out() -> None:
    stages = {kind for kind, row in KINDS.items() if row.is_staged}
    assert set(WORKS) == stages


def test_each_kind_is_in_each_situation() -> None:
    expected = {f"{kind.replace('_', '-')}-{case}" for kind in WORKS for case in SITUATIONS if (kind, case) not in OPEN}
    assert set(KINDS_IN_SITUATIONS) == expected
    assert expected <= set(SCENARIOS)
