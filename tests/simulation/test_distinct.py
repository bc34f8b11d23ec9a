"""Which runs count as one: those that differ in the order of calls that nobody can tell apart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lance_core.testing import campaign
from lance_core.testing.distinct import trace_of
from lance_core.testing.engine import CallStep, ScheduledRun
from lance_core.testing.explore import Bounds
from lance_core.testing.schedule import StoreCall


def _run(*calls: str) -> ScheduledRun:
    steps = []
    for text in calls:
        actor, name, path = text.split(" ")
        steps.append(CallStep(StoreCall(actor, name, path if path != "/" else "", f"{name} {path}", 1), ()))
    return ScheduledRun(steps)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        pytest.param(("a put x", "b put y"), ("b put y", "a put x"), True, id="two paths"),
        pytest.param(("a get x", "b get x"), ("b get x", "a get x"), True, id="two reads"),
        pytest.param(("a put x", "b get x"), ("b get x", "a put x"), False, id="write and read"),
        pytest.param(("a put x", "b put x"), ("b put x", "a put x"), False, id="two writes"),
        pytest.param(("a put f/x", "b list f/"), ("b list f/", "a put f/x"), False, id="a listing above"),
        pytest.param(("a put g/x", "b list f/"), ("b list f/", "a put g/x"), True, id="a listing elsewhere"),
        pytest.param(("a get f/x", "b list f/"), ("b list f/", "a get f/x"), True, id="a listing and a read"),
        pytest.param(("a put x", "a put y", "b get y"), ("a put x", "b get y", "a put y"), False, id="behind another"),
    ],
)
def test_the_order_of_commuting_calls_does_not_count(one: tuple[str, ...], other: tuple[str, ...], same: bool) -> None:
    assert (trace_of(_run(*one)) == trace_of(_run(*other))) is same


def test_a_campaign_adds_up(tmp_path: Path) -> None:
    bounds = Bounds(preemptions=1, faults=0, schedules=6)
    first = campaign.carry_out(campaign.Turn("same-commit-twice", "memory", 0, 5, str(tmp_path), bounds))
    again = campaign.carry_out(campaign.Turn("same-commit-twice", "memory", 0, 5, str(tmp_path), bounds))
    assert first.tried == again.tried == 6
    assert 1 < first.distinct == again.distinct <= 6
    more = campaign.carry_out(campaign.Turn("same-commit-twice", "memory", 1, 5, str(tmp_path), bounds))
    assert more.distinct >= again.distinct
    assert not (*first.problems, *again.problems, *more.problems)


def test_a_campaign_without_time_tries_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bounds = Bounds(preemptions=1, faults=0, schedules=2)
    assert campaign.run(tmp_path, seconds=0, schedules=2, stores=("memory",), processes=1, bounds=bounds) == 0
    assert "0 schedules" in capsys.readouterr().out
    assert not [json.loads(line) for path in tmp_path.glob("*.jsonl") for line in path.read_text().splitlines()]
