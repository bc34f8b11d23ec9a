"""Plain data as dataclasses: what both kinds of rules, those of specs and those of records, take and refuse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from lance_core.publish.records import RULES
from lance_core.typed import Rules, from_plain


@dataclass(frozen=True)
class Inner:
    size: int


@dataclass(frozen=True)
class Outer:
    name: str
    kind: Literal["a", "b"] = "a"
    sizes: tuple[int, ...] = ()
    inner: Inner | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)


CLOSED = Rules(RULES.scalars, is_closed=True)
WHOLE = {"name": "x", "kind": "b", "sizes": [1, 2], "inner": {"size": 3}, "notes": {"a": [None]}, "counts": {"k": 4}}


@pytest.mark.parametrize("rules", [RULES, CLOSED])
def test_every_kind_of_field(rules: Rules) -> None:
    assert from_plain(Outer, WHOLE, rules) == Outer("x", "b", (1, 2), Inner(3), {"a": [None]}, {"k": 4})
    assert from_plain(Outer, {"name": "x", "inner": Inner(3)}, rules) == Outer("x", inner=Inner(3))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": 3}, r"^at\.name: expected text, got 3 \(int\)$"),
        ({"kind": "c"}, r"^at\.kind: expected one of 'a', 'b'; got 'c' \(str\)$"),
        ({"sizes": [1, True]}, r"^at\.sizes\[1\]: expected an integer"),
        ({"sizes": "12"}, r"^at\.sizes: expected a list"),
        ({"inner": {"size": -1}}, r"^at\.inner\.size: expected an integer from 0"),
        ({"inner": {}}, r"^at\.inner: 'size' is missing$"),
        ({"inner": 7}, r"^at\.inner: expected an object"),
        ({"counts": {"k": 0.5}}, r"^at\.counts\.k: expected an integer"),
        ({"notes": []}, r"^at\.notes: expected an object"),
    ],
)
def test_a_refusal_names_the_place(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_plain(Outer, {**WHOLE, **change}, RULES, where="at")


def test_an_unknown_key_is_of_a_newer_release_or_a_mistake() -> None:
    assert from_plain(Outer, {**WHOLE, "nane": 1}, RULES) == from_plain(Outer, WHOLE, RULES)
    with pytest.raises(ValueError, match=r"^unknown key 'nane'; did you mean 'name'\?$"):
        from_plain(Outer, {**WHOLE, "nane": 1}, CLOSED)
