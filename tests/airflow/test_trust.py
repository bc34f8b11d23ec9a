"""What operators let a table, a template or an XCom decide."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from airflow_lance.compat import AirflowFailException
from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.commit import LanceCommitOperator
from airflow_lance.operators.delete import LanceDeleteOperator
from airflow_lance.operators.replace_where import LanceReplaceWhereOperator
from airflow_lance.operators.update import LanceUpdateOperator
from lance_core.errors import InputError
from tests.airflow.operator_support import execute, ids, make_table

CALLS: list[int] = []


def attacker(**kwargs: Any) -> pa.Table:
    CALLS.append(os.getpid())
    return pa.table({"id": [666], "day": [0]})


def honest(**kwargs: Any) -> pa.Table:
    return pa.table({"id": [100], "day": [0]})


@pytest.fixture
def uri(tmp_path: Path) -> str:
    CALLS.clear()
    return make_table(tmp_path / "t.lance", 0)


def _replace(uri: str, **fields: Any) -> LanceReplaceWhereOperator:
    source = {"callable": f"{__name__}:honest"}
    return LanceReplaceWhereOperator(task_id="r", uri=uri, predicate="day = 0", source=source, execution="local", **fields)


@pytest.mark.parametrize("re_execute", [True, False])
def test_a_commit_task_runs_no_callable_that_a_record_names(uri: str, re_execute: bool) -> None:
    staged = execute(_replace(uri))
    lance.write_dataset(pa.table({"id": [50], "day": [0]}), uri, mode="append")
    (record,) = Path(uri).glob("_lance_core/staged/*.started.json")
    plain = json.loads(record.read_text())
    plain["attempt"]["spec"]["source"] = {"callable": f"{__name__}:attacker"}
    record.write_text(json.dumps(plain))
    (finished,) = Path(uri).glob("_lance_core/decisions/*.000001.json")
    finished.write_text(json.dumps({**json.loads(finished.read_text()), "spec": plain["attempt"]["spec"]}))
    with pytest.raises(Exception, match=r"re-execute|has since added rows"):
        execute(LanceCommitOperator(task_id="c", staged=staged, re_execute=re_execute))
    assert CALLS == []
    assert ids(uri) == [*range(10), 50]


def test_the_digest_in_the_xcom_is_the_workers_own(uri: str) -> None:
    staged = execute(_replace(uri))
    (finished,) = Path(uri).glob("_lance_core/decisions/*.000001.json")
    known = json.loads(finished.read_text())
    finished.write_text(json.dumps({**known, "finished": {**known["finished"], "uri": "s3://elsewhere/t"}}))
    again = execute(_replace(uri))
    assert len(staged["digest"]) == 64
    assert (again["digest"], again["uri"]) == (staged["digest"], uri)


def test_a_deployment_says_which_callables_jobs_may_name(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__LANCE__ALLOWED_CALLABLES", "our.sources:*, our.gates:no_gaps")
    operator = LanceAppendOperator(task_id="a", uri=uri, source={"callable": f"{__name__}:attacker"}, execution="local")
    with pytest.raises(AirflowFailException, match="allowed_callables"):
        execute(operator)
    monkeypatch.setenv("AIRFLOW__LANCE__ALLOWED_CALLABLES", f"{__name__}:honest")
    staged = execute(_replace(uri))
    with pytest.raises(AirflowFailException, match="allowed_callables"):
        execute(LanceCommitOperator(task_id="c", staged=staged, gates=[{"callable": f"{__name__}:attacker"}]))
    assert CALLS == []
    execute(LanceCommitOperator(task_id="c", staged=staged, gates=[{"min_rows": 1}]))
    assert ids(uri) == [100]


@pytest.mark.parametrize(
    "name",
    ["os.system", "json.dumps", "stolen", "instance", "wrapped", "Path", "_hidden", "honest.__globals__", "__loader__",
     "partial", "getcwd"],
)  # fmt: skip
def test_a_pattern_for_a_module_allows_what_the_module_defined(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """`our_company.sources:*` let a template run `our_company.sources:os.system`: only the text was checked."""
    (tmp_path / "our_sources.py").write_text(_MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("AIRFLOW__LANCE__ALLOWED_CALLABLES", "our_sources:*")
    source = {"callable": f"our_sources:{name}", "kwargs": {}}
    with pytest.raises(AirflowFailException, match="allowed_callables"):
        execute(LanceAppendOperator(task_id="a", uri=uri, source=source, execution="local"))
    gate = {"callable": f"our_sources:{name}"}
    staged = execute(LanceAppendOperator(task_id="b", uri=uri, source={"callable": "our_sources:honest"}, execution="local"))
    with pytest.raises(AirflowFailException, match="allowed_callables"):
        execute(LanceCommitOperator(task_id="c", staged=staged, gates=[gate]))
    execute(LanceCommitOperator(task_id="d", staged=staged))
    assert ids(uri) == [*range(10), 100]


def test_decorated_functions_and_classes_of_a_module_are_allowed(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "our_other.py").write_text(_MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("AIRFLOW__LANCE__ALLOWED_CALLABLES", "our_other:*")
    for name in ("honest", "decorated", "Rows"):
        execute(LanceAppendOperator(task_id=name, uri=uri, source={"callable": f"our_other:{name}"}, execution="local"))


_MODULE = """
import functools, json, os
from os import getcwd, system as stolen
from pathlib import Path
import pyarrow as pa
import textwrap

