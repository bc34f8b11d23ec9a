"""One model for a process: kept from task to task, closed for another one, after a failure, and when nobody takes it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lance_core.computed.models import KeptModel, OwnModel, models_of_process
from tests.computed.functions import Model


class Timer(threading.Timer):
    """Never rings."""

    def start(self) -> None:
        """Not begun."""


@pytest.fixture
def log(tmp_path: Path) -> Callable[[], list[str]]:
    place = tmp_path / "log"
    place.touch()

    def lines() -> list[str]:
        return [line.rpartition(" ")[0] for line in place.read_text().splitlines()]

    return lines


def model(tmp_path: Path, plus: int = 0) -> dict[str, Any]:
    return {"log": str(tmp_path / "log"), "plus": plus}


def test_it_is_made_once_and_closed_for_another(tmp_path: Path, log: Callable[[], list[str]]) -> None:
    kept = KeptModel(Timer)
    first = kept.take(Model, model(tmp_path))
    kept.give_back(first, is_sound=True)
    assert kept.take(Model, model(tmp_path)) is first
    kept.give_back(first, is_sound=True)
    second = kept.take(Model, model(tmp_path, 1))
    assert log() == ["setup 0", "close 0", "setup 1"], "the former one is gone before the next one is loaded"
    kept.give_back(second, is_sound=True)
    kept.close_idle()
    kept.close_idle()
    assert log()[3:] == ["close 1"]


def test_what_a_task_failed_with_is_not_handed_on(tmp_path: Path, log: Callable[[], list[str]]) -> None:
    kept = KeptModel(Timer)
    first = kept.take(Model, model(tmp_path))
    kept.give_back(first, is_sound=False)
    assert kept.take(Model, model(tmp_path)) is not first
    assert log() == ["setup 0", "close 0", "setup 0"]
    kept.close_idle()
    assert log()[3:] == [], "somebody has it"


def test_who_comes_while_it_is_taken_gets_one_of_his_own(tmp_path: Path, log: Callable[[], list[str]]) -> None:
    kept = KeptModel(Timer)
    first, other = (kept.take(Model, model(tmp_path)) for _ in range(2))
    assert first is not other
    kept.give_back(other, is_sound=True)
    assert log() == ["setup 0", "setup 0", "close 0"]
    kept.give_back(first, is_sound=True)
    assert kept.take(Model, model(tmp_path)) is first


class Unready(Model):
    """Cannot be set up, and not closed either."""

    def setup(self) -> None:
        """There is no device."""
        raise OSError("no device")


class Stubborn(Model):
    """Cannot be closed."""

    def close(self) -> None:
        """It is busy."""
        raise OSError("busy")


def test_what_cannot_be_made_or_closed_is_in_nobodys_way(tmp_path: Path, log: Callable[[], list[str]]) -> None:
    kept = KeptModel(Timer)
    for _ in range(2):
        with pytest.raises(OSError, match="no device"):
            kept.take(Unready, model(tmp_path))
    kept.give_back(kept.take(Stubborn, model(tmp_path)), is_sound=True)
    kept.take(Model, model(tmp_path))
    assert log() == ["setup 0", "setup 0"]


def test_only_workers_that_spark_keeps_keep_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_REUSE_WORKER", raising=False)
    assert isinstance(models_of_process(), OwnModel)
    monkeypatch.setenv("SPARK_REUSE_WORKER", "1")
    assert isinstance(models_of_process(), KeptModel)
    assert models_of_process() is models_of_process()
