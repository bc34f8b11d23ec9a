"""One list names the operators: the faces, the description for Airflow, the reference, the guide and the matrix DAG have
them all, and every argument that a class takes can be seen by an editor."""

from __future__ import annotations

import inspect
import re
import runpy
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import pytest
from airflow.sdk import BaseOperator
from airflow.sdk.bases.sensor import BaseSensorOperator

import airflow_lance
from airflow_lance import operators, signatures
from airflow_lance.decorators.lance import _MODES, Mode
from airflow_lance.execution.fields import own_fields, spec_class
from airflow_lance.get_provider_info import get_provider_info
from airflow_lance.maintenance import group as operators_of_maintenance
from airflow_lance.maintenance.actions import LanceActionOperator
from airflow_lance.operators import BASES, OPERATORS
from airflow_lance.operators.job import LanceJobOperator

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "airflow_lance" / "operators"
SENSORS = {name for name in airflow_lance.__all__ if name.endswith("Sensor")}
PUBLIC = [name for name in OPERATORS if name not in BASES]
MADE_BY_A_GROUP = {"LancePublishBranchOperator": "LanceWriteAuditPublish"}


def _class(name: str) -> Any:
    return getattr(airflow_lance, name)


def test_every_class_of_the_folder_is_in_the_list() -> None:
    found = {
        name: f"airflow_lance.operators.{path.stem}"
        for path in FOLDER.glob("*.py")
        for name in re.findall(r"^class (Lance\w+)", path.read_text(), re.MULTILINE)
    }
    assert found == {**OPERATORS}
    assert set(BASES) < set(OPERATORS)


@pytest.mark.parametrize("name", OPERATORS)
def test_both_faces_have_it(name: str) -> None:
    assert getattr(operators, name) is getattr(airflow_lance, name) is getattr(import_module(OPERATORS[name]), name)
    assert name in operators.__all__
    assert name in airflow_lance.__all__


@pytest.mark.parametrize("name", PUBLIC)
def test_every_place_that_lists_operators_has_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (room,) = get_provider_info()["operators"]
    assert OPERATORS[name] in room["python-modules"]
    assert name in (ROOT / "docs" / "operators.md").read_text(), "the guide has no section"
    matrix = (ROOT / "tests" / "matrix" / "dags" / "lance_matrix.py").read_text()
    assert MADE_BY_A_GROUP.get(name, name) in matrix, "the matrix DAG does not run it"
    monkeypatch.setattr(sys, "path", [str(ROOT / ".ci"), *sys.path])
    site = runpy.run_path(str(ROOT / ".ci" / "site.py"))
    assert f"::: {OPERATORS[name]}" in site["operator_pages"]().split("\n\n")
    assert site["OPERATORS_PLACE"] in (ROOT / "docs" / "reference" / "operators.md").read_text()


@pytest.mark.parametrize("name", [name for name in PUBLIC if isinstance(getattr(_class(name), "spec", None), str)])
def test_each_argument_is_a_field_of_the_spec(name: str) -> None:
    cls = _class(name)
    fields = own_fields(spec_class(cls.spec))
    assert set(cls.renamed) <= set(fields)
    shared = {*_arguments_of(LanceJobOperator), *_arguments_of(_class("LanceStageOperator")), "on_clear"}
    own = {item for item in _arguments_of(cls) if item not in shared}
    attributes = {"only_report" if item == "dry_run" else item for item in own}
    read = {cls.renamed.get(field, field) for field in fields}
    if name == "LanceSqlOperator":
        return  # its statement says which spec
    readers = ("spec_fields", "_spark_settings")  # of the spec, and of the job that Spark gets
    computed = "".join(inspect.getsource(vars(cls)[reader]) for reader in readers if reader in vars(cls))
    lost = [item for item in attributes - read if f"self.{item}" not in computed]
    assert lost == [], "an argument goes nowhere"