def honest():
    return pa.table({"id": [100], "day": [0]})

def _hidden():
    return honest()

class Rows:
    def __arrow_c_stream__(self, requested_schema=None):
        return honest().__arrow_c_stream__()

class _Instance:
    def __call__(self, *args, **kwargs):
        return honest()

instance = _Instance()
partial = functools.partial(honest)
wrapped = functools.lru_cache(textwrap.dedent)

def decorator(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        return function(*args, **kwargs)
    return inner

decorated = decorator(honest)
"""


EVIL = "0' OR 'a' = 'a"
BOUND: dict[str, Any] = {
    "delete": lambda uri, value: LanceDeleteOperator(
        task_id="t", uri=uri, predicate="s = :day", predicate_params={"day": value}, execution="local"
    ),
    "update": lambda uri, value: LanceUpdateOperator(
        task_id="t",
        uri=uri,
        updates={"s": ":day || :end"},
        where="s = :day",
        predicate_params={"day": value, "end": "!"},
        execution="local",
    ),
    "replace_where": lambda uri, value: LanceReplaceWhereOperator(
        task_id="t",
        uri=uri,
        predicate="s = :day",
        predicate_params={"day": value},
        source={"callable": f"{__name__}:nothing"},
        allow_empty=True,
        execution="local",
    ),
}


def nothing(**kwargs: Any) -> pa.Table:
    return pa.table({"s": pa.array([], pa.string())})


@pytest.mark.parametrize("verb", BOUND)
def test_a_template_that_fills_in_a_value_cannot_change_the_filter(tmp_path: Path, verb: str) -> None:
    place = str(tmp_path / "texts.lance")
    lance.write_dataset(pa.table({"s": ["0", "1", EVIL]}), place)
    operator = BOUND[verb](place, "{{ params.day }}")
    operator.render_template_fields({"params": {"day": EVIL}})
    staged = execute(operator)
    execute(LanceCommitOperator(task_id="c", staged=staged))
    found = lance.dataset(place).to_table()["s"].to_pylist()
    assert found == ["0", "1", *([EVIL + "!"] if verb == "update" else [])]


@pytest.mark.parametrize("verb", BOUND)
def test_a_value_that_no_filter_names_is_refused(uri: str, verb: str) -> None:
    operator = BOUND[verb](uri, "0")
    operator.predicate_params["other"] = 1
    with pytest.raises((AirflowFailException, InputError), match=":other"):
        execute(operator)
