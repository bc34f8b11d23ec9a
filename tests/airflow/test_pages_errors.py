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


@pytest.mark.parametrize(
    "kind", sorted(set(below(LanceError)), key=lambda kind: kind.__name__), ids=lambda kind: kind.__name__
)
def test_an_observed_error_is_of_the_kind_of_the_error_itself(kind: type[LanceError]) -> None:
    seen = observed_error(f"{kind.__name__}: it: was so")
    assert seen["code"] == page_error(kind("it")).code and seen["code"] in STATUS
    assert seen["message"] == "it: was so"
    assert (seen["code"] == "damaged") <= issubclass(kind, FormatError)
    assert (seen["code"] == "unreachable") == issubclass(kind, StoreError)


@pytest.mark.parametrize("name", ["OSError", "PermissionError", "ConnectionResetError", "BrokenPipeError", "SSLError"])
def test_what_the_system_says_is_about_the_store(name: str) -> None:
    assert observed_error(f"{name}: no")["code"] == "unreachable"
