"""What a person's clear, a changed argument, a key for the work and an old spelling of the uri mean for work that landed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_lance.compat import AirflowFailException
from airflow_lance.decorators.lance import lance_task
from airflow_lance.operators.add_columns import LanceAddColumnsOperator
from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.build_index import LanceBuildIndexOperator
from airflow_lance.operators.compact import LanceCompactOperator
from airflow_lance.operators.delete import LanceDeleteOperator
from airflow_lance.operators.merge import LanceMergeOperator
from airflow_lance.operators.optimize_indices import LanceOptimizeIndicesOperator
from airflow_lance.operators.overwrite import LanceOverwriteOperator
from airflow_lance.operators.replace_where import LanceReplaceWhereOperator
from airflow_lance.operators.restore import LanceRestoreOperator
from airflow_lance.operators.tag import LanceTagOperator
from airflow_lance.operators.update import LanceUpdateOperator
from lance_core.errors import InputError
from tests.airflow.operator_support import execute, ids, make_table


@pytest.fixture
def rows(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """`rows(100, day=10)`: a source of ten rows, in a file that is written anew."""

    def make(start: int, *, day: int = 10, name: str = "rows") -> dict[str, Any]:
        path = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table({"id": list(range(start, start + 10)), "day": [day] * 10}), path)
        return {"format": "parquet", "paths": [str(path)]}

    return make


def _append(uri: str, source: Any, **arguments: Any) -> LanceAppendOperator:
    return LanceAppendOperator(task_id="append", uri=uri, source=source, execution="local", retries=2, **arguments)


def _outcome(result: dict[str, Any]) -> str:
    (outcome,) = result["identities"].values()
    return str(outcome)


@pytest.mark.parametrize("kind", ["overwrite", "replace_where", "merge"])
def test_what_gives_the_same_rows_is_done_again_for_a_person_once(tmp_path: Path, rows: Any, kind: str) -> None:
    uri = make_table(tmp_path / "t.lance", 0)
    shared: dict[str, Any] = {"task_id": "t", "uri": uri, "source": rows(100), "execution": "local", "retries": 2}
    if kind == "overwrite":
        operator: Any = LanceOverwriteOperator(**shared)
    elif kind == "replace_where":
        operator = LanceReplaceWhereOperator(predicate="day = 10", **shared)
    else:
        operator = LanceMergeOperator(on="id", **shared)
    first = execute(operator, publishes=True)
    rows(200 if kind == "merge" else 100, day=10)  # the file's data was corrected; its name, and so the spec, is the same
    assert _outcome(execute(operator, publishes=True)) == "already_committed", "an automatic retry"
    cleared = execute(operator, publishes=True, cleared_after=1)
    assert (_outcome(cleared), cleared["version"] > first["version"]) == ("committed", True)
    retried = execute(operator, publishes=True, cleared_after=1)
    assert (_outcome(retried), retried["version"]) == ("already_committed", cleared["version"]), "a retry after the clear"
    twice = execute(operator, publishes=True, cleared_after=4)
    assert (_outcome(twice), twice["version"] > cleared["version"]) == ("committed", True), "a second clear"
    assert len(ids(uri)) == {"overwrite": 10, "replace_where": 20, "merge": 30}[kind]


@pytest.mark.parametrize("kind", ["append", "delete", "update"])
def test_other_work_is_refused_with_the_cure_when_a_person_clears_it(tmp_path: Path, rows: Any, kind: str) -> None:
    uri = make_table(tmp_path / "t.lance", 0, 10)
    operators: dict[str, Callable[..., Any]] = {
        "append": lambda **more: _append(uri, rows(100), **more),
        "delete": lambda **more: LanceDeleteOperator(task_id="t", uri=uri, predicate="id < 5", execution="local", **more),
        "update": lambda **more: LanceUpdateOperator(
            task_id="t", uri=uri, updates={"day": "day + 1"}, where="id >= 15", execution="local", **more
        ),
    }
    make = operators[kind]
    version = execute(make(), publishes=True)["version"]
    assert _outcome(execute(make(), publishes=True)) == "already_committed"
    with pytest.raises(AirflowFailException, match=r"its task was cleared.*on_clear=.again.") as refusal:
        execute(make(), publishes=True, cleared_after=1)
    assert f"version {version}" in str(refusal.value)
    assert lance.dataset(uri).version == version
    assert _outcome(execute(make(on_clear="skip"), publishes=True, cleared_after=1)) == "already_committed"
    assert lance.dataset(uri).version == version
    assert _outcome(execute(make(on_clear="again"), publishes=True, cleared_after=1)) == "committed"


def test_what_was_staged_before_a_clear_and_not_published_is_staged_anew(tmp_path: Path, rows: Any) -> None:
    uri = make_table(tmp_path / "t.lance", 0)
    before = execute(_append(uri, rows(100)))
    rows(200)
    after = execute(_append(uri, rows(200)), cleared_after=1)
    assert after["attempt"] != before["attempt"]
    result = execute(_append(uri, rows(200)), publishes=True, cleared_after=1)
    assert (_outcome(result), ids(uri)) == ("committed", [*range(10), *range(200, 210)])


def test_another_spec_under_the_same_task_instance_is_named_with_both_askers(tmp_path: Path, rows: Any) -> None:
    """The list that a task is mapped over changed between two tries: index 0 has other work now."""
    uri = make_table(tmp_path / "t.lance", 0)
    execute(_append(uri, rows(100, name="a")), publishes=True, map_index=0)
    with pytest.raises(AirflowFailException, match=r"its work differs: digest \w+ of .*, now digest \w+ of"):
        execute(_append(uri, rows(200, name="b")), publishes=True, map_index=0)
    assert ids(uri) == [*range(10), *range(100, 110)]
    assert _outcome(execute(_append(uri, rows(100, name="a")), publishes=True, map_index=1)) == "committed"


def test_an_idempotency_key_takes_the_place_of_dag_run_and_task(tmp_path: Path, rows: Any) -> None:
    uri = make_table(tmp_path / "t.lance", 0)
    keyed = {"idempotency_key": "orders/2013-01-01"}
    assert _outcome(execute(_append(uri, rows(100), **keyed), publishes=True, run_id="manual-1")) == "committed"
    assert _outcome(execute(_append(uri, rows(100), **keyed), publishes=True, run_id="manual-2")) == "already_committed"
    assert ids(uri) == [*range(10), *range(100, 110)]
    with pytest.raises(AirflowFailException, match="its work differs"):
        execute(_append(uri, rows(200, name="b"), **keyed), publishes=True, run_id="manual-3")
    # The map index, the key and the table stay part of it.
    assert _outcome(execute(_append(uri, rows(100), **keyed), publishes=True, map_index=0)) == "committed"
    assert _outcome(execute(_append(uri, rows(100), key="b", **keyed), publishes=True)) == "committed"
    other = make_table(tmp_path / "other.lance", 0)
    assert _outcome(execute(_append(other, rows(100), **keyed), publishes=True)) == "committed"
    # Two runs that are cleared after as many tries are two clears.
    for run_id in ("manual-1", "manual-2"):
        again = _append(uri, rows(100), on_clear="again", **keyed)
        assert _outcome(execute(again, publishes=True, run_id=run_id, cleared_after=1)) == "committed"


def test_an_empty_idempotency_key_is_refused(tmp_path: Path, rows: Any) -> None:
    with pytest.raises(AirflowFailException, match="idempotency_key is empty"):
        execute(_append(str(tmp_path / "t.lance"), rows(0), idempotency_key=" "), publishes=True)


def test_a_function_whose_arguments_changed_is_not_taken_for_done(tmp_path: Path) -> None:
    calls: list[str] = []

    def load(day: str) -> dict[str, Any]:
        calls.append(day)
        return {"id": [int(day)]}

    def task(day: str, **more: Any) -> Any:
        return lance_task(load, uri=str(tmp_path / "t.lance"), **more)(day).operator

    assert _outcome(execute(task("1"), publishes=True)) == "committed"
    assert (_outcome(execute(task("1"), publishes=True)), calls) == ("already_committed", ["1"])
    with pytest.raises(AirflowFailException, match="its work differs"):
        execute(task("2"), publishes=True)
    assert (ids(str(tmp_path / "t.lance")), calls) == ([1], ["1"])
    assert _outcome(execute(task("2", on_clear="again"), publishes=True, cleared_after=1)) == "committed"
    assert ids(str(tmp_path / "t.lance")) == [1, 2]


def test_the_work_of_a_function_is_the_same_on_a_machine_with_another_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tempfile

    def load() -> dict[str, Any]:
        return {"id": [1]}

    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / place))
        execute(lance_task(load, uri=str(tmp_path / "t.lance"))().operator, publishes=True)
    assert ids(str(tmp_path / "t.lance")) == [1]


def test_a_cleared_tag_stays_unless_it_is_wanted_again(tmp_path: Path) -> None:
    uri = make_table(tmp_path / "t.lance", 0)
    for on_clear, expected in (("skip", 1), ("again", 2)):
        tag = LanceTagOperator(task_id=f"tag_{on_clear}", uri=uri, tag=on_clear, on_clear=on_clear)  # type: ignore[arg-type]
        execute(tag)
        if lance.dataset(uri).version == 1:
            lance.write_dataset(pa.table({"id": [1], "day": [1]}), uri, mode="append")
        execute(tag, cleared_after=1)
        assert lance.dataset(uri).tags.list()[on_clear]["version"] == expected


def test_a_cleared_restore_stays_unless_it_is_wanted_again(tmp_path: Path) -> None:
    for on_clear, version in (("skip", 4), ("again", 5)):
        uri = make_table(tmp_path / f"{on_clear}.lance", 0, 10)
        restore = LanceRestoreOperator(task_id="restore", uri=uri, version=1, if_moved="overwrite", on_clear=on_clear)  # type: ignore[arg-type]
        execute(restore)
        lance.write_dataset(pa.table({"id": [99], "day": [9]}), uri, mode="append")
        execute(restore, cleared_after=1)
        execute(restore, cleared_after=1)
        assert lance.dataset(uri).version == version


@pytest.mark.parametrize("kind", ["compact", "optimize", "columns", "index"])
def test_maintenance_is_done_again_where_a_person_says_so(tmp_path: Path, kind: str) -> None:
    uri = make_table(tmp_path / "t.lance", 0, 10)
    shared: dict[str, Any] = {"task_id": "t", "uri": uri, "execution": "local"}
    if kind == "optimize":
        lance.dataset(uri).create_scalar_index("id", "BTREE")
        lance.write_dataset(pa.table({"id": [99], "day": [9]}), uri, mode="append")
    makers: dict[str, Callable[..., Any]] = {
        "compact": lambda **more: LanceCompactOperator(**shared, **more),
        "optimize": lambda **more: LanceOptimizeIndicesOperator(**shared, **more),
        "columns": lambda **more: LanceAddColumnsOperator(columns={"twice": "id * 2"}, **shared, **more),
        "index": lambda **more: LanceBuildIndexOperator(column="id", index_type="BTREE", **shared, **more),
    }
    execute(makers[kind](), publishes=True)
    with pytest.raises(AirflowFailException, match="its task was cleared"):
        execute(makers[kind](), publishes=True, cleared_after=1)
    if kind == "columns":
        lance.dataset(uri).drop_columns(["twice"])
    again = execute(makers[kind](on_clear="again"), publishes=True, cleared_after=1)
    retried = execute(makers[kind](on_clear="again"), publishes=True, cleared_after=1)
    assert (_outcome(retried), retried["version"]) == ("already_committed", again["version"])
    assert ids(uri)


def test_an_unknown_word_is_refused_when_the_dag_is_parsed(tmp_path: Path, rows: Any) -> None:
    with pytest.raises(InputError, match="on_clear must be one of again, fail, skip"):
        _append(str(tmp_path / "t.lance"), rows(0), on_clear="twice")
