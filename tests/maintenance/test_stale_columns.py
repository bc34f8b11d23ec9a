"""Declared columns in a policy: due by share or by age, within a bound, with the functions that the policy names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_core
from lance_core.errors import InputError
from lance_core.maintenance.api import carry_out, plan_now
from lance_core.maintenance.facts.table import observed_page
from lance_core.maintenance.observe import observe
from lance_core.maintenance.policy import Budget, ManagedTable, Policy, ServiceLevels, TableRule
from lance_core.maintenance.policy_file import parse_policy
from tests.computed.functions import SHOUT


@pytest.fixture
def uri(tmp_path: Path) -> str:
    place = str(tmp_path / "t.lance")
    lance_core.write_dataset(pa.table({"text": ["a", "b", "c", "d"]}), place)
    lance_core.declare_column(place, "loud", function=SHOUT, inputs=["text"], type=pa.string())
    return place


def _run(uri: str, *, functions: tuple[str, ...] = (SHOUT,), **levels: Any) -> list[Any]:
    rule = TableRule(match="*", steps=("refresh_columns",), functions=functions)
    policy = Policy(
        base_uri=str(Path(uri).parent), tables=(rule,), levels=ServiceLevels(**levels), budget=Budget(backoff_seconds=0)
    )
    plan = plan_now(policy, tables=[ManagedTable(uri=uri)])
    return carry_out(policy, plan.steps) if plan.steps else [item.reason for item in plan.skipped]


def test_a_share_makes_a_refresh_due_and_a_bound_divides_it(uri: str) -> None:
    assert _run(uri) == ["neither max_stale_share nor max_stale_age is set"]
    (row,) = _run(uri, max_stale_share=0.5, max_refresh_rows=3)
    assert (row.action, row.outcome, row.error) == ("refresh_columns", "done", None)
    assert lance_core.dataset(uri).count_rows("loud IS NOT NULL") == 3
    (row,) = _run(uri, max_stale_share=0.5)
    assert lance_core.dataset(uri).count_rows("loud IS NOT NULL") == 4
    assert _run(uri, max_stale_share=0.5) == ["no declared column has rows that no refresh has seen"]
    lance_core.write_dataset(pa.table({"text": ["e"]}), uri, mode="append")
    assert _run(uri, max_stale_share=0.5) == ["at most 20% of a declared column's rows may be stale"]
    assert "may be stale" in _run(uri, max_stale_age=3600)[0], "it was refreshed a moment ago"
    assert _run(uri, max_stale_age=0)[0].outcome == "done"


def test_a_function_that_the_policy_does_not_name_fails_the_step(uri: str) -> None:
    (row,) = _run(uri, functions=(), max_stale_share=0)
    assert row.outcome == "failed"
    assert "which the caller did not name" in row.error


def test_what_an_observation_tells_of_columns(uri: str) -> None:
    (column,) = observe(ManagedTable(uri=uri)).declared
    assert (column.name, column.kind, column.function, column.stale_rows) == ("loud", "python", SHOUT, 4)
    assert column.refreshed_at is None
    _run(uri, max_stale_share=0)
    (column,) = observe(ManagedTable(uri=uri)).declared
    assert (column.stale_rows, column.failed_rows) == (0, 0)
    assert column.refreshed_at is not None


def test_a_policy_file_says_it() -> None:
    text = "base_uri: /lake\nlevels: {max_stale_share: 0.05, max_stale_age: 36h}\n"
    policy = parse_policy(text + 'tables: [{match: "*", functions: ["m:f"]}]\n')
    assert (policy.levels.max_stale_age, policy.tables[0].functions) == (129_600.0, ("m:f",))
    with pytest.raises(InputError, match="max_stale_share must be between 0 and 1"):
        parse_policy("base_uri: /lake\nlevels: {max_stale_share: 2.0}\n")


def test_the_table_page_tells_how_fresh_its_columns_are(uri: str) -> None:
    def page() -> Any:
        (column,) = observed_page(ManagedTable(uri=uri), ServiceLevels())[1]["declared"]
        return column

    before = page()
    assert (before["name"], before["stale_rows"], before["stale_share"]) == ("loud", 4, 1.0)
    assert before["refreshed_at"] is None
    _run(uri, max_stale_share=0)
    lance_core.write_dataset(pa.table({"text": ["e", "f", "g!", "h"]}), uri, mode="append")
    after = page()
    assert (after["stale_rows"], after["stale_share"], after["failed_rows"]) == (4, 0.5, 0)
    assert after["refreshed_at"] > 0
    json.dumps(after)
