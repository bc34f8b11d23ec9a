"""Which errors Airflow retries: the table of the design, error by error."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_lance.execution.errors import as_airflow_errors
from airflow_lance.operators.append import LanceAppendOperator
from airflow_lance.operators.delete import LanceDeleteOperator
from lance_core import errors
from tests.airflow.operator_support import execute, make_table


@pytest.mark.parametrize("kind", [errors.RetryableConflictError, errors.StoreError])
def test_what_may_heal_is_left_to_airflows_retry(kind: type[errors.LanceError]) -> None:
    with pytest.raises(kind), as_airflow_errors():
        raise kind("busy")


@pytest.mark.parametrize(
    "kind",
    [
        errors.IncompatibleConflictError,
        errors.InputError,
        errors.SchemaMismatchError,
        errors.FormatError,
        errors.CorruptFileError,
        errors.UnsupportedFeatureError,
        errors.UnsupportedRecordError,
        errors.NotFoundError,
        errors.GateFailedError,
        errors.PreconditionError,
    ],
)
def test_what_a_retry_cannot_mend_fails_at_once_with_the_cure(kind: type[errors.LanceError]) -> None:
    with (
        pytest.raises(AirflowFailException, match=rf"{kind.__name__}: it is wrong\. Mend it\.") as caught,
        as_airflow_errors(),
    ):
        raise kind("it is wrong", cure="Mend it.")
    assert isinstance(caught.value.__cause__, kind)


def test_an_unknown_outcome_names_the_command_that_settles_it() -> None:
    with pytest.raises(AirflowFailException, match="lance staged list s3://lake/t") as caught, as_airflow_errors():
        raise errors.CommitStateUnknownError("nobody can tell", uri="s3://lake/t")
    assert "lance staged abort s3://lake/t" in str(caught.value)
    assert "not retried" in str(caught.value)


def test_other_errors_pass() -> None:
    with pytest.raises(OSError, match="disk"), as_airflow_errors():
        raise OSError("disk full")


DEFECTS: dict[str, Any] = {
    "recursion": "def run(depth=0): run()",
    "overflow": "def run(): (2.0).__pow__(10**6)",
    "key": "def run(): {}[0]",
    "attribute": "def run(): None.rows",
    "json": "import json\ndef run(): json.loads('{')",
    "arrow": "import pyarrow\ndef run(): pyarrow.array([1]).cast(pyarrow.list_(pyarrow.int8()))",
}


def _module(name: str, code: str) -> Any:
    module = types.ModuleType(name)
    exec(code, module.__dict__)
    return module


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_of_ours_is_not_retried_and_one_of_a_source_is(name: str) -> None:
    with pytest.raises(AirflowFailException, match="lance validate") as caught, as_airflow_errors("s3://lake/t"):
        _module("lance_core.planted", DEFECTS[name]).run()
    assert not isinstance(caught.value.__cause__, errors.LanceError)
    with pytest.raises(Exception) as passed, as_airflow_errors("s3://lake/t"):
        _module("our_company.sources", DEFECTS[name]).run()
    assert not isinstance(passed.value, AirflowFailException)
    assert type(passed.value) is type(caught.value.__cause__)


def test_a_sources_own_error_is_left_to_airflows_retry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "our_source", _module("our_source", "def rows(**_): return {}['today']"))
    uri = make_table(tmp_path / "t.lance", 0)
    operator = LanceAppendOperator(task_id="a", uri=uri, source={"callable": "our_source:rows"}, execution="local")
    with pytest.raises(Exception, match="today") as caught:
        execute(operator)
    assert not isinstance(caught.value, AirflowFailException)


def test_a_task_on_a_table_that_breaks_the_library_fails_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = make_table(tmp_path / "t.lance", 0)
    monkeypatch.setattr("lance_core.jobs.api.run_job", lambda *_, **__: _module("lance_core.planted", DEFECTS["key"]).run())
    with pytest.raises(AirflowFailException, match="KeyError: 0"):
        execute(LanceDeleteOperator(task_id="d", uri=uri, predicate="id = 1", execution="local"))
