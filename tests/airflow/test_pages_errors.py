"""What the pages say is wrong with a table: damage is claimed for damage, and for nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_lance.ui.errors import STATUS, observed_error, page_error
from lance_core.errors import FormatError, LanceError, StoreError


def below(kind: type[LanceError]) -> Iterator[type[LanceError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from below(each)


KINDS = sorted(
    {kind for kind in below(LanceError) if kind.__module__ == LanceError.__module__}, key=lambda kind: kind.__name__
)
"""Those of the library itself; what else was imported by then depends on the tests beside this one."""


class OfTwoArgumentsError(StoreError):
    def __init__(self, other: int, message: str) -> None:
        super().__init__(message)
        self.other = other


def test_a_class_with_arguments_of_its_own_is_told_by_its_name() -> None:
    assert observed_error("OfTwoArgumentsError: it")["code"] == "unreachable"
    assert observed_error("CorruptFileError: it")["code"] == "damaged"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_observed_error_is_of_the_kind_of_the_error_itself(kind: type[LanceError]) -> None:
    seen = observed_error(f"{kind.__name__}: it: was so")
    assert seen["code"] == page_error(kind("it")).code and seen["code"] in STATUS
    assert seen["message"] == "it: was so"
    assert (seen["code"] == "damaged") <= issubclass(kind, FormatError)
    assert (seen["code"] == "unreachable") == issubclass(kind, StoreError)


@pytest.mark.parametrize("name", ["OSError", "PermissionError", "ConnectionResetError", "BrokenPipeError", "SSLError"])
def test_what_the_system_says_is_about_the_store(name: str) -> None:
    assert observed_error(f"{name}: no")["code"] == "unreachable"