@pytest.mark.parametrize("name", [*OPERATORS, *sorted(SENSORS)])
def test_an_editor_sees_every_argument(name: str) -> None:
    """`**kwargs` says what it stands for, and that is what the bases take, with their types."""
    cls = _class(name)
    own = dict(inspect.signature(cls.__init__).parameters)
    taken = signatures.passed_on(cls)
    if taken is None:
        # A base of Airflow's own has all the rest: nothing here may be hidden behind it.
        assert name == "LanceJobOperator", f"{name}.__init__ hides its arguments behind **kwargs: Any"
        return
    assert not taken & {*own}, "an argument is both explicit and in **kwargs"
    of_bases = _arguments_of(cls) - {*own}
    assert taken <= of_bases, "**kwargs stands for what no base takes"
    missing = of_bases - taken
    assert missing <= {"uri"}, f"not seen by an editor: {sorted(missing)}"
    assert ("uri" in missing) == (name == "LanceSqlOperator")


@pytest.mark.parametrize(
    ("cls", "own"),
    [
        (operators_of_maintenance.LanceMaintenancePlanOperator, {"policy", "lance_conn_id", "tables"}),
        (operators_of_maintenance.LanceMaintenanceStepOperator, {"policy", "lance_conn_id", "steps"}),
        (operators_of_maintenance.LanceMaintenanceAlarmOperator, {"alarms"}),
        (LanceActionOperator, {"lance_conn_ids"}),
    ],
)
def test_an_editor_sees_every_argument_of_maintenance(cls: type, own: set[str]) -> None:
    taken = signatures.passed_on(cls)
    assert taken is not None
    shown = taken | {*inspect.signature(cls.__init__).parameters} - {"self", "kwargs"}  # type: ignore[misc]
    assert shown == _arguments_of(BaseOperator) | own


def test_the_decorator_takes_what_the_operators_of_its_modes_take() -> None:
    """But for the source, and the other ways to compute columns: the function takes their place. Rows that it brings cannot
    be computed again, so what it adds cannot be maintained."""
    function = {"source", "columns", "engine", "function", "reads", "function_kwargs", "maintained"}
    modes = {"append", "overwrite", "replace_where", "merge", "add_columns"}
    assert {*get_args(Mode)} == modes == {*_MODES}
    of_modes = {item for base in _MODES.values() for item in _arguments_of(base.__bases__[1])} - function
    ours = signatures.DecoratedArguments
    assert ours.__required_keys__ == frozenset()
    assert ours.__optional_keys__ | {"uri"} == of_modes | {"inputs"}


def _arguments_of(cls: type) -> set[str]:
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    inits = [vars(base)["__init__"] for base in cls.__mro__ if "__init__" in vars(base) and base is not object]
    return {item.name for init in inits for item in inspect.signature(init).parameters.values() if item.kind in named} - {
        "self"
    }


@pytest.mark.parametrize(
    "base", ["LanceTableOperator", "LanceStageOperator", "LanceImmediateOperator", "LanceWriteOperator", "LanceSensor"]
)
def test_the_types_of_an_argument_are_those_of_the_base(base: str) -> None:
    cls = _class(base)
    arguments = {
        "LanceTableOperator": signatures.TableArguments,
        "LanceStageOperator": signatures.StageArguments,
        "LanceImmediateOperator": signatures.ImmediateArguments,
        "LanceWriteOperator": signatures.WriteArguments,
        "LanceSensor": signatures.SensorArguments,
    }[base]
    own = {item.name: item for item in inspect.signature(cls.__init__).parameters.values() if item.kind is item.KEYWORD_ONLY}
    told = arguments.__annotations__
    for item in own.values():
        text = getattr(told[item.name], "__forward_arg__", str(told[item.name]))
        assert text == (f"Required[{item.annotation}]" if item.default is item.empty else item.annotation), item.name


@pytest.mark.parametrize(
    ("theirs", "ours"), [(BaseOperator, "TaskArguments"), (BaseSensorOperator, "AirflowSensorArguments")]
)
def test_airflows_own_arguments_are_all_there(theirs: Any, ours: str) -> None:
    arguments = getattr(signatures, ours)
    assert _arguments_of(theirs) <= arguments.__required_keys__ | arguments.__optional_keys__


def test_a_signature_has_types_and_defaults() -> None:
    told = inspect.signature(airflow_lance.LanceAppendOperator).parameters
    assert (told["create"].default, told["create"].annotation) == (True, "bool")
    assert (told["schema_drift"].default, told["commit"].annotation) == ("fail", "Commit | None")
    assert [name for name, item in told.items() if item.default is item.empty] == ["source", "uri", "task_id"]
    assert "uri" not in inspect.signature(airflow_lance.LanceSqlOperator).parameters
