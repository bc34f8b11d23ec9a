"""A mapped list that shrank between a run and its clear: what the commit aborts, what it only names, what it leaves."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow.sdk import DAG

from airflow_lance.compat import states_of_instances
from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.commit import LanceCommitOperator
from lance_core.io.resolve import resolve_store
from lance_core.publish.attempts import list_staged
from tests.airflow.operator_support import FakeTi, execute, ids, make_table

LATER = datetime.now(timezone.utc) + timedelta(hours=1)
STATES: dict[int, str | None] = {0: "success", 1: "success", 2: "removed"}


class _Ti(FakeTi):
    """A commit's task instance, which Airflow tells the states of the mapped task's instances."""

    states: dict[int, str | None]
    start_date: datetime

    def get_task_states(self, *, dag_id: str, task_ids: list[str], run_ids: list[str]) -> dict[str, Any]:
        assert (dag_id, run_ids) == (self.dag_id, [self.run_id])
        (task_id,) = task_ids
        return {self.run_id: {f"{task_id}_{index}": state for index, state in self.states.items()}}


class _Case:
    """Ten rows staged by each of three instances; the commit gets what it is given."""

    def __init__(self, tmp_path: Path, *, num_commits: int = 1) -> None:
        self.uri = make_table(tmp_path / "t.lance", 0)
        sources = []
        for number in range(3):
            path = tmp_path / f"{number}.parquet"
            pq.write_table(pa.table({"id": range(100 * number + 100, 100 * number + 110), "day": [1] * 10}), path)
            sources.append(str(path))
        with DAG("d", schedule=None):
            mapped = LanceAppendOperator.partial(task_id="each", uri=self.uri, execution="local").expand(source=sources)
            names = [f"commit_{number}" for number in range(num_commits)]
            commits = [LanceCommitOperator(task_id=name, staged=mapped.output) for name in names]
        self.commit = commits[0]
        self.references = [self.stage(number, source) for number, source in enumerate(sources)]

    def stage(self, map_index: int, source: str, *, task_id: str = "each", run_id: str = "r") -> dict[str, Any]:
        operator = LanceAppendOperator(task_id=task_id, uri=self.uri, source=source, execution="local")
        staged: dict[str, Any] = execute(operator, map_index=map_index, run_id=run_id)
        return staged

    def publish(self, *received: Any, states: dict[int, str | None] | None = None, began: datetime = LATER) -> None:
        self.commit.staged = [*received]
        ti = _Ti("commit_0", "r")
        ti.states, ti.start_date = STATES if states is None else states, began
        self.commit.execute({"ti": ti, "outlet_events": {}})  # type: ignore[typeddict-item]

    def waiting(self) -> list[int]:
        return sorted(int(entry.asked["map_index"]) for entry in list_staged(resolve_store(self.uri)))


@pytest.mark.parametrize("is_received", [True, False], ids=["its-old-reference-comes", "it-does-not-come"])
def test_a_member_that_its_list_has_lost_is_aborted_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], is_received: bool
) -> None:
    """Airflow 3 keeps the XCom of an instance that it has removed, and hands it on."""
    case = _Case(tmp_path)
    first, second, third = case.references
    case.publish(first, second, *[third] * is_received)
    said = capsys.readouterr().out
    assert f"each[2] is no longer part of its list: the 10 rows that it had staged ({third['identity']})" in said
    assert "were aborted" in said
    assert case.waiting() == []
    assert ids(case.uri) == [*range(10), *range(100, 110), *range(200, 210)]


def test_a_list_that_has_lost_all_its_members_publishes_nothing(tmp_path: Path) -> None:
    case = _Case(tmp_path)
    other = case.stage(0, str(tmp_path / "0.parquet"), task_id="other")
    case.publish(*case.references, states=dict.fromkeys(range(3), "removed"))
    assert ids(case.uri) == [*range(10)]
    assert [entry.identity for entry in list_staged(resolve_store(case.uri))] == [other["identity"]]


@pytest.mark.parametrize(
    ("states", "began", "with_none"),
    [
        pytest.param({0: "success", 1: "success", 2: "failed"}, LATER, False, id="an-instance-failed"),
        pytest.param({0: "success", 1: "success", 2: "success"}, LATER, False, id="an-instance-was-left-out"),
        pytest.param({0: "success", 1: "skipped", 2: "removed"}, LATER, False, id="an-instance-was-skipped"),
        pytest.param(STATES, LATER, True, id="a-member-is-none"),
        pytest.param(STATES, datetime(2000, 1, 1, tzinfo=timezone.utc), False, id="staged-since-the-commit-began"),
    ],
)
def test_what_may_still_be_published_is_named_and_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], states: dict[int, str | None], began: datetime, with_none: bool
) -> None:
    case = _Case(tmp_path)
    case.publish(*case.references[:2], *[None] * with_none, states=states, began=began)
    assert "each[2] has staged 10 rows" in capsys.readouterr().out
    assert case.waiting() == [2]


def test_what_another_commit_task_may_bring_is_named_and_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = _Case(tmp_path, num_commits=2)
    case.publish(*case.references[:2])
    assert "were left, because commit_1 takes them as well" in capsys.readouterr().out
    assert case.waiting() == [2]


def test_other_tasks_and_other_runs_are_not_even_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = _Case(tmp_path)
    source = str(tmp_path / "0.parquet")
    case.stage(7, source, task_id="other")
    case.stage(2, source, run_id="another")
    case.publish(*case.references)
    assert "has staged" not in capsys.readouterr().out
    assert case.waiting() == [2, 7]


def test_work_that_has_landed_stays(tmp_path: Path) -> None:
    case = _Case(tmp_path)
    case.publish(*case.references, states=dict.fromkeys(range(3), "success"))
    case.publish(*case.references[:2])
    assert ids(case.uri) == [*range(10), *range(100, 110), *range(200, 210), *range(300, 310)]


def test_airflow_2_says_the_states_by_its_database() -> None:
    instances = [SimpleNamespace(task_id="each", map_index=0, state="success")]
    instances += [SimpleNamespace(task_id="each", map_index=1, state="removed")]
    instances += [SimpleNamespace(task_id="commit", map_index=-1, state="running")]
    ti = SimpleNamespace(get_dagrun=lambda: SimpleNamespace(get_task_instances=lambda: instances))
    assert states_of_instances(ti, "each") == {0: "success", 1: "removed"}
    assert states_of_instances(SimpleNamespace(), "each") == {}
