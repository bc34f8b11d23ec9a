"""The model of the commit protocol: it holds, it finds what is planted in it, and runs of the real code are runs of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from protocol import check, traces
from tests.simulation.explore import Bounds, explore
from tests.simulation.scenario import RunVerdict, Theatre
from tests.simulation.scenarios import SCENARIOS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("spin") is None or shutil.which("gcc") is None, reason="`make model` needs spin and gcc"
    ),
]


def test_the_model_holds_with_two_crashes() -> None:
    violation, states = check.verify(("-DCRASHES=2", "-DCOMMITTERS=1"))
    assert violation is None
    assert states > 100_000


@pytest.mark.parametrize(
    "bug", ["NO_FENCE", "LOOKS_BEFORE_FENCE", "NO_FENCE_VERSION", "LIFTS_FENCE_FIRST", "ASKS_LEDGER_EARLY"]
)
def test_a_bug_planted_in_the_model_is_found(bug: str) -> None:
    assert check.find(bug) is not None


@pytest.fixture(scope="module")
def model() -> Iterator[traces.Acceptor]:
    with traces.Acceptor() as found:
        yield found


_ACTORS = {
    "abort-meets-commit": {"commit": 0, "abort": 2},
    "abort-by-hand": {"commit": 0, "retry": 1, "abort": 2},
}


@pytest.mark.parametrize("name", ["abort-meets-commit", "abort-by-hand"])
def test_runs_of_the_real_code_are_runs_of_the_model(model: traces.Acceptor, name: str) -> None:
    theatre = Theatre(SCENARIOS[name])
    there, (work,) = set(theatre.world.objects), theatre.stage.works
    seen: dict[tuple[int, ...], RunVerdict] = {}

    def note(verdict: RunVerdict) -> None:
        calls = [(step.call.actor, step.call.name, step.call.path, step.note) for step in verdict.run.steps]
        writes = traces.writes_of(calls, actors=_ACTORS[name], identity=work.identity, there=there)
        seen.setdefault(tuple(writes), verdict)

    play = theatre.play
    theatre.play = lambda schedule: (verdict := play(schedule), note(verdict))[0]  # type: ignore[method-assign, func-returns-value]
    explore(theatre, bounds=Bounds(2, 0, 400), stop=lambda number, verdict: False)
    assert len(seen) > 5
    refused = [list(writes) for writes in seen if not model.accepts(writes)]
    assert not refused, f"{len(refused)} of {len(seen)}: {refused[:5]}"


def test_the_model_refuses_a_run_that_breaks_the_protocol(model: traces.Acceptor) -> None:
    put, fence, ledger = traces.PUT * 8, traces.FENCE * 8, traces.LEDGER * 8
    assert model.accepts([fence, put, ledger])
    assert not model.accepts([put, fence, ledger])
    assert not model.accepts([fence, ledger, put])
    assert not model.accepts([traces.FILES_GONE * 8 + 2, traces.FENCE * 8 + 2])
