"""Which runs count as one: those that differ in the order of calls that nobody can tell apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from lance_core.errors import InputError
from tests.simulation import campaign, simulate
from tests.simulation.distinct import trace_of
from tests.simulation.engine import CallStep, ScheduledRun
from tests.simulation.explore import Bounds
from tests.simulation.schedule import StoreCall
from tests.simulation.sources import digest_of_sources


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


_BOUNDS = Bounds(preemptions=1, faults=0, schedules=6)


def test_a_campaign_adds_up(tmp_path: Path) -> None:
    first = campaign.carry_out(campaign.Turn("same-commit-twice", "memory", 0, str(tmp_path), bounds=_BOUNDS))
    again = campaign.carry_out(campaign.Turn("same-commit-twice", "memory", 0, str(tmp_path), bounds=_BOUNDS))
    assert first.tried == again.tried == 6
    assert 1 < first.new <= 6
    assert again.new == 0
    more = campaign.carry_out(campaign.Turn("same-commit-twice", "memory", 1, str(tmp_path), 0.05, _BOUNDS))
    assert more.tried > 0
    assert not (*first.problems, *again.problems, *more.problems)


def test_a_campaign_goes_on_where_a_kill_has_ended_it(tmp_path: Path) -> None:
    ours = campaign.Campaign(tmp_path, stores=("memory", "local"), scenarios=("zombie",))
    turns = [ours.next_turn(busy=(), seconds=1.0, bounds=_BOUNDS)]
    assert (turns[0].pair, turns[0].number) == ("zombie-memory", 0)
    ours.note(campaign.Outcome("zombie", "memory", 0, 10, 8, ("a.json: broken: it is gone",), {"late": 2}, {}, 1.5))
    with (tmp_path / "turns.jsonl").open("a") as file:
        file.write('{"scenario": "zombie", "sto')
    again = campaign.Campaign(tmp_path, stores=("memory", "local"), scenarios=("zombie",))
    assert again.shares["zombie-memory"].new == 8
    assert again.next_turn(busy=(), seconds=1.0, bounds=_BOUNDS).pair == "zombie-local"
    assert again.next_turn(busy=("zombie-local",), seconds=1.0, bounds=_BOUNDS).number == 1


def test_a_campaign_refuses_other_sources_and_tells_what_it_has_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert simulate.main(["--campaign", str(tmp_path), "--seconds", "0"]) == 0
    assert "0 schedules, 0 distinct, 0 problems" in capsys.readouterr().out
    ours = campaign.Campaign(tmp_path, stores=("memory",))
    ours.note(campaign.Outcome("zombie", "memory", 0, 10, 8, ("a.json: broken: it is gone",), {"late": 2}, {"X": 1}, 1.5))
    simulate.main(["--campaign", str(tmp_path), "--report"])
    told = capsys.readouterr().out
    assert digest_of_sources() in told
    assert f"--replay {tmp_path / 'a.json'}" in told
    assert "10 schedules, 8 distinct, 1 problems" in told
    monkeypatch.setattr(campaign, "digest_of_sources", lambda: "0" * 64)
    with pytest.raises(InputError, match="begun on other sources"):
        simulate.main(["--campaign", str(tmp_path), "--seconds", "0"])
