"""Values that are made once for each object: never under a lock that another object needs."""

from __future__ import annotations

import ast
import os
import threading
from pathlib import Path

import pytest

from lance_core.cached import cached_property

ROOT = Path(__file__).resolve().parents[2]


class Thing:
    """Something that is read from a store which may hang."""

    def __init__(self, gate: threading.Event) -> None:
        self.gate = gate
        self.begun = threading.Event()
        self.calls = 0

    @cached_property
    def value(self) -> int:
        """What was read."""
        self.calls += 1
        self.begun.set()
        assert self.gate.wait(60)
        return id(self)


def _open_gate() -> threading.Event:
    gate = threading.Event()
    gate.set()
    return gate


def test_the_product_has_no_other() -> None:
    """Before Python 3.12 that of functools has one lock for each class."""
    found = []
    for folder in ("lance_core", "airflow_lance"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and node.module == "functools":
                    found += [str(path) for item in node.names if item.name == "cached_property"]
                elif isinstance(node, ast.Attribute) and node.attr == "cached_property":
                    found.append(str(path))
    assert found == []


def test_a_store_that_hangs_stops_no_other_object() -> None:
    hanging, healthy = Thing(threading.Event()), Thing(_open_gate())
    waiting = threading.Thread(target=lambda: hanging.value)
    waiting.start()
    assert hanging.begun.wait(60)
    answers: list[int] = []
    other = threading.Thread(target=lambda: answers.append(healthy.value), daemon=True)
    other.start()
    other.join(30)
    hanging.gate.set()
    waiting.join(60)
    assert answers == [id(healthy)], "it waited for the other object"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_of_a_busy_process_waits_for_nobody() -> None:
    hanging, healthy = Thing(threading.Event()), Thing(_open_gate())
    waiting = threading.Thread(target=lambda: hanging.value)
    waiting.start()
    assert hanging.begun.wait(60)
    child = os.fork()
    if child == 0:
        threading.Timer(20, lambda: os._exit(1)).start()
        os._exit(0 if healthy.value == id(healthy) else 2)
    hanging.gate.set()
    waiting.join(60)
    assert os.waitpid(child, 0)[1] == 0


def test_a_value_is_made_once_and_kept() -> None:
    thing = Thing(_open_gate())
    assert thing.value == thing.value == id(thing)
    assert thing.calls == 1
    assert thing.__dict__["value"] == id(thing)
    assert isinstance(Thing.value, cached_property)
    assert Thing.value.__doc__ == "What was read."
