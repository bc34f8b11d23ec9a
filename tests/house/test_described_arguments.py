"""Docstrings of the reference describe arguments that there are, errors that there are, and all arguments of large verbs;
operators, sensors and task groups say which errors they raise."""

from __future__ import annotations

import builtins
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import airflow_lance.operators
import airflow_lance.sensors
import lance_core
from airflow_lance import compat
from lance_core import errors
from lance_core.dataset.handle import open as opening
from lance_core.dataset.handle.merge_builder import MergeInsertBuilder
from lance_core.dataset.handle.optimize import DatasetOptimizer

MANY = 4
"""A verb with so many arguments of its own describes each, or says whose they are."""
ELSEWHERE = re.compile(r"\b(as for|those of|as those of|hints?)\b")
SECTION = re.compile(r"^(?P<name>Args|Raises):\n(?P<body>(?:    .*\n?|\n(?=    ))+)", re.MULTILINE)
ENTRY = re.compile(r"^    (\*{0,2}\w+): \S", re.MULTILINE)
CLASSES = (lance_core.LanceDataset, DatasetOptimizer, MergeInsertBuilder)


def verbs() -> Iterator[tuple[str, Callable[..., Any]]]:
    """What a reader of the reference calls."""
    yield "dataset", opening.dataset
    yield "write_dataset", opening.write_dataset
    for owner in CLASSES:
        for name, member in inspect.getmembers(owner):
            if not name.startswith("_") and callable(member):
                yield f"{owner.__name__}.{name}", member


VERBS = dict(verbs())


def _described(verb: Callable[..., Any], section: str) -> list[str]:
    found = {match["name"]: match["body"] for match in SECTION.finditer(inspect.getdoc(verb) or "")}
    return ENTRY.findall(found.get(section, ""))


def _own(verb: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    return {name: one for name, one in inspect.signature(verb).parameters.items() if name != "self"}


@pytest.mark.parametrize("name", VERBS)
def test_what_is_described_is_there(name: str) -> None:
    verb = VERBS[name]
    arguments = {f"**{key}" if one.kind is one.VAR_KEYWORD else key for key, one in _own(verb).items()}
    assert set(_described(verb, "Args")) <= arguments
    for error in _described(verb, "Raises"):
        assert hasattr(errors, error) or hasattr(builtins, error), error


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_with_many_arguments_describes_them(name: str) -> None:
    """Those of the definition itself: what comes by a table of options may be described where the table is."""
    verb = inspect.unwrap(VERBS[name])
    code = verb.__code__
    own = [key for key in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if key != "self"]
    text = inspect.getdoc(verb) or ""
    if len(own) < MANY or ("Args:" not in text and ELSEWHERE.search(text)):
        return
    described = _described(verb, "Args")
    assert described, f"{name} takes {own}, and describes none of them"


@pytest.mark.parametrize("name", [*airflow_lance.operators.__all__, *airflow_lance.sensors.__all__])
def test_what_runs_in_a_dag_says_which_errors_it_raises(name: str) -> None:
    place = airflow_lance.operators if name in airflow_lance.operators.__all__ else airflow_lance.sensors
    described = _described(getattr(place, name), "Raises")
    assert described, f"{name} names no error: its docstring needs a section `Raises:`"
    for error in described:
        assert hasattr(errors, error) or hasattr(compat, error), error


def test_there_are_verbs_with_many_arguments() -> None:
    assert sum(len(_described(verb, "Args")) >= MANY for verb in VERBS.values()) >= 10
